"""The unit of a checked operator: only the fabric sets its clock, and its work leads somewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Final, TypeVar

from typing_extensions import override

from fabric.engine.unit import Unit
from fabric.telling.errors import Refusal
from fabric.telling.place import written_by_us
from fabric.values.fit import MOST_CYCLES, described, whole

if TYPE_CHECKING:
    from fabric.engine.calls import Calls
    from fabric.engine.channel import Channel

__all__ = ["CheckedUnit", "Circling", "unit_class"]

AnyUnit = TypeVar("AnyUnit", bound=Unit)

_LOOKS: Final = 10
"""How many times in a row nothing has to have moved."""

_REACH_STEPS: Final = 10
"""A wait for a cycle takes as long as ten charges on the host."""

_ours: Final[set[CodeType]] = set()
"""Functions of the fabric that have set something."""

_set: Final = object.__setattr__
_set_now: Final[Callable[[Unit, int], None]] = vars(Unit)["now"].__set__
_set_busy_cycles: Final[Callable[[Unit, int], None]] = vars(Unit)["busy_cycles"].__set__


class Circling(BaseException):
    """Ends an operator that charges, or waits for cycles, on and on: a livelock of one unit."""


class CheckedUnit(Unit):
    """What the units of checked operators have more; see ``unit_class`` for those that are made.

    Attributes:
        calls: what it has asked its channels for.
        shown: channels whose next element ``peek`` has shown.
        reads, writes: its channels.
        most_steps: charges, or a tenth as many waits for a cycle, that it may do in a row.
        steps_left: before the next look; what had moved at the last; looks that saw the same.
    """

    __slots__ = ()

    calls: Calls
    shown: set[Channel]
    reads: Sequence[Channel]
    writes: Sequence[Channel]
    most_steps: int
    steps_left: list[int]

    @override
    def __setattr__(self, name: str, value: object) -> None:
        code = sys._getframe(1).f_code
        if code not in _ours:
            if not written_by_us(code):
                raise Refusal(
                    f"{name} of its unit is set to {described(value)}: expected charge(cycles) "
                    "for work; waits are counted by themselves"
                )
            _ours.add(code)
        _set(self, name, value)

    @override
    def charge(self, cycles: int) -> None:
        if type(cycles) is not int or not 0 <= cycles < MOST_CYCLES - self.now:
            cycles = self._cycles(cycles)
        _set_now(self, self.now + cycles)
        _set_busy_cycles(self, self.busy_cycles + cycles)
        self.steps_left[0] = left = self.steps_left[0] - 1
        if left < 0:
            self._look()

    @override
    def reached(self) -> None:
        self.steps_left[0] -= _REACH_STEPS
        if self.steps_left[0] < 0:
            self._look()

    def _cycles(self, cycles: object) -> int:
        result = whole(cycles, "cycles are charged")
        if result >= MOST_CYCLES - self.now:
            raise Refusal(
                f"{described(result)} cycles are charged: expected a clock that stays below 2**60"
            )
        return result

    def let_go(self) -> None:
        """Count no more steps and wait for no call: the operator has failed."""
        self.calls.drop()
        self.steps_left[0] = MOST_CYCLES

    def _look(self) -> None:
        """See whether an element was received or sent, or a tile moved, since the last look."""
        moved = self.off_chip_bytes
        moved += sum(channel.taken for channel in self.reads)
        moved += sum(channel.sent for channel in self.writes)
        _, before, looks = self.steps_left
        if moved == before and looks == _LOOKS:
            raise Circling
        self.steps_left[:] = self.most_steps // _LOOKS, moved, looks + 1 if moved == before else 1


def unit_class(kind: type[AnyUnit], *, checked: bool) -> type[AnyUnit]:
    """Return the class of units of this kind, with checks where its operator is ``checked``."""
    if not checked:
        return kind
    if kind not in _checked:
        slots = ("calls", "most_steps", "reads", "shown", "steps_left", "writes")
        _checked[kind] = type(f"Checked{kind.__name__}", (CheckedUnit, kind), {"__slots__": slots})
    made = _checked[kind]
    assert issubclass(made, kind)
    return made


_checked: Final[dict[type[Unit], type]] = {}
"""By class of units, the one with checks."""
