"""Compares random programs of up to 30 operators with their composed definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fabric as fab
import operators as op
from fabric.analysis.symbolic.check import check
from tests import definitions
from tests.operators.driving import Choices, Emit, decode
from tests.operators.random_programs import Meant, Random
from tests.operators.test_schedules import counted
from tests.operators.true_types import Watched
from tests.profiles import examples, of_profile, spread
from tests.schedules import SCHEDULES, schedule
from tests.symbolic.bounded import Bounded

_BYTES = 300


def _run(data: bytes, mode: str) -> tuple[fab.Report, Random]:
    made = Random(Choices(data), functional=mode == "functional")
    report = fab.simulate(made.program, mode=mode, depths=_deep(made.program))
    assert (report.status, report.error) == ("completed", None)
    # Elements of channels, traffic and FLOPs equal the figures computed before the run.
    assert [] == [text for text in report.comparison.warnings if "fault" in text]
    return report, made


def _deep(program: fab.Program) -> dict[str, int]:
    return {
        f"{node.name}.{port}": 100_000 for node in program.nodes for port in range(len(node.inputs))
    }


def _number(value: fab.Tile) -> Any:
    assert value.data is not None
    return value.data[0, 0].item()


def _check(examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.binary(min_size=_BYTES, max_size=_BYTES), st.sampled_from(SCHEDULES))
    def check(data: bytes, order: str | int) -> None:
        report, made = _run(data, "functional")
        for elements, dims, expected in made.ends:
            found = definitions.map_values(_number, dims, decode(elements, dims))
            assert expected == found
        with schedule(order):
            again, _ = _run(data, "functional")
        assert counted(report) == counted(again)
        assert counted(report) == counted(_run(data, "timing")[0])

    check()


def test_random_programs_are_as_composed() -> None:
    _check(of_profile(quick=20, deep=150))


@pytest.mark.exhaustive
def test_random_programs_are_as_composed_exhaustively() -> None:
    _check(10_000)


def test_sizes_that_are_guessed_blame_nobody() -> None:
    one = fab.TileType(1, 1, np.dtype(np.float32))
    narrow, wide = fab.SelectorType(1), fab.SelectorType(2)
    once = [(fab.Selector(hits, 1), 0) for hits in ((), (0,), ())]
    second = [(fab.Selector(hits, 2), 0) for hits in ((), (1,), ())]
    with fab.Program("guessed", channel_depth=16) as program:
        (kept,) = op.Partition(1)(
            Emit(fab.StreamType((3,), one), [(fab.Tile(1, 1, one.dtype), 0)] * 3)(),
            Emit(fab.StreamType((3,), narrow), once)(),
        )
        rows = op.Reassemble()([kept], Emit(fab.StreamType((3,), narrow), once)())
        route = Emit(fab.StreamType((3,), wide), second)()
        joined = op.Reassemble(rank=1)(op.Partition(2, rank=1)(rows, route), route)
        shares = op.Parallelize(2, rank=1)(op.Flatten(1, 2)(joined))
        for share in shares:
            op.Consumer()(op.Accum(op.Sum())(share))

    report = fab.simulate(program, mode="timing")
    assert ("completed", ()) == (report.status, report.warnings)


class Stated(Bounded):
    def _compute(self, of: Meant) -> Iterator[Meant]:
        yield Meant(op.Map(op.RowSum(), flops_per_cycle=1)(of.stream), of.tensor)


def _true_types(kind: type[Random], data: bytes, operators: int) -> None:
    # The tensors of programs of the second class have no numbers.
    for mode in ("functional", "timing") if kind is Random else ("timing",):
        made = kind(Choices(data), functional=mode == "functional", operators=operators)
        program = made.program
        watched = Watched(program)
        report = fab.simulate(program, mode=mode, depths=_deep(program))
        assert (report.status, report.error) == ("completed", None)
        assert [] == [text for text in report.comparison.warnings if "fault" in text]
        for symbol, size in watched.sizes().items():
            program.bind(symbol, size)
        before = check(program, {}, data=True).metrics
        taken = [channel.taken for channel in report.channels_counters]
        assert [stream.count for stream in before.carried] == taken
        measured = {row.what: row.measured for row in report.comparison.totals}
        moved = measured["off-chip loads, bytes"], measured["off-chip stores, bytes"]
        assert (before.paper.load_bytes, before.paper.store_bytes) == moved
        assert before.flops == report.flops


@pytest.mark.parametrize("kind", spread([Random, Stated], 1))
def test_types_are_true(kind: type[Random]) -> None:
    @examples(quick=15, deep=600)
    @given(st.binary(min_size=_BYTES, max_size=_BYTES), st.sampled_from((8, 14, 30)))
    def check_types(data: bytes, operators: int) -> None:
        _true_types(kind, data, operators)

    check_types()
