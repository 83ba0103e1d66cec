"""``python -m kfree`` is the command line."""

from kfree.cli import main

if __name__ == "__main__":
    main()
