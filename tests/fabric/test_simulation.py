from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from typing_extensions import override

import fabric as fab
from fabric.extend import BoolType, Ports
from tests.fabric.scripted import Charge, Relay, Ticks
from tests.schedules import SCHEDULES, schedule


@dataclass(frozen=True)
class _Fails(Relay):
    at: int = 0

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.at):
            element = await ports.source.receive()
            assert element is not None
            await ports.sink.send(element)
            ports.unit.charge(3)
        raise KeyError("no such row")


@dataclass(frozen=True)
class _Waits(Relay):
    seconds: float | None = None

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            if self.seconds is None:
                await trio.Event().wait()
            else:
                await trio.sleep(self.seconds)
            await ports.sink.send(element)
            ports.unit.charge(1)


@dataclass(frozen=True)
class _InTasks(Relay):
    @override
    async def run(self, ports: Ports) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ports.source.receive)
            nursery.start_soon(ports.source.receive)


@dataclass(frozen=True)
class _GivesUp(Relay):
    @override
    async def run(self, ports: Ports) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await Relay.run(self, ports)


@dataclass(frozen=True)
class _LastWords(Relay):
    always: ClassVar[bool] = False

    @override
    async def run(self, ports: Ports) -> None:
        is_over = False
        try:
            await Relay.run(self, ports)
            is_over = not self.always
        finally:
            with trio.CancelScope(shield=True):
                if not is_over:
                    ports.unit.charge(7)
                    await ports.sink.send((True, 0))
                    await ports.source.receive()
                    raise ValueError("too late")


class _Talkative(_LastWords):
    always = True


def _ring(operator: type[Relay]) -> fab.Program:
    with fab.Program("ring") as program:
        loop = fab.Feedback(fab.StreamType((1,), BoolType()))
        stream: fab.Stream = loop
        for number in range(3):
            stream = operator(name=f"relay_{number}")(stream)
        loop.connect(stream)
    return program


class TestWiring:
    def test_broadcast_whose_name_is_taken_gets_a_number(self) -> None:
        with fab.Program("broadcast") as program:
            stream = Ticks(3, name="a")()
            Charge(name="broadcast_a_0")(stream)
            Charge()(stream)
        assert "broadcast_a_0_2" in {unit.name for unit in fab.simulate(program).units}


def _failing() -> fab.Program:
    with fab.Program("failing") as program:
        stream = Ticks(10)()
        stream = _Fails(at=4, name="late")(stream)
        stream = _Fails(at=2, name="early")(stream)
        Charge()(stream)
    return program


class TestErrors:
    def test_exception_in_an_operator_is_an_error_with_its_line(self, tmp_path: Path) -> None:
        report = fab.simulate(_failing(), log_dir=tmp_path)

        assert "error" == report.status
        assert 1 == report.exit_status
        assert report.error is not None
        file, line = report.error["file"], report.error["line"]
        assert __file__ == file
        raised = _line_of('raise KeyError("no such row")')
        assert (
            f"early: KeyError: 'no such row' ({__file__}:{raised}), at cycle 8, element 2"
            == report.error["message"]
        )
        assert _line_of('stream = _Fails(at=2, name="early")(stream)') == line
        assert report.log_dir is not None
        events = (Path(report.log_dir) / "events.jsonl").read_text().splitlines()
        assert "error" == json.loads(events[-1])["status"]

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_operator_that_cancels_its_wait_is_an_error(self, name: str | int) -> None:
        with schedule(name):
            message = _failed(_GivesUp(name="wrong"))
        assert (
            "wrong has cancelled its wait: expected an operator without timeouts, since cycles "
            "do not depend on the host's time"
        ) == message

    def test_functions_called_inside_of_trio_are_refused(self) -> None:
        with fab.Program("fine") as program:
            Charge()(Ticks(3)())

        async def host(function: Callable[[fab.Program], object]) -> str:
            with pytest.raises(fab.ConfigurationError) as caught:
                function(program)
            await trio.to_thread.run_sync(function, program)
            return caught.value.message

        for function in (fab.simulate, fab.size):
            assert (
                f"{function.__name__}() is called inside of trio: expected a thread of its own, "
                f"as in await trio.to_thread.run_sync({function.__name__}, program)"
            ) == trio.run(host, function)


def _failed(operator: Relay, **settings: Any) -> str:
    with fab.Program("failing") as program:
        Charge()(Relay()(operator(Ticks(10)())))
    report = fab.simulate(program, **settings)
    assert "error" == report.status
    assert report.error is not None
    assert __file__ == report.error["file"]
    assert _line_of("Charge()(Relay()(operator(Ticks(10)())))") == report.error["line"]
    message: str = report.error["message"]
    return message


class TestAwaited:
    @pytest.mark.parametrize("name", SCHEDULES)
    @pytest.mark.parametrize(
        ("seconds", "awaits"),
        [(None, "await trio.Event().wait()"), (3600.0, "await trio.sleep(self.seconds)")],
    )
    def test_foreign_await_is_an_error(
        self, name: str | int, seconds: float | None, awaits: str
    ) -> None:
        with schedule(name):
            message = _failed(_Waits(name="wrong", seconds=seconds))
        assert (
            "wrong: awaits something outside of the fabric: expected its channels only "
            f"({__file__}:{_line_of(awaits)}), at cycle 1, element 1"
        ) == message

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_operator_that_starts_tasks_is_an_error(self, name: str | int) -> None:
        with schedule(name):
            message = _failed(_InTasks(name="wrong"))
        line = _line_of("nursery.start_soon(ports.source.receive)", 2)
        assert (
            "wrong: starts a task: expected an operator that awaits its channels in turn "
            f"({__file__}:{line}), at cycle 0, element 0"
        ) == message


def _line_of(text: str, occurrence: int = 1) -> int:
    lines = Path(__file__).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.strip() == text][occurrence - 1]


class TestOutcomes:
    @pytest.mark.parametrize("name", SCHEDULES)
    def test_sends_at_the_end_change_no_report(self, name: str | int) -> None:
        def ring(operator: type[Relay]) -> dict[str, Any] | None:
            program = _ring(operator)
            with schedule(name):
                report = fab.simulate(program).deadlock
            assert report is not None
            for unit in report["loops"][0]["units"]:
                del unit["operator"], unit["line"]
            return report

        assert ring(Relay) == ring(_LastWords)

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_run_ends_despite_waits_at_its_end(self, name: str | int) -> None:
        program = _ring(_Talkative)
        with schedule(name):
            assert "deadlock" == fab.simulate(program).status
