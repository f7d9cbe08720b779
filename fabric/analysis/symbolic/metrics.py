"""The metrics of a program by operator and in total, in the two accountings.

``paper``: the equations of section 4.2. FIFOs, if counted, are depth x element bytes for every
channel. ``artifact``: the authors' plots. Stores and accumulators take 4 bytes an element, loads
are not double-buffered, and FIFOs count one element for each port of an operator.
Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 4.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple

from fabric.analysis.symbolic.substitution import Substitution, peaks
from fabric.graph.values.dims import Dim, dim_text, product
from fabric.graph.values.expression import ceil_div, total
from fabric.graph.values.stream_type import BufferType, StreamType, TileType, TupleType, ValueType
from fabric.graph.values.value import ADDRESS_DTYPE, dtype_name
from fabric.graph.wiring.costs import Costs
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.mistakes import costs_of
from fabric.graph.wiring.operator import ComputeOperator, Node, Operator
from fabric.graph.wiring.program import Program
from fabric.timing.compiled.likeness import Likeness

_REFERENCE_BYTES: Final = ADDRESS_DTYPE.itemsize


class OperatorMetrics(NamedTuple):
    node: Node
    costs: Costs
    compute_cycles: Dim  # a lower bound; 0 without arithmetic
    flops_per_cycle: int


class Accounting(NamedTuple):
    """The totals of one accounting, in bytes, and memory cycles at the peak bandwidth."""

    load_bytes: Dim
    store_bytes: Dim
    on_chip_bytes: Dim
    fifo_bytes: Dim
    memory_cycles: Dim

    @property
    def traffic_bytes(self) -> Dim:
        return self.load_bytes + self.store_bytes


class Metrics(NamedTuple):
    """A program's metrics: numbers, or expressions if symbols remain."""

    operators: tuple[OperatorMetrics, ...]  # in node order
    carried: tuple[StreamType, ...]  # types of channels, in edge order
    paper: Accounting
    artifact: Accounting
    flops: Dim
    allocated_flops_per_cycle: int

    @property
    def accountings(self) -> dict[str, Accounting]:
        return {"paper": self.paper, "artifact": self.artifact}

    @property
    def on_chip_bytes(self) -> tuple[int, ...]:
        """On-chip bytes of each operator; empty if symbols remain."""
        sizes = [operator.costs.on_chip_bytes for operator in self.operators]
        numbers = tuple(size for size in sizes if isinstance(size, int))
        return numbers if len(numbers) == len(sizes) else ()

    @property
    def compute_cycles(self) -> tuple[Dim, ...]:
        """Lower bounds of a run's cycles by compute units: the largest number, then expressions."""
        bounds = dict.fromkeys(operator.compute_cycles for operator in self.operators)
        most = max((bound for bound in bounds if isinstance(bound, int)), default=0)
        return (most, *[bound for bound in bounds if not isinstance(bound, int)])

    def totals(self, accounting: str) -> dict[str, Dim]:
        """Return the totals of one accounting by the names of ``check --json``."""
        sums = self.accountings[accounting]
        return {
            "off_chip_traffic_bytes": sums.traffic_bytes,
            "off_chip_load_bytes": sums.load_bytes,
            "off_chip_store_bytes": sums.store_bytes,
            "on_chip_requirement_bytes": sums.on_chip_bytes,
            "on_chip_requirement_with_fifos_bytes": sums.on_chip_bytes + sums.fifo_bytes,
            "flops": self.flops,
            "roofline_memory_cycles": sums.memory_cycles,
            "allocated_flops_per_cycle": self.allocated_flops_per_cycle,
        }

    def as_json(self, accounting: str) -> dict[str, object]:
        """Return one accounting as ``check --json`` shows it: numbers, or text with symbols."""
        totals = self.totals(accounting)
        flops_per_byte = intensity(self.flops, totals["off_chip_traffic_bytes"])
        return {name: shown(dim) for name, dim in totals.items()} | {
            "operational_intensity_flops_per_byte": flops_per_byte,
            "roofline_compute_cycles": largest(self.compute_cycles),
        }


def metrics_of(plan: Plan, substitution: Substitution, likeness: Likeness | None = None) -> Metrics:
    """Return the metrics of ``plan`` with the sizes of ``substitution`` for its symbols."""
    costs = _OperatorCosts(plan, substitution, likeness or Likeness())
    operators = tuple([OperatorMetrics(node, *costs.metrics(node)) for node in plan.nodes])
    times = Counter(id(operator.costs) for operator in operators)
    different = {id(operator.costs): operator.costs for operator in operators}

    def summed(field: str) -> Dim:
        terms = (getattr(costs, field) * times[at] for at, costs in different.items())
        return _whole(total(terms))

    peak = plan.peak_bytes_per_cycle
    load_bytes = summed("load_bytes")
    carried = tuple([substitution.stream(edge.type) for edge in plan.edges])
    program = plan.program
    slots = Counter(map(id, carried))
    for at in slots:
        slots[at] *= program.channel_depth
    for edge, stream in zip(plan.edges, carried, strict=True) if program.depths else ():
        slots[id(stream)] += program.depth_of(edge.key) - program.channel_depth
    channels_bytes = total(
        _whole(slots[at] * stream.value.size_bytes)
        for at, stream in {id(stream): stream for stream in carried}.items()
    )
    paper = (summed("store_bytes"), summed("on_chip_bytes"), channels_bytes)
    artifact = map(
        summed, ("artifact_store_bytes", "artifact_on_chip_bytes", "artifact_fifo_bytes")
    )
    return Metrics(
        operators=operators,
        carried=carried,
        paper=_accounting(peak, load_bytes, *paper),
        artifact=_accounting(peak, load_bytes, *artifact),
        flops=summed("flops"),
        allocated_flops_per_cycle=sum([operator.flops_per_cycle for operator in operators]),
    )


def shown(value: Dim) -> int | str:
    """Return a number as it is, and an expression as text."""
    return value if isinstance(value, int) else dim_text(value)


def intensity(flops: Dim, traffic: Dim) -> float | str | None:
    """Return FLOPs per byte of off-chip traffic; None without traffic."""
    if isinstance(flops, int) and isinstance(traffic, int):
        return flops / traffic if traffic else None
    return f"({dim_text(flops)})/({dim_text(traffic)})"


def largest(values: tuple[Dim, ...]) -> int | str:
    """Return the maximum, as text if it depends on symbols."""
    number, *symbolic = values
    texts = sorted(map(dim_text, symbolic))
    return f"max({', '.join([str(number), *texts])})" if texts else int(number)


class _OperatorCosts:
    """Computes the costs of operators; operators of equal parameters and types share a result."""

    def __init__(self, plan: Plan, substitution: Substitution, likeness: Likeness) -> None:
        self._plan: Final = plan
        self._sizes: Final = substitution
        peak_sizes = peaks(substitution.sizes, plan.program)
        sizes = {**substitution.sizes, **peak_sizes}
        self._on_chip: Final = Substitution(sizes) if peak_sizes else None
        self._likeness: Final = likeness
        self._cache: Final[dict[Hashable, tuple[Costs, Dim, int]]] = {}

    def metrics(self, node: Node) -> tuple[Costs, Dim, int]:
        inputs = tuple([self._sizes.stream(stream.type) for stream in node.inputs])
        outputs = tuple([self._sizes.stream(stream.type) for stream in node.outputs])
        if self._on_chip is not None:
            return self._metrics(node, inputs, outputs)
        # Equal types are one object.
        types = (*map(id, inputs), None, *map(id, outputs))
        key = self._likeness.made_of(node.operator), types
        metrics = self._cache.get(key)
        if metrics is None:
            metrics = self._metrics(node, inputs, outputs)
            if self._likeness.is_ours(node.operator):
                self._cache[key] = metrics
        return metrics

    def _metrics(
        self, node: Node, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> tuple[Costs, Dim, int]:
        costs = costs_of(node, inputs, outputs)
        if self._on_chip is not None:
            # A buffer has room for the largest element, not for the mean one.
            most = costs_of(
                node,
                tuple(map(self._on_chip.stream, node.input_types)),
                tuple(map(self._on_chip.stream, node.output_types)),
            )
            costs = replace(
                costs,
                on_chip_bytes=most.on_chip_bytes,
                artifact_on_chip_bytes=most.artifact_on_chip_bytes,
                artifact_fifo_bytes=most.artifact_fifo_bytes,
            )
        cycles: Dim = 0
        rate = flops_per_cycle_of(node.operator, self._plan.program)
        if rate and costs.flops != 0:
            elements = inputs[0].count
            flops = costs.flops / elements
            if isinstance(costs.flops, int) and isinstance(elements, int):
                flops = Fraction(costs.flops, elements)
            cycles = _whole(product((elements, ceil_div(flops, rate))))
        if not all(isinstance(cost, int) for cost in vars(costs).values()):
            # ``product`` removes redundant flags.
            costs = Costs(*[product((cost,)) for cost in vars(costs).values()])
        return costs, cycles, rate


def _accounting(peak: Fraction, load: Dim, store: Dim, on_chip: Dim, fifo: Dim) -> Accounting:
    cycles = ceil_div(total((load, store)) * peak.denominator, peak.numerator)
    return Accounting(load, store, on_chip, fifo, cycles)


def flops_per_cycle_of(operator: Operator, program: Program) -> int:
    """Return the compute bandwidth of an operator's unit; 0 without arithmetic."""
    if not (isinstance(operator, ComputeOperator) and operator.has_arithmetic):
        return 0
    return operator.flops_per_cycle or program.flops_per_cycle


def _whole(value: Dim) -> Dim:
    """Round a mean over ragged groups up."""
    return ceil_div(value, 1) if isinstance(value, Fraction) else value


def passed_bytes(value: ValueType) -> Dim:
    """Return the bytes of a value in a channel; a buffer is passed as a reference."""
    if isinstance(value, BufferType):
        return _REFERENCE_BYTES
    if isinstance(value, TupleType):
        return sum(map(passed_bytes, value.items))
    return value.size_bytes


def dtype_of(node: Node) -> str:
    """Return the element type of an operator's result, or of its input if it outputs no tiles."""
    for stream in (*node.output_types, *node.input_types):
        value = stream.value
        for item in value.items if isinstance(value, TupleType) else (value,):
            if isinstance(item, TileType):
                return dtype_name(item.dtype)
    return "other"
