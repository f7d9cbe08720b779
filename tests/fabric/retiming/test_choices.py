from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Program
from fabric.explore.sizing.running import recorded
from fabric.extend import Ports
from tests.bases import Passing
from tests.deadlock.parts import sink, source


@dataclass(frozen=True)
class Late(Passing):
    @override
    async def run(self, ports: Ports) -> None:
        await ports.clock.reach(ports.unit, 5)
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


def test_unit_that_waits_for_a_cycle_is_a_chooser() -> None:
    with Program("late") as program:
        sink("end", Late(name="late")(source("two", 2)))
    record = recorded(program, {}).record
    assert record.choosers == ("late",)
    assert not record.orders_are_fixed
