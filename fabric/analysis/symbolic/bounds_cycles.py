"""Lower bounds of a run's cycles, from its units and its off-chip memory.

Each function has a proof in its docstring. All proofs use the cycle rules:

* an element that is sent in cycle t is visible in t + 1 or later, on every channel;
* a unit's clock never goes back, and its final value is not before the end of any stream that
  its operator reads;
* a run lasts until the largest final clock, and until the off-chip memory stops; the flat memory
  stops ``SHUTDOWN_CYCLES`` after its last client.

The bounds do not depend on depths: a full channel delays a unit and never speeds one up.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from fabric.analysis.symbolic.operator_bounds import Graph, Least
from fabric.graph.hardware.description import FlatDescription, OffChipDescription
from fabric.graph.hardware.least_cycles import least_shared_cycles, most_ahead_requests
from fabric.graph.values.dims import Dim, Totals, least_of, with_totals
from fabric.graph.values.expression import Expression, Monomial, total
from fabric.graph.wiring.elaborate import Edge, Plan
from fabric.messages.causes import Cause
from fabric.timing.memories.flat import SHUTDOWN_CYCLES


class Bound(NamedTuple):
    """A lower bound of a run's cycles; it follows from ``what``, an operator's name or ``hbm``."""

    cycles: int
    what: str


def bounds_of_cycles(
    plan: Plan, graph: Graph, least: Sequence[Least], totals: Totals
) -> dict[str, Bound]:
    """Return the largest lower bound of each kind; the run lasts at least the largest of all.

    The kinds are ``compute``, ``memory`` and ``routing`` units, and ``hbm``, which all clients
    share.
    """
    begins, lasts = earliest(graph, least, totals)
    rests = least_rests(plan, graph, least)
    bounds = busiest_units(plan, lasts, rests)
    cycles = shared_memory(plan, least, totals, begins, rests)
    if cycles:
        bounds[Cause.HBM.value] = Bound(cycles, Cause.HBM.value)
    return bounds


def earliest(graph: Graph, least: Sequence[Least], totals: Totals) -> tuple[list[int], list[int]]:
    """Return the earliest begin and the earliest last send of each operator, in cycles.

    An operator begins when the inputs that it needs for its first element are visible.

    Proof, in the order of the streams. All cycles are the earliest possible ones.

    *Begin.* An element is visible one cycle and the producer's ``delay_cycles`` after it is sent.
    An operator that needs all inputs begins when the latest of their first elements is visible. An
    operator that needs any input begins when the earliest first element is visible; inputs that
    are certainly empty do not count. With a selector, which is the last input, it needs the
    selector and any other input. If a group may be empty, a bare stop may arrive instead of an
    element: the begin is then 0, as for operators without stated work. Feedback inputs may be
    visible in cycle 0, too.

    *First.* The first element is sent ``first_cycles`` after the begin. If each output has one
    element only, it is also the last one.

    *Pace.* Element k of an output, counted from 0, is sent ``k * pace_cycles`` after element 0 or
    later. An operator that takes n elements of its first input for each output element sends
    element k after input element ``n * (k + 1) - 1`` is visible. Both are lines over k, and the
    steeper one is kept. A padding operator follows its input up to the last input element and
    sends the padding later: its line is level from there.

    *Last.* The last element is sent ``cycles`` after the begin, and ``last_cycles`` after the last
    element of each input in ``closing`` is visible. That element is sent on the producer's line,
    but not before the producer's last cycle if the producer has the stream in ``late`` and does
    not deal. An operator that ``holds`` its last element sends it after the inputs in ``sees`` have
    ended.

    *Dealt.* An operator that deals elements to its outputs sends the last one to one of the
    outputs. A reader that waits for the last element of all these outputs has waited for that
    element, and for the work on its way. The output is unknown, so the shortest way counts. If an
    output has one element only, it is the first one, too, and all work that begins with it comes
    after it. Inputs that may be empty count as well: a dealt element on its way shows that they are
    not.

    *Shared.* If m streams have n elements together, the longest stream has n / m elements or more,
    and an operator does its work for each element. A reader that waits for the results of all
    these streams has waited for the longest one, on the shortest way. So the elements are treated
    as if an operator had dealt them to these streams in cycle 0.

    *End.* A unit's clock never goes back: outputs end after the last element was sent to any
    output, and after the inputs in ``sees`` have ended. The end of a stream has no hop.
    """
    begins, lasts, ends = ([0] * len(least) for _ in range(3))
    lines = [_Line(0, 0)] * len(least)
    dealt: list[Dealt] = [{} for _ in least]
    shares = [Share(tuple(stated.terms), size) for stated, size in totals.items()]
    for number in graph.order:
        work, edges = least[number], graph.into[number]
        begins[number] = begin = _begin(work, edges, least, lines)
        seen = [edge for port in work.sees if (edge := edges[port]) is not None]
        end = max((ends[edge.producer.index] for edge in seen), default=0)
        last = max(begin + work.cycles, end if work.holds else 0)
        for port in work.closing:
            edge = edges[port]
            if edge is not None:
                last = max(last, _last_visible(edge, least, lasts, lines) + work.last_cycles)
        dealt[number] = waited_for(work, edges, least, dealt, shares)
        whole = replace_dealers(dealt[number], least, dealt, shares)
        for dealer, after in whole:
            if dealer < 0:
                last = max(last, after)
            elif least[dealer].closing:
                last = max(last, lasts[dealer] + after)
        first = max(begin + work.first_cycles, last if work.sends_one else 0, 0)
        lines[number] = _line(work, edges, least, lines, first)
        lasts[number], ends[number] = last, max(last, end)
    return begins, lasts


class _Line(NamedTuple):
    """The earliest cycles in which the elements of an output are sent.

    Element k, counted from 0, is sent in ``offset + slope * k``.
    """

    first: int
    offset: int
    slope: int = 0
    until: int = sys.maxsize  # the last element on the line; later elements have its cycle

    def at(self, element: int) -> int:
        """Return the earliest send of an element, counted from 0."""
        return self.offset + self.slope * min(element, self.until)


def _line(
    work: Least,
    edges: Sequence[Edge | None],
    least: Sequence[Least],
    lines: Sequence[_Line],
    first: int,
) -> _Line:
    edge = edges[0] if edges and work.takes else None
    if edge is None:
        return _Line(first, first, work.pace_cycles)
    number = edge.producer.index
    front = lines[number]
    offset = front.at(work.takes - 1) + 1 + least[number].delay_cycles
    until = max(front.until - (work.takes - 1), 0) // work.takes
    if work.pads:
        elements = least[number].elements
        until = min(until, max((elements[edge.output] or 0) - 1, 0) if elements else 0)
    if until and work.takes * front.slope > work.pace_cycles:
        return _Line(max(first, offset), offset, work.takes * front.slope, until)
    return _Line(max(first, offset), max(first, offset), work.pace_cycles)


def _last_visible(
    edge: Edge, least: Sequence[Least], lasts: Sequence[int], lines: Sequence[_Line]
) -> int:
    number = edge.producer.index
    front, line = least[number], lines[number]
    sent = line.first
    if edge.output in front.late and not front.deals:
        sent = max(sent, lasts[number])
    elements = (front.elements[edge.output] if front.elements else None) or 1
    sent = max(sent, line.at(elements - 1))
    return sent + 1 + front.delay_cycles


def _begin(
    work: Least, edges: Sequence[Edge | None], least: Sequence[Least], lines: Sequence[_Line]
) -> int:
    if work.starts_with == "none":
        return 0
    visible = []
    for edge in edges:
        if edge is None:
            visible.append(0)
            continue
        number = edge.producer.index
        front = least[number]
        is_absent = bool(front.elements) and front.elements[edge.output] == 0
        visible.append(sys.maxsize if is_absent else lines[number].first + 1 + front.delay_cycles)
    match work.starts_with:
        case "any":
            return min(visible)
        case "selected":
            *selected, selector = visible
            return max(min(selected, default=0), selector)
        case _:
            return max(visible)


def least_rests(plan: Plan, graph: Graph, least: Sequence[Least]) -> list[int]:
    """Return the least cycles of the run after each operator has sent its last element.

    For an operator without outputs they count from its end.

    Proof, against the order of the streams. Let an operator send the last element of an output in
    cycle t. The reader sees it in t + 1 + ``delay_cycles`` or later. If the last element that the
    reader sends waits for that element, ``last_cycles`` or more pass in between, and the same
    proof holds from there. Of several outputs, the slowest counts. If elements are dealt, the last
    one went to an unknown output, and the fastest counts. The operator's outputs end in t or later,
    and so do the outputs of a reader that sees this end first. If the operator or one of its
    readers is a client of the off-chip memory, the memory runs for ``SHUTDOWN_CYCLES`` after that.
    """
    is_flat = type(plan.program.hardware.hbm) is FlatDescription
    rests = [0] * len(least)
    shutdown = [0] * len(least)
    for number in reversed(graph.order):
        node, work = plan.nodes[number], least[number]
        edges = graph.out_of[number]
        if is_flat and node.operator.off_chip is not None:
            shutdown[number] = SHUTDOWN_CYCLES
        for edge in edges:
            behind = edge.consumer
            if behind.operator.off_chip is not None or edge.input in least[behind.index].sees:
                shutdown[number] = max(shutdown[number], shutdown[behind.index])
        rest = shutdown[number]
        ways = dict.fromkeys(work.late, rest)
        for edge in edges:
            reader = least[edge.consumer.index]
            if edge.output in ways and edge.input in reader.closing:
                visible = 1 + work.delay_cycles
                ways[edge.output] = visible + reader.last_cycles + rests[edge.consumer.index]
        if ways:
            rest = max(rest, min(ways.values()) if work.deals else max(ways.values()))
        rests[number] = rest
    return rests


def busiest_units(plan: Plan, lasts: Sequence[int], rests: Sequence[int]) -> dict[str, Bound]:
    """Return the largest bound of each kind of units: ``compute``, ``memory`` and ``routing``.

    Proof. An operator sends its last element in cycle ``lasts`` or later, and the run lasts
    ``rests`` after that. If a unit adds no work, this is the longest path through it: from the
    slowest first element that it takes to the end of the run.
    """
    best: dict[str, Bound] = {}
    for node, last, rest in zip(plan.nodes, lasts, rests, strict=True):
        kind, bound = node.operator.kind, Bound(last + rest, node.name)
        if kind not in best or bound.cycles > best[kind].cycles:
            best[kind] = bound
    return dict(sorted(best.items()))


class Share(NamedTuple):
    """The known total of the elements of several streams."""

    parts: tuple[Monomial, ...]
    size: int

    @property
    def longest(self) -> int:
        """The least number of elements in the longest of the streams."""
        return -(-self.size // len(self.parts))


class After(NamedTuple):
    """Least cycles after a dealt element until an operator sends its first and last element."""

    first: int | None  # None if the first element need not follow the dealt one
    last: int


Dealt: TypeAlias = dict[tuple[int, int], After]
"""Least cycles after the last element that an operator deals to an output.

The key is the operator and the output. For a shared total, the operator is -1, -2 and so on.
"""


def waited_for(
    work: Least,
    edges: Sequence[Edge | None],
    least: Sequence[Least],
    dealt: Sequence[Dealt],
    shares: Sequence[Share],
) -> Dealt:
    """Return the dealt elements that an operator's output follows, as ``earliest`` explains."""
    begins: dict[tuple[int, int], int] = {}
    lasts = dict(_shared_cycles(work.open_cycles, shares))
    for port, edge in enumerate(edges):
        if edge is None:
            continue
        front = least[edge.producer.index]
        visible = 1 + front.delay_cycles
        closes = port in work.may_close and edge.output in front.late
        for place, (first, last) in _sent(edge, front, dealt).items():
            if first is not None and work.starts_with == "all":
                begins[place] = max(begins.get(place, 0), first + visible)
            if closes:
                lasts[place] = max(lasts.get(place, 0), last + visible + work.last_cycles)
    for place, begin in begins.items():
        lasts[place] = max(lasts.get(place, 0), begin + work.cycles)
    after = {place: After(last if work.sends_one else None, last) for place, last in lasts.items()}
    for place, begin in begins.items():
        first = max(after[place].first or 0, begin + work.first_cycles)
        after[place] = After(first, after[place].last)
    return after


def _sent(edge: Edge, front: Least, dealt: Sequence[Dealt]) -> Dealt:
    number = edge.producer.index
    if not front.deals:
        return dealt[number]
    if edge.output not in front.late:
        return {}
    return {(number, edge.output): After(0 if front.elements[edge.output] == 1 else None, 0)}


def _shared_cycles(cycles: Dim, shares: Sequence[Share]) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield an operator's ``cycles`` for each part of a shared total, if it is the longest."""
    terms = dict(cycles.terms) if isinstance(cycles, Expression) else {}
    number = terms.pop(frozenset(), 0)
    if any(factor < 0 for factor in terms.values()):
        return
    for index, share in enumerate(shares, 1):
        for port, part in enumerate(share.parts):
            if share.longest and part in terms:
                yield (-index, port), int(number + terms[part] * share.longest)


def replace_dealers(
    mine: Dealt, least: Sequence[Least], dealt: Sequence[Dealt], shares: Sequence[Share]
) -> list[tuple[int, int]]:
    """Replace each dealer with all its outputs in ``mine`` by the entries that it waits for.

    Returns the replaced dealers, and the least cycles after the last element of each.
    """
    whole: list[tuple[int, int]] = []
    while True:
        by_dealer: dict[int, list[int]] = {}
        for (dealer, _), after in mine.items():
            by_dealer.setdefault(dealer, []).append(after.last)
        full = [
            (dealer, min(lasts))
            for dealer, lasts in by_dealer.items()
            if len(lasts) == len(shares[-dealer - 1].parts if dealer < 0 else least[dealer].late)
        ]
        if not full:
            return whole
        for dealer, shortest in full:
            for place in [place for place in mine if place[0] == dealer]:
                del mine[place]
            for place, after in dealt[dealer].items() if dealer >= 0 else ():
                last = shortest + after.last
                mine[place] = After(None, max(last, mine[place].last if place in mine else 0))
        whole += full


Array = np.ndarray


def shared_memory(
    plan: Plan,
    least: Sequence[Least],
    totals: Totals,
    begins: Sequence[int],
    rests: Sequence[int],
) -> int:
    """Return the lower bound of the run's cycles by all traffic of the off-chip memory.

    0 if no client has a known number of requests.

    Proof. Take any cycle ``start``, and any number of cycles ``rest`` before the end of the run.
    Bursts that are issued from ``start`` on and complete ``rest`` before the end take
    ``least_shared_cycles`` of all their requests; other traffic only lengthens the queue. The sum
    of these cycles, ``start`` and ``rest`` is a lower bound of the run, for each start and rest.

    A client issues no burst before its ``begin``, and its last one completes its own ``rest``
    before the end or earlier. It has one burst at a time. Between its begin and ``start`` it
    issues at most one burst, one more per ``burst_cycles``, and the bursts that the memory fetches
    ahead. At most the same number, without those fetched ahead, completes between ``rest`` before
    the end and the client's own last burst. All other bursts lie in between.
    """
    memory = plan.program.hardware.hbm
    clients = list(_clients(plan, least, totals, begins, rests))
    if not clients:
        return 0
    windows = _Windows(memory, np.array(clients, np.int64).T)
    starts, all_rests = np.unique(windows.begins), np.unique(windows.rests)
    # Alternate: the best start for the shortest rest, the best rest for this start, and so on.
    most, start, rest = 0, starts[:1], all_rests[:1]
    while True:
        longer = max(windows.longest(starts, rest), windows.longest(start, all_rests))
        if longer[0] <= most:
            return most
        most, start, rest = longer[0], np.array([longer[1]]), np.array([longer[2]])


class _Client(NamedTuple):
    begin: int  # no request is before this cycle
    rest: int  # least cycles of the run after its last burst
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
    """Yield the clients with a known number of requests.

    Clients of which only the total is known are joined: one client reads, and one writes.
    """
    shared: dict[bool, list[tuple[Expression, int, int]]] = {False: [], True: []}
    for node, work, begin, rest in zip(plan.nodes, least, begins, rests, strict=True):
        is_write = node.operator.off_chip == "write"
        if isinstance(work.requests, Expression):
            shared[is_write].append((work.requests, begin, rest))
        elif work.requests:
            cycles = work.burst_cycles
            # Without a known duration, all bursts may complete in one cycle.
            burst = work.burst_requests if cycles else work.requests
            yield _Client(begin, rest, work.requests, burst, max(cycles, 1), is_write)
    for is_write, clients in shared.items():
        requests = least_of(with_totals(total(dim for dim, _, _ in clients), totals))
        if requests:
            begin, rest = min(begin for _, begin, _ in clients), min(rest for *_, rest in clients)
            yield _Client(begin, rest, requests, requests, 1, is_write)


class _Windows:
    def __init__(self, memory: OffChipDescription, clients: Array) -> None:
        self._memory: Final = memory
        self.begins, self.rests, self._requests, self._burst_requests = clients[:4]
        self._burst_cycles, self._writes = clients[4], clients[5].astype(bool)

    def longest(self, starts: Array, rests: Array) -> tuple[int, int, int]:
        """Return the largest bound over ``starts`` and ``rests``, with its start and rest.

        One of the arrays has a single element.
        """
        before = self._most(starts[:, np.newaxis] - self.begins)
        after = self._most(rests[:, np.newaxis] - self.rests)
        ahead = (starts[:, np.newaxis] > self.begins) * most_ahead_requests(self._memory)
        left = np.maximum(self._requests - before - ahead - after, 0)
        reads, writes = left[:, ~self._writes].sum(axis=1), left[:, self._writes].sum(axis=1)
        bounds = []
        columns = np.broadcast_arrays(starts, rests, reads, writes)
        for start, rest, read, written in np.stack(columns, 1).tolist():
            shared = least_shared_cycles(self._memory, read, written) if read + written else 0
            bounds.append((start + shared + rest if shared else 0, start, rest))
        return max(bounds)

    def _most(self, cycles: Array) -> Array:
        bursts = (cycles // self._burst_cycles + 1) * (cycles > 0)
        most: Array = np.minimum(bursts * self._burst_requests, self._requests)
        return most
