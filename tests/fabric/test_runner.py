"""The runner: every way a run can end, told in one word, whoever runs it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from typing_extensions import override

from fabric import Program, Stream
from fabric.extend import Ports
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.causes import Operation
from fabric.messages.telling.place import Place
from fabric.timing.engine.clock import VirtualClock
from fabric.timing.engine.unit import Unit, Wait
from fabric.timing.machine.runner import Runner, unawaited
from tests.deadlock.parts import Script, feedback, sink
from tests.fabric.scripted import Stage, Ticks

BEAT_CYCLES = 10


def _ring(steps: tuple[str, ...]) -> Program:
    """Two units that follow ``steps``, each reading the other."""
    loop = feedback(100)
    with Program("ring", channel_depth=2) as program:
        stream: Stream = loop
        for number in range(2):
            (stream,) = Script(steps, rounds=100, counts=(100,), name=f"unit_{number}")(stream)
        loop.connect(stream)
    return program


def _pipe(*, broken: bool = False) -> Program:
    with Program("pipe") as program:
        ticks = Ticks(100)()
        if broken:
            (ticks,) = Script(("r0", "s0", "s1"), rounds=100, counts=(100,), name="broken")(ticks)
        sink("y", ticks)
    return program


def _runner(program: Program, on_heartbeat: Callable[[], None] = lambda: None) -> Runner:
    return Runner(
        elaborate(program),
        functional=False,
        depths={},
        hops={},
        capacity_bytes=None,
        on_heartbeat=on_heartbeat,
        beat_cycles=BEAT_CYCLES,
    )


def test_completed() -> None:
    """All operators have ended."""
    runner = _runner(_pipe())

    assert runner.run(lambda: "livelock") == "completed"
    assert runner.machine.failures.first is None


def test_deadlock() -> None:
    """Nothing can happen any more, and nobody has given up."""
    assert _runner(_ring(("r0", "s0"))).run(lambda: None) == "deadlock"


@pytest.mark.parametrize("ending", ["livelock", "interrupted"])
def test_given_up(ending: str) -> None:
    """Who stops a run says what that means."""
    runner = _runner(_ring(("r0", "s0")))

    assert runner.run(lambda: ending) == ending  # type: ignore[arg-type,return-value]


def test_error() -> None:
    """An operator that failed counts for more than why the others stopped."""
    runner = _runner(_pipe(broken=True))

    assert runner.run(lambda: "livelock") == "error"
    assert runner.machine.failures.first is not None
    assert runner.machine.failures.nodes == {1}


def test_released() -> None:
    """What can change a rest is asked at each, until it says no."""
    asked = []

    def released() -> bool:
        asked.append(runner.machine.elements)
        for channel in runner.machine.channels:
            channel.grow(1)
        return len(asked) < 3

    runner = Runner(
        elaborate(_ring(("s0", "s0", "s0", "r0"))),
        functional=False,
        depths={},
        hops={},
        capacity_bytes=None,
        on_heartbeat=lambda: None,
        beat_cycles=BEAT_CYCLES,
        released=released,
    )

    assert runner.run(lambda: None) == "deadlock"
    assert len(asked) == 3
    assert asked[0] < asked[2]


def test_beside() -> None:
    """Tasks beside the operators end with them; what comes first is called in trio."""
    seen = []

    async def waits_for_ever() -> None:
        seen.append("beside")
        try:
            await trio.sleep_forever()
        finally:
            seen.append("ended")

    def starts() -> None:
        assert trio.lowlevel.in_trio_run()
        seen.append("start")

    _runner(_pipe()).run(lambda: None, on_start=starts, beside=[waits_for_ever])
    assert seen == ["start", "beside", "ended"]


class _Reaching(Ticks):
    """Wait for cycles 7, 14 and so on, up to 98, before it sends."""

    @override
    async def run(self, ports: Ports) -> None:
        for cycle in range(7, 99, 7):
            await ports.clock.reach(ports.unit, cycle)
        await super().run(ports)


def test_heartbeats() -> None:
    """There is one at the first rest in each tenth of a hundred cycles but the first."""
    beats = []
    with Program("reaching") as program:
        sink("y", _Reaching(1)())
    runner = _runner(program, lambda: beats.append(runner.machine.clock.now))
    assert runner.run(lambda: None) == "completed"
    # 70 is the first of its ten itself; there is none in those from 10 to 13, or from 30 to 34.
    assert beats == [14, 21, 35, 42, 56, 63, 70, 84, 91]


def test_paces() -> None:
    """Units that never rest do so at the first credit they need in each seven cycles.

    A slot is free again two cycles after it was filled: the first unit asks for one in every second
    cycle, the other in every twelfth. The slower one decides when both look again.
    """
    seen = []
    with Program("two", channel_depth=1) as program:
        sink("x", Ticks(20)())
        sink("y", Stage(9, work_cycles=(12,))()[0])
    runner = _runner(program)
    clock = runner.machine.clock
    first, other = (
        next(unit for unit in runner.machine.units if unit.name.startswith(name))
        for name in ("ticks", "stage")
    )
    clock.watch(lambda: seen.append((clock.now, first.now, other.now)), 7)
    assert runner.run(lambda: None) == "completed"
    assert seen[:5] == [(0, 7, 12), (7, 15, 24), (14, 21, 36), (21, 29, 48), (28, 35, 60)]
    assert [clock.pace_after(cycle) for cycle in (0, 6, 7, 8)] == [7, 7, 14, 14]


NEVER = 1 << 62


class _Moving:
    """A memory that is silent up to cycle 10, and links with events in 5, 10 and 11."""

    silent_until = 10
    final_cycle = None

    def __init__(self, clock: VirtualClock, unit: Unit, *, pending: bool) -> None:
        self.pending = pending
        self.told: list[tuple[object, ...]] = []
        self._clock, self._unit = clock, unit
        self._events = [5, 10, 11, 1 << 63]

    @property
    def next_cycle(self) -> int:
        return self._events[0]

    def carry_on(self, horizon_cycle: int) -> None:
        self.told.append(("links", self._clock.now, horizon_cycle))
        del self._events[0]

    def answer(self, horizon_cycle: int) -> list[Unit]:
        self.told.append(("memory", self._clock.now, horizon_cycle))
        return [self._unit] if horizon_cycle == NEVER else []


@pytest.mark.parametrize(
    ("foresees", "pending", "bound", "told"),
    [
        (True, True, None, [
            ("links", 5, 10), ("links", 10, 10), ("memory", 10, 11), ("links", 11, 10),
            ("memory", 11, NEVER), 20,
        ]),
        (False, True, None, [
            ("memory", 0, 5), ("links", 5, 0), ("memory", 5, 10), ("links", 10, 0),
            ("memory", 10, 11), ("links", 11, 0), ("memory", 11, NEVER), 20,
        ]),
        (True, False, None, [("links", 5, 99), ("links", 10, 99), ("links", 11, 99), "rest", 11]),
        (True, False, 50, [("links", 5, 50), ("links", 10, 50), ("links", 11, 50), "rest", 11]),
        (True, True, 7, [
            ("links", 5, 7), ("links", 10, 7), ("memory", 10, 11), ("links", 11, 7),
            ("memory", 11, NEVER), 20,
        ]),
    ],
)  # fmt: skip
def test_links_and_memory_take_turns(
    foresees: bool, pending: bool, bound: int | None, told: list[object]
) -> None:
    """Who comes first goes first; links may go on alone while the memory is silent.

    Not beyond a heartbeat, in 100, or the cycle up to which units keep pace.
    """
    rests: list[object] = []
    clock = VirtualClock(lambda: rests.append("rest"), lambda: rests.append("beat"), 100)
    unit = Unit("unit", 0, Place("p.py", 1), bytes_per_cycle=1)
    unit.now, unit.wait = 20, Wait(Operation.OFF_CHIP, (), 0)
    moving: Any = _Moving(clock, unit, pending=pending)
    memory: Any = SimpleNamespace(pending=pending, advance=moving.answer)
    clock.memory = memory
    clock.foresees = moving if foresees else None
    clock.network = moving
    moving.advance = moving.carry_on
    clock.bound(bound)
    assert not clock.spent
    clock.come()
    clock.leave()
    assert [*moving.told, *rests, clock.now] == told
    assert (clock.running, unit.wait is None) == ((1, True) if pending else (0, False))
    assert clock.spent is not pending


async def _forgotten() -> None:
    """Be dropped."""


@pytest.mark.parametrize("takes_note", [True, False])
def test_warnings_of_a_run(takes_note: bool) -> None:
    """What nobody took note of is shown as ever: a user's own, and what other threads drop."""
    dropped: list[str] = []

    def tell(name: str) -> bool:
        dropped.append(name)
        return takes_note

    def drop() -> None:
        _forgotten()  # type: ignore[unused-coroutine]

    said = "coroutine '_forgotten' was never awaited"
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with unawaited(tell):
            warnings.warn("mine", UserWarning, stacklevel=1)
            drop()
            other = threading.Thread(target=drop)
            other.start()
            other.join()

    assert dropped == ["_forgotten"]
    assert [str(each.message) for each in shown] == ["mine", *[said] * (1 if takes_note else 2)]
