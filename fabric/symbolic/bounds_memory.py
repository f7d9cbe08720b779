"""The lower bound of a run's cycles by all that its off-chip memory moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from fabric.hardware.description import OffChipDescription
from fabric.hardware.least_cycles import least_shared_cycles, most_ahead_requests
from fabric.symbolic.least import Least
from fabric.values.dims import Expression, total
from fabric.values.totals import Totals, least_of, with_totals
from fabric.wiring.elaborate import Plan

__all__ = ["shared_memory"]

Array = np.ndarray


def shared_memory(
    plan: Plan,
    least: Sequence[Least],
    totals: Totals,
    begins: Sequence[int],
    rests: Sequence[int],
) -> int:
    """Return the bound by all that the off-chip memory moves; 0 where none is known.

    Args:
        plan: the program.
        least: what its operators do, in node order.
        totals: what sizes are together that are not known one by one.
        begins: when each operator has what its first element takes, at the earliest.
        rests: how long a run goes on at least after each has sent its last element.

    Proof. Take any cycle ``start``, and any number of cycles ``rest`` before the end of the run.
    Bursts that are handed over from ``start`` on and seen complete ``rest`` before the end take
    ``least_shared_cycles`` of all their requests, whatever else makes the queue longer. So long,
    ``start`` and ``rest`` together last no longer than the run. It holds for each start and rest.

    A client has most of its bursts in that time. It hands none over before its ``begin``, and sees
    its last one complete its own ``rest`` before the end, or earlier. It has one burst at a time.
    So in the cycles from its begin to ``start`` it hands over one, and one more for each
    ``burst_cycles`` of them, and what the memory has fetched ahead; and in those from ``rest``
    before the end to its own last one it sees no more complete.
    """
    memory = plan.program.hardware.hbm
    clients = list(_clients(plan, least, totals, begins, rests))
    if not clients:
        return 0
    windows = _Windows(memory, np.array(clients, np.int64).T)
    starts, all_rests = np.unique(windows.begins), np.unique(windows.rests)
    # The best start for the shortest rest, the best rest for that one, and so on.
    most, start, rest = 0, starts[:1], all_rests[:1]
    while True:
        found = max(windows.longest(starts, rest), windows.longest(start, all_rests))
        if found[0] <= most:
            return most
        most, start, rest = found[0], np.array([found[1]]), np.array([found[2]])


class _Client(NamedTuple):
    """A client of the off-chip memory.

    Attributes:
        begin: before it, it hands nothing over.
        rest: how long the run goes on after its last burst.
        requests: of all its bursts.
        burst_requests, burst_cycles: of one burst, and how long that takes at least.
        is_write: it stores.
    """

    begin: int
    rest: int
    requests: int
    burst_requests: int
    burst_cycles: int
    is_write: bool


def _clients(
    plan: Plan,
    least: Sequence[Least],
    totals: Totals,
    begins: Sequence[int],
    rests: Sequence[int],
) -> Iterator[_Client]:
    """Yield the clients of which something is known; those that share a total as one."""
    shared: dict[bool, list[tuple[Expression, int, int]]] = {False: [], True: []}
    for node, its, begin, rest in zip(plan.nodes, least, begins, rests, strict=True):
        is_write = node.operator.off_chip == "write"
        if isinstance(its.requests, Expression):
            shared[is_write].append((its.requests, begin, rest))
        elif its.requests:
            cycles = its.burst_cycles
            # Where nothing is known of how long bursts take, all may be over at once.
            burst = its.burst_requests if cycles else its.requests
            yield _Client(begin, rest, its.requests, burst, max(cycles, 1), is_write)
    for is_write, some in shared.items():
        requests = least_of(with_totals(total(each for each, _, _ in some), totals))
        if requests:
            begin, rest = min(begin for _, begin, _ in some), min(rest for *_, rest in some)
            yield _Client(begin, rest, requests, requests, 1, is_write)


class _Windows:
    """What clients do at least from a start until a rest before the end.

    Attributes:
        begins, rests: of the clients; see ``_Client``.
    """

    def __init__(self, memory: OffChipDescription, clients: Array) -> None:
        """Look at clients of ``memory``, one in each column."""
        self._memory: Final = memory
        self.begins, self.rests, self._requests, self._burst_requests = clients[:4]
        self._burst_cycles, self._writes = clients[4], clients[5].astype(bool)

    def longest(self, starts: Array, rests: Array) -> tuple[int, int, int]:
        """Return the largest bound of some starts, or some rests, with its start and rest.

        Args:
            starts: one, or several for one rest.
            rests: one, or several for one start.
        """
        before = self._most(starts[:, np.newaxis] - self.begins)
        after = self._most(rests[:, np.newaxis] - self.rests)
        ahead = (starts[:, np.newaxis] > self.begins) * most_ahead_requests(self._memory)
        left = np.maximum(self._requests - before - ahead - after, 0)
        reads, writes = left[:, ~self._writes].sum(axis=1), left[:, self._writes].sum(axis=1)
        found = []
        for start, rest, read, written in zip(
            *(each.tolist() for each in np.broadcast_arrays(starts, rests, reads, writes)),
            strict=True,
        ):
            shared = least_shared_cycles(self._memory, read, written) if read + written else 0
            found.append((start + shared + rest if shared else 0, start, rest))
        return max(found)

    def _most(self, cycles: Array) -> Array:
        """Return the requests of the bursts of so many cycles, at most."""
        bursts = (cycles // self._burst_cycles + 1) * (cycles > 0)
        most: Array = np.minimum(bursts * self._burst_requests, self._requests)
        return most
