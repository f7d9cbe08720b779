"""Exact values and lower bounds of the fields of a report, before the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fabric.analysis.symbolic.area import least_sized
from fabric.analysis.symbolic.bounds_cycles import Bound, bounds_of_cycles
from fabric.analysis.symbolic.metrics import Metrics, metrics_of
from fabric.analysis.symbolic.operator_bounds import Certain, Least, certain_sizes, graph_of, leasts
from fabric.display.parts import Rows, Sheet, Title
from fabric.display.result import Result
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import checked
from fabric.graph.values.dims import Dim, Totals, least_of, with_totals
from fabric.graph.values.expression import total
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import Plan, elaborate
from fabric.graph.wiring.operator import ComputeOperator
from fabric.graph.wiring.program import Program
from fabric.messages.place import is_ours
from fabric.messages.users_code import users_values
from fabric.timing.compiled.likeness import Likeness


@dataclass(frozen=True, repr=False)
class KnownBefore(Result):
    """Fields of the report of a timing run, before the run.

    Sizes that the program binds (``Program.bind``) and shapes that it assumes are taken as true; a
    run reports those that differ.

    Attributes:
        exact: values of fields by name.
        at_least: lower bounds of other fields by name.
        cycles: a lower bound by kind of unit, and by ``hbm``; the largest is
            ``at_least["cycles"]``.
        sized: lower bounds of ``channel_bytes`` and of areas, if depths are given.
    """

    exact: Mapping[str, int]
    at_least: Mapping[str, int]
    cycles: Mapping[str, Bound]
    sized: Mapping[str, float]

    def sheet(self) -> Sheet:
        """Yield metrics before a run: exact values and lower bounds."""
        yield Title("Known before a run")
        least = {**self.at_least, **self.sized}
        rows = [
            (name.replace("_", " "), how, value)
            for how, values in (("exactly", self.exact), ("at least", least))
            for name, value in values.items()
        ]
        yield Rows(("", "", "value"), rows)
        if self.cycles:
            yield Title("Lower bounds of the cycles")
            needs = [(kind, bound.cycles, bound.what) for kind, bound in self.cycles.items()]
            yield Rows(("kind", "cycles at least", "for"), needs)


@checked
@users_values()
@only_young_garbage()
def lower_bounds(
    program: Program, depths: Mapping[str, Annotated[int, Bounds(1)]] | None = None
) -> KnownBefore:
    """Return exact values and lower bounds for every run of ``program``, with any depths and hops.

    Args:
        program: complete; it does not run.
        depths: of single channels, by ``consumer.input``; other channels have the program's depth.
            The bytes of channels and the areas are returned only if depths are given.

    Raises:
        ProgramError: the program is not complete.
    """
    plan = elaborate(program)
    certain = Certain(plan, certain_sizes(plan))
    likeness = Likeness()
    graph = graph_of(plan)
    least = leasts(plan, graph, certain, likeness)
    metrics = metrics_of(plan, certain.substitution, likeness)
    cycles = bounds_of_cycles(plan, graph, least, certain.totals)
    fields: dict[str, tuple[int, bool]] = {
        "operators": (len(plan.nodes), True),
        "channels": (len(plan.edges), True),
        "allocated_flops_per_cycle": (metrics.allocated_flops_per_cycle, True),
        "cycles": (max([bound.cycles for bound in cycles.values()], default=0), False),
        "flops": _flops(least, metrics),
        "hbm_bytes_moved": _moved_bytes(plan, least, certain.totals),
    }
    for name, totals in (("", metrics.paper), ("_artifact", metrics.artifact)):
        traffic_bytes = with_totals(totals.traffic_bytes, certain.totals)
        fields[f"off_chip_traffic{name}_bytes"] = _of_types(traffic_bytes)
        fields[f"on_chip_requirement{name}_bytes"] = _of_types(totals.on_chip_bytes)
    at_least_sized: Mapping[str, float] = {}
    if depths is not None:
        deep = [depths.get(edge.key) or program.depth_of(edge.key) for edge in plan.edges]
        at_least_sized = least_sized(plan, deep, metrics, certain.substitution, certain.totals)
    exact: dict[str, int] = {}
    at_least: dict[str, int] = {}
    for name, (value, is_exact) in sorted(fields.items()):
        (exact if is_exact else at_least)[name] = value
    return KnownBefore(exact, at_least, cycles, at_least_sized)


def _of_types(dim: Dim) -> tuple[int, bool]:
    """Return the least value of an expression of the run's sizes, and whether it is exact.

    Proof. The report uses the measured sizes in the same expression. Certain sizes are measured
    unchanged. Other sizes are at least 0, and an expression of sums, products and rounding up is
    least if all other sizes are 0.
    """
    return (dim, True) if isinstance(dim, int) else (least_of(dim), False)


def _flops(least: list[Least], metrics: Metrics) -> tuple[int, bool]:
    """Return the operations, and whether this number is exact.

    Proof. Compute units count the function's ``flops`` for each element. A function of the library
    counts the same for a tile and for the tile's type, if the type has no symbols. Costs multiply
    these operations by the number of elements. A user's function counts as 0, and
    so does a function whose operations depend on symbols.
    """
    flops, is_exact = 0, True
    for work, metric in zip(least, metrics.operators, strict=True):
        if not isinstance(metric.node.operator, ComputeOperator):
            continue
        if work.computes and isinstance(metric.costs.flops, int):
            flops += metric.costs.flops
        else:
            is_exact = False
    return flops, is_exact


def _moved_bytes(plan: Plan, least: list[Least], totals: Totals) -> tuple[int, bool]:
    """Return the bytes of the requests to the off-chip memory, and whether this number is exact.

    Proof. Each burst takes ``Rates.requests`` requests, and all are complete when a run completes.
    A buffer that may be spilled adds an unknown number of requests. A memory that joins rows may
    need fewer requests, and a user's memory any number: the bound is 0 for both.
    """
    hbm = plan.program.hardware.hbm
    if hbm.joins_rows or not is_ours(type(hbm)):
        return 0, not plan.clients
    clients = [
        None if plan.nodes[number].operator.off_chip is None else least[number].requests
        for number in plan.clients
    ]
    requests = with_totals(total(client or 0 for client in clients), totals)
    moved, is_exact = _of_types(requests)
    return moved * hbm.request_bytes, is_exact and None not in clients
