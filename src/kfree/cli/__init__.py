"""The command line: ``kfree cluster customers.csv`` and its sisters."""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code: 0 fine, 1 failed, 2 asked wrongly, 130 Ctrl-C."""
    try:
        import click  # noqa: F401
        import pyarrow  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        sys.exit(f'The command line needs {error.name}: pip install "kfree[cli]"')
    from kfree.cli.commands import run

    sys.exit(run(sys.argv[1:]))
