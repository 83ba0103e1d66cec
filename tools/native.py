"""Builds of the compiled kernels, and what each must pass.

python tools/native.py levels tests/twins ...    every set of instructions this machine has, each through the tests
python tools/native.py warnings all              every level by every compiler that is there; a warning is an error
python tools/native.py memory tests/twins ...    the tests under AddressSanitizer and UBSan
python tools/native.py wheel dist                the newest wheel of a folder, in an empty environment without compilers
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
COMPILERS = ("g++", "clang++")


def run(*command, **variables):
    """Run a command here; its failure is ours."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, env={**os.environ, **variables}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def build(folder, **settings):
    """Configure and build with cmake; settings are those of CMakeLists.txt."""
    beside = Path(sys.executable).parent
    tools = {name: str(beside / name) if (beside / name).exists() else name for name in ("cmake", "ninja")}
    ninja = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools['ninja']}"] if shutil.which(tools["ninja"]) else []
    settings = {"CMAKE_BUILD_TYPE": "Release", "Python_EXECUTABLE": sys.executable, **settings}
    run(tools["cmake"], "-S", ROOT, "-B", folder, *ninja, *(f"-D{name}={value}" for name, value in settings.items()))
    run(tools["cmake"], "--build", folder, "--parallel", os.cpu_count() or 1)


def staged(folder):
    """A copy of the package with the modules that were built in a folder; for PYTHONPATH."""
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "kfree", site / "kfree", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for module in folder.glob("_*.so"):
        shutil.copy(module, site / "kfree" / "kernels" / "native")
    return site


def levels(*tests):
    """The tests at every level that runs here."""
    build(BUILD / "levels", KFREE_LEVELS="all")
    site = staged(BUILD / "levels")
    names = "from kfree.kernels import native; print(*native.usable())"
    found = subprocess.run(
        [sys.executable, "-c", names],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    for level in found.stdout.split():
        print(f"== {level}", flush=True)
        run(sys.executable, "-m", "pytest", "-q", "-n", 2, *tests, PYTHONPATH=str(site), KFREE_LEVEL=level)


def warnings(chosen):
    """Every compiler that is there builds the chosen levels without a word."""
    for compiler in filter(shutil.which, COMPILERS):
        print(f"== {compiler}", flush=True)
        build(BUILD / compiler, KFREE_LEVELS=chosen, KFREE_WERROR="ON", CMAKE_CXX_COMPILER=compiler)


def memory(*tests):
    """The tests with every access and every overflow of integers watched."""
    build(BUILD / "memory", KFREE_LEVELS="machine", KFREE_SANITIZE="address,undefined", CMAKE_CXX_COMPILER="g++")
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name={name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan", "libstdc++")  # the second, as Python itself does not load it early enough
    ]
    run(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests),
        PYTHONPATH=str(staged(BUILD / "memory")),
        LD_PRELOAD=" ".join(libraries),
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
        PYTHONMALLOC="malloc",
    )


def wheel(folder):
    """Install the newest wheel in an empty environment; run the README's first code and the command line there."""
    newest = max(Path(folder).glob("kfree-*.whl"), key=lambda path: path.stat().st_mtime).resolve()
    code = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as empty:
        venv.create(empty, with_pip=True)
        python = Path(empty, "bin", "python")
        # neither a compiler nor this checkout can be found from there
        apart = {"cwd": empty, "env": {**os.environ, "PATH": str(python.parent), "PYTHONPATH": "", "MPLBACKEND": "agg"}}
        run(python, "-m", "pip", "install", "--quiet", newest)
        bare = subprocess.run([python.with_name("kfree")], capture_output=True, text=True, check=False, **apart)
        if bare.returncode != 1 or 'pip install "kfree[cli]"' not in bare.stderr:
            sys.exit(f"without its extra the command line says {bare.stderr!r}")
        run(python, "-m", "pip", "install", "--quiet", f"{newest}[cli]")
        subprocess.run([python, "-c", f"{code}\nimport kfree\nkfree.show_versions()"], check=True, **apart)
        subprocess.run([python.with_name("kfree"), "--help"], check=True, stdout=subprocess.DEVNULL, **apart)
    print(f"{newest.name}: {newest.stat().st_size / 2**20:.1f} MB")


if __name__ == "__main__":
    {function.__name__: function for function in (levels, warnings, memory, wheel)}[sys.argv[1]](*sys.argv[2:])
