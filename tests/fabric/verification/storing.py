"""Programs that store given arrays, and their verification."""

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

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Keep(Sink):
    arrays: dict[str, Any]

    @override
    async def run(self, ports: Ports) -> None:
        while await ports.source.receive() is not None:
            pass
        ports.stored.update(self.arrays)


def storing(*, mode: str = "functional", **arrays: Any) -> Program:
    with Program("keep", mode=mode) as program:
        Keep(arrays)(Ticks(1)())
    return program


def judged(program: Program, stored: Mapping[str, Any]) -> Verification:
    verification = verify(elaborate(program), stored, {}, exact=False)
    assert verification is not None
    return verification


def random_numbers(
    random: np.random.Generator, dtype: np.dtype[Any]
) -> Callable[[tuple[int, ...]], Array]:
    def draw(shape: tuple[int, ...]) -> Array:
        normal = random.standard_normal(shape)
        if dtype.kind == "b":
            return (normal > 0).astype(np.float64)
        if dtype.kind == "u":
            return np.rint(np.abs(2 * normal))
        return np.rint(2 * normal) if dtype.kind == "i" else normal

    return draw
