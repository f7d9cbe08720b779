"""Which operators are conducted: those that say so, and those that leave one that does as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from typing_extensions import override

import operators
from fabric import Program, Report, Stream, StreamType, simulate
from fabric.extend import Costs, Operator, Ports, Wiring
from fabric.graph.wiring.elaborate import Broadcast, elaborate
from fabric.graph.wiring.initial import Initial
from fabric.graph.wiring.operator import is_conducted
from fabric.timing.engine.checked_operator import CheckedUnit
from fabric.timing.engine.clock import VirtualClock
from fabric.timing.engine.ports import Ports as EnginePorts
from fabric.timing.machine.assembly import assemble
from fabric.timing.machine.machine import Machine
from fabric.timing.machine.users_parts import CheckedPorts
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


class Renamed(Map):
    """Nothing else is changed."""


class Doubled(Map):
    """Made in another way, with other costs and types that are the same."""

    def __init__(self) -> None:
        super().__init__(SiLU(), name="scaled")

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return super().infer(wiring, *inputs)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()


@dataclass(frozen=True)
class Preset(Map):
    """With another default, a field of its own and a method that nobody calls."""

    to_memory: bool = True
    note: str = ""

    def told(self) -> str:
        """Return the note."""
        return self.note


class Grandchild(Renamed):
    """Of one that changes nothing."""


class Rerun(Map):
    """With a ``run`` of its own."""

    @override
    async def run(self, ports: Ports) -> None:
        await super().run(ports)


class Vouched(Rerun):
    """The same, and the user promises to keep to the rules."""

    conducted: ClassVar[bool] = True


class Trusted(Vouched):
    """One that changes nothing of that."""


class Bent(Map):
    """With code of its own in an attribute that ``run`` may use."""

    @property
    @override
    def has_arithmetic(self) -> bool:
        return True


class Watcher(Map):
    """With code of its own in the place of a field."""

    @property
    def to_memory(self) -> bool:
        """Return what a field says otherwise."""
        return False


class Mixin:
    """A run, for any operator."""

    async def run(self, ports: Ports) -> None:
        """Do as the operator does."""
        await super().run(ports)  # type: ignore[misc]


class Mixed(Mixin, Map):
    """With the run of a class that is no operator."""


class Refused(Map):
    """As it is, and not conducted all the same."""

    conducted: ClassVar[bool] = False


def test_our_own_state_it() -> None:
    """Every operator is conducted, and its class says so."""
    offered = [getattr(operators, name) for name in dir(operators)]
    ours = [each for each in offered if _is_operator(each)]

    assert len(ours) > 20
    for kind in [*ours, Broadcast, Initial]:
        assert vars(kind)["conducted"] is True, kind


@pytest.mark.parametrize("kind", [Map, Renamed, Doubled, Preset, Grandchild, Vouched, Trusted])
def test_conducted(kind: type[Map]) -> None:
    """The unit and the ports are those of an operator of ours."""
    machine = _machine(_program(kind))

    assert is_conducted(kind)
    assert {type(unit) for unit in _machine(_program(Map)).units} == set(map(type, machine.units))
    assert {type(ports) for ports in machine.ports} == {EnginePorts}


@pytest.mark.parametrize("kind", [Rerun, Bent, Mixed, Refused])
def test_checked(kind: type[Map]) -> None:
    """What it does is looked at."""
    machine = _machine(_program(kind))
    (checked,) = (ports for ports in machine.ports if isinstance(ports, CheckedPorts))

    assert not is_conducted(kind)
    assert isinstance(checked.unit, CheckedUnit)


def test_code_in_the_place_of_a_field() -> None:
    """A default is no code, a property is."""
    assert is_conducted(Preset)
    assert not is_conducted(Watcher)


def test_same_report() -> None:
    """An operator's class does not show in what it does."""
    kinds = [Map, Renamed, Rerun, Vouched]
    reports = [_told(simulate(_program(kind))) for kind in kinds]

    assert reports[0][0]["status"] == "completed"
    assert [reports[0]] * len(kinds) == reports


def test_a_user_s_own_operator() -> None:
    """It may be conducted as well: the report is the same."""
    reports = []
    for kind in (_Relay, _Vouched):
        with Program("relay") as program:
            (stream,) = kind(name="relay")(LinearOffChipLoad(np.ones((64, 64)), tile=(16, 16))())
            LinearOffChipStore("y")(stream)
        reports.append(_told(simulate(program)))

    assert reports[0][0]["status"] == "completed"
    assert reports[0] == reports[1]


def test_a_failure_of_one() -> None:
    """What it raises is told with the line, as for any other."""
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
    """One that fails."""

    conducted: ClassVar[bool] = True

    @override
    async def run(self, ports: Ports) -> None:
        raise ZeroDivisionError("no")


@dataclass(frozen=True)
class _Relay(Operator):
    """Pass every element on and charge a cycle for it."""

    def __call__(self, source: Stream) -> tuple[Stream, ...]:
        return self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (inputs[0].type,)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            ports.unit.charge(1)


class _Vouched(_Relay):
    """The same, conducted."""

    conducted: ClassVar[bool] = True


def _program(kind: type[Map]) -> Program:
    with Program("scaled") as program:
        tiles = LinearOffChipLoad(np.ones((64, 64)), tile=(16, 16))()
        scaled = Doubled() if kind is Doubled else kind(SiLU(), name="scaled")
        LinearOffChipStore("y")(scaled(tiles))
    return program


def _machine(program: Program) -> Machine:
    clock = VirtualClock(lambda: None, lambda: None, 1)
    return assemble(
        elaborate(program), clock, functional=False, depths={}, hops={}, capacity_bytes=None
    )


def _told(report: Report) -> tuple[dict[str, Any], list[Any]]:
    """Return all that a report says but the host's time and the names of classes."""
    units = [replace(unit, operator="") for unit in report.units]
    return report.as_json() | {"wall_seconds": 0}, [*units, *report.channels_counters]


def _is_operator(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Operator)
