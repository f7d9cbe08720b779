"""Whether the units of each site find room in its memory, as far as that is known before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from fabric.wiring.elaborate import Plan

__all__ = ["check_site_memory"]


def check_site_memory(plan: Plan) -> None:
    """Refuse a plan whose units need more on-chip memory on a site than its hardware states.

    What data decide counts nothing.

    Raises:
        ConfigurationError: they do.
    """
    floor = plan.floor
    if floor is None or floor.mesh.site_bytes is None:
        return
    # Few hardware files state it.
    from fabric.symbolic.metrics import metrics_of
    from fabric.symbolic.substitution import Substitution

    needs = [each.costs.on_chip_bytes for each in metrics_of(plan, Substitution({})).operators]
    for site, nodes in floor.units_at(plan.nodes):
        its = {node.name: needs[node.index] for node in nodes}
        known = {name: need for name, need in its.items() if isinstance(need, int) and need}
        needed = sum(known.values())
        if needed > floor.mesh.site_bytes:
            raise ConfigurationError(
                f"{', '.join(known)} at {[*site]}: together {counted(needed, 'byte')} of on-chip "
                f"memory: expected at most {floor.mesh.site_bytes:,}, as [network] site_bytes says",
                file=floor.file,
                line=floor.lines.get(next(iter(known)), floor.lines.get("")),
            )
