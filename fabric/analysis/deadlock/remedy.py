"""Changes with which a stuck program completes: found by growing, checked by running again.

Channels grow by Parks' rule when a run from cycle 0 stops, until it completes or no growth helps.
Units that wait for on-chip capacity get all that they need. A loop without an element in
flight gets one in front. Cycles after a growth are not valid, and a merge may choose otherwise in
another run, so the result runs again from cycle 0. Then each number is lowered with all other
numbers kept.

Source: T. Parks, Bounded Scheduling of Process Networks, 1995; growth in every loop: M. Geilen and
T. Basten, Requirements on the Execution of Kahn Process Networks, 2003.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.deadlock.document import Capacity, Depth, EveryChannel, Front, Remedy
from fabric.analysis.deadlock.trial import EFFORT_ELEMENTS, Change, Search
from fabric.graph.wiring.inserted import Initial, beginning
from fabric.messages.causes import Cause
from fabric.messages.text import counted

if TYPE_CHECKING:
    from fabric.analysis.deadlock.trial import Outcome
    from fabric.graph.hardware.latency import Hop
    from fabric.graph.wiring.elaborate import Plan
    from fabric.graph.wiring.stream import Feedback

_MOST_INITIAL: Final = 16

_LONGEST: Final = 100

_RECORDED_ELEMENTS: Final = 5_000
"""From this number of elements on, loading the compiled replay loop is quicker."""


def find_remedy(
    plan: Plan,
    depths: Mapping[str, int],
    hops: Mapping[str, Hop],
    loops: frozenset[frozenset[str]],
    *,
    effort: int | None = EFFORT_ELEMENTS,
    takes_channel_depth: bool = False,
) -> Remedy:
    """Search for changes with which the program completes.

    ``effort``: elements that all trials may deliver together; None for no limit on deeper channels,
    and the default for other changes. ``takes_channel_depth``: ``-p channel_depth=N`` sets the
    depth of all channels.
    """
    search = Search(plan, depths, hops, effort)
    change, outcome = _explore(search)
    gave_up = outcome.ending == "interrupted"
    if outcome.ending != "completed" or change == search.unchanged:
        found = Remedy([], None, None, False, search.trials, _why_not(search, change, outcome))
    else:
        low = lowered(search, change)
        gave_up = not low.finished
        found = _remedy(search, low, loops)
    if gave_up and effort is not None and not change.initial:
        found = replace(found, every_channel=_deepened(search, takes_channel_depth))
    return found


def _explore(search: Search) -> tuple[Change, Outcome]:
    change, records = search.unchanged, False
    while True:
        outcome = search.grow(change, records=records)
        change = change.deeper(outcome.grown)
        if outcome.ending == "completed":
            if not outcome.grown:
                return change, outcome
            # A record can be timed again only if the change affects nothing but times: not with
            # limited memory or initial elements. It has no rows for shared links.
            only_deeper = search.unchanged.capacity_bytes is None and not change.initial
            only_deeper = only_deeper and not search.plan.shares_links
            records = only_deeper and outcome.elements >= _RECORDED_ELEMENTS
            continue
        records = False
        more = _more(search, change, outcome)
        if more is None:
            return change, outcome
        change = more


def _more(search: Search, change: Change, outcome: Outcome) -> Change | None:
    """Return a change that may release the remaining loops; None if no change does."""
    if outcome.ending != "deadlock" or outcome.hopeless:
        return None
    more = change.roomy(None) if outcome.lacks_room else change
    for closing in outcome.feedbacks:
        counts = {
            feedback: count
            for feedback in closing
            if (count := change.initial.get(feedback, 0)) < _MOST_INITIAL
            and search.can_begin(feedback, count + 1)
        }
        if not counts:
            return None
        fewest = min(counts, key=lambda feedback: counts[feedback])
        more = more.begun(fewest, counts[fewest] + 1)
    return None if more == change else more


def _deepened(search: Search, takes_channel_depth: bool) -> EveryChannel | None:
    """Return one sufficient depth for all channels, if doubling finds one within the effort."""
    found = search.deepen_all()
    if found is None:
        return None
    after, outcome = found
    program = search.plan.program
    if takes_channel_depth:
        write = f"-p channel_depth={after}"
    elif program.leaves_depth_open:
        write = f"[channel] depth = {after}"
    else:
        write = f"{program.place}: Program(..., channel_depth={after})"
    return EveryChannel(program.channel_depth, after, outcome.cycle, write)


# ------------------------------------------------------------------------ results


def _remedy(search: Search, low: Lowered, loops: frozenset[frozenset[str]]) -> Remedy:
    change = low.change
    completed = search.known(change)
    assert completed is not None

    def rejected(less: Change) -> tuple[int | None, bool]:
        outcome = search.known(less)
        return (
            outcome.cycle if outcome is not None and outcome.ending == "deadlock" else None,
            outcome is not None and outcome.loops <= loops,
        )

    depths = [
        Depth(option, before, after, *rejected(change.deeper({option: after - 1})))
        for option, after in sorted(change.depths.items())
        if after != (before := search.depth_before(option))
    ]
    capacity = None
    given_bytes, needed_bytes = search.unchanged.capacity_bytes, change.capacity_bytes
    if given_bytes is not None and needed_bytes is not None and needed_bytes != given_bytes:
        less = change.roomy(needed_bytes - 1)
        capacity = Capacity(given_bytes, needed_bytes, *rejected(less))
    fronts = [
        _front(feedback, count, *rejected(change.begun(feedback, count - 1)))
        for feedback, count in change.initial.items()
        if count
    ]
    return Remedy(
        depths,
        capacity,
        completed.cycle,
        low.finished,
        search.trials,
        _why_larger(search, low),
        fronts,
    )


def _why_larger(search: Search, low: Lowered) -> str:
    if low.finished:
        return ""
    if search.replay is None or not low.replayed:
        return _gave_up("lowering the depths further", search)
    choosers = search.replay.record.choosers
    more = f" and {len(choosers) - 1:,} more take" if len(choosers) > 1 else " takes"
    return (
        "none can be lowered by one as long as inputs come in the same order, but "
        f"{choosers[0]}{more} whichever comes first"
    )


def _front(feedback: Feedback, count: int, rejected_cycle: int | None, same_loop: bool) -> Front:
    place = feedback.connected_at or feedback.place
    return Front(
        feedback.connected.name,
        str(feedback.connected.type),
        _initial(feedback, count),
        place.file,
        place.line,
        count,
        rejected_cycle,
        same_loop,
        _line(feedback, count),
    )


def _initial(feedback: Feedback, count: int) -> str:
    return f"{_written(beginning(feedback, count))}({feedback.connected.name})"


def _written(initial: Initial) -> str:
    more = f", {initial.count}" if initial.count > 1 else ""
    kept = ", keep_length=True" if initial.keep_length else ""
    return f"{Initial.__name__}({initial.value!r}{more}{kept})"


def _line(feedback: Feedback, count: int) -> str:
    """Return the user's line with the elements in front; empty if it is not a single call."""
    place = feedback.connected_at or feedback.place
    written = linecache.getline(place.file, place.line).strip()
    try:
        (statement,) = ast.parse(written).body
    except (SyntaxError, ValueError):
        return ""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return ""
    given = call.args[0] if call.args else None
    plain = ast.Name | ast.Attribute | ast.Subscript | ast.Call
    if call.func.attr != "connect" or not isinstance(given, plain):
        return ""
    stream = ast.unparse(given)
    called = ast.unparse(call.func)
    line = f"{called}({_written(beginning(feedback, count))}({stream}))"
    return line if len(line) <= _LONGEST else ""


def _why_not(search: Search, change: Change, outcome: Outcome) -> str:
    only_deeper = change == search.unchanged.deeper(change.depths)
    parts = [f"{option}={depth:,}" for option, depth in sorted(change.depths.items())]
    if change.capacity_bytes != search.unchanged.capacity_bytes:
        parts.append(f"any {Cause.CAPACITY.awaits}")
    for loop, count in change.initial.items():
        place = loop.connected_at or loop.place
        where = place.brief
        parts.append(f"connect({_initial(loop, count)}) at {where}")
    tried = ", ".join(parts)
    if outcome.ending == "interrupted" and only_deeper:
        return _gave_up("looking", search)
    deeper = "deeper channels" if only_deeper else tried
    if outcome.failure is not None:
        found = f"with {deeper} it fails: {outcome.failure}"
    elif outcome.ending == "interrupted":
        found = f"with {tried} it had not ended when the search gave up"
    elif outcome.ending == "livelock":
        found = f"with {deeper} it moves for ever and gets nowhere"
    elif outcome.ending == "completed":
        found = "a run in timing mode completes with the depths given"
    else:
        stuck = min(map(min, outcome.loops))
        found = f"with {tried} the program still stops, at {stuck}" if tried else ""
    return f"no depth helps: {found}" if found else "no depth helps"


def _gave_up(doing: str, search: Search) -> str:
    return f"gave up {doing} after {counted(search.trials, 'run')} and {EFFORT_ELEMENTS:,} elements"


class _EffortUsedUp(Exception):  # noqa: N818 - control flow, not an error
    pass


class Lowered(NamedTuple):
    """The result of lowering a change.

    Attributes:
        finished: no number can be lowered, with all other numbers kept.
        replayed: no number can be lowered with the input order of that run.
    """

    change: Change
    finished: bool
    replayed: bool


def lowered(search: Search, change: Change) -> Lowered:
    """Lower ``change``, with which a run has completed, as far as possible.

    A record of that run is timed again instead of a new run. The result is run once more.
    """
    replay = search.replay
    if replay is not None:
        again = _Lowering(search, change, lambda other: replay.completes(other.depths))
        replayed = again.run()
        if search.completes(again.change, at_last=True):
            settled = _Lowering(search, again.change, search.completes)
            finished = settled.settle() or (replayed and replay.record.orders_are_fixed)
            return Lowered(settled.change, finished, replayed)
    lowering = _Lowering(search, change, search.completes)
    finished = lowering.run()
    return Lowered(lowering.change, finished, replayed=False)


class _Lowering:
    """Lowers depths, initial elements and on-chip capacity, each with the other numbers kept."""

    def __init__(
        self, search: Search, change: Change, completes: Callable[[Change], bool | None]
    ) -> None:
        """Start from ``change``, with which a run has completed.

        ``completes``: tests another change; None if the effort is used up.
        """
        self.change = change
        self._search: Final = search
        self._completes: Final = completes

    def run(self) -> bool:
        """Lower all numbers; False if the effort ran out first."""
        try:
            self._drop()
        except _EffortUsedUp:
            self._limit(at_last=True)
            return False
        return self.settle()

    def settle(self) -> bool:
        try:
            while self._lowered():
                pass
        except _EffortUsedUp:
            self._limit(at_last=True)
            return False
        return True

    def _lowered(self) -> bool:
        before = self.change
        depths = before.depths
        for option in sorted(depths, key=lambda each: (-depths[each], each)):
            too_few = self._search.depth_before(option) - 1
            self._lower(too_few, depths[option], partial(self.change.with_depth, option))
        for feedback, count in before.initial.items():
            self._lower(-1, count, partial(self.change.begun, feedback))
        self._limit()
        capacity_bytes, given_bytes = self.change.capacity_bytes, self._given_bytes
        if capacity_bytes is not None and given_bytes is not None:
            self._lower(given_bytes - 1, capacity_bytes, self.change.roomy)
        return self.change != before

    @property
    def _given_bytes(self) -> int | None:
        return self._search.unchanged.capacity_bytes

    def _drop(self) -> None:
        size = len(self.change.depths) // 2
        while size:
            options = sorted(self.change.depths)
            for start in range(0, len(options), size):
                group = options[start : start + size]
                depths = {o: n for o, n in self.change.depths.items() if o not in group}
                self._try(replace(self.change, depths=depths))
            size //= 2

    def _limit(self, *, at_last: bool = False) -> None:
        """Replace unlimited memory with the largest amount held."""
        if self.change.capacity_bytes is not None or self._given_bytes is None:
            return
        held = self._search.attempt(self.change)
        assert held is not None
        whole = self.change.roomy(max(held.enough_bytes, self._given_bytes))
        if self._search.attempt(whole, at_last=at_last) is None:
            raise _EffortUsedUp
        self.change = whole
        if not at_last:
            self._try(self.change.roomy(self._given_bytes))

    def _lower(self, too_few: int, enough: int, changed: Callable[[int], Change]) -> None:
        """Find the smallest sufficient number, with all other numbers kept.

        Deeper channels never stop a network of blocking reads, so bisection is exact. With a merge
        or a limited on-chip memory, a smaller number may suffice although the next one does not.
        """
        probe = enough - 1
        while too_few < probe:
            if self._try(changed(probe)):
                enough = probe
            else:
                too_few = probe
            probe = (too_few + enough) // 2

    def _try(self, change: Change) -> bool:
        completes = self._completes(change)
        if completes is None:
            raise _EffortUsedUp
        if completes:
            self.change = change
        return completes
