"""A strand: what the clock and the conductor know of the coroutine in which an operator runs.

It parks and is woken; who waits for what, and until when, is the clock's business and the unit's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from outcome import Error
    from trio.lowlevel import Task

__all__ = ["WOKEN", "Strand", "Switching", "Woken"]

Result = TypeVar("Result")


class Woken:
    """What a strand that parked is handed where it was woken, and not cancelled."""

    __slots__ = ()

    def unwrap(self) -> None:
        """Raise nothing, as an ``Error`` would."""


WOKEN: Final = Woken()

Switching: TypeAlias = Generator[object, "Woken | Error", Result]
"""What lets others run: it yields suspensions, and is sent how each has ended."""


class Strand:
    """One operator's coroutine; here one that the conductor alone goes on with.

    Attributes:
        task: trio's, in which it runs; None where there is none, or not yet.
        step: goes on with its coroutine; None where only trio does that.
        parked: it waits to be woken.
        cancelled: trio has cancelled its wait, and goes on with it itself.
        suspension: what it yields when it parks, the same each time.
    """

    __slots__ = ("cancelled", "parked", "step", "suspension", "task")

    def __init__(self) -> None:
        """Stand for a coroutine that has not begun."""
        self.task: Task | None = None
        # Any: coroutines differ in what they are sent.
        self.step: Callable[[Any], object] | None = None
        self.parked = False
        self.cancelled = False
        self.suspension: object = None

    def resume(self) -> None:
        """Let trio go on with it, where it is suspended and a task of trio's."""

    def interrupt(self, error: BaseException) -> None:
        """Raise ``error`` where it is parked, in a task of trio's: it may have to end at once."""
