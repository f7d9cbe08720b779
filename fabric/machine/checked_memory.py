"""A user's off-chip memory: the same as any other, with a look at what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from typing_extensions import override

from fabric.engine.off_chip import Burst, MemoryCounters, OffChip, StandIn
from fabric.engine.unit import Unit
from fabric.state.memory_document import as_document, counters_in
from fabric.telling.errors import FabricError, ProgramError, Refusal, said
from fabric.telling.place import defining_place, raising_place
from fabric.telling.users_code import pass_signals
from fabric.telling.wording import counted
from fabric.values.fit import MOST_CYCLES, described, whole

__all__ = ["CheckedMemory"]

Said = TypeVar("Said")


class CheckedMemory(StandIn):
    """Stands for a memory until it fails; then nothing is answered any more, and the run ends."""

    def __init__(
        self, memory: OffChip, model: str, units: int, keep: Callable[[int, FabricError], None]
    ) -> None:
        """Stand for ``memory`` of a program of so many units.

        ``keep`` is told at which cycle what went wrong.
        """
        super().__init__(memory)
        self._model: Final = model
        self._units: Final = units
        self._keep: Final = keep
        self._asked: dict[Unit, tuple[int, int]] = {}
        self._answered_cycle = 0
        self._failed = False

    @property
    @override
    def pending(self) -> bool:
        """See ``OffChip``, as all others; here it is known without asking."""
        return bool(self._asked) and not self._failed

    def submit(self, unit: Unit, burst: Burst) -> None:
        """See ``OffChip``; what is raised here is told of the operator."""
        self.memory.submit(unit, burst)
        self._asked[unit] = unit.now, unit.off_chip_cycles

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Let the memory advance and look at whom it has answered, and when."""
        cycle = min(since for since, _ in self._asked.values())
        try:
            done = list(self.memory.advance(horizon_cycle))
            if not done and horizon_cycle >= MOST_CYCLES:
                raise Refusal(
                    f"advance() answers none of {counted(len(self._asked), 'burst')}, and nothing "
                    "else goes on: expected at least one"
                )
            for unit in done:
                self._check(unit)
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
            self._fail(error, "advance", cycle)
            return []
        return done

    @property
    @override
    def bytes_moved(self) -> int:
        """See ``OffChip``, as the next two; where the memory cannot say it, the run ends."""
        return self._said("bytes_moved", lambda: self.memory.bytes_moved, 0)

    @property
    @override
    def final_cycle(self) -> int | None:
        return self._said("final_cycle", lambda: self.memory.final_cycle, None)

    @override
    def served(self, unit: Unit) -> int:
        return self._said("served", lambda: self.memory.served(unit), 0)

    @override
    def counters(self) -> MemoryCounters | None:
        """Return what the memory says; None where that cannot be, and the run ends."""
        return self._said("counters", self._counters, None)

    def _counters(self) -> MemoryCounters | None:
        found = super().counters()
        if found is None:
            return None
        if not isinstance(found, MemoryCounters):
            raise Refusal(f"counters() returns {described(found)}: expected MemoryCounters or None")
        return counters_in(as_document(found), self._units)

    def _said(self, method: str, say: Callable[[], Said], unknown: Said) -> Said:
        """Return what the memory says of itself, or ``unknown`` once it has failed."""
        if self._failed:
            return unknown
        try:
            return say()
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
            self._fail(error, method, self._answered_cycle)
            return unknown

    def _check(self, unit: object) -> None:
        if not isinstance(unit, Unit) or unit not in self._asked:
            name = unit.name if isinstance(unit, Unit) else described(unit)
            raise Refusal(
                f"advance() answers {name}: expected units that have a burst under way, once each"
            )
        since, waited_cycles = self._asked.pop(unit)
        answered, unit.now, unit.off_chip_cycles = unit.now, since, waited_cycles
        cycle = whole(answered, f"is the cycle in which {unit.name} is answered")
        if cycle < since:
            raise Refusal(
                f"{unit.name} is answered in cycle {cycle:,}: expected {since:,}, in which it "
                "asked, or a later one"
            )
        unit.answered(cycle)
        self._answered_cycle = max(self._answered_cycle, cycle)

    def _fail(self, error: BaseException, method: str, cycle: int) -> None:
        pass_signals(error)
        self._failed = True
        self._keep(cycle, self._error(error, method, cycle))

    def _error(self, error: BaseException, method: str, cycle: int) -> ProgramError:
        what = str(error) if isinstance(error, Refusal) else said(error)
        place = raising_place(error) or defining_place(getattr(type(self.memory), method, None))
        file, line = place or (None, None)
        return ProgramError(
            f"memory {self._model!r}: {what}, at cycle {cycle:,}", file=file, line=line
        )
