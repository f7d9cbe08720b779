"""The graph of a program for a page: boxes and where they are, folded and with all units."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from fabric.drawing.picture import Arrow, Box, Picture
from fabric.drawing.svg import placed
from fabric.telling.families import Family, families
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from fabric.telling.plain import JsonObject
    from fabric.trace.reading.wording import Names

__all__ = ["graphs"]

_FOLD_FROM: Final = 40
_MOST_BOXES: Final = 300


def graphs(names: Names, stuck: set[int]) -> list[JsonObject]:
    """Return the graph with alike units folded, where there are many, and unfolded, where few.

    Each has ``boxes``, with their centres, sizes, texts and units; ``arrows``, with the boxes at
    their ends, their channels, their points and their labels; and the ``size`` of it.
    """
    units = len(names.units)
    found = []
    if units >= _FOLD_FROM:
        groups = _alike(names, stuck)
        if len(groups) < units:
            found.append(_placed(groups, names) | {"title": "alike units folded"})
    if units <= _MOST_BOXES or not found:
        single = [Family(name, (unit,)) for unit, name in enumerate(names.units)]
        found.append(_placed(single, names) | {"title": "all units"})
    return found


def _alike(names: Names, stuck: set[int]) -> list[Family[int]]:
    """Return the families of units; those that are stuck are not of one with those that are not."""
    return families(
        range(len(names.units)),
        names.units.__getitem__,
        lambda unit: (names.operators[unit], names.wired[unit], unit in stuck),
    )


def _placed(groups: list[Family[int]], names: Names) -> JsonObject:
    """Return boxes and arrows in the places that they have in a picture of the program."""
    box_of = {unit: number for number, group in enumerate(groups) for unit in group.members}
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for channel, (producer, consumer) in enumerate(names.ends):
        if box_of[producer] != box_of[consumer]:
            between[box_of[producer], box_of[consumer]].append(channel)
    boxes = [_box(group, names) for group in groups]
    arrows = [_arrow(ends, channels, names) for ends, channels in between.items()]
    sizes, texts, labels, layout = placed(Picture("", tuple(boxes), tuple(arrows)))
    return {
        "size": _rounded(layout.size),
        "boxes": [
            {
                "at": _rounded(centre),
                "size": _rounded(size),
                "units": group.members,
                "title": visible(group.title),
                "large": large,
                "small": small,
            }
            for centre, size, group, (large, small) in zip(
                layout.nodes, sizes, groups, texts, strict=True
            )
        ],
        "arrows": [
            {
                "ends": pair,
                "channels": channels,
                "curves": [[_rounded(point) for point in each] for each in route],
                "label": label,
                "at": None if at is None else _rounded(at),
            }
            for (pair, channels), route, label, at in zip(
                between.items(), layout.routes, labels, layout.labels, strict=True
            )
        ],
    }


def _box(group: Family[int], names: Names) -> Box:
    first = group.members[0]
    return Box(
        title=visible(group.title),
        count=len(group.members),
        operator=names.functions[first],
        kind="",
        place=visible(names.places[first]),
        # There is room for a bar.
        shares={},
        copies=names.operators[first] == "Broadcast",
    )


def _arrow(ends: tuple[int, int], channels: list[int], names: Names) -> Arrow:
    """Return the arrow of some channels; it says what most of them carry."""
    found = families(channels, names.streams.__getitem__)
    title, members = max(found, key=lambda family: len(family.members))
    return Arrow(*ends, title, len(members))


def _rounded(point: tuple[float, ...]) -> list[float]:
    return [round(value, 1) for value in point]
