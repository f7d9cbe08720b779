"""What a picture of a program shows: boxes for operators and arrows for streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fabric.symbolic.folding import folded, operator_text
from fabric.telling.causes import SHOWN, Cause
from fabric.telling.wording import merged_text, without_numbers
from fabric.values.stream_type import StreamType, TileType
from fabric.wiring.elaborate import Broadcast, Plan
from fabric.wiring.operator import Node

__all__ = ["Arrow", "Box", "Picture", "Shares", "picture_of", "stream_label"]

_MOST_BOXES: Final = 150
"""More are folded further: nobody could read them."""

Shares: TypeAlias = Mapping[Cause, float]
"""Fractions of all cycles by the causes of ``SHOWN``."""


@dataclass(frozen=True)
class Box:
    """An operator, or several that are wired alike.

    Attributes:
        title: the name; for several with ``i`` where they differ.
        count: how many operators it stands for.
        operator: the kind of operator.
        kind: compute, memory or routing.
        place: ``file:line`` in the user's program.
        shares: of a finished run, the mean over the operators; None without one.
        copies: whether it is a Broadcast: what leaves it is what comes in.
    """

    title: str
    count: int
    operator: str
    kind: str
    place: str
    shares: Shares | None
    copies: bool = False


@dataclass(frozen=True)
class Arrow:
    """A stream, or several between the same boxes.

    Attributes:
        source, target: indices of boxes.
        label: the shape and the element.
        count: how many streams it stands for.
    """

    source: int
    target: int
    label: str
    count: int


@dataclass(frozen=True)
class Picture:
    """Boxes in the program's order, and arrows.

    Attributes:
        title: the program's name.
    """

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    @property
    def measured(self) -> bool:
        """Whether the picture shows a finished run."""
        return any(box.shares is not None for box in self.boxes)


def picture_of(
    plan: Plan, *, unfold: bool = False, shares: Mapping[str, Shares] | None = None
) -> Picture:
    """Draw ``plan``.

    Args:
        plan: the program.
        unfold: a box for every operator, also where many are alike.
        shares: of a finished run, by operator.
    """
    groups = [(node,) for node in plan.nodes] if unfold else folded(plan, _MOST_BOXES)
    box_of = {node: index for index, group in enumerate(groups) for node in group}
    labels: dict[tuple[int, int, str], list[str]] = defaultdict(list)
    for edge in plan.edges:
        label = stream_label(edge.consumer.inputs[edge.input].type)
        ends = box_of[edge.producer], box_of[edge.consumer]
        labels[(*ends, without_numbers(label))].append(label)
    return Picture(
        plan.program.name,
        tuple(_box(group, shares) for group in groups),
        tuple(
            Arrow(source, target, merged_text(texts), len(texts))
            for (source, target, _), texts in labels.items()
        ),
    )


def stream_label(stream: StreamType) -> str:
    """Return what an arrow says of its stream: the shape, and the size of a tile."""
    # An element that is no tile says enough by its name.
    value = str(stream.value)
    if isinstance(stream.value, TileType):
        value = value.rpartition(" ")[0]
    return f"{str(stream).partition(' of ')[0]} of {value}"


def _box(group: Sequence[Node], shares: Mapping[str, Shares] | None) -> Box:
    first = group[0]
    mean = None
    if shares is not None:
        mean = {name: sum(shares[node.name][name] for node in group) / len(group) for name in SHOWN}
    return Box(
        title=merged_text([node.name for node in group]),
        count=len(group),
        operator=operator_text(first),
        kind=first.operator.kind,
        place=first.place.brief,
        shares=mean,
        copies=isinstance(first.operator, Broadcast),
    )
