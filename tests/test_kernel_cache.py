"""Compiled kernels are kept on disk, never outlive the code they were made of, and never stop a fit."""

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kfree

#: Hashes of two rows by a kernel, whose helper is in another file, and by its twin; found on disk; compiled.
HASH = """
import numpy as np, os, pathlib
from kfree.kernels import compiled, reference
X, found = np.array([[1, 2], [3, 0]], os.environ.get("TYPE", "float64")), []
for side in (compiled, reference):
    hashes = np.empty(2, np.uint64)
    side.hash_dense(X, np.arange(2), hashes)
    found.append(hashes.tolist())
assert found[0] == found[1], found
stats = compiled.hash_dense.stats
print(found[0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), sep="; ")
"""
FOUND, COMPILED = "; 1; 0", "; 0; 1"
WHERE = "from kfree.kernels.compiled.cache import folder; print(folder())"
FIT = """
import tempfile, numpy as np
tempfile._candidate_tempdir_list = lambda: ["/proc/nowhere"]
from kfree import DPMeans
print(DPMeans(radius=9.0, algorithm="serial", search="points").fit(np.repeat([[0.0], [9.0]], 5, axis=0)).n_clusters_)
"""
#: No folder can be made there, not even by root.
NOWHERE = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere", "LOCALAPPDATA": "/proc/nowhere"}

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="paths of Linux")


def start(package, code, **chosen):
    """A process in which kfree is a copy of it, with no settings but the chosen ones."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG", "COV", "KFREE"))}
    # Python itself goes by the size and time of a file: without files of its own it reads what is there
    ours |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    ours |= {key: str(value) for key, value in chosen.items()}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(package, code, warns=False, **chosen):
    """What such a process says in the end."""
    process = start(package, code, **chosen)
    said, complained = process.communicate()
    assert process.returncode == 0, complained
    assert ("every process compiles" in complained) == warns, complained
    return said.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A copy of kfree in which one kernel is compiled and kept."""
    path = tmp_path_factory.mktemp("filled") / "kfree"
    shutil.copytree(Path(kfree.__file__).parent, path, ignore=shutil.ignore_patterns("__pycache__"))
    assert run(path, HASH).endswith(COMPILED)
    return path


@pytest.fixture
def package(filled, tmp_path):
    """A copy of that copy and of what it keeps."""
    return shutil.copytree(filled, tmp_path / "package" / "kfree")


@pytest.fixture
def read_only(package):
    """One whose folder nothing can be kept in: ``__pycache__`` is a file."""
    shutil.rmtree(package / "kernels" / "__pycache__")
    (package / "kernels" / "__pycache__").touch()
    return package


def kept(folder):
    return sorted(Path(folder).rglob("*.nbc"))


def test_the_next_process_does_not_compile_again(package):
    assert len(kept(package)) == 1
    assert run(package, HASH + "import numba; assert not numba.config.CACHE_DIR").endswith(FOUND)


def test_a_helper_changed_in_another_file_changes_its_callers(package):
    before, helper = run(package, HASH), package / "kernels" / "splitmix.py"
    text, status = helper.read_text(), helper.stat()
    assert "= np.uint64(30)" in text
    helper.write_text(text.replace("= np.uint64(30)", "= np.uint64(29)"))
    os.utime(helper, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert helper.stat().st_size == status.st_size
    after = run(package, HASH)
    assert after.endswith(COMPILED)
    assert after.split(";")[0] != before.split(";")[0]
    helper.write_text(text)
    assert run(package, HASH) == before


def test_another_version_and_other_settings_have_folders_of_their_own(package):
    start = package / "__init__.py"
    places = [run(package, WHERE), run(package, WHERE, NUMBA_OPT=1)]
    start.write_text(start.read_text().replace('__version__ = "', '__version__ = "9.'))
    places.append(run(package, WHERE))
    assert len(set(places)) == 3


def test_code_that_is_replaced_under_a_process_is_not_kept(package):
    shutil.rmtree(package / "kernels" / "__pycache__")
    helper = package / "kernels" / "splitmix.py"
    replaced = f"from kfree.kernels.compiled.rows import hashes\nopen({str(helper)!r}, 'a').write('# new')\n"
    assert run(package, replaced + HASH).endswith(COMPILED)
    assert not kept(package)


def test_code_that_is_replaced_before_the_first_kernel_is_read_is_not_kept(package):
    shutil.rmtree(package / "kernels" / "__pycache__")
    helper = package / "kernels" / "splitmix.py"
    replaced = f"import kfree.inference.content\nopen({str(helper)!r}, 'a').write('# new')\n"
    assert run(package, replaced + HASH).endswith(COMPILED)
    assert not kept(package)


def test_what_was_kept_is_not_loaded_after_files_were_replaced_under_a_process(package):
    assert run(package, HASH).endswith(FOUND)
    helper = package / "kernels" / "splitmix.py"
    replaced = f"from kfree.kernels import compiled\ncompiled.dip\nopen({str(helper)!r}, 'a').write('# new')\n"
    assert run(package, replaced + HASH).endswith(COMPILED)


@pytest.mark.parametrize("damage", ["empty", "short", "noise", "one byte"])
def test_a_broken_file_is_compiled_anew(package, damage):
    (file,) = kept(package)
    content = file.read_bytes()
    middle = len(content) // 2
    broken = {
        "empty": b"",
        "short": content[:middle],
        "noise": bytes(range(256)) * 100,
        "one byte": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }
    file.write_bytes(broken[damage])
    assert run(package, HASH).endswith(COMPILED)
    assert run(package, HASH).endswith(FOUND)


def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(package):
    shutil.rmtree(package / "kernels" / "__pycache__")
    kinds = ["float64", "float32", "float64"]
    together = [start(package, HASH, TYPE=kind) for kind in kinds]
    assert all(process.wait() == 0 for process in together), [process.stderr.read() for process in together]
    assert all(run(package, HASH, TYPE=kind).endswith(FOUND) for kind in kinds[:2])
    assert len([*(package / "kernels" / "__pycache__").rglob("*.*")]) == len(kept(package)) + 1  # no drafts


def test_a_package_that_cannot_be_written_to_uses_the_folder_of_the_user(read_only, tmp_path):
    assert run(read_only, HASH, XDG_CACHE_HOME=tmp_path / "mine").endswith(COMPILED)
    assert len(kept(tmp_path / "mine")) == 1
    assert run(read_only, WHERE, HOME=tmp_path / "home").startswith(str(tmp_path / "home" / ".cache"))


def test_a_folder_the_user_chose_for_numba_comes_first(package, tmp_path):
    assert run(package, WHERE, NUMBA_CACHE_DIR=tmp_path / "chosen").startswith(str(tmp_path / "chosen"))
    assert run(package, WHERE, NUMBA_CACHE_DIR="/proc/nowhere").startswith(str(package))


def test_without_a_home_it_is_a_temporary_folder_that_is_private(read_only, tmp_path):
    assert run(read_only, HASH, TMPDIR=tmp_path, **NOWHERE).endswith(COMPILED)
    assert run(read_only, HASH, TMPDIR=tmp_path, **NOWHERE).endswith(FOUND)
    (private,) = tmp_path.glob("kfree-kernels-*")
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


@pytest.mark.parametrize("squatter", ["open to all", "a link", "another user's"])
def test_no_code_is_read_from_a_temporary_folder_that_others_could_write(read_only, tmp_path, squatter):
    path = tmp_path / f"kfree-kernels-{os.getuid()}"
    if squatter == "a link":
        path.symlink_to(tmp_path)
    else:
        path.mkdir(0o700)
        path.chmod(0o777 if squatter == "open to all" else 0o700)
    if squatter == "another user's":
        if os.getuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(path, 12345, 12345)
    assert run(read_only, WHERE, warns=True, TMPDIR=tmp_path, **NOWHERE) == "None"


def test_a_fit_needs_no_folder_at_all(read_only):
    # unoptimised code, as this is about where it would be kept
    assert run(read_only, FIT, warns=True, NUMBA_OPT=0, **NOWHERE) == "2"


def test_folders_nobody_uses_any_more_are_removed(package):
    parent = Path(run(package, WHERE)).parent
    for name, days in (("old", 40), ("recent", 3)):
        (parent / name).mkdir()
        (parent / name / "kernel.nbc").touch()
        os.utime(parent / name, (time.time() - days * 86400,) * 2)
    mine = run(package, WHERE)
    assert {path.name for path in parent.iterdir()} == {"recent", Path(mine).name}
