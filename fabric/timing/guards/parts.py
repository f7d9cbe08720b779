"""Guards of users' memories and observers: their errors end the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from typing_extensions import override

from fabric.graph.hardware.address_space import Burst
from fabric.graph.values.fit import MOST_CYCLES, described, whole
from fabric.messages.errors import FabricError, ProgramError, Refusal, error_text
from fabric.messages.place import defining_place, raising_place
from fabric.messages.text import counted, found_text
from fabric.messages.users_code import pass_signals, raised
from fabric.timing.engine.observer import Observer, Transferred, Watched
from fabric.timing.engine.off_chip import MemoryCounters, OffChip, StandIn
from fabric.timing.engine.unit import Unit
from fabric.timing.state.resource_use import as_document, counters_in

Answer = TypeVar("Answer")


class GuardedMemory(StandIn):
    """Wraps a memory; after its first error it answers nothing, and the run ends."""

    def __init__(
        self, memory: OffChip, model: str, units: int, keep: Callable[[int, FabricError], None]
    ) -> None:
        """Wrap ``memory``; ``keep`` receives errors with their cycle."""
        super().__init__(memory)
        self._model: Final = model
        self._units: Final = units
        self._keep: Final = keep
        self._submitted: dict[Unit, tuple[int, int]] = {}
        self._answered_cycle = 0
        self._failed = False

    @property
    @override
    def pending(self) -> bool:
        """Whether a burst is under way, by the count of this wrapper."""
        return bool(self._submitted) and not self._failed

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Submit ``burst``; errors are the operator's."""
        self.memory.submit(unit, burst)
        self._submitted[unit] = unit.now, unit.off_chip_cycles

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Advance the memory and check its answers and their cycles."""
        cycle = min(since for since, _ in self._submitted.values())
        try:
            done = list(self.memory.advance(horizon_cycle))
            if not done and horizon_cycle >= MOST_CYCLES:
                raise Refusal(
                    f"advance() answers none of {counted(len(self._submitted), 'burst')}, and no "
                    "unit can run: expected at least one answer"
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
        return self._answer("bytes_moved", lambda: self.memory.bytes_moved, 0)

    @property
    @override
    def final_cycle(self) -> int | None:
        return self._answer("final_cycle", lambda: self.memory.final_cycle, None)

    @override
    def served(self, unit: Unit) -> int:
        return self._answer("served", lambda: self.memory.served(unit), 0)

    @override
    def counters(self) -> MemoryCounters | None:
        return self._answer("counters", self._counters, None)

    def _counters(self) -> MemoryCounters | None:
        value = super().counters()
        if value is None:
            return None
        if not isinstance(value, MemoryCounters):
            raise Refusal(f"counters() returns {described(value)}: expected MemoryCounters or None")
        return counters_in(as_document(value), self._units)

    def _answer(self, method: str, call: Callable[[], Answer], unknown: Answer) -> Answer:
        if self._failed:
            return unknown
        try:
            return call()
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
            self._fail(error, method, self._answered_cycle)
            return unknown

    def _check(self, unit: object) -> None:
        if not isinstance(unit, Unit) or unit not in self._submitted:
            name = unit.name if isinstance(unit, Unit) else described(unit)
            raise Refusal(
                f"advance() answers {name}: expected each unit with a burst under way at most once"
            )
        since, waited_cycles = self._submitted.pop(unit)
        answered, unit.now, unit.off_chip_cycles = unit.now, since, waited_cycles
        cycle = whole(answered, f"is the cycle in which {unit.name} is answered")
        if cycle < since:
            raise Refusal(
                f"{unit.name} is answered in cycle {cycle:,}: expected at least {since:,}, the "
                "cycle of its burst"
            )
        unit.answered(cycle)
        self._answered_cycle = max(self._answered_cycle, cycle)

    def _fail(self, error: BaseException, method: str, cycle: int) -> None:
        pass_signals(error)
        self._failed = True
        self._keep(cycle, self._error(error, method, cycle))

    def _error(self, error: BaseException, method: str, cycle: int) -> ProgramError:
        what = str(error) if isinstance(error, Refusal) else error_text(error)
        place = raising_place(error) or defining_place(getattr(type(self.memory), method, None))
        file, line = place or (None, None)
        return ProgramError(
            f"memory {self._model!r}: {what}, at cycle {cycle:,}", file=file, line=line
        )


_EVENTS: Final = tuple(
    name
    for name, method in vars(Observer).items()
    if callable(method) and not name.startswith("_") and name not in ("begin", "watch")
)
"""Methods that are called during a run."""


class GuardedObserver(Observer):
    """Wraps a user's observer up to its first error.

    Errors before the run are raised; later ones are kept and end the run.
    """

    def __init__(self, observer: Observer, fail: Callable[[int, FabricError], object]) -> None:
        self._observer: Final = observer
        self._fail: Final = fail
        self._failed = False
        for method in _EVENTS:
            setattr(self, method, self._guarded(method, getattr(observer, method), _unit_of))

    @override
    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        try:
            self._observer.begin(units, next_order)
        except BaseException as error:
            raise self._error("begin", error) from error

    @override
    def watch(self, channel: Watched) -> Transferred | None:
        try:
            transferred: object = self._observer.watch(channel)
        except BaseException as error:
            raise self._error("watch", error) from error
        if transferred is None:
            return None
        if not callable(transferred):
            file, line = defining_place(self._observer.watch) or (None, None)
            raise ProgramError(
                f"observer {self._name}: watch() returned {found_text(transferred)}: expected a "
                "function, or None",
                file=file,
                line=line,
            )
        return self._guarded("watch", transferred, lambda *_: channel.consumer)

    def _guarded(
        self, method: str, function: Callable[..., object], unit_of: Callable[..., Unit]
    ) -> Callable[..., None]:
        def guarded(*arguments: Any) -> None:
            if self._failed:
                return
            try:
                function(*arguments)
            except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
                cycle = unit_of(*arguments).now
                failure = self._error(method, error, f", at cycle {cycle:,}")
                self._failed = True
                self._fail(cycle, failure)

        return guarded

    def _error(self, method: str, error: BaseException, when: str = "") -> FabricError:
        place = defining_place(getattr(self._observer, method))
        return raised(f"observer {self._name}: {method}()", error, place, when)

    @property
    def _name(self) -> str:
        return type(self._observer).__name__


def _unit_of(about: Unit | Watched, *_: object) -> Unit:
    return about if isinstance(about, Unit) else about.consumer
