"""Properties that are computed once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """``functools.cached_property`` without the lock that it has before Python 3.12.

    That is one lock for all instances: threads wait for each other's, and a child that is forked while another thread
    holds it waits for ever. Without it two threads may compute a value twice, which does no harm.
    """

    def __init__(self, function: Callable[[Any], T]):
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value
