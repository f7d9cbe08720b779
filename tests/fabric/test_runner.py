from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import pytest
import trio

from fabric import Program, Stream
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.guards.tasks import unawaited
from fabric.timing.machine.assembly import Setup
from fabric.timing.machine.interrupts import Interrupts
from fabric.timing.machine.runner import Runner
from tests.deadlock.parts import Script, feedback, sink
from tests.fabric.scripted import Ticks

BEAT_CYCLES = 10


def _ring(steps: tuple[str, ...]) -> Program:
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
    setup = Setup(plan=elaborate(program))
    return Runner(setup, on_heartbeat=on_heartbeat, beat_cycles=BEAT_CYCLES)


def test_run_of_all_operators_completes() -> None:
    runner = _runner(_pipe())

    assert runner.run(Interrupts(), lambda: "livelock") == "completed"
    assert runner.machine.failures.first is None


def test_run_at_rest_is_a_deadlock() -> None:
    assert _runner(_ring(("r0", "s0"))).run(Interrupts(), lambda: None) == "deadlock"


@pytest.mark.parametrize("ending", ["livelock", "interrupted"])
def test_stopped_run_has_the_reason_given(ending: str) -> None:
    runner = _runner(_ring(("r0", "s0")))

    assert runner.run(Interrupts(), lambda: ending) == ending  # type: ignore[arg-type,return-value]


def test_failed_operator_is_an_error() -> None:
    runner = _runner(_pipe(broken=True))

    assert runner.run(Interrupts(), lambda: "livelock") == "error"
    failure = runner.machine.failures.first
    assert getattr(failure, "operator", "") == runner.machine.units[1].name


def test_tasks_beside_the_operators_end_with_them() -> None:
    seen = []

    async def waits_for_ever() -> None:
        seen.append("beside")
        try:
            await trio.sleep_forever()
        finally:
            seen.append("ended")

    _runner(_pipe()).run(Interrupts(), lambda: None, beside=[waits_for_ever])
    assert seen == ["beside", "ended"]


async def _forgotten() -> None:
    pass


@pytest.mark.parametrize("takes_note", [True, False])
def test_warnings_of_a_run(takes_note: bool) -> None:
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
