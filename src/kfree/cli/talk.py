"""What a command says while it runs: notes, warnings and progress, all of it on stderr; and what Ctrl-C means."""

import logging
import re
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click


class Problem(Exception):
    """What the user can put right; the message says how."""


class Talk:
    """Speaks to the user, or is quiet."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def hushed(self) -> "Talk":
        """One that shows progress but says nothing, for somebody who tells the story in other words."""
        return _Hushed(self._quiet)

    def note(self, text: str) -> None:
        """What was found or done."""
        if not self._quiet:
            click.echo(text, err=True)

    def warn(self, text: str) -> None:
        """What the user should look at."""
        self.note(f"Warning: {one_line(text)}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A few rows under a header; numbers to the right."""
        if self._quiet:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        shown, lines = Table(box=None, pad_edge=False, header_style="bold"), [list(row) for row in rows]
        for j, name in enumerate(header):
            numbers = all(isinstance(row[j], int | float) for row in lines)
            shown.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
        for row in lines:
            shown.add_row(*(Text(figure(cell)) for cell in row))  # Text: brackets in names are no markup
        Console(stderr=True, highlight=False).print(shown)

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """On a terminal the line that the fit logs last, and how long it has been running; warnings are told."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if self._quiet or not sys.stderr.isatty():
                yield
            else:
                with _line(what):
                    yield
        told = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
        for text in dict.fromkeys(told):
            if "was interrupted" not in text:  # the command itself says what became of that
                self.warn(re.sub(r"\w+\(n_clusters=(\d+)\)", r"--clusters \1", text))  # as a command says it


class _Hushed(Talk):
    def note(self, text: str) -> None:
        pass


@contextmanager
def _line(what: str) -> Iterator[None]:
    """A line on the terminal that shows what the logger "kfree" hears."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    logger = logging.getLogger("kfree")
    before = logger.level
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)

        class Last(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                shown.update(task, description=record.getMessage())

        handler = Last(logging.INFO)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)


class Interrupts:
    """Whether Ctrl-C came."""

    came = False


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Ctrl-C inside is remembered: a fit ends with the best so far, and whoever asks can say so."""
    seen = Interrupts()

    def interrupt(number: int, frame: Any) -> None:
        seen.came = True
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # a job in the background, which is not meant
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def figure(value: Any) -> str:
    """A cell as text: numbers with four digits, large ones without decimals."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"


def one_line(text: str) -> str:
    """A message without its line breaks."""
    return " ".join(str(text).split())


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Some names, and how many more there are."""
    all_ = [str(name) for name in names]
    more = f" and {len(all_) - most} more" if len(all_) > most else ""
    return ", ".join(all_[:most]) + more
