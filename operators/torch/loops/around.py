"""The calls of a captured graph that belong to the body of a loop."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from torch.fx import Node

from operators.kernels.schedule import at_most
from operators.torch.capture import target_of
from operators.torch.loops.cells import BEHIND, EACH, STATES


def rows_in_loops(calls: Sequence[Node], wish: int) -> dict[Node, int]:
    """Return the rows of a tile for each call within a loop: ``wish`` or fewer.

    They divide the rows of each state, so that no tile has rows of two steps.
    """
    states, behind = defaultdict[int, list[Node]](list), defaultdict[int, list[Node]](list)
    entrances = defaultdict[int, list[Node]](list)
    for node in calls:
        match target_of(node):
            case target if target == STATES:
                states[_number(node, 2)].append(node)
            case target if target == BEHIND:
                behind[_number(node, 1)].append(node)
            case target if target == EACH:
                entrances[_number(node, 2)].append(node)
    rows_of: dict[Node, int] = {}
    for loop, begun in states.items():
        counts = [math.prod(state.meta["val"].shape[1:-1]) for state in begun]
        rows = at_most(wish, math.gcd(*counts) or 1)
        rows_of |= dict.fromkeys((*begun, *entrances[loop]), rows)
        rows_of |= dict.fromkeys(_between(calls, begun, behind[loop]), rows)
    return rows_of


def _between(calls: Sequence[Node], begun: Sequence[Node], ends: Sequence[Node]) -> Iterator[Node]:
    """Yield the calls on paths from ``begun`` to ``ends``."""
    reached, leading = set(begun), set(ends)
    for node in calls:
        if not reached.isdisjoint(node.all_input_nodes):
            reached.add(node)
    for node in reversed(calls):
        if node in leading:
            leading.update(node.all_input_nodes)
    return (node for node in calls if node in reached and node in leading)


def _number(node: Node, place: int) -> int:
    number = node.args[place]
    assert isinstance(number, int)
    return number
