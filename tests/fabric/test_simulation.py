"""Runs: outcomes, errors in users' code, what is left over, and the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import trio
from typing_extensions import override

from fabric import (
    ConfigurationError,
    Feedback,
    Hardware,
    Program,
    ProgramError,
    Report,
    Stream,
    StreamType,
    Tile,
    hardware_scope,
    simulate,
    size,
)
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import BoolType, FixedDescription, Ports
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.place import Place
from fabric.timing.engine.ports import Stored
from fabric.timing.engine.unit import START, ComputeUnit, MemoryUnit, Reading, as_cycle
from operators import Consumer, Initial, Zip
from tests.fabric.scripted import Charge, Relay, Stage, Ticks
from tests.schedules import SCHEDULES, schedule


@dataclass(frozen=True)
class _Fails(Relay):
    """Raise at element ``at``."""

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
class _Stops(Charge):
    """Take ``after`` elements and end."""

    after: int = 0

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.after):
            await ports.source.receive()


@dataclass(frozen=True)
class _Works(Relay):
    """Charge ``cycles`` for every element."""

    cycles: Any = 1

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            ports.unit.charge(self.cycles)


@dataclass(frozen=True)
class _Sends(Relay):
    """Send ``element`` instead of what comes."""

    element: Any = None

    @override
    async def run(self, ports: Ports) -> None:
        while await ports.source.receive() is not None:
            await ports.sink.send(self.element)


@dataclass(frozen=True)
class _RunsOn(Relay):
    """Pass on what comes, also the None at the end."""

    @override
    async def run(self, ports: Ports) -> None:
        while True:
            element: Any = await ports.source.receive()
            await ports.sink.send(element)


@dataclass(frozen=True)
class _Waits(Relay):
    """Await something else than the fabric before every element."""

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
    """Receive in tasks of its own."""

    @override
    async def run(self, ports: Ports) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ports.source.receive)
            nursery.start_soon(ports.source.receive)


@dataclass(frozen=True)
class _GivesUp(Relay):
    """Wait for each element in a scope that is cancelled."""

    @override
    async def run(self, ports: Ports) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await Relay.run(self, ports)


@dataclass(frozen=True)
class _LastWords(Relay):
    """Send, work and wait all the same when the run ends, shielded from that."""

    always: ClassVar[bool] = False
    """Also where the operator has ended by itself, as where a remedy is tried."""

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
    """The same, however the run ends."""

    always = True


def _ring(operator: type[Relay]) -> Program:
    """Return three operators in a ring without a first element."""
    with Program("ring") as program:
        loop = Feedback(StreamType((1,), BoolType()))
        stream: Stream = loop
        for number in range(3):
            stream = operator(name=f"relay_{number}")(stream)
        loop.connect(stream)
    return program


def _without_host(report: Report) -> Report:
    return replace(report, wall_seconds=None, log_dir=None)


class TestWiring:
    def test_order(self) -> None:
        """Sources when they are first read, what goes in front of feedbacks, Broadcasts last."""
        with (
            hardware_scope(Hardware(hbm=FixedDescription(bytes_per_cycle=5))),
            Program("o") as made,
        ):
            late, first = Ticks(3)(), Ticks(3)()
            one, two, three = (Feedback(first.type) for _ in range(3))
            pairs = Zip(name="initial_2")(first, one)
            b = Relay(name="b")(late)
            one.connect(b)
            two.connect(b)
            a = Relay(name="a")(two)
            three.connect(a)
            Consumer()(pairs)
            Consumer()(Relay(name="c")(three))
        plan = elaborate(made, {one: 2, two: 0, three: 1})
        assert [node.name for node in plan.nodes] == [
            "ticks_2", "initial_2", "ticks_1", "b", "a", "consumer_1", "c", "consumer_2",
            "initial_1", "initial_3", "broadcast_b_0",
        ]  # fmt: skip
        assert [node.index for node in plan.nodes] == [*range(11)]
        assert [edge.name for edge in plan.edges] == [
            "ticks_2.0 -> initial_2.0", "initial_2.0 -> consumer_1.0", "ticks_1.0 -> b.0",
            "b.0 -> broadcast_b_0.0", "broadcast_b_0.0 -> a.0", "broadcast_b_0.1 -> initial_1.0",
            "a.0 -> initial_3.0", "c.0 -> consumer_2.0", "initial_1.0 -> initial_2.1",
            "initial_3.0 -> c.0",
        ]  # fmt: skip
        assert [edge.key for edge in plan.edges[3:5]] == ["broadcast_b_0.0", "a.0"]
        fronts = [node.operator for node in plan.nodes[-3:-1]]
        assert fronts == [Initial(True, 2, keep_length=True), Initial(True, 1, keep_length=True)]
        assert plan.peak_bytes_per_cycle == 5
        assert not plan.clients
        assert not plan.shares_links
        # Nothing of it stays in the program.
        assert "initial_1" not in [node.name for node in elaborate(made).nodes]

    def test_unread_output(self) -> None:
        """A primary output that nobody reads is an error at the line that wired it."""
        with Program("unread") as program:
            Ticks(3)()

        with pytest.raises(
            ProgramError,
            match=r"test_simulation\.py:\d+: ticks_1: output 0 \(\[3\] of bool\) is read by no "
            r"operator: expected a reader, such as a store$",
        ):
            simulate(program)

    def test_empty_program(self) -> None:
        """A program without operators cannot run."""
        with Program("empty") as program:
            pass

        with pytest.raises(
            ProgramError, match=r"program 'empty' has no operators: expected at least one$"
        ):
            simulate(program)

    def test_stream_of_another_program(self) -> None:
        """A stream belongs to the program it was made in."""
        with Program("first"):
            stream = Ticks(3)()
        with Program("second") as program:
            Charge()(stream)

        with pytest.raises(
            ProgramError,
            match=r"charge_1 reads ticks_1\.0 \[3\] of bool, a stream of another program: "
            r"expected one made in 'second'$",
        ):
            simulate(program)

    def test_feedback_without_connection(self) -> None:
        """A feedback has to be connected."""
        with Program("open") as program:
            Charge()(Feedback(StreamType((3,), BoolType())))

        with pytest.raises(
            ProgramError,
            match=r"Feedback of \[3\] of bool is used but never connected: "
            r"expected connect\(stream\)$",
        ):
            simulate(program)

    def test_operator_outside_a_program(self) -> None:
        """An operator is called inside ``with Program(...)``."""
        with pytest.raises(
            ProgramError,
            match=r"Ticks is called outside a program: expected `with Program\(\.\.\.\)`$",
        ):
            Ticks(3)()

    def test_something_else_than_a_stream(self) -> None:
        """An input is a stream."""
        not_a_stream: Any = 3
        with (
            Program("wrong"),
            pytest.raises(ProgramError, match=r"Charge input 0 is 3: expected a stream$"),
        ):
            Charge()(not_a_stream)

    def test_name_twice(self) -> None:
        """Names are unique; both lines are named."""
        with Program("twice"):
            stream = Ticks(3, name="a")()
            first = _line_of('stream = Ticks(3, name="a")()')
            with pytest.raises(ProgramError) as caught:
                Charge(name="a")(stream)
        assert caught.value.message == (
            f"Charge is named 'a', as the operator at {__file__}:{first} is: "
            "expected a name not in use yet"
        )
        assert (__file__, first + 3) == (caught.value.file, caught.value.line)

    def test_name_that_would_be_made(self) -> None:
        """A name that the program gave is passed over, rather than blamed on who has none."""
        with Program("made") as program:
            Charge()(Relay()(Relay(name="relay_1")(Ticks(3)())))
        assert ["ticks_1", "relay_1", "relay_2", "charge_1"] == [
            node.name for node in program.nodes
        ]

    def test_name_of_a_broadcast(self) -> None:
        """An inferred Broadcast gets a number if an operator has its name."""
        with Program("broadcast") as program:
            stream = Ticks(3, name="a")()
            Charge(name="broadcast_a_0")(stream)
            Charge()(stream)
        assert "broadcast_a_0_2" in {unit.name for unit in simulate(program).units}

    def test_no_name(self) -> None:
        """An empty name is none."""
        with Program("empty"), pytest.raises(ProgramError, match=r"Ticks is named '': expected"):
            Ticks(3, name="")()

    def test_extra_field_twice(self) -> None:
        """A further field of the report is computed by one callable; both lines are named."""
        with Program("extra") as program:
            Charge()(Ticks(3)())
        program.extra["one"] = lambda: 1
        first = _line_of('program.extra["one"] = lambda: 1')
        with pytest.raises(ProgramError) as caught:
            program.extra["one"] = lambda: 2
        assert f"the first is at {__file__}:{first}: expected" in caught.value.message
        assert {"one": 1} == simulate(program).extra


def _failing() -> Program:
    with Program("failing") as program:
        stream = Ticks(10)()
        stream = _Fails(at=4, name="late")(stream)
        stream = _Fails(at=2, name="early")(stream)
        Charge()(stream)
    return program


class TestErrors:
    def test_exception_in_an_operator(self, tmp_path: Path) -> None:
        """Operator, place, cycle and element are named; log and counters are written.

        The second element is there at cycle 5 and takes 3 cycles.
        """
        report = simulate(_failing(), log_dir=tmp_path)

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
    def test_which_error_is_reported(self, name: str | int) -> None:
        """Of two operators that fail the one at the earlier cycle is blamed, always."""
        with schedule(name):
            report = _without_host(simulate(_failing()))

        assert _without_host(simulate(_failing())) == report

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_own_cancellation(self, name: str | int) -> None:
        """An operator that cancels its own waits is told so."""
        with schedule(name):
            message = _failed(_GivesUp(name="wrong"))
        assert (
            "wrong has cancelled a wait of its own: expected none, such as by a timeout: the "
            "host's time says nothing about cycles"
        ) == message

    def test_inside_trio(self) -> None:
        """A program that uses trio itself is told where to run a simulation."""
        with Program("fine") as program:
            Charge()(Ticks(3)())

        async def host(function: Callable[[Program], object]) -> str:
            with pytest.raises(ConfigurationError) as caught:
                function(program)
            await trio.to_thread.run_sync(function, program)
            return caught.value.message

        for function in (simulate, size):
            assert (
                f"{function.__name__}() is called inside of trio: expected a thread of its own, "
                f"as in await trio.to_thread.run_sync({function.__name__}, program)"
            ) == trio.run(host, function)


def _failed(operator: Relay, **settings: Any) -> str:
    """Return the message of a run in which ``operator``, named wrong, fails."""
    with Program("failing") as program:
        Charge()(Relay()(operator(Ticks(10)())))
    report = simulate(program, **settings)
    assert "error" == report.status
    assert report.error is not None
    assert __file__ == report.error["file"]
    assert _line_of("Charge()(Relay()(operator(Ticks(10)())))") == report.error["line"]
    message: str = report.error["message"]
    return message


class TestCharged:
    @pytest.mark.parametrize(
        ("cycles", "message"),
        [
            (1.5, "1.5 cycles are charged: expected an integer"),
            (2.0, "2.0 cycles are charged: expected an integer"),
            (None, "None cycles are charged: expected an integer"),
            (-1, "-1 cycles are charged: expected at least 0"),
            (np.int64(-1), "-1 cycles are charged: expected at least 0"),
        ],
    )
    def test_no_number_of_cycles(self, cycles: Any, message: str) -> None:
        """What is no whole number of cycles is refused where it is charged."""
        line = _line_of("ports.unit.charge(self.cycles)")
        assert (f"wrong: {message} ({__file__}:{line}), at cycle 1, element 1") == _failed(
            _Works(name="wrong", cycles=cycles)
        )

    def test_integers_of_numpy(self) -> None:
        """They are as good as Python's, and the clock does not wrap where they would."""
        reports = []
        for cycles in (100, np.int8(100), np.uint64(100)):
            with Program("same") as program:
                Charge()(_Works(cycles=cycles)(Ticks(10)()))
            reports.append(_without_host(simulate(program)))

        assert 1001 == reports[0].cycles
        assert reports[1] == reports[0] == reports[2]
        assert {int} == {type(unit.busy_cycles) for each in reports for unit in each.units}
        assert {int} == {type(each.cycles) for each in reports}

    def test_no_number_of_operations(self) -> None:
        """Nor does a unit compute a part of an operation."""
        unit = ComputeUnit("unit", 0, Place("p.py", 1), flops_per_cycle=4, bytes_per_cycle=64)
        part: Any = 1.5
        with pytest.raises(TypeError) as caught:
            unit.compute(part)

        assert "1.5 FLOPs are computed: expected an integer" == str(caught.value)
        for number in (-1, np.int64(-1)):
            with pytest.raises(ValueError, match=r"^-1 FLOPs are computed: expected at least 0$"):
                unit.compute(number)  # type: ignore[arg-type]
        assert (0, 0) == (unit.compute(0), unit.flops)
        assert (2, 5) == (unit.compute(np.uint8(5)), unit.flops)  # type: ignore[arg-type]
        assert int is type(unit.flops)

    def test_a_unit_by_hand(self) -> None:
        """Its clock moves by what is charged and waited for; a port takes whole cycles."""
        unit = MemoryUnit("unit", 0, Place("p.py", 1), bytes_per_cycle=64)
        charged: list[Any] = [0, np.int8(100), 1, np.int8(100)]
        for cycles in charged:
            unit.charge(cycles)
        refused: list[Any] = [-1, np.int64(-1)]
        for cycles in refused:
            with pytest.raises(ValueError, match=r"^-1 cycles are charged: expected at least 0$"):
                unit.charge(cycles)
        unit.answered(250)
        unit.answered(250)
        assert (unit.now, unit.busy_cycles, unit.off_chip_cycles) == (250, 201, 49)
        assert {int} == {type(unit.now), type(unit.busy_cycles)}
        assert [unit.transfer(size) for size in (0, 1, 64, 65, 128)] == [0, 1, 1, 2, 2]

    def test_readings(self) -> None:
        """A cycle knows of which reading it is, and how many cycles after that."""
        reading = Reading.at(10, 7)
        found: list[Any] = [
            reading,
            reading + 3,
            2 + reading,
            reading - 4,
            reading + 3 - np.int64(1),
            START,
        ]
        assert [(int(each), each.order, each.later_cycles) for each in found] == [
            (10, 7, 0), (13, 7, 3), (12, 7, 2), (6, 7, -4), (12, 7, 2), (0, -1, 0),
        ]  # fmt: skip
        assert as_cycle(found[1]) is found[1]
        assert (as_cycle(np.int8(3)), type(as_cycle(np.int8(3)))) == (3, int)
        with pytest.raises(TypeError):
            as_cycle(1.5)

    def test_who_writes_last(self) -> None:
        """Of units that store in one place, the later clock stays, of equal ones the higher."""
        place = Place("p.py", 1)
        units = [MemoryUnit(f"u{each}", each, place, bytes_per_cycle=1) for each in range(3)]
        stored = Stored()
        for number, now, where, stays in (
            (1, 5, 3, True), (0, 5, 3, False), (1, 5, 3, True), (2, 5, 3, True), (2, 4, 3, False),
            (0, 6, 3, True), (2, 5, 3, False), (2, 5, 4, True), (0, 0, 5, True),
        ):  # fmt: skip
            units[number].now = now
            assert stored.stays("y", where, units[number]) is stays
        assert stored.stays("x", 3, units[0])


TUPLE = ": expected a tuple (value, level of the stop)"


class TestSent:
    @pytest.mark.parametrize(
        ("element", "found"),
        [
            (None, "is None" + TUPLE),
            (True, "is True" + TUPLE),
            ((True, 0, 0), "is (True, 0, 0)" + TUPLE),
            ((True, None), "has a stop of level None: expected an integer"),
            (Tile(2, 3, np.dtype(np.int8)), "is Tile(2x3 int8)" + TUPLE),
            (np.zeros(2), "is an array of 2 float64" + TUPLE),
        ],
    )
    @pytest.mark.parametrize("traced", [False, True])
    def test_first_element(self, element: Any, found: str, traced: bool, tmp_path: Path) -> None:
        """The one who sends it is blamed, not the one who reads it."""
        settings = {"trace": TraceOptions(), "log_dir": tmp_path} if traced else {}
        line = _line_of("await ports.sink.send(self.element)")
        assert (
            f"wrong: element 0 of wrong.0 -> relay_1.0 {found} ({__file__}:{line}), at cycle 1"
        ) == _failed(_Sends(name="wrong", element=element), **settings)

    def test_behind_an_assumed_shape(self) -> None:
        """Also where elements are counted on their way."""
        with Program("failing") as program:
            Charge()(_Sends(name="wrong")(Ticks(10)()).assume(10))
        report = simulate(program)

        line = _line_of("await ports.sink.send(self.element)")
        assert report.error is not None
        assert (
            f"wrong: element 0 of wrong.0 -> charge_1.0 is None{TUPLE} ({__file__}:{line}), "
            "at cycle 1"
        ) == report.error["message"]

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_none_after_the_end(self, name: str | int) -> None:
        """None looks like the end: it is refused wherever it comes."""
        with schedule(name):
            message = _failed(_RunsOn(name="wrong"))
        line = _line_of("await ports.sink.send(element)", 3)
        assert (
            f"wrong: element 10 of wrong.0 -> relay_1.0 is None{TUPLE} ({__file__}:{line}), "
            "at cycle 10"
        ) == message


class TestAwaited:
    @pytest.mark.parametrize("name", SCHEDULES)
    @pytest.mark.parametrize(
        ("seconds", "awaits"),
        [(None, "await trio.Event().wait()"), (3600.0, "await trio.sleep(self.seconds)")],
    )
    def test_something_else(self, name: str | int, seconds: float | None, awaits: str) -> None:
        """The run ends at once, with the line that waits for what never comes."""
        with schedule(name):
            message = _failed(_Waits(name="wrong", seconds=seconds))
        assert (
            "wrong: awaits something outside of the fabric: expected its channels only "
            f"({__file__}:{_line_of(awaits)}), at cycle 1, element 1"
        ) == message

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_in_tasks_of_its_own(self, name: str | int) -> None:
        """A unit has one task: others would wait in its name."""
        with schedule(name):
            message = _failed(_InTasks(name="wrong"))
        line = _line_of("nursery.start_soon(ports.source.receive)")
        assert (
            "wrong: starts a task of its own: expected one that awaits its channels in turn "
            f"({__file__}:{line}), at cycle 0, element 0"
        ) == message

    def test_beside_a_failure(self) -> None:
        """A unit that waits for ever does not keep another one's error from being told."""
        with Program("failing") as program:
            stream = Ticks(10)()
            Charge()(_Waits()(stream))
            Charge()(_Fails(name="early")(stream))
        report = simulate(program)

        assert report.error is not None
        line = _line_of('raise KeyError("no such row")')
        assert (
            f"early: KeyError: 'no such row' ({__file__}:{line}), at cycle 0, element 0"
            == report.error["message"]
        )

    def test_a_turn_for_the_others(self) -> None:
        """Letting trio run something else is no wait."""
        with Program("polite") as program:
            Charge()(_Waits(name="same", seconds=0)(Ticks(10)()))
        polite = simulate(program)
        with Program("polite") as program:
            Charge()(Relay(name="same")(Ticks(10)()))

        assert ("completed", simulate(program).cycles) == (polite.status, polite.cycles)


def _line_of(text: str, occurrence: int = 1) -> int:
    lines = Path(__file__).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.strip() == text][occurrence - 1]


class TestOutcomes:
    def test_left_over_elements(self) -> None:
        """An operator that ends early does not hold up its producer; what is left is told."""
        with Program("left") as program:
            _Stops(after=3)(Ticks(10)())
        report = simulate(program)

        assert "completed" == report.status
        assert (
            "FAB-D004: ticks_1.0 -> stops_1.0: 7 elements were left over: stops_1 had ended",
        ) == report.warnings
        assert 0 == report.exit_status

    def test_deadlock(self) -> None:
        """A ring without an initial element: exit 3, and who waits for what since when."""
        with Program("ring") as program:
            loop = Feedback(StreamType((1,), BoolType()))
            stream = Relay(name="a")(loop)
            loop.connect(Relay(name="b")(stream))
        report = simulate(program)

        assert "deadlock" == report.status
        assert 3 == report.exit_status
        assert report.deadlock is not None

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_last_words(self, name: str | int) -> None:
        """What operators do while a run is ended does not change what is said about it."""

        def ring(operator: type[Relay]) -> dict[str, Any] | None:
            program = _ring(operator)
            with schedule(name):
                report = simulate(program).deadlock
            assert report is not None
            for unit in report["loops"][0]["units"]:
                del unit["operator"], unit["line"]
            return report

        assert ring(Relay) == ring(_LastWords)

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_talkative(self, name: str | int) -> None:
        """A run ends while operators wait again that have been ended already."""
        program = _ring(_Talkative)
        with schedule(name):
            assert "deadlock" == simulate(program).status

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_any_schedule(self, name: str | int) -> None:
        """One program, one report, whatever trio runs first."""

        def build() -> Program:
            with Program("graph") as program:
                left, right = Stage(50, outputs=2, work_cycles=(1, 5, 2))()
                (left,) = Stage(50, work_cycles=(3, 1))(left)
                (joined,) = Stage(50, works_first=True)(left, right)
                Charge()(joined)
            return program

        with schedule(name):
            report = simulate(build())

        assert _without_host(simulate(build())) == _without_host(report)


class TestLog:
    def test_events(self, tmp_path: Path) -> None:
        """The story is told in the order of the cycles, and says nothing of wall time."""
        with Program("short") as program:
            Charge()(Ticks(3)())
        report = simulate(program, log_dir=tmp_path, parameters={"n": 3}, program_file="p.py")

        assert str(tmp_path / "short-1") == report.log_dir
        assert (
            '{"event": "run_started", "level": "info", "run": "short", "cycle": 0, '
            '"program": "p.py", "parameters": {"n": 3}, "mode": "timing", "operators": 2, '
            '"channels": 1}\n'
            '{"event": "operator_finished", "level": "debug", "run": "short", "cycle": 3, '
            '"operator": "ticks_1", "elements": 0, '
            '"busy_cycles": 3, "empty_cycles": 0, "full_cycles": 0, "credit_cycles": 0, '
            '"hbm_cycles": 0, "capacity_cycles": 0}\n'
            '{"event": "operator_finished", "level": "debug", "run": "short", "cycle": 4, '
            '"operator": "charge_1", "elements": 3, '
            '"busy_cycles": 3, "empty_cycles": 1, "full_cycles": 0, "credit_cycles": 0, '
            '"hbm_cycles": 0, "capacity_cycles": 0}\n'
            '{"event": "run_ended", "level": "info", "run": "short", "cycle": 4, '
            '"status": "completed", "verified": null, "cycles": 4, "elements": 3}\n'
        ) == (tmp_path / "short-1" / "events.jsonl").read_text()

    def test_second_run(self, tmp_path: Path) -> None:
        """Every run has a folder of its own."""
        for _ in range(2):
            with Program("short") as program:
                Charge()(Ticks(3)())
            report = simulate(program, log_dir=tmp_path)

        assert str(tmp_path / "short-2") == report.log_dir
