"""A program that stores a given array, to see what becomes of what it expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Program
from fabric.extend import Ports
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.verification import Verification
from fabric.runs.verify import verify
from tests.bases import Sink
from tests.fabric.scripted import Ticks

__all__ = ["Array", "Keep", "judged", "random_numbers", "storing"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Keep(Sink):
    """Store arrays, whatever comes in."""

    arrays: dict[str, Any]

    @override
    async def run(self, ports: Ports) -> None:
        while await ports.source.receive() is not None:
            pass
        ports.stored.update(self.arrays)


def storing(*, mode: str = "functional", **arrays: Any) -> Program:
    """Return a program that stores ``arrays`` and expects nothing yet."""
    with Program("keep", mode=mode) as program:
        Keep(arrays)(Ticks(1)())
    return program


def judged(program: Program, stored: Mapping[str, Any]) -> Verification:
    """Return what becomes of a program that has stored this."""
    verification = verify(elaborate(program), stored, {}, exact=False)
    assert verification is not None
    return verification


def random_numbers(
    random: np.random.Generator, dtype: np.dtype[Any]
) -> Callable[[tuple[int, ...]], Array]:
    """Return what draws float64 numbers of which ``dtype`` has the closest ones.

    Normal numbers for floats, whole ones for integers (ten times as large they still fit), 0 and
    1 for booleans.
    """

    def draw(shape: tuple[int, ...]) -> Array:
        normal = random.standard_normal(shape)
        if dtype.kind == "b":
            return (normal > 0).astype(np.float64)
        if dtype.kind == "u":
            return np.rint(np.abs(2 * normal))
        return np.rint(2 * normal) if dtype.kind == "i" else normal

    return draw
