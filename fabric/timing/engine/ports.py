"""An operator's view of the machine, and checks of its functions' results.

The fabric's own functions are not checked.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from fabric.graph.arguments.checks import Alias
from fabric.graph.hardware.address_space import Burst
from fabric.graph.values.fit import MOST_CYCLES, described, element_misfit, freeze, misfit, whole
from fabric.graph.values.stream_type import StreamType
from fabric.graph.values.value import Element, Tile, Value, number_in, row_bytes
from fabric.messages.causes import Operation
from fabric.messages.errors import OperatorError, Refusal
from fabric.messages.place import Place, defining_place, is_ours
from fabric.timing.engine.channel import AssumedSink, Channel, Discard, LaterSink
from fabric.timing.engine.off_chip import prefetching
from fabric.timing.engine.unit import START, ComputeUnit, Unit, Wait

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Region
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.log import Log
    from fabric.timing.engine.off_chip import OffChip
    from fabric.timing.engine.on_chip import OnChipMemory

Call: TypeAlias = Callable[..., Any]
"""A user's function; its results are checked."""

_OFF_CHIP: Final = Operation.OFF_CHIP

_RECEIVE: Final = Operation.RECEIVE

Source: TypeAlias = Channel
"""The end of a channel that an operator reads."""

Sink: TypeAlias = Channel | AssumedSink | LaterSink | Discard
"""The end of a channel that an operator writes."""

if not TYPE_CHECKING:
    Sink = Alias("Sink", Sink, __name__, "The end of a channel that an operator writes.")


class Splitting(Protocol):
    """Input of ``Ports.parts_of``."""

    @property
    def rank(self) -> int:
        """Rank of the stream of parts."""


def _guarded(
    function: object, method: str, wrong: Callable[[object], str | None], kept: int = 0
) -> Call:
    """Return ``function.method`` with guards if it is a user's.

    Inputs after the first ``kept`` become read-only. ``wrong`` describes a result that does not
    fit; it returns None if the result fits.
    """
    call: Call = getattr(function, method)
    if is_ours(type(function)):
        return call
    name, place = _named(function, method)
    numbers: Iterator[int] = itertools.count()

    @wraps(call)
    def guarded(*inputs: object) -> object:
        freeze(inputs[kept:])
        result = call(*inputs)
        number, fault = next(numbers), wrong(result)
        if fault is not None:
            raise Refusal(f"result {number:,} of {name} is {fault}", place=place, counted=True)
        return result

    return guarded


def _numbers_of(function: object, method: str) -> Callable[..., int]:
    call: Callable[..., int] = getattr(function, method)
    if is_ours(type(function)):
        return call
    name, place = _named(function, method)

    @wraps(call)
    def checked(*inputs: object) -> int:
        result = call(*inputs)
        if type(result) is int and 0 <= result < MOST_CYCLES:
            return result
        try:
            number = whole(result, f"is returned by {name}")
        except Refusal as refusal:
            refusal.place = place
            raise
        if number >= MOST_CYCLES:
            raise Refusal(f"{number} is returned by {name}: expected less than 2**60", place=place)
        return number

    return checked


def _wrong_parts(parts: object, stream_type: StreamType, functional: bool) -> str | None:
    if type(parts) is not list:
        return f"{described(parts)}: expected a list of parts, each with its stop"
    rank = last = stream_type.rank
    for number, element in enumerate(parts):
        if type(element) is not tuple or len(element) != 2 or type(element[1]) is not int:
            return (
                f"a list whose item {number} is {described(element)}: expected a tuple (part, "
                "level of the stop)"
            )
        wrong = element_misfit(element, last, stream_type, functional)
        if wrong is not None:
            return f"a list whose item {number} {wrong}"
        last = element[1]
        freeze(element[0], sent=True)
    if last != rank:
        return f"a list whose last stop is of level {last}: expected {rank}, the rank of the split"
    return None


def _named(function: object, method: str) -> tuple[str, Place | None]:
    kind = type(function)
    place = defining_place(getattr(function, method)) or next(
        filter(None, map(defining_place, vars(kind).values())), None
    )
    return f"{kind.__name__}.{method}", place


@dataclass(frozen=True)
class Ports:
    """An operator's view of the machine.

    Attributes:
        unit: the operator's clock and counters.
        inputs, outputs: channel ends in port order.
        functional: whether tiles have data.
        off_chip: the off-chip memory, if the program uses it.
        region: of the operator's tensor in off-chip memory; None without a tensor.
        stored: arrays that stores have written, by name.
        log: None if the run has no log.
        repeats: how often an operator without inputs runs: once for each input of the program.
        interval_cycles: least cycles between two elements of a channel.
        since_cycle: the operator's first cycle; later than 0 in its second and later runs.
    """

    unit: Unit
    inputs: tuple[Source, ...]
    outputs: tuple[Sink, ...]
    input_types: tuple[StreamType, ...]
    output_types: tuple[StreamType, ...]
    functional: bool
    clock: VirtualClock
    off_chip: OffChip | None
    region: Region | None
    on_chip: OnChipMemory
    stored: Stored
    log: Log | None = None
    repeats: int = 1
    interval_cycles: int = 0
    since_cycle: int = 0

    @property
    def now(self) -> int:
        """The unit's clock, for ``send_at``.

        ``ports.now + 3`` is 3 cycles after this reading under any channel depths. A run cannot be
        timed again if it sends at ``ports.unit.now + 3`` or at another plain integer.
        """
        unit, log = self.unit, self.log
        now = unit.now if log is None else log.reading(unit)
        return now - self.since_cycle if self.since_cycle else now

    @property
    def start(self) -> int:
        """Cycle 0, for ``send_at`` with cycles that count from the start of the run."""
        return 0 if self.log is None else START

    @property
    def source(self) -> Source:
        """The first input."""
        return self.inputs[0]

    @property
    def sink(self) -> Sink:
        """The first output."""
        return self.outputs[0]

    @property
    def compute_unit(self) -> ComputeUnit:
        """The unit of an operator of the kind ``compute``."""
        assert isinstance(self.unit, ComputeUnit)
        return self.unit

    async def burst(self, rows: int, row_bytes: int, number: int = 0) -> None:
        """Move a tile to or from off-chip memory; the unit's clock becomes the cycle of the answer.

        Args:
            rows: rows of the tile; 0 moves nothing.
            row_bytes: bytes of one row; 0 moves nothing.
            number: number of the tile in the operator's tensor. If ``off_chip_tensor`` does not
                list the tiles, the number of the tile's first byte.

        Raises:
            Refusal: the memory cannot serve it.
        """
        if not rows or not row_bytes:
            return
        assert self.region is not None
        await self._move(self.region.burst(rows, row_bytes, number))

    async def spill(self, tile: Tile) -> int:
        """Move a tile that found no room on chip to off-chip memory; return its address there."""
        address = self.on_chip.spill_address
        assert address is not None
        self.on_chip.spill_address = address + tile.size_bytes
        await self._move_spilled(tile, address, write=True)
        return address

    async def fetch(self, tile: Tile, address: int) -> None:
        """Read a spilled tile from ``address``."""
        await self._move_spilled(tile, address, write=False)

    async def _move_spilled(self, tile: Tile, address: int, *, write: bool) -> None:
        width_bytes = row_bytes(tile.cols, tile.dtype)
        if tile.rows and width_bytes:
            await self._move(Burst(address, tile.rows, width_bytes, width_bytes, write))

    async def _move(self, burst: Burst) -> None:
        off_chip, unit = self.off_chip, self.unit
        assert off_chip is not None
        off_chip.submit(unit, burst)
        unit.off_chip_bytes += burst.rows * burst.row_bytes
        await self.clock.park(unit, Wait(_OFF_CHIP, (), unit.now))

    def announce(self, rows: int, row_bytes: int, numbers: Iterable[int]) -> None:
        """Announce the tiles of the next ``burst`` calls, so that the memory can fetch them ahead.

        Args:
            rows: rows of each tile.
            row_bytes: bytes of one row.
            numbers: numbers of the tiles, as in ``burst``.
        """
        memory, region = prefetching(self.off_chip), self.region
        if memory is not None and region is not None and rows and row_bytes:
            memory.announce(
                self.unit, (region.burst(rows, row_bytes, number) for number in numbers)
            )

    def turn(self, *memory: object) -> None:
        """State that all further behaviour depends only on ``memory`` and on later elements.

        An operator of a class with ``turns`` calls this after each element or group; see
        ``Operator``.
        """

    def times(self, count: int) -> Iterable[int]:
        """Yield ``count`` times; the loop's body must not depend on the yielded value."""
        return range(count)

    def arrivals(self) -> Arrivals:
        """Return an empty list of inputs to be read in the order of arrival."""
        return Arrivals(self)

    def number(self, tile: Tile, below: int) -> int | None:
        """Return the number in ``tile`` if it is from 0 to ``below`` - 1; else None.

        An operator may use it only as an address.

        Raises:
            ValueError: the tile was computed without data.
        """
        number = number_in(tile)
        return number if 0 <= number < below else None

    def failure(
        self, what: str, place: Place | None = None, *, counted: bool = False
    ) -> OperatorError:
        """Return the error of the operator at its clock: ``X: expected Y``.

        Args:
            what: the message.
            place: the line of the user's code.
            counted: whether ``what`` names the element; else the number of dequeued values is
                added.
        """
        unit = self.unit
        element = self.inputs[0].elements if self.inputs else 0
        where = "" if place is None else f" ({place})"
        number = "" if counted else f", element {element:,}"
        return OperatorError(
            f"{unit.name}: {what}{where}, at cycle {unit.now:,}{number}",
            operator=unit.name,
            cycle=unit.now,
            element=element,
            file=unit.place.file,
            line=unit.place.line,
        )

    async def first_of(self, sources: tuple[Source, ...]) -> None:
        """Park until an element or an end arrives in one of ``sources``, which are empty."""
        unit = self.unit
        if self.log is not None and not unit.drains:
            self.log.chose(unit)
        for source in sources:
            source.reader = unit
        await self.clock.park(unit, Wait(_RECEIVE, sources, unit.now, any_of=True))
        for source in sources:
            source.reader = None

    def values_of(self, function: object, method: str) -> Callable[..., Value]:
        """Return ``function.method``; results of a user's function are checked as outputs."""
        kind = self.output_types[0].value

        def wrong(result: object) -> str | None:
            fault = misfit(result, kind, self.functional)
            if fault is None:
                freeze(result, sent=True)
            return fault

        return _guarded(function, method, wrong)

    def parts_of(self, split: Splitting) -> Callable[[Any], Sequence[Element]]:
        """Return ``split.apply``; results of a user's function are checked as parts of outputs."""
        stream_type = StreamType((1,) * (split.rank + 1), self.output_types[0].value)
        return _guarded(
            split, "apply", lambda parts: _wrong_parts(parts, stream_type, self.functional)
        )

    def update_of(self, reduction: object) -> Call:
        """Return ``reduction.update``; a user's function may change its first input only."""
        return _guarded(reduction, "update", lambda _: None, kept=1)

    numbers_of = staticmethod(_numbers_of)

    def finish(self) -> None:
        """End the outputs: the operator has ended."""
        for sink in self.outputs:
            sink.close()
        if self.log is not None:
            self.log.finished(self.unit)

    async def drain(self) -> None:
        """Discard later elements until all producers have ended.

        Inputs do not wait for each other's ends, and the clock moves only when all have ended.
        """
        cycle = self.unit.now
        self.unit.drains = True
        while True:
            for source in self.inputs:
                source.discard(cycle)
            open_sources = tuple(source for source in self.inputs if source.closed_cycle is None)
            if not open_sources:
                break
            await self.first_of(open_sources)
        for source in self.inputs:
            source.see_end()

    async def starve(self, source: Source, seen_stop: int, awaited_stop: int) -> None:
        """Wait for an element of a stream that has ended: the program is deadlocked.

        Args:
            source: the stream.
            seen_stop: level of the stream's last stop; 0 without a stop.
            awaited_stop: the lowest level that would end the wait; 0 if no stop is needed.
        """
        unit = self.unit
        stops = (seen_stop, awaited_stop) if awaited_stop else None
        await self.clock.park(unit, Wait(_RECEIVE, (source,), unit.now, stops=stops))


class Arrivals:
    """Inputs in the order in which their next elements became visible."""

    __slots__ = ("_cycle", "_log", "_shown", "_unit")

    def __init__(self, ports: Ports) -> None:
        self._unit: Final = ports.unit
        self._log: Final = ports.log
        self._shown: list[tuple[int, Source]] = []
        self._cycle = 0

    async def show(self, source: Source) -> bool:
        """Wait for the next element of ``source``; False if its stream has ended."""
        if await source.peek() is None:
            return False
        self._shown.append((source.head_cycle, source))
        return True

    async def earliest(self) -> Source:
        """Return and remove the input that came first; among equal cycles, the one shown first."""
        first = min(range(len(self._shown)), key=lambda place: self._shown[place][0])
        self._cycle, source = self._shown.pop(first)
        if self._log is not None:
            if self._shown:
                self._log.chose(self._unit)
            assert source.log is not None
            self._log.arrived(source.log, source.taken)
        return source

    def busy_until(self, cycles: int) -> None:
        """Let the unit be busy until ``cycles`` after the arrival of the last returned input."""
        charged_cycles = max(0, self._cycle + cycles - self._unit.now)
        self._unit.charge(charged_cycles)
        if self._log is not None:
            self._log.was_busy(self._unit, charged_cycles, cycles)


class Stored(dict[str, Any]):
    """Arrays by the name of the output.

    Attributes:
        scratch: arrays that the run reads again, by key.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scratch: Final[dict[object, Any]] = {}
        self._last: defaultdict[object, dict[int, tuple[int, int]]] = defaultdict(dict)

    def stays(self, output: object, place: int, unit: Unit) -> bool:
        """Whether the value that ``unit`` writes to ``place`` at its clock is the latest so far.

        The host decides the order in which units run, so clocks decide which value stays. Among
        equal clocks, the unit with the higher index is later, because the memory serves it later.
        """
        last, now = self._last[output], (unit.now, unit.index)
        if now < last.get(place, now):
            return False
        last[place] = now
        return True
