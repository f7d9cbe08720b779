"""Depths for what is asked, and all that is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fabric.retiming.retimer import NO_LIMIT
from fabric.sizing.asked import Asked
from fabric.sizing.bounds import lower_bounds
from fabric.sizing.found import InfeasibleError
from fabric.sizing.methods import METHODS, Method, Proposal, proposal
from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, Limit, Problem, with_depth
from fabric.sizing.result import Binding, Input, MethodTotal, SizedChannel, Sizing
from fabric.sizing.validated import NearestError, validated
from fabric.telling.errors import ConfigurationError, FabricError

__all__ = ["sized"]


def sized(asked: Asked, method: Method, unit: str) -> Sizing:
    """Return the depths that ``method`` finds for what is ``asked``, checked by a run.

    Raises:
        ConfigurationError: no depths keep the goal.
    """
    oracle, evaluations = Oracle(asked.problem(asked.unbounded)), 0
    if asked.can_prove:
        try:
            lower = lower_bounds(oracle)
        except InfeasibleError as error:
            raise _infeasible(asked, error.cycles) from None
        found = proposal(method, oracle, lower)
    else:
        lower = _least_that_end(asked)
        found, evaluations = _validated(asked, oracle, method, lower)
    ran = asked.run(found.depths)
    kept = asked.keeps(ran)
    if asked.can_prove and not kept and oracle.keeps(found.depths):
        raise FabricError(
            f"{asked.cases[0].program.name}: a run with the depths found does not keep "
            f"{asked.goal}, the record of another run does: this is a fault of step-fabric"
        )
    # Where other depths make other bursts meet, the last run's record is the closest.
    records = [
        case.unbounded.record if asked.can_prove or each is None else each.record
        for case, each in zip(asked.cases, ran, strict=True)
    ]
    problem = asked.problem(records)
    totals = totals_of(asked, problem, lower, method, found)
    first = asked.cases[0]
    return Sizing(
        program=first.program.name,
        goal=str(asked.goal),
        method=method,
        objective=unit,
        channels=tuple(_channels(asked, found.depths, lower, bindings(asked, found.depths))),
        cost_before=_cost_before(asked),
        cost=problem.cost_of(found.depths),
        lower_bound=found.bound,
        truth="proved" if asked.can_prove and kept else "validated",
        keeps=kept,
        reasons=() if asked.can_prove else asked.reasons,
        inputs=tuple(
            Input(
                case.name,
                case.cycles_before,
                case.unbounded.cycles,
                None if limit == NO_LIMIT else limit,
                None if each is None else each.cycles,
            )
            for case, limit, each in zip(asked.cases, asked.limits, ran, strict=True)
        ),
        methods=totals,
        evaluations=evaluations + oracle.evaluations,
        runs=asked.runs,
        records=asked.unbounded,
        is_placed=first.program.hardware.network is not None,
    )


def _validated(asked: Asked, oracle: Oracle, method: Method, lower: Depths) -> tuple[Proposal, int]:
    """Return what ``method`` finds where runs decide, and how often records were timed for it."""
    problem = oracle.problem
    bound = problem.cost_of(lower)
    if method in ("high-water", "paper-lp"):
        return proposal(method, oracle, lower)._replace(bound=bound), 0
    try:
        depths, evaluations = validated(asked, method)
    except NearestError as error:
        raise _infeasible(asked, error.cycles) from None
    return Proposal(depths, bound), evaluations


def _least_that_end(asked: Asked) -> Depths:
    """Return the depths below which no run ends, whatever the memories do."""
    problem = asked.problem(asked.unbounded)
    if not all(record.orders_are_fixed for record in asked.unbounded):
        return problem.least
    endless = tuple(Limit(record, NO_LIMIT) for record in asked.unbounded)
    return lower_bounds(Oracle(Problem(problem.variables, endless, problem.cost)))


def _infeasible(asked: Asked, nearest: Sequence[int | None]) -> ConfigurationError:
    """Say that no depths keep the goal, and which goal some would."""
    most = max((each for each in nearest if each is not None), default=None)
    pinned = [f"{each.name}={each.least}" for each in asked.variables if each.is_pinned]
    given = f" with {' and '.join(pinned)} pinned" if pinned else ""
    tried = "" if asked.can_prove else " that were run"
    found = "the runs get stuck" if most is None else f"the nearest is cycles={most:,}"
    return ConfigurationError(
        f"{asked.cases[0].program.name}: no depths{tried} keep {asked.goal}{given}: {found}"
    )


def _channels(
    asked: Asked, depths: Depths, lower: Depths, binds: Sequence[Binding]
) -> list[SizedChannel]:
    """Return what is said of each channel, in edge order."""
    first = asked.cases[0]
    of_option = {
        slot.option: (variable, slot, depth, least, bind)
        for variable, depth, least, bind in zip(asked.variables, depths, lower, binds, strict=True)
        for slot in variable.channels
    }
    elements = [
        max(same)
        for same in zip(*(record.elements.tolist() for record in asked.unbounded), strict=True)
    ]
    found = []
    for channel, most in zip(asked.unbounded[0].channels, elements, strict=True):
        variable, slot, depth, least, bind = of_option[channel.option]
        found.append(
            SizedChannel(
                channel.option,
                channel.name,
                slot.element_bytes,
                most,
                first.depths[channel.option],
                depth,
                least,
                bind,
                variable.name if len(variable.channels) > 1 else "",
            )
        )
    return found


def _cost_before(asked: Asked) -> int:
    depths = asked.cases[0].depths
    slots = [slot for variable in asked.variables for slot in variable.channels]
    return sum(asked.cost(depths[slot.option], slot.element_bytes) for slot in slots)


def bindings(asked: Asked, depths: Depths) -> tuple[Binding, ...]:
    """Return for each of ``depths`` what happens with one slot less, all else kept.

    It is asked of the records where they tell, and else of the runs that there were.
    """
    missed = _by_records(asked) if asked.can_prove else _by_runs(asked)

    def binding(number: int) -> Binding:
        if asked.variables[number].is_pinned:
            return "pinned"
        depth = depths[number]
        return "one slot" if depth == 1 else missed(with_depth(depths, number, depth - 1))

    return tuple(map(binding, range(len(depths))))


def _by_records(asked: Asked) -> Callable[[Depths], Binding]:
    oracle = Oracle(asked.problem(asked.unbounded))

    def missed(depths: Depths) -> Binding:
        cycles = oracle.cycles(depths)
        if None in cycles:
            return "deadlock"
        return "" if oracle.keeps(depths) else "goal"

    return missed


def _by_runs(asked: Asked) -> Callable[[Depths], Binding]:
    def missed(depths: Depths) -> Binding:
        ran = asked.known(depths)
        if ran is None or asked.keeps(ran):
            return ""
        return "deadlock" if None in ran else "goal"

    return missed


def totals_of(
    asked: Asked, problem: Problem, lower: Depths, chosen: Method, found: Proposal
) -> tuple[MethodTotal, ...]:
    """Return what all methods find in the records of ``problem``, and what that comes to.

    Args:
        asked: what for.
        problem: its records.
        lower: bounds of the depths.
        chosen: the method that was asked for.
        found: by it.
    """
    return tuple(_totals(asked, problem, lower, chosen, found))


def _totals(
    asked: Asked, problem: Problem, lower: Depths, chosen: Method, found: Proposal
) -> Iterator[MethodTotal]:
    oracle = Oracle(problem)
    for method in METHODS:
        try:
            its = found if method == chosen else proposal(method, oracle, lower)
        except ConfigurationError as error:
            # A package is not installed.
            yield MethodTotal(method, None, None, keeps=False, note=error.message)
            continue
        cycles, keeps = _outcome(asked, oracle, its.depths)
        yield MethodTotal(method, problem.cost_of(its.depths), cycles, keeps, its.note)


def _outcome(asked: Asked, oracle: Oracle, depths: Depths) -> tuple[int | None, bool]:
    """Return the cycles of the first input, and whether all inputs keep the goal."""
    if not asked.can_prove:
        ran = asked.run(depths)
        return (None if ran[0] is None else ran[0].cycles), asked.keeps(ran)
    return oracle.cycles(depths)[0], oracle.keeps(depths)
