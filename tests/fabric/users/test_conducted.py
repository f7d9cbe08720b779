"""Trusted operators: classes of the package, and subclasses without a ``run`` of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fabric import Program, Report, Stream, StreamType, simulate
from fabric.extend import Operator, Ports, Wiring
from fabric.graph.wiring.operator import is_conducted
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


class Renamed(Map):
    pass


class Rerun(Map):
    @override
    async def run(self, ports: Ports) -> None:
        await super().run(ports)


class Vouched(Rerun):
    conducted = True


class Bent(Map):
    @property
    @override
    def has_arithmetic(self) -> bool:
        return True


class Refused(Map):
    conducted: ClassVar[bool] = False


class Runs:
    async def run(self, ports: Ports) -> None:
        await super().run(ports)  # type: ignore[misc]


class Mixed(Runs, Map):
    pass


def test_operator_class_is_conducted_unless_it_has_code_of_its_own() -> None:
    kinds = [Map, Renamed, Vouched, Rerun, Bent, Refused, Mixed]
    assert [True, True, True, False, False, False, False] == list(map(is_conducted, kinds))


def test_report_does_not_depend_on_the_class() -> None:
    kinds = [Map, Renamed, Rerun, Vouched]
    reports = [_told(simulate(_program(kind))) for kind in kinds]

    assert reports[0][0]["status"] == "completed"
    assert [reports[0]] * len(kinds) == reports


def test_report_of_a_trusted_users_operator_is_the_same() -> None:
    reports = []
    for kind in (_Relay, _Vouched):
        with Program("relay") as program:
            (stream,) = kind(name="relay")(LinearOffChipLoad(np.ones((64, 64)), tile=(16, 16))())
            LinearOffChipStore("y")(stream)
        reports.append(_told(simulate(program)))

    assert reports[0][0]["status"] == "completed"
    assert reports[0] == reports[1]


def test_error_of_a_trusted_operator_has_its_line() -> None:
    with Program("broken") as program:
        LinearOffChipStore("y")(
            _Broken(SiLU(), name="broken")(LinearOffChipLoad(np.ones((16, 16)), tile=(16, 16))())
        )
    report = simulate(program)

    line = _Broken.run.__code__.co_firstlineno + 2
    assert report.status == "error"
    assert report.error is not None
    told = f"broken: ZeroDivisionError: no ({__file__}:{line}), at cycle "
    assert told in report.error["message"]


class _Broken(Map):
    conducted = True

    @override
    async def run(self, ports: Ports) -> None:
        raise ZeroDivisionError("no")


@dataclass(frozen=True)
class _Relay(Operator):
    def __call__(self, source: Stream) -> tuple[Stream, ...]:
        return self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (inputs[0].type,)

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            ports.unit.charge(1)


class _Vouched(_Relay):
    conducted = True


def _program(kind: type[Map]) -> Program:
    with Program("scaled") as program:
        tiles = LinearOffChipLoad(np.ones((64, 64)), tile=(16, 16))()
        LinearOffChipStore("y")(kind(SiLU(), name="scaled")(tiles))
    return program


def _told(report: Report) -> tuple[dict[str, Any], list[Any]]:
    units = [replace(unit, operator="") for unit in report.units]
    return report.as_json() | {"wall_seconds": 0}, [*units, *report.channels_counters]
