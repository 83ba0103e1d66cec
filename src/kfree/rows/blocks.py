"""Tables in blocks of rows that lie elsewhere: a question goes to every block, and answers are merged on the way back.

Questions are pure: what is kept beside a block only saves work, and may be gone at any time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from kfree.families import Array

A = TypeVar("A")


class RowBlock(NamedTuple):
    """Some rows of a table."""

    X: Any  # array or CSR matrix (m, p)
    weight: Array  # (m,), or (0,) for ones
    number: int  # of the block among all


class BlockError(ValueError):
    """Rows of a block that cannot be used; None is the number of one whose number is not known."""

    def __init__(self, number: int | None, said: str) -> None:
        super().__init__(number, said)
        self.number, self.said = number, said

    def __str__(self) -> str:
        which = "A block" if self.number is None else f"Block {self.number}"
        return f"{which} of X (its rows are numbered from 0): {self.said}"


#: What is kept beside a block.
Beside = dict[str, Any]
#: ``question(block, beside, *arguments)``.
Question = Callable[..., Any]


def answer(question: Question, block: RowBlock, beside: Beside, arguments: Sequence[Any]) -> Any:
    """What a block says to a question; errors of its rows name the block."""
    with beside.setdefault("lock", Lock()):
        return naming_the_block(partial(question, block, beside), *arguments, number=block.number)


def naming_the_block(ask: Callable[..., Any], *arguments: Any, number: int | None) -> Any:
    """What a function says of a block; errors of its rows name it."""
    try:
        return ask(*arguments)
    except BlockError:
        raise
    except (ValueError, TypeError) as error:
        raise BlockError(number, str(error)) from error


class Kept:
    """One entry for each row, where the rows are: a part for each block."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def copy(self) -> "Kept":
        """Nobody writes to it."""
        return self


class Blocks(ABC):
    """All blocks of a table."""

    count: int

    @abstractmethod
    def ask(self, question: Question, arguments: Sequence[Any], merge: Callable[[A, A], A]) -> A:
        """The merged answers of all blocks. ``merge`` must not care which are merged first."""

    @abstractmethod
    def some(self, numbers: Sequence[int]) -> "Blocks":
        """Only these blocks, from now on: empty ones need not be asked."""

    @abstractmethod
    def keep(self, question: Question, arguments: Sequence[Any]) -> Kept:
        """Answers with one entry (or row) for each row, which stay where the blocks are."""

    @abstractmethod
    def close(self) -> None:
        """What was kept beside the blocks may go."""


class ChangedBlocks(Blocks):
    """The same blocks with other rows, which are made from those that are there whenever a question is asked."""

    def __init__(self, blocks: Blocks, change: Callable[[RowBlock], RowBlock]) -> None:
        self._blocks, self._change, self.count = blocks, change, blocks.count

    def some(self, numbers: Sequence[int]) -> "ChangedBlocks":
        """Only these blocks, from now on."""
        self._blocks.some(numbers)
        self.count = self._blocks.count
        return self

    def ask(self, question: Question, arguments: Sequence[Any], merge: Callable[[A, A], A]) -> A:
        """The merged answers of all blocks."""
        return self._blocks.ask(_of_changed, (self._change, question, tuple(arguments)), merge)

    def keep(self, question: Question, arguments: Sequence[Any]) -> Kept:
        """Answers that stay where the blocks are."""
        return self._blocks.keep(_of_changed, (self._change, question, tuple(arguments)))

    def close(self) -> None:
        """What was kept beside the blocks may go."""
        self._blocks.close()


def _of_changed(
    block: RowBlock, beside: Beside, change: Callable[[RowBlock], RowBlock], question: Question, arguments: Any
) -> Any:
    return question(change(block), beside, *arguments)


class NearBlocks(Blocks):
    """Blocks that this process works on, one after the other; ``fetch`` gives them, as often as is asked."""

    def __init__(self, fetch: Callable[[int], RowBlock], count: int) -> None:
        self._fetch, self._numbers, self.count = fetch, list(range(count)), count
        self._beside: list[Beside] = [{} for _ in range(count)]

    def some(self, numbers: Sequence[int]) -> "NearBlocks":
        """Only these blocks, from now on."""
        self._numbers, self.count = list(numbers), len(numbers)
        return self

    def ask(self, question: Question, arguments: Sequence[Any], merge: Callable[[A, A], A]) -> A:
        """The merged answers of all blocks."""
        merged: Any = None
        for place, number in enumerate(self._numbers):
            said = answer(question, self._fetch(number), self._beside[number], arguments)
            merged = said if place == 0 else merge(merged, said)
        return merged

    def keep(self, question: Question, arguments: Sequence[Any]) -> Kept:
        """Answers in memory: they are as long as what is kept of each row anyway."""
        return Kept(
            [answer(question, self._fetch(number), self._beside[number], arguments) for number in self._numbers]
        )

    def close(self) -> None:
        """What was kept beside the blocks may go."""
        self._beside = [{} for _ in self._beside]
