"""A real browser without a window, and axe-core, which finds what hinders people who see or move differently."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

#: Names of the program, and places of its driver.
PROGRAMS, DRIVERS = ("chromium", "chromium-browser", "google-chrome"), ("chromedriver", "chromium-driver")


def start_browser():
    """A headless Chromium; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = (next(filter(None, map(shutil.which, names)), None) for names in (PROGRAMS, DRIVERS))
    if program is None or driver is None:
        pytest.skip("Chromium or its driver is not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def find_axe(folder: Path) -> str:
    """The script of axe-core: the file that ``KFREE_AXE`` names, or fetched by npm; skipped where it cannot be had."""
    if "KFREE_AXE" in os.environ:
        return Path(os.environ["KFREE_AXE"]).read_text()
    if shutil.which("npm") is None:
        pytest.skip("axe-core comes by npm, which is not installed (KFREE_AXE names a file of it)")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "axe-core@4"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("axe-core cannot be had by npm here (KFREE_AXE names a file of it)")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
