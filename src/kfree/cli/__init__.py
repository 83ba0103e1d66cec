"""The command line: ``kfree cluster customers.csv`` and its sisters."""

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line and end the process with its exit code: 0 fine, 1 failed, 2 asked wrongly, 130 Ctrl-C."""
    missing = [name for name in ("click", "pyarrow", "rich") if find_spec(name) is None]  # imported when needed
    if missing:
        sys.exit(f'The command line needs {missing[0]}: pip install "kfree[cli]"')
    from kfree.cli.commands import run

    sys.exit(run(sys.argv[1:]))
