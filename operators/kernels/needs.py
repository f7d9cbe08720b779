"""What kernels take on chip, read off the operators that they are wired as."""

from __future__ import annotations

from fabric import Program
from operators.bufferize import Bufferize
from operators.kernels.edges import may_be_spilled
from operators.kernels.fusion import Buffer, Needs
from operators.kernels.model import Model
from operators.kernels.sizes import number_of
from operators.kernels.tensors import Stored
from operators.kernels.wiring import wire

__all__ = ["buffer_bytes", "needs_of"]


def needs_of(model: Model) -> Needs:
    """Return what ``model`` takes where all of it stays on chip, and what where it does not."""
    with Program("all on chip") as program:
        wired = wire(program, model)
    stored = [each for each in wired.operands if isinstance(each.view.source, Stored)]
    with Program("nothing kept") as spilling:
        spilled = wire(spilling, model, stored)
    left = {each: buffer_bytes(spilling, spilled.operands[each]) for each in stored}
    round_loops = {
        operand
        for loop in model.loops.values()
        for kernel in model.round(loop)
        for operand in kernel.operands
        if not isinstance(operand.view.source, Stored)
    }
    return Needs(
        {kernel: buffer_bytes(program, its) for kernel, its in wired.kernels.items()},
        {
            operand: Buffer(
                its,
                buffer_bytes(program, its),
                left.get(operand, 0),
                operand not in round_loops and may_be_spilled(operand),
            )
            for operand, its in wired.bringing.items()
        },
    )


def buffer_bytes(program: Program, operators: range) -> int:
    """Return what those of ``operators`` that collect tiles take, as ``check`` has it.

    A buffer is there twice, one being filled while the other one is read. What hangs on sizes that
    the program does not bind is left out.
    """
    nodes = [program.nodes[place] for place in operators]
    return sum(
        number_of(program, node.operator.costs(node.input_types, node.output_types).on_chip_bytes)
        or 0
        for node in nodes
        if isinstance(node.operator, Bufferize)
    )
