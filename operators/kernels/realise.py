"""From a model and a schedule to a program."""

from __future__ import annotations

from fabric import Program
from operators.kernels.bandwidth import share_out
from operators.kernels.fusion import Fusion, fused
from operators.kernels.model import Model
from operators.kernels.needs import needs_of
from operators.kernels.schedule import Schedule
from operators.kernels.summary import summarise
from operators.kernels.wiring import wire

__all__ = ["realised"]


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
