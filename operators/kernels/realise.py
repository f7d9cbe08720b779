"""From a model and a schedule to a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fabric import ConfigurationError, Program
from fabric.extend import ComputeOperator, refuse
from operators.kernels.fusion import Fusion, fused, needs_of
from operators.kernels.model import Model
from operators.kernels.schedule import Schedule, number_of
from operators.kernels.summary import summarise
from operators.kernels.wiring import wire

__all__ = ["Demand", "demands_of", "realised", "share_out", "shares"]


def realised(name: str, model: Model, schedule: Schedule) -> Program:
    """Return the program ``name`` that computes ``model``, fused as ``schedule`` says.

    Raises:
        CapacityError: a kernel takes more on chip than there is.
        ConfigurationError: there are more compute units than FLOPs per cycle for them.
    """
    if schedule.on_chip_bytes is None:
        fusion = Fusion((tuple(model.kernels),), frozenset())
    else:
        fusion = fused(model, needs_of(model), schedule.on_chip_bytes)
    with Program(name) as program:
        wired = wire(program, model, fusion.spilled)
    if schedule.flops_per_cycle is not None:
        share_out(program, schedule.flops_per_cycle)
    summarise(program, model, wired, fusion)
    return program


class Demand(NamedTuple):
    """What a compute unit has to do.

    Attributes:
        elements: that it takes, one after the other.
        flops: for each of them.
    """

    elements: int
    flops: int

    def cycles(self, flops_per_cycle: int) -> int:
        """Return how long it computes."""
        return self.elements * -(-self.flops // flops_per_cycle)


def share_out(program: Program, flops_per_cycle: int) -> None:
    """Give the compute units of ``program`` that are given none so much bandwidth together.

    Raises:
        ConfigurationError: not even one FLOP per cycle is there for each of them.
    """
    program.allot(shares(demands_of(program), flops_per_cycle))


def demands_of(program: Program) -> dict[str, Demand]:
    """Return what the compute units of ``program`` that are given no bandwidth have to do.

    Where data decide how large elements are, each has the mean of them. A unit whose operations
    hang on sizes that the program does not bind counts as one that does a single one.
    """
    found = {}
    for node in program.nodes:
        operator = node.operator
        if not isinstance(operator, ComputeOperator) or not operator.has_arithmetic:
            continue
        if operator.flops_per_cycle is not None:
            continue
        elements = number_of(program, node.input_types[0].count) or 1
        costs = operator.costs(node.input_types, node.output_types)
        flops = number_of(program, costs.flops) or 1
        found[node.name] = Demand(elements, -(-flops // elements))
    return found


def shares(demands: Mapping[str, Demand], flops_per_cycle: int) -> dict[str, int]:
    """Return the bandwidth of each unit, with which the slowest of all computes least long.

    No unit has more than that takes.

    Raises:
        ConfigurationError: there are more units than FLOPs per cycle.
    """
    if flops_per_cycle < len(demands):
        refuse(
            f"flops_per_cycle is {flops_per_cycle:,} for {len(demands):,} compute units: "
            "expected at least one for each",
            ConfigurationError,
        )
    # With one FLOP per cycle each, all are done after ``most`` cycles.
    least = max((each.elements for each in demands.values()), default=0)
    most = max((each.cycles(1) for each in demands.values()), default=0)
    while least < most:
        cycles = (least + most) // 2
        if sum(_share(each, cycles) for each in demands.values()) <= flops_per_cycle:
            most = cycles
        else:
            least = cycles + 1
    return {name: _share(each, most) for name, each in demands.items()}


def _share(demand: Demand, cycles: int) -> int:
    """Return the least bandwidth with which a unit is done after ``cycles``."""
    return -(-demand.flops // (cycles // demand.elements))
