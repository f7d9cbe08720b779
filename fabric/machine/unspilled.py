"""What of on-chip memory cannot be spilled, and so is left free of what can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.wiring.mistakes import costs_of

if TYPE_CHECKING:
    from fabric.wiring.elaborate import Plan

__all__ = ["unspilled_bytes"]


def unspilled_bytes(plan: Plan) -> list[int]:
    """Return room for what cannot be spilled, as far as shapes say how much before a run.

    An accumulator keeps its room until its group ends. A tile on its way to or from off-chip
    memory gives its own back soon: room for the largest one lets all of them through.
    """
    kept: list[int] = []
    passing = [0]
    for node in plan.nodes:
        if node.operator.spills is None:
            found = costs_of(node, node.input_types, node.output_types).on_chip_bytes
            if isinstance(found, int):
                (kept if node.operator.off_chip is None else passing).append(found)
    return [*kept, max(passing)]
