"""Whether the kernels of a loop take one step after the other."""

from __future__ import annotations

from fabric import ProgramError
from operators.kernels.edges import joint_of
from operators.kernels.kernel import Kernel
from operators.kernels.model import Model
from operators.kernels.recurrence import Recurrence, is_by_steps
from operators.kernels.tensors import Computed

__all__ = ["OutOfStepError", "check_loops"]


class OutOfStepError(ProgramError):
    """A kernel in a loop does not take one step after the other."""


def check_loops(model: Model) -> None:
    """Check that no kernel on a way round a loop waits for a later step.

    Raises:
        OutOfStepError: one would: what it reads, or what it gives, comes in another order.
    """
    for loop in model.loops.values():
        around = model.round(loop)
        for kernel in around:
            if not _is_by_steps(kernel, around, loop):
                raise OutOfStepError(
                    f"{kernel.name} ({kernel.family}) is in a loop whose number of "
                    f"steps is {loop.steps}, and does not take them one after the other: "
                    "expected calls that do",
                    file=loop.file,
                    line=loop.line,
                )


def _is_by_steps(kernel: Kernel, around: tuple[Kernel, ...], loop: Recurrence) -> bool:
    made = {result for each in around for result in each.results}
    for operand in kernel.operands:
        if operand.view.source not in made or kernel in loop.states.values():
            continue
        if not isinstance(operand.view.source, Computed):
            return False
        joint = joint_of(operand)
        if not joint.convertible or not is_by_steps(joint.pulled.layout, loop.steps):
            return False
    if kernel in loop.behind.values():
        return True
    return all(
        isinstance(each, Computed) and is_by_steps(each.layout, loop.steps)
        for each in kernel.results
    )
