"""What is released: one version everywhere, and a source distribution that is whole and holds nothing else."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import kfree

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("file", ["pyproject.toml", "CITATION.cff", "conda/recipe/recipe.yaml"])
def test_the_version_is_the_same_everywhere(file):
    said = re.search(r'^\s*version\s*[:=]\s*"?([\d.]+\w*)', (ROOT / file).read_text(), re.MULTILINE)[1]
    assert said == kfree.__version__
    assert f"## [{said}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_conda_recipe_needs_what_the_command_line_needs():
    names = {"matplotlib": "matplotlib-base"}  # what conda calls it, without windows
    extras = PROJECT["optional-dependencies"]
    wanted = sum((extras[name] for name in ("cli", "plot", "report", "files")), PROJECT["dependencies"])
    recipe = (ROOT / "conda" / "recipe" / "recipe.yaml").read_text().split("  run:\n")[1].split("\n\n")[0]
    needed = {line.strip("- ") for line in recipe.splitlines() if line.strip().startswith("- ")}
    parts = [re.match(r"([\w-]+)(.*)", line).groups() for line in wanted if not line.startswith("kfree")]
    assert needed == {"python"} | {f"{names.get(name, name)} {range_}" for name, range_ in parts}


def test_the_source_distribution_is_whole_and_holds_nothing_else(tmp_path):
    pytest.importorskip("scikit_build_core")
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if known.returncode:
        pytest.skip("this is no checkout: nobody knows which files belong to it")
    code = f"import kfree_build; kfree_build.build_sdist({str(tmp_path)!r})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "backend")}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("kfree-*.tar.gz"))) as packed:
        inside = {name.split("/", 1)[1] for name in packed.getnames()}
    ours = {name for name in known.stdout.splitlines() if (ROOT / name).exists()}
    assert ours - inside <= {".ci/run"}
    strange = {name for name in inside - ours if name.endswith((".so", ".pyc", ".whl", ".gz", ".log"))}
    assert not strange
