"""The real command in a process of its own: help at once, pipes, terminals, Ctrl-C."""

import os
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from pyarrow import csv

pytest.importorskip("pty", reason="terminals and signals as Unix has them")
pytest.importorskip("click")
pytest.importorskip("rich")

from support.command_line import labels, process, table

PIPE = subprocess.PIPE


@pytest.fixture
def some(tmp_path):
    csv.write_csv(table(), tmp_path / "some.csv")
    return tmp_path / "some.csv"


def ended(running, seconds=120):
    """Exit code, stdout and stderr of a process that comes to its end."""
    out, err = running.communicate(timeout=seconds)
    return running.returncode, out, err


def test_help_needs_nothing_that_takes_time():
    code = (
        "import sys\n"
        "from kfree.cli import main\n"
        "for args in (['--help'], ['cluster', '--help'], ['topics', '--help'], ['predict', '--help'], ['--version']):\n"
        "    sys.argv[1:] = args\n"
        "    try: main()\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib', 'pandas', 'rich', 'kfree.estimators'}\n"
        "print(sorted(heavy & set(sys.modules)), len(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heavy, number = re.match(r"\[(.*)\] (\d+)", done.stderr).groups()
    assert heavy == ""
    assert int(number) < 250
    assert "Price of a cluster in J; larger gives fewer clusters." in " ".join(done.stdout.split())


@pytest.mark.parametrize("missing", ["click", "rich", "pyarrow"])
def test_without_the_extra_one_line_says_what_to_install(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from kfree.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f'The command line needs {missing}: pip install "kfree[cli]"\n'


def test_a_pipe_carries_labels_only(some):
    running = process("cluster", "-", "--id", "customer", "--as-is", "-k", "3", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, err = running.communicate(some.read_bytes(), timeout=120)
    assert running.returncode == 0, err
    assert out.decode().splitlines()[:2] == ["customer,cluster", "C000,0"]
    assert len(out.decode().splitlines()) == 61
    assert b"\x1b" not in err  # no colours, no progress


def test_a_closed_pipe_is_told_in_one_line(tmp_path):
    np.save(tmp_path / "long.npy", np.random.default_rng(0).random((200_000, 1)))
    running = process("cluster", tmp_path / "long.npy", "-k", "2", "--out", "-", "-q", stdout=PIPE, stderr=PIPE)
    assert running.stdout.readline() == b"row,cluster\n"
    running.stdout.close()
    assert running.wait(timeout=120) == 1
    with running.stderr as said:
        assert said.read().decode() == (
            "kfree: stdout was closed before everything was written. Pass --out to write files.\n"
        )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_behind_stdout_is_told_in_one_line(some):
    with open("/dev/full", "wb") as full:
        code, _, err = ended(process("info", some, "-q", stdout=full, stderr=PIPE))
    assert code == 1
    assert err.decode().startswith("kfree: stdout cannot be written to (No space left on device) before everything")
    assert len(err.splitlines()) == 1


@pytest.fixture
def slow(tmp_path):
    """Rows that take long to cluster one at a time."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "slow.npy", rng.random((60_000, 8)))
    return tmp_path / "slow.npy"


def interrupted(running, sign):
    """Wait until a process says something, then send Ctrl-C."""
    said = b""
    while sign not in said:
        part = os.read(running.stderr.fileno(), 4096)
        assert part, said
        said += part
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    rest = running.stderr.read()
    return running.wait(timeout=120), (said + rest).decode()


def test_an_interrupt_keeps_the_best_so_far(slow, tmp_path):
    options = ("--radius", "0.05", "--algorithm", "serial", "--search", "points", "--tol", "0", "--max-iter", "100000")
    running = process("cluster", slow, "--no-report", *options, stdout=PIPE, stderr=PIPE, cwd=tmp_path)
    code, said = interrupted(running, b"columns of")
    assert code == 130, said
    assert "Interrupted: this is the best so far, not the end." in said
    assert "Traceback" not in said
    assert len(labels(tmp_path / "slow-clusters" / "labels.csv")) == 60_000


def test_an_interrupt_before_there_is_anything_leaves_nothing(slow, tmp_path):
    running = process("cluster", slow, "--no-report", stdout=PIPE, stderr=PIPE, cwd=tmp_path)
    code, said = interrupted(running, b"columns of")
    assert code == 130, said
    last = "kfree: Interrupted before there was a result. Nothing of it was written."
    kept = "Interrupted: this is the best so far" in said
    assert kept or said.splitlines()[-1] == last
    assert os.listdir(tmp_path) == ["slow.npy"] or kept


def on_terminal(*args, cwd, **env):
    """What a command shows on a terminal."""
    own, its = os.openpty()
    running = process(*args, stdin=its, stdout=its, stderr=its, cwd=cwd, env={"TERM": "xterm-256color", **env})
    os.close(its)
    said = b""
    while True:
        ready, _, _ = select.select([own], [], [], 60)
        try:
            part = os.read(own, 65536) if ready else b""
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        said += part
    os.close(own)
    assert running.wait(timeout=60) == 0, said.decode()
    return said.decode()


def test_a_terminal_shows_progress(some, tmp_path):
    options = ("--no-report", "--as-is", "--id", "customer")
    said = on_terminal("cluster", some, *options, cwd=tmp_path, NO_COLOR="1")
    assert "table without groups" in said or "path, step" in said
    assert "3 clusters" in said
    assert not re.search("\x1b\\[[0-9;]*3[0-7]m", said)  # lines move, but have no colours
    assert on_terminal("cluster", some, *options, "--force", "--quiet", cwd=tmp_path) == ""
