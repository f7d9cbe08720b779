"""Classes that are trusted: the package's own, and subclasses that do not override ``run``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fabric import Program, Report, simulate
from fabric.extend import Ports
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
    reports = [_figures(simulate(_program(kind))) for kind in kinds]

    assert reports[0][0]["status"] == "completed"
    assert [reports[0]] * len(kinds) == reports


def _program(kind: type[Map]) -> Program:
    with Program("scaled") as program:
        tiles = LinearOffChipLoad(np.ones((64, 64)), tile=(16, 16))()
        LinearOffChipStore("y")(kind(SiLU(), name="scaled")(tiles))
    return program


def _figures(report: Report) -> tuple[dict[str, Any], list[Any]]:
    units = [replace(unit, operator="") for unit in report.units]
    return report.as_json() | {"wall_seconds": 0}, [*units, *report.channels_counters]
