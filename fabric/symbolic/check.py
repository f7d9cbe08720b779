"""All that is known of a program before it runs: its wiring, its metrics, and advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabric.symbolic.advice import advice
from fabric.symbolic.chosen import chosen_sizes, symbols_of
from fabric.symbolic.folding import alike
from fabric.symbolic.metrics import Metrics, metrics_of, shown
from fabric.symbolic.substitution import Size, Substitution
from fabric.values.dims import Symbol, free_symbols
from fabric.values.stream_type import TileType
from fabric.values.value import dtype_name
from fabric.wiring.elaborate import Plan, elaborate
from fabric.wiring.memory_map import Placed
from fabric.wiring.operator import Node
from fabric.wiring.program import Program
from fabric.wiring.stream import Stream

__all__ = ["Check", "check"]


@dataclass(frozen=True)
class Check:
    """A program that was wired and not run.

    Attributes:
        plan: the program, complete.
        groups: its operators, repeated ones together, in wiring order.
        sizes: substituted for symbols.
        metrics: with these sizes.
        warnings: what looks wrong or wasteful.
    """

    plan: Plan
    groups: tuple[tuple[Node, ...], ...]
    sizes: Mapping[Symbol, Size]
    metrics: Metrics
    warnings: tuple[str, ...]

    @property
    def free_symbols(self) -> tuple[str, ...]:
        """Names of the symbols that the metrics still depend on."""
        metrics = self.metrics
        found = free_symbols(metrics.flops)
        for totals in metrics.accountings.values():
            for dim in (totals.traffic_bytes, totals.on_chip_bytes, totals.fifo_bytes):
                found |= free_symbols(dim)
        names = {symbol.name for symbol in found}
        return tuple(name for name in symbols_of(self.plan) if name in names)

    def as_json(self) -> dict[str, object]:
        """Return the fields of ``check --json`` that describe the program."""
        each = zip(self.plan.nodes, self.metrics.operators, strict=True)
        return {
            "operators": [
                {
                    "name": node.name,
                    "kind": type(node.operator).__name__,
                    "inputs": [str(stream) for stream in node.input_types],
                    "outputs": [str(stream) for stream in node.output_types],
                    "layouts": [_layout(stream) for stream in node.outputs],
                    "tile": _tile(node),
                    "file": node.place.file,
                    "line": node.place.line,
                    "metrics": {
                        "off_chip_load_bytes": shown(of.costs.load_bytes),
                        "off_chip_store_bytes": shown(of.costs.store_bytes),
                        "off_chip_store_artifact_bytes": shown(of.costs.artifact_store_bytes),
                        "on_chip_requirement_bytes": shown(of.costs.on_chip_bytes),
                        "on_chip_requirement_artifact_bytes": shown(
                            of.costs.artifact_on_chip_bytes
                        ),
                        "flops": shown(of.costs.flops),
                        "roofline_compute_cycles": shown(of.compute_cycles),
                    },
                }
                for node, of in each
            ],
            "metrics": {name: self.metrics.as_json(name) for name in self.metrics.accountings},
            "free_symbols": list(self.free_symbols),
            "sizes": {symbol.name: _plain(size) for symbol, size in self.sizes.items()},
            "memory_map": [_placed(each) for each in self.plan.memory_map.tensors],
            "warnings": list(self.warnings),
        }


def check(program: Program, given: Mapping[str, Size], *, data: bool) -> Check:
    """Look at a wired program.

    Args:
        program: wired.
        given: sizes for symbols, by name; of a ragged one the mean over its groups.
        data: substitute what the program's control data decide, too.

    Raises:
        ProgramError: the program is not complete.
        ConfigurationError: no stream has a symbol of a given name, or its size is no integer.
    """
    plan = elaborate(program)
    sizes = chosen_sizes(plan, given, data=data)
    groups = tuple(alike(plan))
    return Check(plan, groups, sizes, metrics_of(plan, Substitution(sizes)), advice(plan, groups))


def _tile(node: Node) -> str | None:
    for stream in (*node.output_types, *node.input_types):
        if isinstance(stream.value, TileType):
            return str(stream.value)
    return None


def _layout(stream: Stream) -> dict[str, object]:
    """Return which coordinates the tiles of ``stream`` have, in which order; or why not."""
    layout = stream.layout
    return {
        "layout": None if layout is None else str(layout),
        "reason": stream.no_layout,
    }


def _placed(placed: Placed) -> dict[str, object]:
    tensor = placed.tensor
    return {
        "first_address": placed.first_address,
        "bytes": placed.size_bytes,
        "dtype": None if tensor is None else dtype_name(tensor.dtype),
        "shape": None if tensor is None else [shown(dim) for dim in tensor.shape],
        "output": None if tensor is None else tensor.output,
        "tiles": "contiguous" if placed.layout.contiguous else "row-major",
        "row_padding_bytes": placed.layout.padding_bytes,
        "reason": placed.layout.reason,
        "operators": [node.name for node in placed.nodes],
    }


def _plain(size: Size) -> int | float:
    return size if isinstance(size, int) else float(size)
