"""Repeated parts of a program: operators that are wired alike, such as those of 128 experts.

Two operators are alike when their kind, parameters, types and neighbours are, and their
neighbours' neighbours, and so on (colour refinement); numbers in the names of symbols do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Final

from fabric.telling.wording import merged_text, without_numbers
from fabric.values.dims import dim_text
from fabric.values.stream_type import StreamType
from fabric.wiring.elaborate import Plan
from fabric.wiring.operator import Node

__all__ = ["alike", "operator_text", "types_text"]

_NUMBERS_IN_NAMES: Final = re.compile(r"(?<=_)\d+|\[\d+\]")


def alike(plan: Plan) -> list[tuple[Node, ...]]:
    """Return the nodes of ``plan`` in groups of repeated ones, in the order of the first."""
    colours = _numbered(_signature(node) for node in plan.nodes)
    near: list[list[tuple[bool, int, int]]] = [[] for _ in plan.nodes]
    for edge in plan.edges:
        producer, consumer = edge.producer, edge.consumer
        near[producer.index].append((True, _port(producer, edge.output), consumer.index))
        near[consumer.index].append((False, _port(consumer, edge.input), producer.index))
    _refine(colours, near)
    return _grouped(plan, colours)


def folded(plan: Plan, most: int) -> list[tuple[Node, ...]]:
    """Return the groups of ``alike``, coarser ones where these are more than ``most``.

    Then neighbours do not count: only what stands at one line, if need be whatever its parameters
    are, and at last all operators of a kind.
    """
    groups = alike(plan)
    coarser: tuple[Callable[[Node], Hashable], ...] = (
        _signature,
        lambda node: (type(node.operator).__name__, node.place),
        lambda node: type(node.operator).__name__,
    )
    for key in coarser:
        if len(groups) > most:
            groups = _grouped(plan, _numbered(map(key, plan.nodes)))
    return groups


def _refine(colours: list[int], near: Sequence[Sequence[tuple[bool, int, int]]]) -> None:
    """Split ``colours`` until nodes of one have neighbours of the same at the same ports.

    Only nodes next to those whose colour has changed are looked at again: a chain of thousands of
    operators takes no longer than it is.
    """
    members: dict[int, set[int]] = defaultdict(set)
    for node, colour in enumerate(colours):
        members[colour].add(node)
    looked_at: dict[int, Hashable] = {}
    changed = set(range(len(colours)))
    while changed:
        again: dict[int, list[int]] = defaultdict(list)
        for node in changed:
            looked_at[node] = frozenset(
                (out, port, colours[other]) for out, port, other in near[node]
            )
            again[colours[node]].append(node)
        moved: set[int] = set()
        for colour in sorted(again):
            moved |= _split(colour, again[colour], looked_at, members, colours)
        changed = {other for node in moved for _, _, other in near[node]}


def _split(
    colour: int,
    again: Sequence[int],
    looked_at: Mapping[int, Hashable],
    members: dict[int, set[int]],
    colours: list[int],
) -> set[int]:
    """Give nodes of ``colour`` whose neighbours differ a colour of their own; return those."""
    parts: dict[Hashable, set[int]] = defaultdict(set)
    for node in again:
        parts[looked_at[node]].add(node)
    if len(again) < len(members[colour]):
        # The others keep it: what they are next to has not changed, so they are still alike.
        other = next(node for node in members[colour] if node not in parts[looked_at[node]])
        parts.pop(looked_at[other])
    else:
        parts.pop(max(parts, key=lambda part: len(parts[part])))
    moved: set[int] = set()
    for part in parts.values():
        fresh = len(members)
        members[fresh] = part
        members[colour] -= part
        for node in part:
            colours[node] = fresh
        moved |= part
    return moved


def _grouped(plan: Plan, colours: Sequence[int]) -> list[tuple[Node, ...]]:
    groups: dict[int, list[Node]] = defaultdict(list)
    for node, colour in zip(plan.nodes, colours, strict=True):
        groups[colour].append(node)
    return [tuple(group) for group in groups.values()]


def types_text(streams: Iterable[StreamType]) -> list[str]:
    """Return the types of several ports, those that differ in numbers only together."""
    groups: dict[str, list[str]] = defaultdict(list)
    for text in map(str, streams):
        groups[without_numbers(text)].append(text)
    return [
        merged_text(texts) + (f" (x{len(texts)})" if len(texts) > 1 else "")
        for texts in groups.values()
    ]


def operator_text(node: Node) -> str:
    """Return the kind of operator and the functions it applies: ``Map(Matmul)``."""
    values = [getattr(node.operator, field.name) for field in fields(node.operator)]
    # Data are dataclasses, too, but have a shape.
    applied = [type(v).__name__ for v in values if is_dataclass(v) and not hasattr(v, "shape")]
    kind = type(node.operator).__name__
    return f"{kind}({', '.join(applied)})" if applied else kind


def _signature(node: Node) -> Hashable:
    operator = node.operator
    return (
        type(operator).__name__,
        node.place,
        tuple(
            _parameter(getattr(operator, field.name))
            for field in fields(operator)
            if field.name != "name"
        ),
        tuple(sorted({_type(stream) for stream in node.input_types})),
        tuple(sorted({_type(stream) for stream in node.output_types})),
    )


def _parameter(value: object) -> str:
    """What two operators have to share of a parameter: values, names but for numbers, shapes."""
    if isinstance(value, str):
        return without_numbers(value)
    if value is None or isinstance(value, bool | int | float | tuple):
        return repr(value)
    return f"{type(value).__name__}{getattr(value, 'shape', '')}"


def _type(stream: StreamType) -> str:
    dims = ", ".join(_NUMBERS_IN_NAMES.sub("", dim_text(dim)) for dim in stream.shape)
    return f"{dims} of {_NUMBERS_IN_NAMES.sub('', str(stream.value))}"


def _port(node: Node, number: int) -> int:
    """Routing operators treat their many ports alike; others do not."""
    return 0 if node.operator.kind == "routing" else number


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
