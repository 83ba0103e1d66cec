"""Parameters as data: what each of them may be. A table for each class says it once, for all who read it."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from kfree.models.checks import check_choice, check_flag, check_number


class Number(NamedTuple):
    """A number in a range; NaN is in none."""

    least: float = -np.inf  # smallest that is allowed
    above: float = -np.inf  # largest that is not, at the lower end
    most: float = np.inf  # largest that is allowed
    integer: bool = False
    finite: bool = False  # whether infinity is left out
    but: float | None = None  # a value in the range that is left out
    hint: str = ""  # what else a user who went wrong should know

    @property
    def words(self) -> tuple[str, ...]:
        """What it is called in a message."""
        noun = "an integer" if self.integer else "a number"
        if self.above == 0 and not self.integer:
            return ("a positive number",)
        if self.least > -np.inf and self.most < np.inf:
            return (f"{noun} from {self.least:g} to {self.most:g}",)
        if self.least > -np.inf:
            return (f"{noun} >= {self.least:g}",)
        return (noun,)

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind, in the range or not."""
        return isinstance(value, Integral if self.integer else Real) and not isinstance(value, bool)

    def accepts(self, value: Any) -> bool:
        """Whether there is nothing to say."""
        inside = self.takes(value) and self.least <= value <= self.most and value > self.above
        return inside and value != self.but and not (self.finite and value in (np.inf, -np.inf))

    def check(self, name: str, value: Any, others: tuple[str, ...] = ()) -> None:
        """Raise an error that says what is wrong; ``others`` are all the kinds a value may be of."""
        hint = " ".join(filter(None, (self.hint, f"Pass {_listed(others)}." if others else "")))
        check_number(name, value, above=self.above, least=self.least, integer=self.integer, hint=hint)
        wrong = ""
        if self.finite and not np.isfinite(float(value)):
            wrong = "must be finite"
        elif not value <= self.most:
            wrong = f"must be at most {self.most:g}"
        elif value == self.but:
            wrong = f"must not be {self.but:g}"
        if wrong:
            raise ValueError(f"{name} {wrong}, got {value!r}. {hint}".rstrip())


class Choice:
    """One of some names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    @property
    def words(self) -> tuple[str, ...]:
        """What it is called in a message."""
        return tuple(map(repr, self.names))

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind, known or not."""
        return isinstance(value, str)

    def accepts(self, value: Any) -> bool:
        """Whether there is nothing to say."""
        return isinstance(value, str) and value in self.names

    def check(self, name: str, value: Any, others: tuple[str, ...] = ()) -> None:
        """Raise an error that says what is wrong; ``others`` are all the kinds a value may be of."""
        more = [word for word in others if word not in self.words]
        check_choice(name, value, self.names, *more[:-1], *(f"or {word}" for word in more[-1:]))


class Flag:
    """True or False."""

    words = ("True or False",)

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind."""
        return isinstance(value, bool | np.bool_)

    accepts = takes

    def check(self, name: str, value: Any, others: tuple[str, ...] = ()) -> None:
        """Raise an error that says what is wrong."""
        check_flag(name, value)


class Nothing:
    """None."""

    words = ("None",)

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind."""
        return value is None

    accepts = takes

    def check(self, name: str, value: Any, others: tuple[str, ...] = ()) -> None:
        """There is nothing to check."""


class Given:
    """Something larger, an array say: looked at by a function of its own, or later where it meets the data."""

    def __init__(self, what: str, look: Callable[[Any], Any] | None = None, names: tuple[str, ...] = ()) -> None:
        self.words = (*map(repr, names), what)
        self._look = look

    def takes(self, value: Any) -> bool:
        """Whether a value may be of this kind."""
        return value is not None and not isinstance(value, str)

    def accepts(self, value: Any) -> bool:
        """Whether there is nothing to say, as far as is known without looking."""
        return self._look is None and self.takes(value)

    def check(self, name: str, value: Any, others: tuple[str, ...] = ()) -> None:
        """Whatever its own function raises."""
        if self._look is not None:
            self._look(value)


class Or:
    """One of several kinds."""

    def __init__(self, *kinds: "Number | Choice | Flag | Nothing | Given") -> None:
        self.kinds = kinds

    @property
    def words(self) -> tuple[str, ...]:
        """What it is called in a message."""
        return tuple(word for kind in self.kinds for word in kind.words)

    def accepts(self, value: Any) -> bool:
        """Whether there is nothing to say."""
        return self._kind_of(value).accepts(value)

    def check(self, name: str, value: Any) -> None:
        """Let the kind that a value is of look at it."""
        self._kind_of(value).check(name, value, self.words)

    def _kind_of(self, value: Any) -> "Number | Choice | Flag | Nothing | Given":
        """The first kind that takes a value, as a number out of range may still look like something given; if none
        does, a number, or else the first, says so."""
        numbers = [kind for kind in self.kinds if isinstance(kind, Number)]
        return next((kind for kind in self.kinds if kind.takes(value)), (numbers or self.kinds)[0])


Kind = Number | Choice | Flag | Nothing | Given | Or
Table = Mapping[str, Kind]


def check_parameters(table: Table, values: Mapping[str, Any]) -> None:
    """Every value by itself, by what the table says of its name."""
    for name, value in values.items():
        if not table[name].accepts(value):  # words for messages take longer than a batch of a stream has
            table[name].check(name, value)


def _listed(words: tuple[str, ...]) -> str:
    return ", or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
