"""Repeated parts of a program: families of operators with the same parameters and types.

Numbers in the names of symbols do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from typing import Final

from fabric.graph.values.dims import dim_text
from fabric.graph.values.stream_type import StreamType
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.operator import Node, applied_by
from fabric.messages.text import families, without_numbers

_NUMBERS_IN_NAMES: Final = re.compile(r"(?<=_)\d+|\[\d+\]")


def alike(plan: Plan) -> list[tuple[Node, ...]]:
    """Return families of nodes with equal operators, lines, parameters and sets of port types."""
    return _grouped(plan, _signature)


def folded(plan: Plan, most: int) -> list[tuple[Node, ...]]:
    """Return the families of ``alike``, or coarser groups if there are more than ``most``.

    The coarser groups ignore parameters and types. The coarsest are the kinds of operators.
    """
    groups = alike(plan)
    if len(groups) > most:
        groups = _grouped(plan, lambda node: (type(node.operator).__name__, node.place))
    if len(groups) > most:
        kinds: dict[str, list[Node]] = defaultdict(list)
        for node in plan.nodes:
            kinds[type(node.operator).__name__].append(node)
        groups = [tuple(group) for group in kinds.values()]
    return groups


def _grouped(plan: Plan, shared: Callable[[Node], Hashable]) -> list[tuple[Node, ...]]:
    return [family.members for family in families(plan.nodes, lambda node: node.name, shared)]


def types_text(streams: Iterable[StreamType]) -> list[str]:
    """Return the types of several ports; types that differ in numbers only are merged."""
    return [
        title + (f" (x{len(texts)})" if len(texts) > 1 else "")
        for title, texts in families(map(str, streams), str)
    ]


def operator_text(node: Node) -> str:
    """Return the kind of operator and the functions it applies: ``Map(Matmul)``."""
    applied = applied_by(node.operator)
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
    if isinstance(value, str):
        return without_numbers(value)
    if value is None or isinstance(value, bool | int | float | tuple):
        return repr(value)
    return f"{type(value).__name__}{getattr(value, 'shape', '')}"


def _type(stream: StreamType) -> str:
    dims = ", ".join(_NUMBERS_IN_NAMES.sub("", dim_text(dim)) for dim in stream.shape)
    return f"{dims} of {_NUMBERS_IN_NAMES.sub('', str(stream.value))}"
