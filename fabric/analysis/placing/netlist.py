"""What a floor plan is made for: units, and nets of so many bytes between them.

A net is what one output sends. An inferred Broadcast is a part of its net: it is where its producer
is, and what it sends goes to all its readers as one tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fabric.analysis.symbolic.metrics import metrics_of, passed_bytes
from fabric.analysis.symbolic.substitution import Size, Substitution, chosen_sizes
from fabric.graph.values.dims import Dim, free_symbols
from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.operator import Node

__all__ = ["Net", "Netlist", "Unit", "netlist_of"]


@dataclass(frozen=True)
class Unit:
    """What has a site.

    Attributes:
        name: of its operator.
        kind: ``compute``, ``memory`` or ``routing``.
        on_edge: whether it is a client of the off-chip memory, whose ports are on the edge.
        on_chip_bytes: of memory that it needs; of sizes that data decide, as ``check`` has them.
        follows: the names of the Broadcasts that are where it is.
    """

    name: str
    kind: str
    on_edge: bool
    on_chip_bytes: int
    follows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Net:
    """What one output sends.

    Attributes:
        source: the number of its unit.
        targets: those of the units that read it, in order of reading, at least one, each once.
        size_bytes: that it carries in a run, once, however many read it.
    """

    source: int
    targets: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True)
class Netlist:
    """A program as a floor plan sees it.

    Attributes:
        program: its name.
        units: in the order of its nodes.
        nets: between different units, in the order of its edges.
        channels: of the program.
        unknown_channels: of these, how many carry bytes that only a run can tell; see
            ``netlist_of``.
    """

    program: str
    units: tuple[Unit, ...]
    nets: tuple[Net, ...]
    channels: int
    unknown_channels: int


def netlist_of(plan: Plan, given: Mapping[str, Size] | None = None) -> Netlist:
    """Return the units of ``plan`` and the nets between them.

    Sizes that data decide are those that the program binds or assumes. What is not known so is
    taken as 1, and the channels for which that was done are counted.

    Args:
        plan: the program.
        given: sizes for symbols, by name; they count more than the program's.

    Raises:
        ConfigurationError: no stream has a symbol of a given name.
    """
    sizes = _with_claims(plan, chosen_sizes(plan, given or {}, data=True))
    substitution = Substitution(sizes)
    needed = [each.costs.on_chip_bytes for each in metrics_of(plan, substitution).operators]
    named = {*plan.program.nodes}
    at_unit: dict[Node, Node] = {}
    follows: dict[Node, list[str]] = {}
    came_from = {edge.consumer: edge.producer for edge in plan.edges}
    for node in plan.nodes:
        root = node
        while root not in named:
            root = came_from[root]
        at_unit[node] = root
        follows.setdefault(root, [])
        if root is not node:
            follows[root].append(node.name)
    numbers = {node: number for number, node in enumerate(follows)}
    units = tuple(
        Unit(
            node.name,
            node.operator.kind,
            node.operator.off_chip is not None,
            _number(needed[node.index])[0],
            tuple(follows[node]),
        )
        for node in numbers
    )
    unknown = 0
    found: dict[tuple[Node, int], tuple[int, dict[int, None]]] = {}
    outputs = {
        (edge.consumer, port): (edge.producer, edge.output)
        for edge in plan.edges
        if edge.consumer not in named
        for port in range(len(edge.consumer.outputs))
    }
    for edge in plan.edges:
        stream = substitution.stream(edge.type)
        size_bytes, is_known = _number(stream.count * passed_bytes(stream.value))
        unknown += not is_known
        if edge.consumer not in named:
            continue
        output = edge.producer, edge.output
        while output in outputs:
            output = outputs[output]
        net = found.setdefault(output, (size_bytes, {}))
        if numbers[edge.consumer] != numbers[at_unit[edge.producer]]:
            net[1].setdefault(numbers[edge.consumer])
    nets = tuple(
        Net(numbers[node], tuple(targets), size_bytes)
        for (node, _), (size_bytes, targets) in found.items()
        if targets and size_bytes
    )
    return Netlist(plan.program.name, units, nets, len(plan.edges), unknown)


def _with_claims(plan: Plan, sizes: dict[Symbol, Size]) -> dict[Symbol, Size]:
    """Return ``sizes`` and those that the program assumes, where its assumptions tell them."""
    found = dict(sizes)
    for edge in plan.edges:
        for claim in edge.claims:
            if isinstance(claim.found, Symbol) and claim.found not in found:
                assumed = Substitution(found).dim(claim.assumed)
                if isinstance(assumed, int | Fraction):
                    found[claim.found] = assumed
    return found


def _number(dim: Dim) -> tuple[int, bool]:
    """Return ``dim`` as a whole number, and whether all of its symbols were known."""
    unknown = free_symbols(dim)
    if unknown:
        dim = Substitution(dict.fromkeys(unknown, 1)).dim(dim)
    assert isinstance(dim, int | Fraction), dim
    return math.ceil(dim), not unknown
