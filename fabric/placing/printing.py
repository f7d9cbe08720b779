"""A floor plan on a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from fabric.telling.sheet import Rows, Sheet, Title, line
from fabric.telling.wording import counted, merged_text, visible, without_numbers

if TYPE_CHECKING:
    from fabric.placing.result import FloorPlan, LoadedLink

__all__ = ["floor_plan_sheet"]

_USERS: Final = 8


def floor_plan_sheet(plan: FloorPlan) -> Sheet:
    """Yield what the plan costs, what is known of that, and the worst link's users."""
    mesh = plan.mesh
    head = f"  {counted(mesh.columns, 'column')}, {counted(mesh.rows, 'row')}"
    yield line((visible(plan.program), "bold"), head)
    for sentence in _sentences(plan):
        yield line(sentence)
    rows = [
        ("bytes times hops", plan.cost.byte_hops, plan.lower_bound.byte_hops),
        ("worst link", plan.cost.worst_link_bytes, plan.lower_bound.worst_link_bytes),
        ("both", plan.cost.bytes, plan.lower_bound_bytes),
    ]
    yield Title("Cost", ", in bytes")
    yield Rows(("", "this plan", "no plan is below"), rows)
    if plan.worst is not None:
        yield from _worst(plan.worst)


def _sentences(plan: FloorPlan) -> list[str]:
    units = len(plan.numbers)
    sites = len({*plan.numbers})
    sentences = [
        f"{counted(units, 'unit')} on {counted(sites, 'site')}, at most "
        f"{plan.units_per_site:,} on each."
    ]
    if plan.random_cost_bytes and plan.cost.bytes:
        times = plan.random_cost_bytes / plan.cost.bytes
        sentences.append(
            f"Random plans cost {counted(plan.random_cost_bytes, 'byte')} on average, "
            f"{times:.3g} times as much."
        )
    if plan.proven:
        sentences.append("No plan costs less.")
    else:
        above = (
            100 * (plan.cost.bytes / plan.lower_bound_bytes - 1) if plan.lower_bound_bytes else 0
        )
        sentences.append(
            f"No plan costs less than {counted(plan.lower_bound_bytes, 'byte')}"
            + (f"; this one costs {above:.3g} % more." if above else ".")
        )
    if plan.unknown_channels:
        sentences.append(
            f"Data decide the bytes of {counted(plan.unknown_channels, 'channel')}: sizes that "
            "are not known were taken as 1 (--set says others)."
        )
    return sentences


def _worst(worst: LoadedLink) -> Sheet:
    merged: Counter[str] = Counter()
    names: dict[str, list[str]] = {}
    for user, size_bytes in worst.users.items():
        merged[without_numbers(user)] += size_bytes
        names.setdefault(without_numbers(user), []).append(user)
    rows = [
        (merged_text(names[key]), len(names[key]), size_bytes)
        for key, size_bytes in merged.most_common()
    ]
    source, target = worst.source, worst.target
    yield Title(
        "The worst link",
        f", from column {source.column}, row {source.row} to column {target.column}, row "
        f"{target.row}, has {counted(worst.size_bytes, 'byte')}",
    )
    yield Rows(("outputs", "of them", "bytes"), rows, _USERS)
