"""The names of the package, and subclasses of its operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import trio
from typing_extensions import override

import operators
import operators as op
from fabric import Program, Report, simulate
from fabric.extend import Ports


@dataclass(frozen=True)
class _Polite(op.Partition):
    for_ever: bool = False

    @override
    async def _route(self, ports: Ports, *others: Any) -> None:
        await trio.lowlevel.checkpoint()
        if self.for_ever:
            await trio.Event().wait()
        await super()._route(ports, *others)


def _routed(partition: op.Partition) -> Report:
    with Program("routed") as program:
        route = op.Flatten(0, 1)(op.Selectors(np.zeros((6, 1), int), width=1)())
        tiles = op.Flatten(0, 2)(op.LinearOffChipLoad(op.Tensor((96, 64)), tile=(16, 64))())
        op.Consumer()(*partition(tiles, route))
    return simulate(program, mode="timing")


def test_star_import_keeps_builtins() -> None:
    offered = set(dir(operators))

    assert {"Map", "Zip", "Broadcast", "INTEGER", "narrow"} <= offered
    assert not offered & {"map", "zip", "functions", "annotations"}


def test_subclass_of_an_operator_may_await_trio() -> None:
    plain, polite = _routed(op.Partition(1)), _routed(_Polite(1))
    stuck = _routed(_Polite(1, for_ever=True))

    assert ("completed", plain.cycles) == (polite.status, polite.cycles)
    assert stuck.error is not None
    assert "awaits something outside of the fabric" in stuck.error["message"]
