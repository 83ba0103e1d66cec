"""Draws the picture of docs/guide/report.md: the first part of a report, as Chromium shows it.

python docs/images/make_report.py
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

from kfree import DPMeans, report

HERE = Path(__file__).parent


def main():
    X = load_wine(as_frame=True).data
    X = (X - X.mean()) / X.std()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        page = report(DPMeans().fit(X), X, Path(folder) / "wine.html")
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1120,1640"]
        command = [browser, *flags, f"--screenshot={HERE / 'report.png'}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
