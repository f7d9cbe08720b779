"""Which operators of a program do what for which kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from operators.kernels.kernel import Kernel, Operand

__all__ = ["Wired"]


@dataclass(frozen=True, eq=False)
class Wired:
    """Operators by what they were wired for, as places in ``Program.nodes``.

    Attributes:
        kernels: the operators of each kernel.
        operands: what was wired to bring each operand; nothing where another one's is shared.
        bringing: as ``operands``, but for operands that share them the same operators.
    """

    kernels: dict[Kernel, range] = field(default_factory=dict)
    operands: dict[Operand, range] = field(default_factory=dict)
    bringing: dict[Operand, range] = field(default_factory=dict)
