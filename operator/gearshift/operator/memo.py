# SPDX-License-Identifier: Apache-2.0
"""What has been worked out about an object is kept for as long as it is that very object: most looks at a service find
the one that the look before found, and reading it again costs more than deciding on it."""

from collections.abc import Callable
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class Memo(Generic[A, R]):
    """A function that remembers its last answer. Objects are told apart by identity and must never be changed.

    ``part`` gives what of an argument the answer depends on, when that lives longer than the argument.
    """

    def __init__(self, function: Callable[[A], R], part: Callable[[A], object] = lambda argument: argument) -> None:
        self._function = function
        self._part = part
        self._last: tuple[object, R] | None = None

    def __call__(self, argument: A) -> R:
        """The answer for an object; what the function raises is not remembered."""
        part = self._part(argument)
        if self._last is None or self._last[0] is not part:
            self._last = (part, self._function(argument))
        return self._last[1]

    def forget(self) -> None:
        """Keep nothing: for answers that take more memory than they save time."""
        self._last = None
