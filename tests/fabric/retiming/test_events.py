from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Stream, StreamType
from fabric.extend import BoolType, Ports, Wiring
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.engine import log as e
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer
from operators import Consumer, Metadata
from tests.bases import Source
from tests.deadlock.parts import Leak
from tests.fabric.retiming.networks import Steps
from tests.fabric.retiming.real import UNBOUNDED, recorded, run, timed
from tests.fabric.scripted import Charge, Stage
from tests.programs.loading import program as shipped


def _record(program: Program, depths: dict[str, int] | None = None) -> Record:
    record, _ = recorded(program, depths or {})
    assert record is not None
    return record


@dataclass(frozen=True)
class _Late(Source):
    reads: bool

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((3,), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(3):
            await ports.sink.send_at((True, 0), (ports.now if self.reads else ports.unit.now) + 9)


def _late(*, reads: bool) -> Program:
    with Program("late", channel_depth=3) as program:
        Charge(name="end")(_Late(reads, name="late")())
    return program


class TestRequests:
    def test_request_from_the_start_is_retimed_as_run(self) -> None:
        with Program("numbers") as program:
            Consumer(name="end")(Metadata(np.arange(5))())
        record = _record(program)
        assert () == record.arbitrated
        assert e.AT in record.events[:, 0] & e.KIND
        assert timed(Retimer(record), [1]) == run(program, {"end.0": 1})

    def test_request_from_no_reading_is_arbitrated(self) -> None:
        record = _record(_late(reads=False))
        assert record.arbitrated == ("late sends for cycles without ports.now or ports.start",)
        assert (True, False) == (record.orders_are_fixed, record.determinate)
        assert timed(Retimer(record), [1]) != run(_late(reads=False), {"end.0": 1})


def test_slots_never_filled_stay_taken() -> None:
    with Program("leak") as program:
        leaking = Leak(name="leak")(Steps(("s0",), 2, name="source")()[0])
        Charge(name="end")(leaking)
    record = _record(program, {"end.0": 4})
    assert [0, 2] == [channel.unused for channel in record.channels]
    retimer = Retimer(record)
    for depth in (1, 2, 3, 4):
        ran = run(program, {"end.0": depth})
        assert (ran.cycles is None) == (depth <= 2)
        assert ran.ends_as(timed(retimer, [2, depth]))


def test_events_of_every_kind_are_retimed_as_run() -> None:
    with Program("slots") as slots:
        steps = ("p0", "t0", "v0", "c4", "w0", "s0", "n", "c1", "l0+3")
        Charge()(Steps(steps, None)(Steps(("s0", "c2"), 4)()[0])[0])
    with Program("numbers") as numbers:
        Consumer()(Metadata(np.arange(5))())
    top2 = shipped("top2_moe"), UNBOUNDED
    found: set[int] = set()
    for program, depth in ((slots, 2), (numbers, 2), (shipped("edit_distance"), 2), top2):
        depths = {edge.key: depth for edge in elaborate(program).edges}
        record, ran = recorded(program, depths)
        assert record is not None
        assert ran == timed(Retimer(record), record.depths.tolist())
        found |= set((record.events[:, 0] & e.KIND).tolist())
    assert set(range(e.IDLE + 1)) == found


class TestWork:
    @staticmethod
    def _chain(work: tuple[int, ...]) -> Program:
        with Program("chain") as program:
            made = Stage(6, work_cycles=(5,), name="first")()
            made = Stage(6, work_cycles=work, works_first=True, name="second")(*made)
            Stage(6, outputs=0, work_cycles=(4,), name="third")(*made)
        return program

    @pytest.mark.parametrize(
        ("factor", "work"), [(3.0, (12, 18)), (0.5, (2, 3)), (0.0, (0, 0)), (0.4, (2, 2))]
    )
    def test_scaled_work_equals_a_run_with_that_work(
        self, factor: float, work: tuple[int, ...]
    ) -> None:
        record = _record(self._chain((4, 6)))
        record = record.with_pace([record.units.index("second")], factor)
        for depth in (1, 2, 5):
            options = {"second.0": depth, "third.0": depth}
            assert timed(Retimer(record), [depth] * 2) == run(self._chain(work), options)
