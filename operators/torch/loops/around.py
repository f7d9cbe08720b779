"""Find the calls of a captured graph that belong to the body of a loop."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from torch.fx import Node

from operators.kernels.schedule import at_most
from operators.torch.capture import target_of
from operators.torch.loops.cells import BEHIND, EACH, STATES


def rows_in_loops(calls: Sequence[Node], wish: int) -> dict[Node, int]:
    """Return the rows of the tiles of each call within a loop; ``wish`` is their number outside.

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
    found: dict[Node, int] = {}
    for loop, begun in states.items():
        counts = [math.prod(each.meta["val"].shape[1:-1]) for each in begun]
        rows = at_most(wish, math.gcd(*counts) or 1)
        found |= dict.fromkeys((*begun, *entrances[loop]), rows)
        found |= dict.fromkeys(_between(calls, begun, behind[loop]), rows)
    return found


def _between(calls: Sequence[Node], begun: Sequence[Node], ends: Sequence[Node]) -> Iterator[Node]:
    """Yield the calls on ways from ``begun`` to ``ends``."""
    reached, leading = set(begun), set(ends)
    for node in calls:
        if any(each in reached for each in node.all_input_nodes):
            reached.add(node)
    for node in reversed(calls):
        if node in leading:
            leading.update(node.all_input_nodes)
    return (node for node in calls if node in reached and node in leading)


def _number(node: Node, place: int) -> int:
    found = node.args[place]
    assert isinstance(found, int)
    return found
