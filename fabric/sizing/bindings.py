"""Why depths are not shallower."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, with_depth

if TYPE_CHECKING:
    from fabric.sizing.asked import Asked
    from fabric.sizing.result import Binding

__all__ = ["bindings"]


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
