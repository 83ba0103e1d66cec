"""The package as it is installed: nothing is written, nothing goes stale, and it runs without compiled kernels."""

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import kfree
from kfree.kernels import native

ROOT = Path(__file__).parent.parent
HERE = Path(kfree.__file__).parent
FIT = """
import numpy as np, kfree
X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 5, axis=0) + np.arange(10)[:, None] / 50
print(kfree.DPMeans(radius=9.0).fit(X).labels_.tolist())
"""
LABELS = str([0] * 5 + [1] * 5)
#: Nobody may write anything, anywhere: whatever would, raises.
WRITES_NOTHING = """
import sys
import sysconfig
def refuse(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise PermissionError(arguments)
    if event in ("os.mkdir", "os.rename", "os.remove", "shutil.copyfile", "tempfile.mkstemp", "tempfile.mkdtemp"):
        raise PermissionError(event, arguments)
sys.addaudithook(refuse)
"""
#: Whether a row is settled, by the kernel in force.
SETTLED = """
import numpy as np
from kfree.kernels import kernels
print(kernels().unsettled(np.array([1.0]), np.zeros(1), 0.0, np.array([2.0]), np.zeros(1, np.int64)), flush=True)
"""


def run(code, package=None, wanted=0, **variables):
    """What a fresh process says and what it complains of, with no settings of kfree but the chosen ones."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("KFREE", "PYTHONPATH", "COV"))}
    ours |= {"PYTHONPATH": str(package)} if package else {}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**ours, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == wanted, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, for PYTHONPATH."""
    shutil.copytree(HERE, tmp_path / "kfree", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_read_only_installation_without_a_home_fits(copy):
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR", "LOCALAPPDATA"), "/proc/nowhere")
    said, complained = run(WRITES_NOTHING + FIT, copy, PYTHONDONTWRITEBYTECODE="1", **nowhere)
    assert said == LABELS
    assert "kfree" not in complained


def test_a_first_fit_leaves_no_file_behind(copy):
    before = {path for path in copy.rglob("*") if "__pycache__" not in path.parts}
    assert run(FIT, copy)[0] == LABELS
    assert {path for path in copy.rglob("*") if "__pycache__" not in path.parts} == before


def test_an_upgrade_in_place_runs_the_new_code_and_leaves_running_processes_alone(copy, tmp_path):
    if not shutil.which("c++"):
        pytest.skip("there is no compiler to make another version with")
    sources, made = tmp_path / "sources", tmp_path / "made"
    (sources / "native" / "clusters").mkdir(parents=True)
    shutil.copy(ROOT / "CMakeLists.txt", sources)
    for file in ("border.h", "border.cpp", "views.h", "module.cpp", "cpu.h", "cpu.cpp", "contracted.txt"):
        shutil.copy(ROOT / "native" / file, sources / "native")
    for file in ("bounds.h", "bounds.cpp"):
        text = (ROOT / "native" / "clusters" / file).read_text()
        (sources / "native" / "clusters" / file).write_text(text.replace("+ 1e-12 * (base", "+ 1e12 + 1e-12 * (base"))
    scripts = Path(sys.executable).parent
    cmake = str(scripts / "cmake") if (scripts / "cmake").exists() else "cmake"
    for command in (["-S", sources, "-B", made, f"-DKFREE_LEVELS={native.LEVEL}"], ["--build", made]):
        python = [f"-DPython_EXECUTABLE={sys.executable}"] if "-S" in command else []
        subprocess.run([cmake, *map(str, command), *python], check=True, capture_output=True)
    module = next(made.glob(f"_{native.LEVEL}*"))

    environment = {**os.environ, "PYTHONPATH": str(copy), "KFREE_LEVEL": native.LEVEL}
    waits = SETTLED + "input()\n" + SETTLED
    with subprocess.Popen(
        [sys.executable, "-c", waits], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as old:
        assert old.stdout.readline() == "0\n"
        shutil.copy(module, copy / "new")
        os.replace(copy / "new", copy / "kfree" / "kernels" / "native" / module.name)
        assert run(SETTLED, copy, KFREE_LEVEL=native.LEVEL)[0] == "1"
        assert old.communicate("go on\n")[0] == "0\n"
    assert old.returncode == 0


def test_without_compiled_kernels_a_fit_is_right_and_warns_once(copy):
    for module in (copy / "kfree" / "kernels" / "native").glob("*.so"):
        module.unlink()
    said, complained = run(FIT + FIT, copy)
    assert said.splitlines() == [LABELS] * 2
    assert complained.count("kfree was installed without its compiled kernels") == 1
    assert run(FIT, copy, KFREE_KERNELS="reference") == (LABELS, "")
    assert "reference (not compiled)" in run("import kfree; kfree.show_versions()", copy)[0]
    assert "KFREE_KERNELS='native'" in run(FIT, copy, wanted=1, KFREE_KERNELS="native")[1]


def test_a_machine_without_a_compiler_and_without_a_network_installs_the_reference_kernels(tmp_path):
    pytest.importorskip("scikit_build_core")
    tools = tmp_path / "bin"
    tools.mkdir()  # a PATH without compilers
    environment = {key: value for key, value in os.environ.items() if key not in ("CXX", "CC", "PYTHONPATH")}
    environment |= {"PATH": str(tools), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    tree = tmp_path / "tree"  # where no earlier build has left a compiler
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "docs", "tests", "demo", "*.so"))
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, tree]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("kfree-*.whl")
    assert wheel.name.endswith("py3-none-any.whl")
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
    )
    said, complained = run(FIT, site)
    assert said == LABELS
    assert complained.count("without its compiled kernels") == 1


def test_a_compiler_that_was_fetched_may_fail_but_one_that_is_there_may_not(monkeypatch, capsys):
    pytest.importorskip("scikit_build_core")
    monkeypatch.syspath_prepend(ROOT / "backend")
    backend = importlib.import_module("kfree_build")
    for name in ("CXX", "KFREE_BUILD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(backend, "_fetch_zig", lambda: True)

    def fails():
        raise SystemExit(1)

    monkeypatch.setattr(backend, "_runs", lambda compiler: False)
    assert backend._compile(fails) is None
    assert "installing without compiled kernels" in capsys.readouterr().err
    assert backend._compile(lambda: "a wheel") == "a wheel"
    monkeypatch.setattr(backend, "_runs", lambda compiler: True)
    with pytest.raises(SystemExit):
        backend._compile(fails)


@pytest.mark.skipif(os.name == "nt", reason="the commands are scripts of a Unix shell")
def test_a_compiler_that_was_fetched_is_there_for_the_next_build(monkeypatch, tmp_path):
    pytest.importorskip("scikit_build_core")
    monkeypatch.syspath_prepend(ROOT / "backend")
    backend = importlib.import_module("kfree_build")
    monkeypatch.setattr(backend, "_ROOT", tmp_path)
    for name in ("CXX", "CMAKE_ARGS", "ZIG_GLOBAL_CACHE_DIR"):
        monkeypatch.setenv(name, "")
    run_it, fetched = subprocess.run, []

    def run_or_pretend(command, **how):
        if "pip" not in command:
            return run_it(command, **how)
        fetched.append(command)
        zig = Path(command[command.index("--target") + 1], "ziglang", "zig")
        zig.parent.mkdir(parents=True)
        zig.write_text('#!/bin/sh\necho "$@"\n')
        zig.chmod(0o755)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run_or_pretend)
    assert backend._fetch_zig()
    assert backend._fetch_zig()
    assert len(fetched) == 1
    said = run_it([os.environ["CXX"], "-c", "x.cpp"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("c++ ")
    assert said.endswith("-c x.cpp\n")
    assert f"-idirafter {Path(sysconfig.get_path('include')).parent}" in said


@pytest.mark.parametrize("level", native.usable())
def test_every_level_gives_the_same_labels(level):
    assert run(FIT, KFREE_LEVEL=level)[0] == LABELS
    assert run(FIT, KFREE_LEVEL=str(native.LEVELS.index(level)))[0] == LABELS


def test_a_level_that_is_not_there_is_refused():
    complained = run(FIT, wanted=1, KFREE_LEVEL="avx1024")[1]
    assert f"KFREE_LEVEL='avx1024' is not to be had here. Set it to one of {', '.join(native.usable())}" in complained


def test_show_versions_says_what_a_report_needs(capsys):
    kfree.show_versions()
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert said["kfree"] == kfree.__version__
    assert said["numpy"] == np.__version__
    assert said["kernels"] == f"native, {native.LEVEL}"
    assert int(said["threads"]) >= 1
    assert {"Python", "machine", "scipy", "scikit-learn", "BLAS"} <= set(said)
