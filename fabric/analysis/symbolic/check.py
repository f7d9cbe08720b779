"""The wiring and the metrics of a program before it runs, and advice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

# Any: sympy has no types.
from typing import Any, Final, Literal

import numpy as np

from fabric.analysis.symbolic.folding import alike
from fabric.analysis.symbolic.metrics import Metrics, metrics_of, shown
from fabric.analysis.symbolic.substitution import Size, Substitution, chosen_sizes, symbols_of
from fabric.graph.arguments.described import checked
from fabric.graph.hardware.address_space import Region
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.graph.layouts.layout import Layout
from fabric.graph.values.dims import free_symbols, product, short_text
from fabric.graph.values.expression import Symbol, sympy_of
from fabric.graph.values.stream_type import TileType, shape_text
from fabric.graph.values.value import ADDRESS_DTYPE, dtype_name, row_bytes
from fabric.graph.wiring.elaborate import Plan, elaborate
from fabric.graph.wiring.memory_map import Placed
from fabric.graph.wiring.mistakes import off_chip_tensor_of
from fabric.graph.wiring.operator import Node
from fabric.graph.wiring.program import Program
from fabric.messages.place import is_ours
from fabric.messages.text import counted, families, merged_text
from fabric.messages.users_code import users_values
from fabric.timing.engine.tables import Counters
from fabric.timing.memories.banked_tables import AddressMapping, Locations


@dataclass(frozen=True, repr=False)
class Check:
    """A wired program's shapes and costs, with ``sizes`` in place of symbols; it did not run.

    Expressions are sympy's. Their symbols are integers of at least 0, named as in shapes;
    ``sympy.sympify(stream.shape[0])`` returns the symbol of a dimension.
    """

    plan: Plan
    groups: tuple[tuple[Node, ...], ...]
    sizes: Mapping[Symbol, Size]
    metrics: Metrics
    warnings: tuple[str, ...]

    @property
    def free_symbols(self) -> tuple[str, ...]:
        """Names of the symbols that the metrics still depend on."""
        totals = [self.metrics.totals(name).values() for name in self.metrics.accountings]
        names = {symbol.name for dims in totals for dim in dims for symbol in free_symbols(dim)}
        return tuple(name for name in symbols_of(self.plan) if name in names)

    @property
    def shapes(self) -> dict[str, tuple[Any, ...]]:
        """The shape of each stream by ``operator.output``: numbers and expressions of sympy."""
        return {
            f"{node.name}.{port}": tuple(map(sympy_of, stream.shape))
            for node in self.plan.nodes
            for port, stream in enumerate(node.output_types)
        }

    @property
    def compute_cycles(self) -> tuple[Any, ...]:
        """Lower bounds of a run's cycles by compute units: a number, then expressions of sympy."""
        return tuple(map(sympy_of, self.metrics.compute_cycles))

    def formulas(self, accounting: Literal["paper", "artifact"] = "paper") -> dict[str, Any]:
        """Return the totals by the names of ``check --json``: numbers and expressions of sympy."""
        return {name: sympy_of(dim) for name, dim in self.metrics.totals(accounting).items()}

    def as_json(self) -> dict[str, object]:
        """Return the fields of ``check --json`` that describe the program."""
        return {
            "operators": [
                {
                    "name": node.name,
                    "kind": type(node.operator).__name__,
                    "inputs": [str(stream) for stream in node.input_types],
                    "outputs": [str(stream) for stream in node.output_types],
                    "layouts": [
                        {"layout": stream.layout and str(stream.layout), "reason": stream.no_layout}
                        for stream in node.outputs
                    ],
                    "tile": _tile(node),
                    "file": node.place.file,
                    "line": node.place.line,
                    "metrics": {
                        **{name: shown(getattr(costs, cost)) for name, cost in _COSTS.items()},
                        "roofline_compute_cycles": shown(compute_cycles),
                    },
                }
                for node, costs, compute_cycles, _ in self.metrics.operators
            ],
            "metrics": {name: self.metrics.as_json(name) for name in self.metrics.accountings},
            "free_symbols": list(self.free_symbols),
            "sizes": {
                symbol.name: size if isinstance(size, int) else float(size)
                for symbol, size in self.sizes.items()
            },
            "memory_map": [_tensor_fields(placed) for placed in self.plan.memory_map.tensors],
            "warnings": list(self.warnings),
        }


@checked
@users_values()
def check(
    program: Program, sizes: Mapping[str, int | Fraction] | None = None, *, data: bool = False
) -> Check:
    """Return the shapes and the costs of ``program`` without running it.

    Args:
        program: complete; it does not run.
        sizes: numbers for symbols by name; the mean over its groups for a ragged symbol.
        data: also use the sizes from the program's lists and ``bind``.

    Raises:
        ConfigurationError: no stream has the symbol, or a mean is given for a symbol with one size.
        ProgramError: the program is not complete.
    """
    plan = elaborate(program)
    chosen = chosen_sizes(plan, sizes or {}, data=data)
    groups = tuple(alike(plan))
    metrics = metrics_of(plan, Substitution(chosen))
    return Check(plan, groups, chosen, metrics, advice(plan, groups))


_COSTS: Final = {
    "off_chip_load_bytes": "load_bytes",
    "off_chip_store_bytes": "store_bytes",
    "off_chip_store_artifact_bytes": "artifact_store_bytes",
    "on_chip_requirement_bytes": "on_chip_bytes",
    "on_chip_requirement_artifact_bytes": "artifact_on_chip_bytes",
    "flops": "flops",
}


def _tile(node: Node) -> str | None:
    for stream in (*node.output_types, *node.input_types):
        if isinstance(stream.value, TileType):
            return str(stream.value)
    return None


def _tensor_fields(placed: Placed) -> dict[str, object]:
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


_MOST_ROUNDS: Final = 200

_ROUND_TRIP_CYCLES: Final = 2
"""One cycle for the element, one for its credit."""


def advice(plan: Plan, groups: Iterable[tuple[Node, ...]]) -> tuple[str, ...]:
    """Return a sentence for each finding; repeated operators share one."""
    useful, crowded = _useful(plan), Crowded(plan)
    checks: tuple[Callable[[Node], str | None], ...] = (
        lambda node: _wasted_requests(node, plan),
        _read_per_row,
        lambda node: None if node in useful else "no stored output depends on it",
        _undecided(plan),
        crowded.of,
    )
    return (
        *_shallow(plan),
        *crowded.together(),
        *_by_group(groups, checks),
        *_unrolled(plan),
        *_needless(plan),
    )


def _by_group(
    groups: Iterable[tuple[Node, ...]], checks: tuple[Callable[[Node], str | None], ...]
) -> Iterator[str]:
    for group in groups:
        for check in checks:
            texts = {node: text for node in group if (text := check(node)) is not None}
            if texts:
                name = merged_text([node.name for node in texts])
                many = f" (x{len(texts)})" if len(texts) > 1 else ""
                place = next(iter(texts)).place
                yield f"{place}: {name}{many}: {merged_text([*texts.values()])}"


def _wasted_requests(node: Node, plan: Plan) -> str | None:
    if node.operator.off_chip is None or plan.program.hardware.hbm.joins_rows:
        return None
    types = node.output_types if node.operator.off_chip == "read" else node.input_types
    request = plan.program.hardware.hbm.request_bytes
    stored = node.operator.off_chip_tensor(node.input_types, node.output_types)
    for stream in types:
        tile = stream.value
        if not isinstance(tile, TileType) or not isinstance(tile.cols, int):
            continue
        if tile.dtype == ADDRESS_DTYPE:
            continue
        cut = None if stored is None else stored.tile
        row = row_bytes(tile.cols if cut is None else cut[1], tile.dtype)
        moved = -(-row // request) * request
        if moved != row:
            return (
                f"rows of {tile} are {counted(row, 'byte')}, but {moved} are moved for each "
                f"({100 * (moved - row) // moved} % wasted): expected a multiple of {request}"
            )
    return None


def _read_per_row(node: Node) -> str | None:
    if node.operator.off_chip != "read" or not node.inputs:
        return None
    reference, tiles = node.input_types[0], node.output_types[0]
    row, tile = reference.value, tiles.value
    if not isinstance(row, TileType) or not isinstance(tile, TileType):
        return None
    if row.dtype == ADDRESS_DTYPE or row.rows != 1 or tile.rows == 1:
        return None
    view = product((*tiles.shape[len(reference.shape) :], tile.size_bytes))
    amount = counted(view, "byte") if isinstance(view, int) else f"{short_text(view)} bytes"
    return (
        f"reads {amount} again for every single row of {node.inputs[0].name}: "
        "expected tiles of several rows as its reference"
    )


def _shallow(plan: Plan) -> Iterator[str]:
    depth = plan.program.channel_depth
    if depth < _ROUND_TRIP_CYCLES:
        yield (
            f"{plan.program.place}: channels of depth {depth} pass an element every "
            f"{_ROUND_TRIP_CYCLES} cycles: expected a depth of {_ROUND_TRIP_CYCLES}, since an "
            "element and its credit take a cycle each"
        )


def _unrolled(plan: Plan) -> Iterator[str]:
    """Find families that should be loops: each unit of such a family waits for the unit before.

    Streams from later to earlier operators close loops and do not count.
    """
    after: dict[Node, list[Node]] = {node: [] for node in plan.nodes}
    for edge in plan.edges:
        if edge.producer.index < edge.consumer.index:
            after[edge.producer].append(edge.consumer)
    for title, members in families(plan.nodes, lambda node: node.name, lambda node: node.place):
        if len(members) <= _MOST_ROUNDS:
            continue
        family = frozenset(members)
        # Number of members on the longest path to each operator.
        path_lengths = dict.fromkeys(plan.nodes, 0)
        for node in plan.nodes:
            path_lengths[node] += node in family
            for reader in after[node]:
                path_lengths[reader] = max(path_lengths[reader], path_lengths[node])
        rounds = max(path_lengths.values())
        if rounds > _MOST_ROUNDS:
            yield (
                f"{members[0].place}: {title}: {counted(rounds, 'unit')} are one behind the other: "
                "expected a loop, in which one unit does all rounds: "
                "before = Feedback(stream.type), and at the end "
                "before.connect(Initial(value, keep_length=True)(after))"
            )
            return


def _useful(plan: Plan) -> set[Node]:
    stores = {node for node in plan.nodes if node.operator.off_chip == "write"}
    if not stores:
        return set(plan.nodes)
    before: dict[Node, list[Node]] = {node: [] for node in plan.nodes}
    after: dict[Node, list[Node]] = {node: [] for node in plan.nodes}
    for edge in plan.edges:
        before[edge.consumer].append(edge.producer)
        after[edge.producer].append(edge.consumer)
    return _reached(stores, before) | _reached(stores, after)


def _reached(start: set[Node], steps: dict[Node, list[Node]]) -> set[Node]:
    reached, open_nodes = set(start), list(start)
    while open_nodes:
        for node in steps[open_nodes.pop()]:
            if node not in reached:
                reached.add(node)
                open_nodes.append(node)
    return reached


def _undecided(plan: Plan) -> Callable[[Node], str | None]:
    pairs = {node: (left, right) for node, left, right in reversed(plan.program.undecided)}

    def check(node: Node) -> str | None:
        if node not in pairs:
            return None
        left, right = map(short_text, pairs[node])
        kind = type(node.operator)
        checks = "The run will check" if is_ours(kind) else f"Only {kind.__name__}.run can check"
        return f"{left} and {right} may differ. {checks}; to state it now: stream.assume(...)"

    return check


def _needless(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        for stream in node.assumed:
            if stream.stated_layout or (stream.used and not stream.is_redundant):
                continue  # a stated layout leaves the shape open
            why = "is what its operators say" if stream.is_redundant else "is used by no operator"
            yield (
                f"{stream.place}: {node.name}.{stream.port}: the assumed shape "
                f"{shape_text(stream.shape)} {why}: expected no assume(...)"
            )


_REQUESTS: Final = 1024
"""Number of examined requests at the start of each stream."""

_FEW: Final = 4
"""Warn if a stream of this many requests per channel uses less than 1 in this many channels."""

_SLOW: Final = 2
"""Warn if opening one bank's rows takes more than this many times the cycles of all requests."""


class Crowded:
    """Finds streams that leave channels or banks of the memory unused."""

    def __init__(self, plan: Plan) -> None:
        self._plan: Final = plan
        self._requests: Final[dict[Node, Locations]] = {}
        hbm = plan.program.hardware.hbm
        if not isinstance(hbm, BankedDescription):
            return
        self._hbm: Final = hbm
        mapping = AddressMapping(hbm)
        for node in plan.nodes:
            addresses = first_addresses(node, plan.memory_map.regions.get(node), hbm)
            if addresses is not None:
                self._requests[node] = mapping.locate(addresses)

    def of(self, node: Node) -> str | None:
        requests = self._requests.get(node)
        if requests is None or len(requests.channels) < _FEW * self._hbm.channels:
            return None
        return self._few_channels(requests) or self._one_bank(requests)

    def together(self) -> Iterator[str]:
        """Yield advice if most streams begin in different rows of one bank."""
        starts = {
            (int(channels[0]), int(banks[0]), int(rows[0]))
            for channels, banks, rows in self._requests.values()
        }
        rows_by_bank = Counter((channel, bank) for channel, bank, _ in sorted(starts))
        for (channel, bank), most in rows_by_bank.most_common(1):
            if most > 1 and 2 * most > len(starts):
                yield (
                    f"{self._plan.program.place}: {most} of {counted(len(starts), 'place')} from "
                    f"which tensors are read are in different rows of bank {bank} of channel "
                    f"{channel}: expected [placement] stagger_bytes, so that they are on different "
                    "banks"
                )

    def _few_channels(self, requests: Locations) -> str | None:
        used, channels = len(np.unique(requests.channels)), self._hbm.channels
        if _FEW * used >= channels:
            return None
        return (
            f"its first requests, {len(requests.channels):,}, are on {used} of "
            f"{counted(channels, 'channel')}: expected other tiles, or a [placement] that spreads "
            "them"
        )

    def _one_bank(self, requests: Locations) -> str | None:
        hbm, count = self._hbm, len(requests.rows)
        opened = np.unique(np.stack(requests, 1), axis=0)
        banks, rows = np.unique(opened[:, :2], axis=0, return_counts=True)
        worst = int(rows.argmax())
        cycles = (int(rows[worst]) - 1) * hbm.dram.rc_cycles
        busiest = int(np.bincount(requests.channels).max())
        served = float(busiest * hbm.channels * hbm.request_bytes / hbm.peak_bytes_per_cycle)
        if cycles <= _SLOW * max(served, count / hbm.requests_per_bundle):
            return None
        channel, bank = banks[worst].tolist()
        return (
            f"its first requests, {count:,}, are in {counted(int(rows[worst]), 'row')} of "
            f"bank {bank} of channel "
            f"{channel}, which are opened in {counted(cycles, 'cycle')}: expected other "
            "tiles, or a [placement] that spreads them"
        )


def first_addresses(node: Node, region: Region | None, hbm: BankedDescription) -> Counters | None:
    """Return the first request addresses of a load; None if they depend on data."""
    if region is None or region.write or not node.outputs:
        return None
    layout, tensor = node.outputs[0].layout, off_chip_tensor_of(node)
    if layout is None or tensor is None:
        return None
    if (layout.rows, layout.cols) != tensor.tile or layout.shape[-1] != tensor.columns:
        return None
    row = row_bytes(layout.cols, tensor.dtype)
    tile_requests = layout.rows * -(-row // hbm.request_bytes)
    steps = np.arange(0, row, hbm.request_bytes)
    addresses: list[Counters] = []
    for number in _first_tiles(layout, -(-_REQUESTS // tile_requests)):
        burst = region.burst(layout.rows, row, number)
        rows = np.arange(min(burst.rows, _REQUESTS)) * burst.pitch_bytes
        addresses.append((burst.address + rows[:, None] + steps[:_REQUESTS]).reshape(-1))
    return np.concatenate(addresses)[:_REQUESTS]


def _first_tiles(layout: Layout, count: int) -> list[int]:
    """Return the row-major numbers of the first ``count`` tiles of a stream with ``layout``."""
    places = np.arange(min(count, layout.count))
    offsets = np.tile(np.array(layout.start, np.int64), (len(places), 1))
    inside = layout.count
    for trips, step, dim in layout.loops:
        inside //= trips
        if dim is not None:
            offsets[:, dim] += places // inside % trips * step
    *outer, last = layout.shape
    strides = [math.prod(outer[dim + 1 :]) for dim in range(len(outer))]
    down = (offsets[:, :-1] @ np.array(strides, np.int64)) // layout.rows
    numbers: list[int] = (down * (last // layout.cols) + offsets[:, -1] // layout.cols).tolist()
    return numbers
