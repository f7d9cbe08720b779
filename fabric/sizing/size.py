"""Find depths of channels that keep a goal at the least cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from fabric.arguments.checks import Bounds
from fabric.arguments.keywords import taking
from fabric.retiming.retimer import NO_LIMIT
from fabric.runs.options import Options
from fabric.sizing.asked import Asked
from fabric.sizing.case import Case
from fabric.sizing.goal import Goal
from fabric.sizing.methods import Method
from fabric.sizing.objective import Objective
from fabric.sizing.result import HeldOut, Sizing
from fabric.sizing.settled import Answer, settled
from fabric.sizing.sized import sized
from fabric.sizing.variables import variables_of
from fabric.telling.errors import ConfigurationError
from fabric.telling.place import calling_place
from fabric.telling.users_code import notifying
from fabric.wiring.program import Program

__all__ = ["Wanted", "find_depths", "size"]


@dataclass(frozen=True, kw_only=True)
class Wanted(Options):
    """Which depths are looked for, and how programs are run for that.

    Attributes:
        depths: of channels that have theirs already, by ``consumer.input``.
        goal: ``deadlock-free``; ``same-cycles`` as without limits; ``slowdown=X``, so many times
            those; ``cycles=N``.
        method: ``search``, ``exact``, ``high-water`` or ``paper-lp``, StreamTensor's, which may
            miss the goal.
        objective: ``bytes`` or ``slots``.
        step: what bytes of a channel are rounded up to: ``power-of-two``, or a number of bytes.
        share: patterns of channels that have one depth.
        repeats: inputs that go through back to back.
        held_out: programs that are run with the depths and not sized on.
        notify: is told of every run.
    """

    goal: str = "same-cycles"
    method: Method = "search"
    objective: str = "bytes"
    step: str | None = None
    share: tuple[str, ...] = ()
    repeats: Annotated[int, Bounds(1)] = 1
    held_out: Mapping[str, Program] | None = None
    notify: Callable[[str], object] | None = None


@taking(
    Wanted,
    without={
        "mode": "sizing runs programs in timing mode, where cycles are those of functional mode",
        "exact": "sizing runs programs in timing mode, without data",
        "on_deadlock": "a deadlock is what the depths have to prevent",
    },
)
def size(program: Program | Mapping[str, Program], wanted: Wanted) -> Sizing:
    """Find the depths of a program's channels that keep a goal at the least cost.

    The program runs once without limits, and that run is timed again under other depths. If other
    depths change only when things happen, the depths are proved to keep the goal. Otherwise the
    program is run with them. It is run with the depths found at the end in any case.

    Args:
        program: a wired program; or several by name that differ only in their data, and then the
            depths serve all of them.
        wanted: the goal and what else is asked for, as keywords.

    Raises:
        ConfigurationError: no depths keep the goal, or something that is asked for cannot be.
    """
    try:
        return find_depths(program, wanted)
    except ConfigurationError as error:
        if error.file is None:
            error.file, error.line = calling_place()
        raise


def find_depths(program: Program | Mapping[str, Program], wanted: Wanted) -> Sizing:
    """Do what ``size`` does."""
    goal, cost = Goal.parse(wanted.goal), Objective.parse(wanted.objective, wanted.step)
    named = {"": program} if isinstance(program, Program) else dict(program)
    if not named:
        raise ConfigurationError("size: there is no program: expected at least one")
    options = Options.of(wanted)
    notify = (lambda _: None) if wanted.notify is None else notifying(wanted.notify)
    found: list[Sizing] = []
    for inputs in range(1, wanted.repeats + 1):
        cases = tuple(Case(name, its, options, inputs, notify) for name, its in named.items())
        records = [each.unbounded.record for each in cases]
        variables = variables_of(records, wanted.depths or {}, wanted.share)
        found.append(sized(Asked(cases, goal, variables, cost.cost), wanted.method, cost.unit))
    last = found[-1]
    others = [
        Case(name, its, options, wanted.repeats, notify)
        for name, its in (wanted.held_out or {}).items()
    ]
    return replace(
        last,
        repeats=wanted.repeats,
        settled=settled([_answer(each) for each in found]) if wanted.repeats > 1 else None,
        held_out=tuple(_held_out(each, goal, last) for each in others),
    )


def _answer(found: Sizing) -> Answer:
    return Answer(found.depths, tuple(each.cycles for each in found.inputs))


def _held_out(case: Case, goal: Goal, found: Sizing) -> HeldOut:
    ran = case.run(found.depths)
    limit = goal.limit_cycles(case.unbounded.cycles)
    return HeldOut(
        case.name, None if limit == NO_LIMIT else limit, None if ran is None else ran.cycles
    )
