"""The graph of a program for a page: boxes and where they are, folded and with all units."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from fabric.drawing.layout import layered
from fabric.telling.families import Family, families
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from fabric.telling.plain import JsonObject
    from fabric.trace.reading.wording import Names

__all__ = ["graphs"]

_BOX: Final = (178.0, 36.0)
_FOLD_FROM: Final = 40
_MOST_BOXES: Final = 300
_VIEW: Final = 2.0
"""Width of the graph's place on the page by its height."""


def graphs(names: Names, stuck: set[int]) -> list[JsonObject]:
    """Return the graph with alike units folded, where there are many, and unfolded, where few.

    Each has ``boxes``, with their centres and their units; ``arrows``, with the boxes at their
    ends, their channels and their points; and the ``box`` and the ``size`` of all.
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
    """Return boxes and arrows in their places; from left to right where that shows more."""
    box_of = {unit: number for number, group in enumerate(groups) for unit in group.members}
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for channel, (producer, consumer) in enumerate(names.ends):
        if box_of[producer] != box_of[consumer]:
            between[box_of[producer], box_of[consumer]].append(channel)
    no_labels = [None] * len(between)
    found = []
    for across in (False, True):
        size = _BOX[::-1] if across else _BOX
        layout = layered([size] * len(groups), list(between), no_labels)
        turn = -1 if across else 1
        width, height = layout.size[::turn]
        found.append(
            {
                "box": _BOX,
                "size": _rounded(layout.size[::turn]),
                "across": across,
                "scale": min(_VIEW / max(width, 1.0), 1 / max(height, 1.0)),
                "boxes": [
                    {
                        "at": _rounded(centre[::turn]),
                        "units": group.members,
                        "title": visible(group.title),
                    }
                    for centre, group in zip(layout.nodes, groups, strict=True)
                ],
                "arrows": [
                    {
                        "ends": pair,
                        "channels": channels,
                        "curves": [[_rounded(point[::turn]) for point in each] for each in route],
                    }
                    for (pair, channels), route in zip(between.items(), layout.routes, strict=True)
                ],
            }
        )
    return max(found, key=lambda each: float(each["scale"]))


def _rounded(point: tuple[float, ...]) -> list[float]:
    return [round(value, 1) for value in point]
