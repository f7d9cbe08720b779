"""Held runs go on and end as others do, wherever they are opened."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

# Any: a machine that has what is asked for.
from typing import Any, ClassVar

import numpy as np
import pytest
import trio
from typing_extensions import override

from fabric import (
    ConfigurationError,
    FabricError,
    Program,
    ProgramError,
    Report,
    open_run,
    simulate,
)
from fabric.extend import Element, Observer, Ports, Watched
from fabric.runs.stepped import RunThread
from fabric.timing.stepping.stepper import AtElement, element_goal
from operators import Add, Flatten, LinearOffChipLoad, LinearOffChipStore, Map, Promote
from tests.bases import Sink
from tests.deadlock.cases import CASES, round_and_round
from tests.fabric import small_program
from tests.fabric.trace.recording import program
from tests.fabric.users import endless


def told(report: Report) -> Report:
    """Return what does not depend on the host."""
    return replace(report, wall_seconds=None, log_dir=None)


def same_end(wired: Program, **settings: object) -> Report:
    """Hold a run of ``wired`` now and then; it ends as another does. Return its report."""
    expected = simulate(wired, **settings)  # type: ignore[arg-type]
    with open_run(wired, **settings) as run:  # type: ignore[arg-type]
        found = run.until(cycle=3).step(5).finish()
        assert run.over
        assert run.finish() is found
    assert told(found) == told(expected)
    return found


@pytest.mark.parametrize("fault", ["none", "wrong", "raises", "stuck"])
def test_ends(fault: small_program.Fault) -> None:
    """A run that completes, is wrong, fails, or is stuck."""
    found = same_end(small_program.build(fault=fault))
    ends = {"none": "completed", "wrong": "completed", "raises": "error", "stuck": "deadlock"}
    assert found.status == ends[fault]


@pytest.mark.parametrize("how", sorted(endless.LIVELOCKS))
def test_livelock(how: str) -> None:
    """A run that is given up."""
    assert same_end(endless.build(how), livelock_cycles=1_000).status == "livelock"


@pytest.mark.parametrize("livelock_cycles", [1_000, 10_000])
def test_livelock_of_several(livelock_cycles: int) -> None:
    """It is held in the last cycle that all of them have come to: a tenth after the limit."""
    with open_run(round_and_round(), livelock_cycles=livelock_cycles) as run:
        assert run.until(cycle=3).finish().status == "livelock"
        assert repr(run.cycle) == repr(livelock_cycles + livelock_cycles // 10 - 1)


def test_grown() -> None:
    """The run with depths that help is not held."""
    found = same_end(program("pack_rows"), on_deadlock="grow", depths=CASES["pack_rows"].given)
    assert found.status == "completed"


def test_failure_is_where_it_is() -> None:
    """An operator that raises ends the run in its cycle, whatever was asked for."""
    with open_run(small_program.build(stop=9, fault="raises")) as run:
        run.until(cycle=30)
        assert not run.over
        run.until(cycle=1_000)
        assert (run.cycle, run.over) == (31, True)
        assert run.channel("total_1.0").taken == 3
        assert run.report is not None
        assert run.report.error is not None
        assert "ValueError: odd" in str(run.report.error["message"])


def test_elements() -> None:
    """A unit is held where it takes an element, or, where it has no input, sends one."""
    with open_run(small_program.build(stop=5, period=10)) as run:
        assert run.until(unit="count_1", element=2).cycle == 20
        assert [each.number for each in run.held("total_1.0")] == [1]
        assert run.until(unit="total_1", element=2).cycle == 21
        assert run.held("total_1.0") == ()
        (held,) = run.until(unit="count_1", element=3).held("count_1.0 -> total_1.0")
        assert (held.sent_cycle, held.visible_cycle, held.stop) == (30, 31, 0)
        assert held.value.data.item() == 2  # type: ignore[attr-defined]
        assert run.unit("total_1").cycle == 21
        assert [run.step().cycle for _ in range(5)] == [31, 40, 41, 50, 51]


def test_another_input() -> None:
    """A name with a number is that input of the unit; what is no input is refused."""
    x = np.ones((4, 8), np.float32)
    with Program("sum") as program:
        one, other = (Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 8))()) for _ in range(2))
        LinearOffChipStore("y")(Promote(0)(Map(Add())(one, other)))
    with open_run(program) as run:
        run.until(unit="add_1.1", element=2)
        assert run.channel("add_1.1").taken == 2
        with pytest.raises(ConfigurationError, match=r"add_1 has no input 2: expected one of 0, 1"):
            run.until(unit="add_1.2", element=1)


def test_an_element_that_never_comes() -> None:
    """That is said, with what has come."""
    with open_run(small_program.build(stop=5)) as run:
        with pytest.raises(FabricError, match=r"element 6 of total_1 does not come: .* taken 5"):
            run.until(unit="total_1", element=6)
        assert run.over
        with pytest.raises(ConfigurationError, match=r"has taken 5 elements by cycle 51"):
            run.until(unit="total_1", element=4)
        assert run.step() is run
        assert run.finish().status == "completed"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda run: run.until(cycle=1), "until: cycle 1 is past: expected one from 20 on"),
        (lambda run: run.until(), "neither a cycle nor an element, or both"),
        (lambda run: run.until(cycle=30, unit="total_1", element=9), "or both"),
        (lambda run: run.until(unit="total_1"), "neither a cycle nor an element"),
        (lambda run: run.until(cycle=-1), "cycle is -1: expected an integer of at least 0"),
        (lambda run: run.until(unit="total_1", element=0), "element is 0"),
        (lambda run: run.until(unit="totl_1", element=3), r"did you mean total_1\?"),
        (lambda run: run.unit("count"), r"expected one of count_1, total_1 \(did you mean count_1"),
        (lambda run: run.channel("total_1.1"), r"OPERATOR.INPUT, one of total_1.0"),
        (lambda run: run.held("nothing"), "no channel is called 'nothing'"),
        (lambda run: run.step(0), "count is 0"),
        (lambda run: run.until(unit="count_1", element=1), "count_1 has sent 2 elements by"),
        (
            lambda run: run.until(unit="count_1", element=2),
            "count_1 has sent 2 elements by cycle 20: expected an element after number 2",
        ),
        (
            lambda run: run.until(unit="total_1", element=1),
            "total_1 has taken 1 element by cycle 20: expected an element after number 1",
        ),
    ],
)
def test_wrong_use(use: Callable[[object], object], said: str) -> None:
    """Mistakes are told at the user's line, and the run stays where it is."""
    with open_run(small_program.build(stop=5, period=10)) as run:
        run.until(cycle=20)
        with pytest.raises(FabricError, match=said) as caught:
            use(run)
        assert caught.value.file == __file__
        assert run.cycle == 20 == run.until(cycle=20).cycle
        assert run.finish().status == "completed"


def test_after_close() -> None:
    """What is closed cannot go on; what is finished can still be looked at."""
    with open_run(small_program.build()) as run:
        run.until(cycle=5)
    assert repr(run) == "<run of 'small', closed at cycle 5>"
    for use in (run.step, run.finish, lambda: run.state, lambda: run.held("total_1.0")):
        said = r"of the run of 'small', which is closed"
        with pytest.raises(ConfigurationError, match=said) as caught:
            use()
        assert caught.value.file == __file__
    run.close()
    with open_run(small_program.build()) as run:
        assert repr(run) == "<run of 'small', held at cycle 0>"
        cycles = run.finish().cycles
        assert repr(run) == f"<run of 'small', over at cycle {cycles}>"
    assert run.state.cycles == run.cycle == 31


def test_cannot_begin() -> None:
    """What cannot be run is said where it is opened."""
    with pytest.raises(ConfigurationError, match=r"no channel has that name") as caught:
        open_run(small_program.build(), depths={"nobody.0": 2})
    assert caught.value.file == __file__
    with pytest.raises(ProgramError, match=r"open_run: mode is 'fast'") as refused:
        open_run(small_program.build(), mode="fast")
    assert refused.value.file == __file__


_LEFT = """
from fabric import open_run
from tests.fabric import small_program

run = open_run(small_program.build(), log_dir="logs", trace="events").until(cycle=12)
"""


def test_left_at_exit(tmp_path: Path) -> None:
    """A run that is never closed ends with the process, quietly, and says that it was left."""
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", _LEFT],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": root},
    )
    assert (done.stdout, done.stderr) == ("", "")
    report = (tmp_path / "logs" / "small-1" / "report.json").read_text("utf-8")
    assert '"interrupted"' in report


def test_no_thread_stays() -> None:
    """Of runs that are left, closed, finished or forgotten."""
    before = set(threading.enumerate())
    with open_run(small_program.build()) as run:
        run.step()
    with pytest.raises(ZeroDivisionError), open_run(small_program.build()) as run:
        raise ZeroDivisionError
    open_run(small_program.build()).finish()
    del run
    thread = open_run(small_program.build())._thread._thread
    gc.collect()
    thread.join(60)
    assert set(threading.enumerate()) <= before


def test_interrupted_while_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between its thread's beginning and the run: the thread ends."""
    begun = []

    def press(_program: Program, _stepper: object, thread: RunThread) -> None:
        begun.append(thread._thread)
        raise KeyboardInterrupt

    monkeypatch.setattr("fabric.runs.stepped.SteppedRun", press)
    with pytest.raises(KeyboardInterrupt):
        open_run(small_program.build())
    begun[0].join(60)
    assert not begun[0].is_alive()


@dataclass(frozen=True)
class Spins(Sink):
    """Take five elements, then compute for ever."""

    began: ClassVar = threading.Event()

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(5):
            await ports.source.receive()
        self.began.set()
        while True:
            pass


def test_an_operator_that_lets_nobody_go_on() -> None:
    """A run is abandoned while an operator computes for ever."""
    with Program("spins") as wired:
        Spins()(small_program.Count(9, 10)())
    run = open_run(wired).until(cycle=12)
    other = threading.Thread(target=_until_error, args=(run,))
    other.start()
    Spins.began.wait()
    with pytest.raises(ConfigurationError, match="while it goes on"):
        _ = run.state
    run.close()
    other.join(60)
    assert not other.is_alive()


def _until_error(run: object) -> None:
    with pytest.raises(ConfigurationError, match="is closed"):
        run.until(cycle=1_000)  # type: ignore[attr-defined]


def test_beside_asyncio_and_trio() -> None:
    """As in a notebook, whose loop runs."""

    async def cell() -> int | None:
        with open_run(small_program.build()) as run:
            run.until(cycle=12)
            return run.finish().cycles

    assert asyncio.run(cell()) == trio.run(cell) == simulate(small_program.build()).cycles


def test_several_at_once() -> None:
    """In threads, and one beside the other in one thread."""
    wired = program("simplified_moe")
    expected = told(simulate(wired))

    def steps(seed: int) -> Report:
        with open_run(wired) as run:
            for cycle in range(seed, 1_400, 101 + seed):
                run.until(cycle=cycle)
            return told(run.finish())

    with ThreadPoolExecutor(4) as pool:
        assert all(each == expected for each in pool.map(steps, range(8)))
    with open_run(wired) as one, open_run(wired, depths={"reassemble_1.2": 2}) as other:
        for cycle in range(0, 200, 10):
            assert one.until(cycle=cycle).cycle == other.until(cycle=min(cycle, 60)).cycle or (
                cycle > 60
            )
        assert told(simulate(wired)) == expected == told(one.finish())
        assert other.finish().status == "deadlock"


def test_log_and_trace(tmp_path: Path) -> None:
    """A held run is logged and recorded; one that is left early was interrupted."""
    with open_run(small_program.build(), log_dir=tmp_path, trace="events") as run:
        run.until(cycle=12)
        assert run.finish().log_dir is not None
    with open_run(small_program.build(), log_dir=tmp_path, trace="events") as run:
        run.until(cycle=12)
    ends = [(tmp_path / f"small-{n}" / "report.json").read_text("utf-8") for n in (1, 2)]
    assert ['"completed"' in ends[0], '"interrupted"' in ends[1]] == [True, True]
    assert (tmp_path / "small-1" / "trace" / "end.json").exists()


class Presses(Observer):
    """Sends Ctrl-C to the main thread at the hundredth element."""

    left = 100

    @override
    def watch(self, channel: Watched) -> Callable[..., None]:
        def transferred(_element: Element, *_stamps: object) -> None:
            self.left -= 1
            if not self.left:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        return transferred


def test_interrupt_pauses() -> None:
    """Ctrl-C leaves a run where it is; it goes on, and its report is as ever."""
    wired = small_program.build(stop=20_000)
    with open_run(wired, observers=[Presses()]) as run:
        with pytest.raises(KeyboardInterrupt):
            run.until(cycle=10**9)
        assert not run.over
        assert 0 < run.cycle < 2_000_000
        assert run.state.cycles == run.cycle
        report = run.finish()
    assert told(report) == told(simulate(wired))


def test_interrupt_ends_the_last_stretch() -> None:
    """Ctrl-C in finish() is Ctrl-C in simulate(): a report of what there is."""
    with open_run(small_program.build(fault="endless"), observers=[Presses()]) as run:
        assert run.finish().status == "interrupted"


@pytest.mark.parametrize(
    ("unit", "goal"),
    [
        ("a", (4, 7, True)), ("b", (3, 7, False)), ("b.0", (3, 7, False)), ("b.1", (0, 7, False)),
        ("b.2", "until: b has no input 2: expected one of 0, 1"), ("c", (1, 7, False)),
        ("c.3", (1, 7, False)), ("c.0", "until: c has no input 0: expected one of 3, 4, 5, 6, 7"),
        # A unit may be called like an input of another one.
        ("b.9", (6, 7, True)), ("b.9.0", "until: b.9 has no input 0: expected a unit with inputs"),
        ("d", "until: d has no streams: expected a unit with one"),
        ("a.0", "until: a has no input 0: expected a unit with inputs"),
        ("b.000000001", (0, 7, False)), ("b.0000000001", "no unit is called 'b.0000000001': "),
        ("b.x", "no unit is called 'b.x': "), (".1", "no unit is called '.1': "),
    ],
)  # fmt: skip
def test_which_element(unit: str, goal: tuple[int, int, bool] | str) -> None:
    """Of an input that is named, else of the first; of the first output where there is none."""
    names = ["a", "b", "c", "d", "b.9"]
    # Producer and output, consumer and input.
    wired = [
        ("a", 1, "b", 1), ("b", 0, "c", 3), ("b", 1, "c", 5), ("a", 2, "b", 0), ("a", 0, "c", 4),
        ("b.9", 8, "c", 6), ("b.9", 7, "c", 7),
    ]  # fmt: skip
    edges = [
        SimpleNamespace(
            producer=SimpleNamespace(index=names.index(producer)), output=output,
            consumer=SimpleNamespace(index=names.index(consumer)), input=number,
        )
        for producer, output, consumer, number in wired
    ]  # fmt: skip
    machine: Any = SimpleNamespace(
        units=[SimpleNamespace(name=name) for name in names], plan=SimpleNamespace(edges=edges)
    )
    if isinstance(goal, str):
        with pytest.raises(ConfigurationError) as refused:
            element_goal(machine, unit, 7)
        assert refused.value.message.startswith(goal)
    else:
        assert AtElement(*goal) == element_goal(machine, unit, 7)
