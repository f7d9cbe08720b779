"""The graph of a program for a page."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from fabric.analysis.drawing.picture import Arrow, Box, Picture
from fabric.analysis.drawing.svg import svg
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.reading.names import Names
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.messages.causes import SHOWN
from fabric.messages.text import Family, JsonObject, counted, families, visible

_FOLD_FROM: Final = 40

_MOST_BOXES: Final = 300


def graphs(trace: RecordedRun, accounts: Accounts, stuck: set[int]) -> list[JsonObject]:
    """Return the graph with equal units folded, if many, and unfolded, if few.

    Each has its ``svg``, the ``units`` of each box, and the two boxes of each arrow. Elements of
    box n have the class ``box{n}``, elements of arrow n the class ``arrow{n}``.
    """
    names = accounts.names
    units = len(names.units)
    drawn = []
    if units >= _FOLD_FROM:
        groups = _loads_together(trace, accounts, stuck)
        if len(groups) < units:
            drawn.append(_graph(groups, accounts, stuck) | {"title": "equal units folded"})
    if units <= _MOST_BOXES or not drawn:
        single = [Family(name, (unit,)) for unit, name in enumerate(names.units)]
        drawn.append(_graph(single, accounts, stuck) | {"title": "all units"})
    return drawn


def _loads_together(trace: RecordedRun, accounts: Accounts, stuck: set[int]) -> list[Family[int]]:
    """Return the families of units; families of loads with the same producers are merged.

    Stuck units have families of their own. The title of merged loads begins with the family of the
    unit that takes most of the critical path.
    """
    names = accounts.names
    groups = families(
        range(len(names.units)),
        names.units.__getitem__,
        lambda unit: (names.operators[unit], names.wired[unit], unit in stuck),
    )
    rank = {unit.number: place for place, unit in enumerate(accounts.ranked())}
    loads = {unit for _, units in trace.head.off_chip.tensors for unit in units}
    of_unit = {unit: group for group in groups for unit in group.members}
    before: dict[int, set[Family[int]]] = defaultdict(set)
    for producer, consumer in names.ends:
        before[consumer].add(of_unit[producer])
    shared: dict[object, list[Family[int]]] = defaultdict(list)
    for group in groups:
        is_load = loads.issuperset(group.members)
        sources = frozenset().union(*(before[unit] for unit in group.members))
        shared[sources if is_load else group].append(group)
    merged = []
    for alike in shared.values():
        members = sorted(unit for group in alike for unit in group.members)
        title = of_unit[min(members, key=lambda unit: rank.get(unit, len(rank)))].title
        if len(alike) > 1:
            title += f" and {len(alike) - 1} more"
        merged.append(Family(title, tuple(members)))
    return sorted(merged, key=lambda group: group.members[0])


def _graph(groups: list[Family[int]], accounts: Accounts, stuck: set[int]) -> JsonObject:
    names = accounts.names
    box_of = {unit: number for number, group in enumerate(groups) for unit in group.members}
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for channel, (producer, consumer) in enumerate(names.ends):
        if box_of[producer] != box_of[consumer]:
            between[box_of[producer], box_of[consumer]].append(channel)
    boxes = tuple(_box(group, accounts, stuck) for group in groups)
    arrows = tuple(
        _arrow(ends, channels, names, stuck=all(boxes[end].stuck for end in ends))
        for ends, channels in between.items()
    )
    return {
        "svg": svg(Picture("", boxes, arrows)),
        "boxes": [{"units": group.members, "title": visible(group.title)} for group in groups],
        "arrows": list(between),
    }


def _box(group: Family[int], accounts: Accounts, stuck: set[int]) -> Box:
    names, first = accounts.names, group.members[0]
    stalls = accounts.by_number
    traced = [stalls[unit] for unit in group.members if unit in stalls]
    cycles = {cause: sum(getattr(unit, cause.column) for unit in traced) for cause in SHOWN}
    whole = sum(cycles.values()) or 1
    return Box(
        title=visible(group.title),
        count=len(group.members),
        operator=names.functions[first],
        kind="",
        place=visible(names.places[first]),
        shares={cause: count / whole for cause, count in cycles.items()},
        copies=names.operators[first] == "Broadcast",
        stuck=not stuck.isdisjoint(group.members),
    )


def _arrow(ends: tuple[int, int], channels: list[int], names: Names, *, stuck: bool) -> Arrow:
    labels = families(channels, names.streams.__getitem__)
    title, members = max(labels, key=lambda family: len(family.members))
    note = visible(names.channels[channels[0]])
    if len(channels) > 1:
        note += f" and {counted(len(channels) - 1, 'more channel')}"
    return Arrow(*ends, title, len(members), stuck, note)
