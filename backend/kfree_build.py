"""How kfree is built: scikit-build-core, and what to do where there is no C++ compiler.

Then the compiler is zig's, a package of PyPI; where that cannot be had either, kfree is installed without compiled
kernels and says so when it is first used. A compiler that is there but fails is an error: nothing is hidden.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from scikit_build_core import build as _build
from scikit_build_core.build import (  # noqa: F401 - hooks that pip asks for
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_ROOT = Path(__file__).resolve().parent.parent
_COMPILERS = ("c++", "g++", "clang++", "clang-cl")
#: Settings of scikit-build-core for a wheel of Python files alone, whatever an editable installation has left here.
_WITHOUT_KERNELS = {"wheel.cmake": "false", "wheel.py-api": "py3", "wheel.exclude": "**.so"}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel with the kernels of every set of instructions."""
    settings = dict(config_settings or {})
    found = _compile(lambda: _build.build_wheel(wheel_directory, settings))
    return found or _build.build_wheel(wheel_directory, settings | _WITHOUT_KERNELS)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The kernels beside the Python files of this checkout, made in ``build/editable``, and a wheel that points there.

    Not scikit-build-core's own way: its import hook would hide copies of kfree on PYTHONPATH.
    """
    settings = dict(config_settings or {})

    def beside():
        defined = [f"-D{key[len('cmake.define.') :]}={value}" for key, value in settings.items() if "define." in key]
        folder, python = _ROOT / "build" / "editable", f"-DPython_EXECUTABLE={sys.executable}"
        ninja = shutil.which("ninja")  # of pip's own environment, which is another one each time
        ninja = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []
        command = ["cmake", "-S", _ROOT, "-B", folder, *ninja, "-DCMAKE_BUILD_TYPE=Release", "-DKFREE_BESIDE=ON"]
        subprocess.run([*command, "-DKFREE_LEVELS=machine", python, *defined, *_arguments()], check=True)
        subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1)], check=True)

    _compile(beside)
    return _write_pointer(Path(wheel_directory))


def _compile(build):
    """What a build gives; None where there is no compiler, or none but a fetched one that fails."""
    if os.environ.get("KFREE_BUILD", "") == "reference":
        return None
    if "CXX" in os.environ or any(map(_runs, _COMPILERS)):
        return build()
    if not _fetch_zig():
        return None
    try:
        return build()
    except (Exception, SystemExit) as error:
        print(f"kfree: zig failed ({error}); installing without compiled kernels", file=sys.stderr)
        return None


def _write_pointer(folder):
    """A wheel of metadata and a line that puts this checkout on the path."""
    with tempfile.TemporaryDirectory() as made:
        info = _build.prepare_metadata_for_build_wheel(made, dict(_WITHOUT_KERNELS))
        name = folder / f"{info.removesuffix('.dist-info')}-0.editable-py3-none-any.whl"
        Path(made, "kfree.pth").write_text(f"{_ROOT / 'src'}\n")
        files = sorted(path for path in Path(made).rglob("*") if path.is_file() and path.name != "RECORD")
        with zipfile.ZipFile(name, "w") as wheel:
            for path in files:
                wheel.write(path, path.relative_to(made).as_posix())
            lines = [f"{path.relative_to(made).as_posix()},," for path in files]
            wheel.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,", ""]))
    return name.name


def _arguments():
    return os.environ.get("CMAKE_ARGS", "").split()


def _fetch_zig():
    """Whether zig could be had from PyPI; its compiler is then the one that cmake finds."""
    folder = _ROOT / "build" / "zig"  # not a temporary one: cmake notes where its compiler is for the next build
    if not _runs(folder / "zig-c++"):
        print("kfree: no C++ compiler here; trying the package ziglang", file=sys.stderr)
        # -I: without the variables by which pip hides its own packages from a build
        pip = [sys.executable, "-I", "-m", "pip", "install", "--quiet"]
        fetch = [*pip, "--no-deps", "--upgrade", "--target", folder, "ziglang"]
        if subprocess.run(fetch, check=False).returncode != 0:
            print("kfree: ziglang cannot be had; installing without compiled kernels", file=sys.stderr)
            return False
        _wrap_zig(folder)
    os.environ["CXX"] = str(folder / "zig-c++")
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(folder / "cache")
    tools = f"-DCMAKE_AR={folder / 'zig-ar'} -DCMAKE_RANLIB={folder / 'zig-ranlib'}"
    os.environ["CMAKE_ARGS"] = f"{os.environ.get('CMAKE_ARGS', '')} {tools}"
    return True


def _runs(compiler):
    found = shutil.which(compiler)
    return found is not None and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0


def _wrap_zig(folder):
    """Commands by the names that cmake expects. Without a target zig would build for this very processor."""
    linux = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    target = f"-target {platform.machine()}-linux-gnu.2.28 -mcpu=baseline" if linux else ""
    # Debian's Python.h includes a file by its place in /usr/include, where zig does not look
    beyond = f"-idirafter {Path(sysconfig.get_path('include')).parent}"
    zig = next((folder / "ziglang").glob("zig*"))
    for name, words in (("c++", f"c++ -g0 {target} {beyond}"), ("ar", "ar"), ("ranlib", "ranlib")):
        script = folder / f"zig-{name}"
        script.write_text(f'#!/bin/sh\nexec "{zig}" {words} "$@"\n')
        script.chmod(0o755)
