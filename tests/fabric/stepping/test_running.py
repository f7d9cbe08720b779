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
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import trio
from typing_extensions import override

import fabric as fab
from fabric.extend import Element, Observer, Ports, Watched
from tests.bases import Sink
from tests.fabric import small_program
from tests.fabric.trace.recording import program
from tests.fabric.users import endless
from tests.outcomes import without_host


def same_end(wired: fab.Program, **settings: object) -> fab.Report:
    expected = fab.simulate(wired, **settings)  # type: ignore[arg-type]
    with fab.open_run(wired, **settings) as run:  # type: ignore[arg-type]
        found = run.until(cycle=3).step(5).finish()
        assert run.over
        assert run.finish() is found
    assert without_host(found) == without_host(expected)
    return found


@pytest.mark.parametrize("fault", ["none", "wrong", "raises", "stuck"])
def test_held_run_ends_as_another_does(fault: small_program.Fault) -> None:
    found = same_end(small_program.build(fault=fault))
    ends = {"none": "completed", "wrong": "completed", "raises": "error", "stuck": "deadlock"}
    assert found.status == ends[fault]


@pytest.mark.parametrize("how", sorted(endless.LIVELOCKS))
def test_held_livelock_ends_as_another_does(how: str) -> None:
    assert same_end(endless.build(how), livelock_cycles=1_000).status == "livelock"


def test_unit_is_held_at_its_element() -> None:
    with fab.open_run(small_program.build(stop=5, period=10)) as run:
        assert run.until(unit="count_1", element=2).cycle == 20
        assert [each.number for each in run.held("total_1.0")] == [1]
        assert run.until(unit="total_1", element=2).cycle == 21
        assert run.held("total_1.0") == ()
        (held,) = run.until(unit="count_1", element=3).held("count_1.0 -> total_1.0")
        assert (held.sent_cycle, held.visible_cycle, held.stop) == (30, 31, 0)
        assert held.value.data.item() == 2  # type: ignore[attr-defined]
        assert run.unit("total_1").cycle == 21
        assert [run.step().cycle for _ in range(5)] == [31, 40, 41, 50, 51]


def test_element_that_never_comes_is_an_error_at_the_end() -> None:
    with fab.open_run(small_program.build(stop=5)) as run:
        with pytest.raises(fab.FabricError, match=r"total_1 has not taken element 6: .* 5 taken"):
            run.until(unit="total_1", element=6)
        assert run.over
        with pytest.raises(fab.ConfigurationError, match=r"has taken 5 elements by cycle 51"):
            run.until(unit="total_1", element=4)
        assert run.step() is run
        assert run.finish().status == "completed"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda run: run.until(cycle=1), "until: cycle 1 is past: expected a cycle from 20 on"),
        (lambda run: run.until(), "neither a cycle nor an element, or both"),
        (lambda run: run.until(unit="totl_1", element=3), r"did you mean total_1\?"),
        (lambda run: run.unit("count"), r"expected one of count_1, total_1 \(did you mean count_1"),
        (lambda run: run.channel("total_1.1"), r"OPERATOR.INPUT, one of total_1.0"),
        (lambda run: run.held("nothing"), "no channel is called 'nothing'"),
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
def test_wrong_use_is_refused_and_the_run_stays(use: Callable[[object], object], said: str) -> None:
    with fab.open_run(small_program.build(stop=5, period=10)) as run:
        run.until(cycle=20)
        with pytest.raises(fab.FabricError, match=said) as caught:
            use(run)
        assert caught.value.file == __file__
        assert run.cycle == 20 == run.until(cycle=20).cycle
        assert run.finish().status == "completed"


def test_closed_run_refuses_use() -> None:
    with fab.open_run(small_program.build()) as run:
        run.until(cycle=5)
    assert repr(run) == "<run of 'small', closed at cycle 5>"
    for use in (run.step, run.finish, lambda: run.state, lambda: run.held("total_1.0")):
        said = r"of the run of 'small', which is closed"
        with pytest.raises(fab.ConfigurationError, match=said) as caught:
            use()
        assert caught.value.file == __file__
    run.close()
    with fab.open_run(small_program.build()) as run:
        assert repr(run) == "<run of 'small', held at cycle 0>"
        cycles = run.finish().cycles
        assert repr(run) == f"<run of 'small', over at cycle {cycles}>"
    assert run.state.cycles == run.cycle == 31


_LEFT = """
from fabric import open_run
from tests.fabric import small_program

run = open_run(small_program.build(), log_dir="logs", trace="events").until(cycle=12)
"""


def test_run_left_open_ends_with_the_process(tmp_path: Path) -> None:
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


def test_ended_runs_leave_no_thread() -> None:
    before = set(threading.enumerate())
    with fab.open_run(small_program.build()) as run:
        run.step()
    with pytest.raises(ZeroDivisionError), fab.open_run(small_program.build()) as run:
        raise ZeroDivisionError
    fab.open_run(small_program.build()).finish()
    del run
    thread = fab.open_run(small_program.build())._thread._thread
    gc.collect()
    thread.join(60)
    assert set(threading.enumerate()) <= before


@dataclass(frozen=True)
class Spins(Sink):
    began: ClassVar = threading.Event()

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(5):
            await ports.source.receive()
        self.began.set()
        while True:
            pass


def test_run_with_an_endless_operator_can_be_closed() -> None:
    with fab.Program("spins") as wired:
        Spins()(small_program.Count(9, 10)())
    run = fab.open_run(wired).until(cycle=12)
    other = threading.Thread(target=_until_error, args=(run,))
    other.start()
    Spins.began.wait()
    with pytest.raises(fab.ConfigurationError, match="while it continues"):
        _ = run.state
    run.close()
    other.join(60)
    assert not other.is_alive()


def _until_error(run: object) -> None:
    with pytest.raises(fab.ConfigurationError, match="is closed"):
        run.until(cycle=1_000)  # type: ignore[attr-defined]


def test_held_run_beside_asyncio_and_trio_takes_the_same_cycles() -> None:
    async def cell() -> int | None:
        with fab.open_run(small_program.build()) as run:
            run.until(cycle=12)
            return run.finish().cycles

    assert asyncio.run(cell()) == trio.run(cell) == fab.simulate(small_program.build()).cycles


def test_several_runs_are_held_side_by_side() -> None:
    wired = program("simplified_moe")
    expected = without_host(fab.simulate(wired))

    def steps(seed: int) -> fab.Report:
        with fab.open_run(wired) as run:
            for cycle in range(seed, 1_400, 101 + seed):
                run.until(cycle=cycle)
            return without_host(run.finish())

    with ThreadPoolExecutor(4) as pool:
        assert all(each == expected for each in pool.map(steps, range(8)))
    with fab.open_run(wired) as one, fab.open_run(wired, depths={"reassemble_1.2": 2}) as other:
        for cycle in range(0, 200, 10):
            assert one.until(cycle=cycle).cycle == other.until(cycle=min(cycle, 60)).cycle or (
                cycle > 60
            )
        assert without_host(fab.simulate(wired)) == expected == without_host(one.finish())
        assert other.finish().status == "deadlock"


class Presses(Observer):
    left = 100

    @override
    def watch(self, channel: Watched) -> Callable[..., None]:
        def transferred(_element: Element, *_stamps: object) -> None:
            self.left -= 1
            if not self.left:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        return transferred


@pytest.mark.deep
def test_interrupted_run_is_held_and_finishes() -> None:
    wired = small_program.build(stop=20_000)
    with fab.open_run(wired, observers=[Presses()]) as run:
        with pytest.raises(KeyboardInterrupt):
            run.until(cycle=10**9)
        assert not run.over
        assert 0 < run.cycle < 2_000_000
        assert run.state.cycles == run.cycle
        report = run.finish()
    assert without_host(report) == without_host(fab.simulate(wired))


def test_interrupt_ends_the_last_stretch() -> None:
    with fab.open_run(small_program.build(fault="endless"), observers=[Presses()]) as run:
        assert run.finish().status == "interrupted"
