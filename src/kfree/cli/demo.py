"""Three small files that are made here, each run through the same command as any other file."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kfree.cli.demo_pictures import SHAPE, photographs
from kfree.cli.demo_table import customers
from kfree.cli.demo_texts import messages
from kfree.cli.files import Asked
from kfree.cli.fits import REPORT, Order, Outcome, run
from kfree.cli.outputs import check_free, new_file, write_table
from kfree.cli.tables import Pick
from kfree.cli.talk import Talk

_CUSTOMERS, _MESSAGES, _PHOTOGRAPHS = 600, 300, 120


class Story(NamedTuple):
    """A file, what is done with it, and what is said of it."""

    name: str  # of the folder that is written
    file: str
    make: Callable[[Path], None]
    command: str
    options: str  # as they are typed
    settings: dict[str, Any]  # the same as fields of an order
    before: str  # the question, and what the file is
    found: Callable[[int], str]  # what so many parts are


def show(out: str, page: bool, force: bool, talk: Talk) -> int:
    """Make the files, run a command on each, and tell what it found; the exit code."""
    folder = Path(out)
    check_free(folder, [place for story in _STORIES for place in (story.file, story.name)], force)
    folder.mkdir(exist_ok=True)
    for number, story in enumerate(_STORIES, 1):
        file = folder / story.file
        talk.note(f"{number}. {story.before.format(file=file)}")
        order = Order(story.command, str(file), Asked(), Pick(), {}, talk.hushed(), str(folder / story.name))
        with _nothing_left(folder, file):
            with new_file(file) as part:
                story.make(part)
            outcome = run(order._replace(page=page, force=force, **story.settings))
        _tell(story, outcome, folder, page, talk)
        if outcome.interrupted:
            return 130
    talk.note("Now a file of your own: kfree info FILE looks at it, kfree cluster FILE finds its clusters.")
    return 0


@contextmanager
def _nothing_left(folder: Path, file: Path) -> Iterator[None]:
    """Without what was found in it a file is of no use: an error or Ctrl-C takes it away, and the folder if empty."""
    new = not file.exists()
    try:
        yield
    except BaseException:
        if new:
            file.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
        raise


def _tell(story: Story, outcome: Outcome, folder: Path, page: bool, talk: Talk) -> None:
    found = outcome.found
    talk.note(f"   {story.found(len(found.words))}\n")
    for size, share, words in zip(found.size, found.share, found.words):
        talk.note(f"   {size:6}  {share:4.0%}  {words}")
    place = shlex.quote(str(folder / story.name))
    typed = f"kfree {story.command} {shlex.quote(str(folder / story.file))} {story.options}--out {place}"
    opened = f"   Open {folder / story.name / REPORT}\n" if page else ""
    talk.note(f"\n{opened}   Made by: {typed}\n")


def _make_customers(path: Path) -> None:
    write_table(path, customers(_CUSTOMERS, np.random.default_rng(0)))


def _make_texts(path: Path) -> None:
    path.write_text("\n".join(messages(_MESSAGES, np.random.default_rng(0))) + "\n", encoding="utf-8")


def _make_pictures(path: Path) -> None:
    np.save(path, photographs(_PHOTOGRAPHS, np.random.default_rng(0))[0])


_STORIES = (
    Story(
        "customers",
        "customers.csv",
        _make_customers,
        "cluster",
        "--id customer ",
        {"pick": Pick(id="customer")},
        f"Which kinds of customers are there?\n   {{file}} has {_CUSTOMERS} customers of a shop that was made up: "
        "amounts, shares,\n   a city, a date, and gaps. Nobody prepared the columns or said how many kinds there are.",
        lambda n: f"{n} kinds were found. Each is named by what sets it apart:",
    ),
    Story(
        "texts",
        "texts.txt",
        _make_texts,
        "topics",
        "",
        {},
        f"What do people write about?\n   {{file}} has {_MESSAGES} messages to the shop, made from ready sentences. A "
        "message may be\n   about two things, and nobody said what a thing is.",
        lambda n: f"{n} topics were found. Each is told by its words:",
    ),
    Story(
        "pictures",
        "pictures.npy",
        _make_pictures,
        "features",
        f"--images {SHAPE[0]}x{SHAPE[1]}x3 ",
        {"images": (*SHAPE, 3)},
        f"What is in these pictures?\n   {{file}} has {_PHOTOGRAPHS} pictures of a desk, drawn for this: each shows "
        "some of five\n   things, sometimes in the sun. Nobody said what a thing is, or where one ends.",
        lambda n: f"{n} parts were found, of which every picture is a sum; the report shows them:",
    ),
)
