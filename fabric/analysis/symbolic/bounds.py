"""What is known of a run before it: some fields of its report exactly, others from below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fabric.analysis.symbolic.area import least_sized
from fabric.analysis.symbolic.bounds_cycles import Bound, bounds_of_cycles
from fabric.analysis.symbolic.metrics import Metrics, metrics_of
from fabric.analysis.symbolic.operator_bounds import Certain, Least, certain_sizes, graph_of, leasts
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import checked
from fabric.graph.values.dims import Dim, Totals, least_of, with_totals
from fabric.graph.values.expression import total
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import Plan, elaborate
from fabric.graph.wiring.operator import ComputeOperator
from fabric.graph.wiring.program import Program
from fabric.messages.display import ShownAsTables
from fabric.messages.place import is_own
from fabric.messages.users_code import users_values
from fabric.timing.compiled.likeness import Likeness


@dataclass(frozen=True, repr=False)
class KnownBefore(ShownAsTables):
    """Fields of the report of a timing run, as they are known before it runs.

    Sizes that the program binds (``Program.bind``) and shapes that it assumes are believed; a run
    says where they are not so.

    Attributes:
        exact: what the report will say, by the name of the field.
        at_least: for other fields, what it will say no less than.
        cycles: the lower bounds of the cycles by what needs them, as ``bounds_of_cycles`` has them;
            ``at_least["cycles"]`` is the largest.
        sized: as ``at_least``, ``channel_bytes`` and areas, where depths are given.
    """

    exact: Mapping[str, int]
    at_least: Mapping[str, int]
    cycles: Mapping[str, Bound]
    sized: Mapping[str, float]


@checked
@users_values()
@only_young_garbage()
def lower_bounds(
    program: Program, depths: Mapping[str, Annotated[int, Bounds(1)]] | None = None
) -> KnownBefore:
    """Return what is certain of every run of ``program``, with any depths and hops.

    Args:
        program: wired; nothing runs.
        depths: of single channels, by ``consumer.input``; elsewhere as the program says. What
            channels hold, and areas, are known only where these are given.

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
    found: dict[str, tuple[int, bool]] = {
        "operators": (len(plan.nodes), True),
        "channels": (len(plan.edges), True),
        "allocated_flops_per_cycle": (metrics.allocated_flops_per_cycle, True),
        "cycles": (max([bound.cycles for bound in cycles.values()], default=0), False),
        "flops": _flops(least, metrics),
        "hbm_bytes_moved": _moved_bytes(plan, least, certain.totals),
    }
    for name, totals in (("", metrics.paper), ("_artifact", metrics.artifact)):
        traffic_bytes = with_totals(totals.traffic_bytes, certain.totals)
        found[f"off_chip_traffic{name}_bytes"] = _of_types(traffic_bytes)
        found[f"on_chip_requirement{name}_bytes"] = _of_types(totals.on_chip_bytes)
    at_least_sized: Mapping[str, float] = {}
    if depths is not None:
        deep = [depths.get(edge.key) or program.depth_of(edge.key) for edge in plan.edges]
        at_least_sized = least_sized(plan, deep, metrics, certain.substitution, certain.totals)
    return KnownBefore(
        exact={name: value for name, (value, is_exact) in sorted(found.items()) if is_exact},
        at_least={name: value for name, (value, is_exact) in sorted(found.items()) if not is_exact},
        cycles=cycles,
        sized=at_least_sized,
    )


def _of_types(dim: Dim) -> tuple[int, bool]:
    """Return a total that the report computes of types, for the sizes that the run had.

    Proof. The report uses the measured sizes in the same expression. Certain sizes are measured
    unchanged; the others are at least 0, and an expression of sums, products and rounding up is
    least if they are 0.
    """
    return (dim, True) if isinstance(dim, int) else (least_of(dim), False)


def _flops(least: list[Least], metrics: Metrics) -> tuple[int, bool]:
    """Return the operations, and whether these are all.

    Proof. Compute units count them, for each element as many as the function's ``flops`` says; one
    of ours says the same of a tile as of its type, where that has no symbols. So do the costs,
    which multiply it with the elements. What is a user's, or hangs on symbols, may do any number.
    """
    done, is_all = 0, True
    for its, of in zip(least, metrics.operators, strict=True):
        if not isinstance(of.node.operator, ComputeOperator):
            continue
        flops = of.costs.flops
        if its.computes and isinstance(flops, int):
            done += flops
        else:
            is_all = False
    return done, is_all


def _moved_bytes(plan: Plan, least: list[Least], totals: Totals) -> tuple[int, bool]:
    """Return the bytes of the requests to the off-chip memory, and whether these are all.

    Proof. Each burst takes ``Rates.requests`` requests, of which none is left when a run completes.
    A buffer that may be spilled adds requests, whose number is unknown. A memory that joins rows
    may do with fewer: nothing is said of it, nor of a user's.
    """
    hbm = plan.program.hardware.hbm
    clients = [
        None if plan.nodes[number].operator.off_chip is None else least[number].requests
        for number in plan.clients
    ]
    if hbm.joins_rows or not is_own(hbm):
        return 0, not clients
    requests = with_totals(total(each or 0 for each in clients), totals)
    moved, is_all = _of_types(requests)
    return moved * hbm.request_bytes, is_all and None not in clients
