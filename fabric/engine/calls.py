"""What a checked operator has asked for and not awaited: one thing at a time, in its own task."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from types import CodeType
from typing import TYPE_CHECKING, Final, TypeVar

from trio.lowlevel import current_task

from fabric.telling.errors import Refusal
from fabric.telling.place import line_in

if TYPE_CHECKING:
    from fabric.engine.unit import Unit

__all__ = ["Calls"]

Result = TypeVar("Result")


class _Stray(Refusal, SystemExit):
    """Ends a thread without a word: the operator is told."""


class Calls:
    """The operations of one unit on its channels: each is awaited before the next one."""

    __slots__ = ("_code", "_held", "_instruction", "_operation", "_stray", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit: Final = unit
        self._operation: str | None = None
        self._code: CodeType | None = None
        self._instruction = 0
        self._held: Coroutine[object, None, object] | None = None
        self._stray: Refusal | None = None

    def begin(self, operation: str) -> None:
        """Note that the caller's caller asks for ``operation``, which it has to await.

        Raises:
            Refusal: what was asked for before has not been awaited.
        """
        if self._operation is not None or self._stray is not None:
            self.end()
        frame = sys._getframe(2)
        self._operation = operation
        self._code = frame.f_code
        self._instruction = frame.f_lasti

    def hold(self, call: Coroutine[object, None, Result]) -> Coroutine[object, None, Result]:
        """Return ``call``, the coroutine of what was asked for last."""
        self._held = call
        return call

    def awaited(self) -> None:
        """Note that the operation is awaited.

        Raises:
            Refusal: not by the operator's own task.
        """
        self._operation = self._held = None
        self.check_task()

    def check_task(self) -> None:
        """Refuse what another thread or task does in the unit's name.

        Raises:
            Refusal: it is not the unit's own task that asks.
        """
        try:
            asking = current_task()
        except RuntimeError:
            asking = None
        if asking is not self._unit.strand.task:
            who = "a thread" if asking is None else "a task"
            # Who has started it may never hear of what it raises.
            self._stray = _Stray(
                f"{who} of its own uses its channels: expected the operator, which awaits in turn"
            )
            raise self._stray

    def end(self) -> None:
        """Look whether all that was asked for has been awaited, by the operator itself.

        Raises:
            Refusal: it has not.
        """
        if self._stray is not None:
            raise self._stray
        if self._operation is not None:
            operation = self._operation
            self.drop()
            assert self._code is not None
            raise Refusal(
                f"{operation}() is not awaited: expected `await` at once",
                place=line_in(self._code, self._instruction),
            )

    def drop(self) -> None:
        """Forget what was asked for, so that Python does not speak of it."""
        self._operation = None
        if self._held is not None:
            self._held.close()
            self._held = None
