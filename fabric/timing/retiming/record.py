"""The record of a run: the events of each unit, in order, and the work between them.

Stamps are not recorded, since they follow from the events under any depths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.graph.hardware.description import NO_REGISTERS, RegisterDescription
from fabric.graph.hardware.least_cycles import least_burst_cycles
from fabric.messages.text import families
from fabric.timing.engine import log as e
from fabric.timing.engine.tables import Counters
from fabric.timing.log.transfers import numbered
from fabric.timing.state.run_state import ChannelFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fabric.graph.hardware.description import OffChipDescription


class RecordedChannel(ChannelFacts, frozen=True):
    """A channel of the recorded run.

    Attributes:
        elements: including bare stops.
        unused: reserved slots that never got an element.
        element_bytes: of the largest element; 0 if not recorded.
    """

    elements: int = 0
    element_bytes: int = 0
    unused: int = 0


class RecordedLinks(NamedTuple):
    """Links that channels of the recorded run shared.

    Attributes:
        capacities: bytes per cycle.
        flows: links and channels of each route or tree of routes.
        sizes_bytes: sizes of the elements, by channel.
    """

    capacities: tuple[int, ...]
    flows: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    sizes_bytes: Mapping[int, Counters] = MappingProxyType({})


NO_EVENTS: Final = np.zeros(1, np.int64), np.zeros((0, 2), np.int64)
"""``first`` and ``events`` of a record before its rows are read."""


@dataclass(frozen=True, eq=False)
class Record:
    """Events of one completed run.

    Attributes:
        first: by unit, its first event. The last entry is the number of events.
        events: [events, 2]: channel and operation, see ``log.SHIFT``, and an amount. The amount of
            operations up to LAST_WORKED is the cycles of work before them. WORK and BURST have
            their own cycles. LATE has cycles after its reading, IDLE cycles after its element is
            visible, and HEAR 0. Others have the amount of the log. Instead of a channel, LATE has
            the number of events since its reading, and BURST its requests, 0 for on-chip memory.
        clients: units that the off-chip memory serves.
        shutdown_cycles: from the end of the last client until the memory stops.
        choosers: units with work that depends on which input came first.
        shares_off_chip: whether there were bursts; other depths may change which bursts contend.
        shares_on_chip: whether the on-chip capacity is limited.
        unread: units that requested a cycle relative neither to a clock reading nor to cycle 0.
        interval_cycles, registers: of the hardware; see ``fabric.timing.engine.channel_rule``.
        shares_links: whether elements may have waited for links.
        links: None if not shared or not recorded; then timings have no waits for links.
    """

    program: str
    units: tuple[str, ...]
    channels: tuple[RecordedChannel, ...] = field(repr=False)
    first: Counters = field(repr=False)
    events: Counters = field(repr=False)
    cycles: int
    clients: tuple[int, ...] = field(default=(), repr=False)
    shutdown_cycles: int = 0
    choosers: tuple[str, ...] = ()
    shares_off_chip: bool = False
    shares_on_chip: bool = False
    unread: tuple[str, ...] = ()
    interval_cycles: int = 0
    registers: RegisterDescription = NO_REGISTERS
    shares_links: bool = False
    links: RecordedLinks | None = field(default=None, repr=False)

    @property
    def orders_are_fixed(self) -> bool:
        """Whether units have equal events under other depths, so the record decides deadlocks."""
        return not (self.choosers or self.shares_on_chip)

    @property
    def determinate(self) -> bool:
        """Whether the record decides the cycles of runs with other depths."""
        return not self.arbitrated

    @cached_property
    def arbitrated(self) -> tuple[str, ...]:
        """Reasons, as sentences, why the record does not decide runs with other depths."""
        sentences = [
            f"{title} {'take' if len(units) > 1 else 'takes'} whichever input comes first"
            for title, units in families(self.choosers, str)
        ]
        if self.shares_off_chip:
            sentences.append("the HBM serves bursts as they come")
        if self.shares_on_chip:
            sentences.append("the on-chip memory serves units as they ask")
        if self.shares_links and self.links is None:
            sentences.append("elements share links of the network")
        sentences += [
            f"{unit} sends for cycles without ports.now or ports.start" for unit in self.unread
        ]
        return tuple(sentences)

    @cached_property
    def depths(self) -> Counters:
        return np.array([channel.depth for channel in self.channels], np.int64)

    @cached_property
    def elements(self) -> Counters:
        """The number of elements sent on each channel."""
        return np.array([channel.elements for channel in self.channels], np.int64)

    @cached_property
    def base(self) -> Counters:
        """By channel, its first slot among all slots. The last entry is the number of slots."""
        slots = [channel.elements + channel.unused for channel in self.channels]
        return np.concatenate([[0], np.cumsum(slots)]).astype(np.int64)

    @cached_property
    def unit_of(self) -> Counters:
        return np.repeat(np.arange(len(self.units)), np.diff(self.first))

    @cached_property
    def element_of(self) -> Counters:
        """The element number of each event on a channel; 0 for other events."""
        elements = np.zeros(len(self.events), np.int64)
        kinds = self.events[:, 0] & e.KIND
        for operations, counted in (
            ((e.PUT, e.SEND), (e.PUT, e.SEND)),
            ((e.RESERVE, e.SEND), (e.RESERVE, e.SEND)),
            # A look at an element has the element number of the dequeue that follows.
            ((e.TAKE, e.HEAR, e.SEE, e.IDLE), (e.TAKE, e.HEAR)),
        ):
            events = np.flatnonzero(np.isin(kinds, operations))
            channel, totals = self.events[events, 0] >> e.SHIFT, np.zeros_like(self.elements)
            elements[events] = numbered(channel, totals, np.isin(kinds[events], counted))
        return elements

    def places(self, *kinds: int) -> Counters:
        """Return the event of one of ``kinds`` on each slot; -1 without such an event."""
        events = np.full(max(1, int(self.base[-1])), e.NONE)
        rows = np.flatnonzero(np.isin(self.events[:, 0] & e.KIND, kinds))
        channel = self.events[rows, 0] >> e.SHIFT
        events[self.base[channel] + numbered(channel, np.zeros_like(self.elements))] = rows
        return events

    @cached_property
    def number(self) -> dict[str, int]:
        """Numbers of channels by their names in ``--depth``."""
        return {channel.option: at for at, channel in enumerate(self.channels)}

    def with_pace(self, units: Sequence[int], factor: float) -> Record:
        """Return a copy with work and memory waits of ``units`` scaled by ``factor``.

        The accumulated work of a unit is rounded to cycles, so that the total is scaled.
        """
        slower = self.with_waits(units, factor)
        for unit in units:
            events = slower.events[self.first[unit] : self.first[unit + 1]]
            kinds = events[:, 0] & e.KIND
            worked = (kinds <= e.LAST_WORKED) | (kinds == e.WORK)
            ends = np.rint(np.cumsum(events[worked, 1]) * factor).astype(np.int64)
            events[worked, 1] = np.diff(ends, prepend=0)
            until = kinds == e.UNTIL
            events[until, 1] = np.rint(events[until, 1] * factor).astype(np.int64)
        return slower

    def with_links(self, times: float) -> Record:
        """Return a copy with link capacities scaled by ``times`` to whole bytes, at least 1."""
        links = self.links
        if links is None or math.isinf(times):
            return replace(self, links=None, shares_links=self.shares_links and links is None)
        wider = tuple(max(1, round(capacity * times)) for capacity in links.capacities)
        return replace(self, links=links._replace(capacities=wider))

    def with_memory(self, before: OffChipDescription, after: OffChipDescription) -> Record:
        """Return a copy with another off-chip memory; its waits are estimated.

        If a burst waited at most twice its least cycles, its wait beyond these is scaled by the
        ratio of the peak bytes per cycle. Otherwise the burst shared the memory, and its whole wait
        is scaled except the least cycles of one request.
        """
        bursts = ((self.events[:, 0] & e.KIND) == e.BURST) & (self.events[:, 0] > e.BURST)
        requests, which = np.unique(self.events[bursts, 0] >> e.SHIFT, return_inverse=True)

        def least(memory: OffChipDescription, requests: list[int]) -> Counters:
            return np.array([least_burst_cycles(memory, size, write=False) for size in requests])

        alone, then_alone = (least(memory, requests.tolist())[which] for memory in (before, after))
        answer, then_answer = (least(memory, [1]) for memory in (before, after))
        scale = float(before.peak_bytes_per_cycle / after.peak_bytes_per_cycle)
        waited = self.events[bursts, 1]
        queued = np.maximum(waited - alone, 0)
        shared = then_answer + np.rint((waited - answer) * scale).astype(np.int64)
        events = self.events.copy()
        events[bursts, 1] = np.where(
            queued > alone,
            np.maximum(then_alone, shared),
            then_alone + np.rint(queued * scale).astype(np.int64),
        )
        return replace(self, events=events)

    def with_waits(self, units: Sequence[int], factor: float) -> Record:
        """Return a copy in which memory waits of ``units`` take ``factor`` as long."""
        events = self.events.copy()
        bursts = ((events[:, 0] & e.KIND) == e.BURST) & np.isin(self.unit_of, units)
        events[bursts, 1] = np.rint(events[bursts, 1] * factor).astype(np.int64)
        return replace(self, events=events)
