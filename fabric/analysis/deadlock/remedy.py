"""Changes with which a stuck program completes: found in a record, checked by running again.

The program runs once with unbounded channels. If it is still stuck, units that wait for on-chip
capacity get all that they need, and a loop without an element in flight gets an initial element.
The record of the run that completes yields depths. The program runs again with these depths from
cycle 0, and with each number lowered by one. A merge or a limited memory may order events
differently from the record. If such a run is stuck, a full channel of every loop is deepened.

Source: T. Parks, Bounded Scheduling of Process Networks, 1995; growth in every loop: M. Geilen and
T. Basten, Requirements on the Execution of Kahn Process Networks, 2003.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from typing import Final

from fabric.analysis.deadlock.document import Capacity, Depth, EveryChannel, Front, Remedy
from fabric.analysis.deadlock.trial import EFFORT_ELEMENTS, Change, Search, TrialOutcome
from fabric.analysis.depths.problem import UNBOUNDED, Limit, Oracle, Problem, Slot, Variable
from fabric.analysis.depths.search import raised, trimmed
from fabric.graph.hardware.latency import Hop
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.inserted import Initial, beginning
from fabric.graph.wiring.stream import Feedback
from fabric.messages.causes import Cause
from fabric.messages.text import counted
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT

_MOST_INITIAL: Final = 16
_LONGEST: Final = 100


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

    ``loops``: the units of each stuck loop. ``effort``: elements that all runs together may
    deliver. With None, the first unbounded run has no limit, and the others have the default.
    ``takes_channel_depth``: ``-p channel_depth=N`` sets the depth of all channels.
    """
    search = Search(plan, depths, hops, effort)
    change, outcome, record = _find_change(search)
    if outcome.ending != "completed" or change == search.unchanged:
        why_not = _why_not(search, change, outcome, loops)
        return Remedy(trials=search.trials, why_not=why_not)
    change, finished = _lower(search, _with_limit(search, change))
    trials = search.trials
    only_deeper = change == search.unchanged.with_depths(change.depths)
    finished |= only_deeper and record is not None and record.orders_are_fixed
    why_larger = "" if finished else _why_larger(search, record)
    every = None
    if only_deeper and not finished and effort is not None:
        every = _every_channel(search, takes_channel_depth)

    def rejected(less: Change) -> tuple[int | None, bool]:
        outcome = search.outcome_of(less)
        is_stuck = outcome.ending == "deadlock"
        return outcome.cycle if is_stuck else None, is_stuck and outcome.loops <= loops

    deeper = [
        Depth(option, before, after, *rejected(change.with_depths({option: after - 1})))
        for option, after in sorted(change.depths.items())
        if after != (before := search.depth_before(option))
    ]
    capacity, given_bytes, needed_bytes = None, *_capacities(search, change)
    if given_bytes != needed_bytes:
        less = change.with_capacity(needed_bytes - 1)
        capacity = Capacity(given_bytes, needed_bytes, *rejected(less))
    initial = [
        _front(feedback, count, *rejected(change.with_initial(feedback, count - 1)))
        for feedback, count in change.initial.items()
        if count
    ]
    cycles = search.outcome_of(change).cycle
    faster = _faster(search, change, record if only_deeper else None)
    return Remedy(deeper, capacity, cycles, finished, trials, why_larger, initial, every, *faster)


def _faster(
    search: Search, change: Change, record: Record | None
) -> tuple[dict[str, int], int | None]:
    """Double the depths of a remedy while that saves 1 % of the cycles; return the cycles, too.

    ``record``: of the run with unbounded channels.
    """
    faster, cycles = change, search.outcome_of(change).cycle
    while record is not None and 100 * record.cycles <= 99 * cycles:
        deeper = faster.with_depths({option: 2 * depth for option, depth in faster.depths.items()})
        outcome = search.attempt(deeper)
        if outcome.ending != "completed" or 100 * outcome.cycle > 99 * cycles:
            break
        faster, cycles = deeper, outcome.cycle
    return ({}, None) if faster == change else (dict(faster.depths), cycles)


def _capacities(search: Search, change: Change) -> tuple[int, int]:
    """Return the bytes on chip before and after a change; 0 and 0 if they are unlimited."""
    return search.unchanged.capacity_bytes or 0, change.capacity_bytes or 0


def _find_change(search: Search) -> tuple[Change, TrialOutcome, Record | None]:
    """Return a change, its last run, and the record from which its depths were computed, if any."""
    change = search.unchanged
    while True:
        outcome = search.run_unbounded(change)
        record = outcome.record
        if record is not None and (outcome.ending == "completed" or not record.orders_are_fixed):
            completes = outcome.ending == "completed"
            deeper = change.with_depths(_depths_of(record, search)) if completes else change
            grown, ended = _deepen(search, deeper, at_last=completes)
            if ended.ending == "completed":
                return grown, ended, record if completes and grown == deeper else None
            outcome = ended if completes else outcome
        more = _next_change(search, change, outcome)
        if more is None:
            return change, outcome, None
        change = more


def _depths_of(record: Record, search: Search) -> Mapping[str, int]:
    """Return depths with which the record completes; none can be lowered alone."""
    variables = tuple(
        Variable(option, (Slot(option, 1),), search.depth_before(option), UNBOUNDED)
        for option in record.number
    )
    # By Parks' rule the shallowest full channel is deepened: its next slot costs least.
    problem = Problem(variables, (Limit(record, NO_LIMIT),), lambda depth, _: depth * depth)
    oracle, now = Oracle(problem), problem.least
    depths = problem.options(trimmed(oracle, raised(oracle, now), now))
    return {
        option: depth for option, depth in depths.items() if depth != search.depth_before(option)
    }


def _deepen(search: Search, change: Change, *, at_last: bool) -> tuple[Change, TrialOutcome]:
    """Run, and deepen a full channel of each loop that is stuck, until the program completes."""
    outcome = search.attempt(change, at_last=at_last)
    while outcome.ending == "deadlock" and outcome.full:
        change = change.with_depths({option: 2 * depth for option, depth in outcome.full.items()})
        outcome = search.attempt(change)
    return change, outcome


def _next_change(search: Search, change: Change, outcome: TrialOutcome) -> Change | None:
    """Return a change that may release the remaining loops; None if no change does."""
    if outcome.ending != "deadlock" or outcome.codes & {"FAB-D003", "FAB-D005"}:
        return None
    more = change.with_capacity(None) if "FAB-D006" in outcome.codes else change
    for closing in outcome.feedbacks:
        counts = {
            feedback: count
            for feedback in closing
            if (count := change.initial.get(feedback, 0)) < _MOST_INITIAL
            and search.accepts_initial(feedback, count + 1)
        }
        if not counts:
            return None
        fewest = min(counts, key=lambda feedback: counts[feedback])
        more = more.with_initial(fewest, counts[fewest] + 1)
    return None if more == change else more


def _with_limit(search: Search, change: Change) -> Change:
    """Limit the memory to the given capacity if it suffices, else so that no unit waits for it."""
    given_bytes = search.unchanged.capacity_bytes
    if given_bytes is None or change.capacity_bytes is not None:
        return change
    limited = change.with_capacity(given_bytes)
    if search.attempt(limited).ending != "completed":
        limited = change.with_capacity(max(given_bytes, search.outcome_of(change).enough_bytes))
        search.attempt(limited, at_last=True)
    return limited


def _lower(search: Search, change: Change) -> tuple[Change, bool]:
    """Lower each number by trial runs while all others stay; False if the effort ran out first.

    Deeper channels never stop a network of blocking reads, so bisection is exact. With a merge or a
    limited on-chip memory, a smaller number may suffice although the next one does not.
    """
    before = None
    while change != before:
        before = change
        for least, most, key in _numbers(search, change):
            too_few, enough, probe = least, most, most - 1
            while too_few < probe:
                less = _with_number(change, key, probe)
                ending = search.attempt(less).ending
                if ending == "interrupted":
                    return change, False
                if ending == "completed":
                    change, enough = less, probe
                else:
                    too_few = probe
                probe = (too_few + enough) // 2
    return change, True


def _numbers(search: Search, change: Change) -> Iterator[tuple[int, int, str | Feedback | None]]:
    """Yield a value that is too small, the present value, and the channel or feedback."""
    given_bytes, needed_bytes = _capacities(search, change)
    if given_bytes != needed_bytes:
        yield given_bytes, needed_bytes, None
    for option, depth in sorted(change.depths.items(), key=lambda item: (-item[1], item[0])):
        yield search.depth_before(option) - 1, depth, option
    for feedback, count in change.initial.items():
        yield -1, count, feedback


def _with_number(change: Change, key: str | Feedback | None, number: int) -> Change:
    if key is None:
        return change.with_capacity(number)
    if isinstance(key, str):
        return change.with_depths({key: number})
    return change.with_initial(key, number)


def _every_channel(search: Search, takes_channel_depth: bool) -> EveryChannel | None:
    """Double the depth of channels without a depth of their own until the program completes."""
    search.left = EFFORT_ELEMENTS
    program = search.plan.program
    own = search.depths.keys() | program.depths.keys()
    depth, ending = program.channel_depth, "deadlock"
    while ending == "deadlock":
        depth *= 2
        every = {edge.key: depth for edge in search.plan.edges if edge.key not in own}
        outcome = search.attempt(search.unchanged.with_depths(every))
        ending = outcome.ending
    if ending != "completed":
        return None
    if takes_channel_depth:
        write = f"-p channel_depth={depth}"
    elif program.leaves_depth_open:
        write = f"[channel] depth = {depth}"
    else:
        write = f"{program.place}: Program(..., channel_depth={depth})"
    return EveryChannel(program.channel_depth, depth, outcome.cycle, write)


def _why_larger(search: Search, record: Record | None) -> str:
    if record is None or not record.choosers:
        return _gave_up("lowering further", search)
    choosers = record.choosers
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
        _initial(feedback, count, feedback.connected.name),
        place.file,
        place.line,
        count,
        rejected_cycle,
        same_loop,
        _line(feedback, count),
    )


def _initial(feedback: Feedback, count: int, stream: str) -> str:
    initial = beginning(feedback, count)
    more = f", {initial.count}" if initial.count > 1 else ""
    kept = ", keep_length=True" if initial.keep_length else ""
    return f"{Initial.__name__}({initial.value!r}{more}{kept})({stream})"


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
    connected = call.args[0] if call.args else None
    plain = ast.Name | ast.Attribute | ast.Subscript | ast.Call
    if call.func.attr != "connect" or not isinstance(connected, plain):
        return ""
    line = f"{ast.unparse(call.func)}({_initial(feedback, count, ast.unparse(connected))})"
    return line if len(line) <= _LONGEST else ""


def _why_not(
    search: Search, change: Change, outcome: TrialOutcome, loops: frozenset[frozenset[str]]
) -> str:
    parts = []
    if change.capacity_bytes != search.unchanged.capacity_bytes:
        parts.append(f"any {Cause.CAPACITY.awaits}")
    for loop, count in change.initial.items():
        where = (loop.connected_at or loop.place).brief
        parts.append(f"connect({_initial(loop, count, loop.connected.name)}) at {where}")
    tried = ", ".join(parts) or "unbounded channels"
    if outcome.failure is not None:
        result = f"with {tried} the program fails: {outcome.failure}"
    elif outcome.ending == "completed":
        result = "in timing mode, the program completes without a change"
    elif outcome.ending == "livelock":
        result = f"with {tried} the program runs for ever without progress"
    elif outcome.ending == "interrupted" and not parts:
        return _gave_up("looking", search)
    elif outcome.ending == "interrupted":
        result = f"with {tried} the program had not ended when the search gave up"
    elif outcome.loops == loops and not parts:
        return "no depth helps"
    else:
        result = f"with {tried} the program still stops, at {min(map(min, outcome.loops))}"
    return f"no depth helps: {result}"


def _gave_up(doing: str, search: Search) -> str:
    return f"gave up {doing} after {counted(search.trials, 'run')} and {EFFORT_ELEMENTS:,} elements"
