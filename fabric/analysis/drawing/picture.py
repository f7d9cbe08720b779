"""The content of a program's picture: boxes for operators and arrows for streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec

from fabric.analysis.symbolic.folding import folded, operator_text
from fabric.graph.values.stream_type import StreamType, TileType
from fabric.graph.wiring.elaborate import Edge, Plan
from fabric.graph.wiring.inserted import Broadcast
from fabric.graph.wiring.operator import Node
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import read_json
from fabric.messages.text import families, merged_text

_MOST_BOXES: Final = 150

Shares: TypeAlias = Mapping[Cause, float]
"""Fractions of all cycles by the causes of ``SHOWN``."""

_Cycles = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class Box:
    """A unit, or several units of one kind with equal types."""

    title: str
    count: int
    operator: str
    kind: str  # of the unit; the colour if there are no shares; empty for a white box
    place: str
    shares: Shares | None  # the mean over the units; None without a finished run
    copies: bool = False  # a Broadcast
    state: str = ""  # a line of text below the name
    cause: Cause | None = None  # of a wait, shown as a stripe
    stuck: bool = False  # drawn in the colour of deadlocks
    note: str = ""  # the tooltip's text after the name


@dataclass(frozen=True)
class Arrow:
    """A stream, or several between the same boxes."""

    source: int
    target: int
    label: str
    count: int = 1
    stuck: bool = False
    note: str = ""  # the tooltip


@dataclass(frozen=True)
class Picture:
    """Boxes in the program's order, and arrows."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    legend: tuple[tuple[str, str], ...] = ()  # colours and words; empty for causes or kinds


def picture_of(
    plan: Plan, *, unfold: bool = False, shares: Mapping[str, Shares] | None = None
) -> Picture:
    """Return the picture of ``plan``; with ``unfold``, every operator has its own box."""
    groups = [(node,) for node in plan.nodes] if unfold else folded(plan, _MOST_BOXES)
    box_of = {node: index for index, group in enumerate(groups) for node in group}

    def ends(edge: Edge) -> tuple[int, int]:
        return box_of[edge.producer], box_of[edge.consumer]

    def label(edge: Edge) -> str:
        return stream_label(edge.consumer.inputs[edge.input].type)

    streams = families(plan.edges, label, ends)
    boxes = tuple(_box(group, shares) for group in groups)
    arrows = tuple(Arrow(*ends(edges[0]), title, len(edges)) for title, edges in streams)
    return Picture(plan.program.name, boxes, arrows)


def stream_label(stream: StreamType) -> str:
    """Return the label of an arrow: the shape of its stream, and the size of a tile."""
    # Tiles are shown without their element type, other elements by their type.
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


class _Unit(msgspec.Struct, frozen=True):
    name: str
    busy_cycles: _Cycles
    empty_cycles: _Cycles
    full_cycles: _Cycles
    credit_cycles: _Cycles
    hbm_cycles: _Cycles
    capacity_cycles: _Cycles
    idle_cycles: _Cycles


def shares_of_run(folder: Path, plan: Plan) -> dict[str, Shares]:
    """Read ``counters.json`` of a run; return the shares of each operator of ``plan`` by name."""
    file = folder / "counters.json"
    try:
        units = msgspec.convert(read_json(file)["units"], list[_Unit])
    except OSError as error:
        raise ConfigurationError(
            f"--run {folder}: {error.strerror or error}: expected the folder of a finished run",
            file=str(file),
        ) from None
    except (ValueError, KeyError):
        raise ConfigurationError(
            f"--run {folder}: not the counters of a run: expected a file of `run`",
            file=str(file),
        ) from None
    by_name = {unit.name: _shares(unit) for unit in units}
    for node in plan.nodes:
        if node.name not in by_name:
            raise ConfigurationError(
                f"--run {folder}: the run has no operator {node.name}: expected a run of this "
                "program with the same parameters",
                file=str(file),
            )
    return {node.name: by_name[node.name] for node in plan.nodes}


def _shares(unit: _Unit) -> Shares:
    cycles: dict[Cause, int] = {cause: getattr(unit, cause.column) for cause in SHOWN}
    cycles[Cause.FULL] += unit.credit_cycles
    whole = sum(cycles.values()) or 1
    return {cause: value / whole for cause, value in cycles.items()}
