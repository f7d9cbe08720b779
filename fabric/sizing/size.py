"""Find depths of channels that keep a goal at the least cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

from fabric.arguments.checks import Bounds
from fabric.arguments.described import checked
from fabric.retiming.retimer import NO_LIMIT
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
from fabric.wiring.program import Program

__all__ = ["Wanted", "find_depths", "size"]


@checked
def size(
    program: Program | Mapping[str, Program],
    *,
    goal: str = "same-cycles",
    method: Method = "search",
    objective: str = "bytes",
    step: str | None = None,
    depths: Mapping[str, Annotated[int, Bounds(1)]] | None = None,
    share: tuple[str, ...] = (),
    repeats: Annotated[int, Bounds(1)] = 1,
    held_out: Mapping[str, Program] | None = None,
    notify: Callable[[str], object] | None = None,
) -> Sizing:
    """Find the depths of a program's channels that keep a goal at the least cost.

    The program is run without limits, and that run is timed again under other depths: where these
    change nothing but when, the depths are proved to keep the goal; elsewhere, and in any case once
    at the end, the program is run with them.

    Args:
        program: wired; or several by name, alike but for their data: the depths serve all of them.
        goal: ``deadlock-free``; ``same-cycles`` as without limits; ``slowdown=X``, so many times
            those; ``cycles=N``.
        method: ``search``, ``exact``, ``high-water`` or ``paper-lp``, StreamTensor's, which may
            miss the goal.
        objective: ``bytes`` or ``slots``.
        step: what bytes of a channel are rounded up to: ``power-of-two``, or a number of bytes.
        depths: of channels that have theirs already, by ``consumer.input``.
        share: patterns of channels that have one depth.
        repeats: inputs that go through back to back.
        held_out: programs that are run with the depths and not sized on.
        notify: is told of every run.

    Raises:
        ConfigurationError: no depths keep the goal, or something that is asked for cannot be.
    """
    asked = Wanted(goal, method, objective, step, dict(depths or {}), share, repeats)
    try:
        return find_depths(program, asked, held_out or {}, notify or (lambda _: None))
    except ConfigurationError as error:
        if error.file is None:
            error.file, error.line = calling_place()
        raise


class Wanted(NamedTuple):
    """How ``size`` is asked; see there."""

    goal: str
    method: Method
    objective: str
    step: str | None
    depths: Mapping[str, int]
    share: Sequence[str]
    repeats: int


def find_depths(
    program: Program | Mapping[str, Program],
    wanted: Wanted,
    held_out: Mapping[str, Program],
    notify: Callable[[str], object],
) -> Sizing:
    """Do what ``size`` does."""
    goal, cost = Goal.parse(wanted.goal), Objective.parse(wanted.objective, wanted.step)
    named = {"": program} if isinstance(program, Program) else dict(program)
    if not named:
        raise ConfigurationError("size: there is no program: expected at least one")
    found: list[Sizing] = []
    for inputs in range(1, wanted.repeats + 1):
        cases = tuple(Case(name, its, inputs, notify) for name, its in named.items())
        records = [each.unbounded.record for each in cases]
        variables = variables_of(records, wanted.depths, wanted.share)
        found.append(sized(Asked(cases, goal, variables, cost.cost), wanted.method, cost.unit))
    last = found[-1]
    others = [Case(name, its, wanted.repeats, notify) for name, its in held_out.items()]
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
