"""Find depths of channels that keep a goal at the least cost."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fabric.analysis.depths.problem import (
    Depths,
    InfeasibleError,
    Limit,
    Oracle,
    Problem,
    Slot,
    Variable,
    with_depth,
)
from fabric.analysis.depths.search import lower_bounds
from fabric.explore.sizing.goal import Cost, Goal, Task
from fabric.explore.sizing.methods import (
    METHODS,
    Method,
    NearestError,
    Proposal,
    proposal,
    validated,
)
from fabric.explore.sizing.result import (
    Answer,
    Binding,
    HeldOut,
    Input,
    MethodTotal,
    SizedChannel,
    Sizing,
    settled,
    worst_input,
)
from fabric.explore.sizing.running import Case
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.keywords import taking
from fabric.graph.arguments.numbers import number_of
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.place import calling_place
from fabric.messages.text import close_to
from fabric.messages.users_code import users_code
from fabric.runs.options import Options
from fabric.runs.simulation import refuse_in_trio
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT


@dataclass(frozen=True, kw_only=True)
class SizeOptions(Options):
    """The options of ``size``.

    Attributes:
        depths: fixed depths, by ``consumer.input``.
        goal: ``deadlock-free``, ``same-cycles``, ``slowdown=X`` times the unbounded cycles, or
            ``cycles=N``.
        method: ``search``, ``exact``, ``high-water``, or StreamTensor's ``paper-lp``, which may
            miss the goal.
        step: unit to round a channel's bytes up to: ``power-of-two``, or a number of bytes.
        share: patterns of channels; all channels of a pattern have the same depth.
        repeats: inputs back to back.
    """

    goal: str = "same-cycles"
    method: Method = "search"
    objective: Literal["bytes", "slots"] = "bytes"
    step: str | None = None
    share: tuple[str, ...] = ()
    repeats: Annotated[int, Bounds(1)] = 1
    held_out: Mapping[str, Program] | None = None
    notify: Callable[[str], object] | None = None


@taking(
    SizeOptions,
    without={
        "mode": "sizing runs programs in timing mode, with the cycles of functional mode",
        "exact": "sizing runs programs in timing mode, without data",
        "on_deadlock": "a deadlock is what the depths have to prevent",
    },
)
def size(program: Program | Mapping[str, Program], options: SizeOptions) -> Sizing:
    """Find the depths of a program's channels that keep a goal at the least cost.

    The program runs once with unbounded channels, and the record of this run is timed with other
    depths. If depths change only the timing of operations, the depths are proved to keep the goal.
    Otherwise the program runs with the candidate depths. At the end, it runs with the depths found.

    Args:
        program: a wired program, or programs by name that differ in their data; depths serve all.
        options: the fields of ``SizeOptions``, as keywords.

    Raises:
        ConfigurationError: no depths keep the goal, or an option is invalid.
    """
    try:
        return find_depths(program, options)
    except ConfigurationError as error:
        if error.file is None:
            error.file, error.line = calling_place()
        raise


def find_depths(program: Program | Mapping[str, Program], options: SizeOptions) -> Sizing:
    """Find depths as ``size`` does, with errors that name no line of the caller."""
    refuse_in_trio("size", "program")
    goal, cost = Goal.parse(options.goal), cost_function(options.objective, options.step)
    named = {"": program} if isinstance(program, Program) else dict(program)
    if not named:
        raise ConfigurationError("size: there is no program: expected at least one")
    run_options = Options.of(options)
    notify = (lambda _: None) if options.notify is None else users_code("notify")(options.notify)
    sizings: list[Sizing] = []
    for repeats in range(1, options.repeats + 1):
        cases = tuple(
            Case(name, wired, run_options, repeats, notify) for name, wired in named.items()
        )
        records = [case.unbounded.record for case in cases]
        variables = variables_of(records, options.depths or {}, options.share)
        sizings.append(sized(Task(cases, goal, variables, cost), options.method, options.objective))
    last = sizings[-1]
    held_out = [
        Case(name, wired, run_options, options.repeats, notify)
        for name, wired in (options.held_out or {}).items()
    ]
    answers = [Answer(each.depths, tuple(run.cycles for run in each.inputs)) for each in sizings]
    return replace(
        last,
        repeats=options.repeats,
        settled=settled(answers) if options.repeats > 1 else None,
        held_out=tuple(_held_out(case, goal, last) for case in held_out),
    )


def _held_out(case: Case, goal: Goal, sizing: Sizing) -> HeldOut:
    ran = case.run(sizing.depths)
    limit = goal.limit_cycles(case.unbounded.cycles)
    return HeldOut(
        case.name, None if limit == NO_LIMIT else limit, None if ran is None else ran.cycles
    )


def cost_function(objective: Literal["bytes", "slots"], step: str | None = None) -> Cost:
    """Return the function of an objective; ``step`` is as in ``SizeOptions``."""
    if objective == "slots":
        if step is not None:
            raise ConfigurationError(
                f"--step {step}: slots are not rounded: expected --objective bytes"
            )
        return lambda slots, _: slots
    if step == "power-of-two":
        return lambda slots, size: 1 << (slots * size - 1).bit_length() if slots * size else 0
    multiple = 1 if step is None else number_of(step)
    if not isinstance(multiple, int) or not 1 <= multiple < 1 << 40:
        raise ConfigurationError(f"--step {step}: expected power-of-two or a number of bytes")
    return lambda slots, element_bytes: -(-slots * element_bytes // multiple) * multiple


def variables_of(
    records: Sequence[Record], pinned: Mapping[str, int], shared: Sequence[str]
) -> tuple[Variable, ...]:
    """Return a variable for each channel of ``records``, or for each group that shares a depth."""
    first = records[0]
    options = [channel.option for channel in first.channels]
    for option in pinned:
        if option not in first.number:
            raise ConfigurationError(
                f"--depth {option}: no channel has that name: expected OPERATOR.INPUT, "
                f"{close_to(sorted(options), option)}"
            )
    pattern_of = _patterns(options, shared)
    numbers: dict[str, list[int]] = {}
    for number, option in enumerate(options):
        numbers.setdefault(pattern_of.get(option, option), []).append(number)
    return tuple(_variable(name, group, records, pinned) for name, group in numbers.items())


def _patterns(options: Sequence[str], shared: Sequence[str]) -> dict[str, str]:
    pattern_of: dict[str, str] = {}
    for pattern in shared:
        matching = fnmatch.filter(options, pattern)
        if not matching:
            raise ConfigurationError(
                f"--share {pattern}: no channel has such a name: expected a pattern of "
                f"OPERATOR.INPUT, such as {', '.join(options[:4])}"
            )
        for option in matching:
            if option in pattern_of:
                raise ConfigurationError(
                    f"--share {pattern}: {option} matches {pattern_of[option]}, too: "
                    "expected one pattern for a channel"
                )
            pattern_of[option] = pattern
    return pattern_of


def _variable(
    name: str, numbers: Sequence[int], records: Sequence[Record], pinned: Mapping[str, int]
) -> Variable:
    channels = [[record.channels[number] for record in records] for number in numbers]
    slots = tuple(
        Slot(same[0].option, max(channel.element_bytes for channel in same)) for same in channels
    )
    pins = {pinned[slot.option] for slot in slots if slot.option in pinned}
    if len(pins) > 1:
        raise ConfigurationError(
            f"--share {name}: channels are pinned at {' and '.join(map(str, sorted(pins)))}: "
            "expected one depth"
        )
    if pins:
        depth = pins.pop()
        return Variable(name, slots, depth, depth, is_pinned=True)
    most = max(channel.elements for same in channels for channel in same)
    return Variable(name, slots, 1, max(1, most))


def sized(task: Task, method: Method, unit: str) -> Sizing:
    """Return the depths that ``method`` finds, checked by runs of all inputs."""
    oracle, evaluations = Oracle(task.problem(task.unbounded)), 0
    try:
        lower = lower_bounds(oracle) if task.can_prove else _least_that_end(task)
    except InfeasibleError:
        raise _infeasible(task, oracle.cycles(oracle.problem.most)) from None
    if task.can_prove:
        answer = proposal(method, oracle, lower)
    else:
        answer, evaluations = _validated(task, oracle, method, lower)
    ran = task.run(answer.depths)
    kept = task.keeps(ran)
    if task.can_prove and not kept and oracle.keeps(answer.depths):
        raise FabricError(
            f"{task.cases[0].program.name}: a run with the depths found does not keep "
            f"{task.goal}, the record of another run does: this is a fault of step-fabric"
        )
    # If depths change the order of bursts, the last run's record is closest to a run with these.
    records = [
        case.unbounded.record if task.can_prove or each is None else each.record
        for case, each in zip(task.cases, ran, strict=True)
    ]
    problem = task.problem(records)
    totals = tuple(_totals(task, problem, lower, method, answer))
    first = task.cases[0]
    is_placed = first.program.hardware.network is not None
    return Sizing(
        program=first.program.name,
        goal=str(task.goal),
        method=method,
        objective=unit,
        channels=tuple(_channels(task, answer.depths, lower, bindings(task, answer.depths))),
        cost_before=_cost_before(task),
        cost=problem.cost_of(answer.depths),
        lower_bound=answer.bound,
        truth="proved" if task.can_prove and kept else "validated",
        keeps=kept,
        reasons=() if task.can_prove else task.reasons,
        inputs=tuple(
            Input(
                case.name,
                case.cycles_before,
                case.unbounded.cycles,
                None if limit == NO_LIMIT else limit,
                None if each is None else each.cycles,
            )
            for case, limit, each in zip(task.cases, task.limits, ran, strict=True)
        ),
        methods=totals,
        evaluations=evaluations + oracle.evaluations,
        runs=task.runs,
        hops={} if is_placed else _hops(task.unbounded[0]),
        is_placed=is_placed,
    )


def _hops(record: Record) -> dict[str, str]:
    return {
        channel.option: f"{channel.forward_cycles}+{channel.backward_cycles}"
        for channel in record.channels
        if (channel.forward_cycles, channel.backward_cycles) != (1, 1)
    }


def _validated(task: Task, oracle: Oracle, method: Method, lower: Depths) -> tuple[Proposal, int]:
    problem = oracle.problem
    bound = problem.cost_of(lower)
    if method in ("high-water", "paper-lp"):
        return proposal(method, oracle, lower)._replace(bound=bound), 0
    try:
        depths, evaluations = validated(task, method)
    except NearestError as error:
        raise _infeasible(task, error.cycles) from None
    return Proposal(depths, bound), evaluations


def _least_that_end(task: Task) -> Depths:
    # The least depths with which a run ends, whatever the latency of the memories is.
    problem = task.problem(task.unbounded)
    if not all(record.orders_are_fixed for record in task.unbounded):
        return problem.least
    endless = tuple(Limit(record, NO_LIMIT) for record in task.unbounded)
    return lower_bounds(Oracle(Problem(problem.variables, endless, problem.cost)))


def _infeasible(task: Task, nearest: Sequence[int | None]) -> ConfigurationError:
    # The error names a goal that some depths would keep.
    most = max((each for each in nearest if each is not None), default=None)
    pinned = [f"{each.name}={each.least}" for each in task.variables if each.is_pinned]
    pins = f" with {' and '.join(pinned)} pinned" if pinned else ""
    tried = "" if task.can_prove else " that were run"
    nearest_text = "the runs get stuck" if most is None else f"the nearest is cycles={most:,}"
    return ConfigurationError(
        f"{task.cases[0].program.name}: no depths{tried} keep {task.goal}{pins}: {nearest_text}"
    )


def _channels(
    task: Task, depths: Depths, lower: Depths, binds: Sequence[tuple[Binding, str]]
) -> Iterator[SizedChannel]:
    depths_before = task.cases[0].depths
    of_option = {
        slot.option: (variable, slot, depth, least, *bind)
        for variable, depth, least, bind in zip(task.variables, depths, lower, binds, strict=True)
        for slot in variable.channels
    }
    elements = [
        max(same)
        for same in zip(*(record.elements.tolist() for record in task.unbounded), strict=True)
    ]
    for channel, most in zip(task.unbounded[0].channels, elements, strict=True):
        variable, slot, depth, least, bind, name = of_option[channel.option]
        yield SizedChannel(
            channel.option,
            channel.name,
            slot.element_bytes,
            most,
            depths_before[channel.option],
            depth,
            least,
            bind,
            variable.name if len(variable.channels) > 1 else "",
            name,
        )


def _cost_before(task: Task) -> int:
    depths = task.cases[0].depths
    slots = [slot for variable in task.variables for slot in variable.channels]
    return sum(task.cost(depths[slot.option], slot.element_bytes) for slot in slots)


def bindings(task: Task, depths: Depths) -> tuple[tuple[Binding, str], ...]:
    """Return for each of ``depths`` the effect of one slot less, and the input that decides.

    The records decide if they can, otherwise the runs so far.
    """
    oracle = Oracle(task.problem(task.unbounded))

    def binding(number: int) -> tuple[Binding, str]:
        if task.variables[number].is_pinned:
            return "pinned", ""
        if depths[number] == 1:
            return "one slot", ""
        less = with_depth(depths, number, depths[number] - 1)
        cycles = oracle.cycles(less) if task.can_prove else task.known_cycles(less)
        if cycles is None:
            return "", ""
        at = worst_input(cycles, task.limits)
        worst, name = cycles[at], task.cases[at].name
        if worst is None:
            return "deadlock", name
        return ("goal", name) if worst > task.limits[at] else ("", "")

    return tuple(map(binding, range(len(depths))))


def _totals(
    task: Task, problem: Problem, lower: Depths, chosen: Method, chosen_answer: Proposal
) -> Iterator[MethodTotal]:
    """Yield the total of each method in the records of ``problem``; paper-lp only if chosen."""
    oracle = Oracle(problem)
    for method in METHODS:
        if method == "paper-lp" and chosen != method:
            continue
        try:
            answer = chosen_answer if method == chosen else proposal(method, oracle, lower)
        except (ConfigurationError, InfeasibleError) as error:
            note = getattr(error, "message", "no depths keep the goal in this record")
            yield MethodTotal(method, None, None, keeps=False, note=note)
            continue
        depths = answer.depths
        cycles = oracle.cycles(depths) if task.can_prove else task.cycles(depths)
        at = worst_input(cycles, task.limits)
        worst, name = cycles[at], task.cases[at].name
        keeps = worst is not None and worst <= task.limits[at]
        yield MethodTotal(method, problem.cost_of(depths), worst, keeps, answer.note, name)
