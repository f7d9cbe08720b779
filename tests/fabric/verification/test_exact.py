"""Runs that keep floats in float64, and expected tiles of streams."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import fabric as fab
import operators as op
from fabric.extend import Ports
from fabric.graph.hardware.description import TileDescription
from fabric.graph.loading.program_file import load_program
from fabric.shell.cli import main
from tests.fabric.small_program import Count, Total
from tests.fabric.verification.test_wrong_data import SHIPPED
from tests.profiles import spread
from tests.programs.loading import PROGRAMS

X = np.random.default_rng(0).standard_normal((8, 64))


def squares(dtype: str = "bfloat16", wrong: float = 0.0) -> fab.Program:
    with (
        fab.hardware_scope(fab.Hardware(tile=TileDescription(dtype=dtype))),  # type: ignore[arg-type]
        fab.Program("squares") as program,
    ):
        tiles = op.LinearOffChipLoad(X, tile=(4, 16))()
        op.LinearOffChipStore("y")(op.Map(op.Mul())(tiles, tiles))
    program.expect(y=lambda: X * X + wrong)
    return program


@pytest.mark.parametrize("name", spread(SHIPPED, 3))
def test_shipped_programs_are_exact(name: str) -> None:
    given = [f"{key}={value}" for key, value in SHIPPED[name].items()]
    wired = load_program(PROGRAMS / f"{name}.py", given, fab.Hardware()).program
    exact, declared = fab.simulate(wired, exact=True), fab.simulate(wired, mode="functional")
    assert (True, True) == (exact.verified, declared.verified)
    left, right = exact.as_json(), declared.as_json()
    for field in ("exact", "wall_seconds", "verification", "signal_to_noise_db"):
        left.pop(field)
        right.pop(field)
    assert left == right
    assert (exact.units, exact.channels_counters) == (declared.units, declared.channels_counters)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("float32", 24), ("float16", 11), ("bfloat16", 8), ("float8_e4m3", 4), ("float8_e5m2", 3)],
)
def test_signal_to_noise_is_six_decibels_a_bit(dtype: str, bits: int) -> None:
    report = fab.simulate(squares(dtype), exact=True)
    assert (True, True) == (report.verified, report.exact)
    kind = fab.dtype_named(dtype)
    assert np.array_equal(report.outputs["y"], X * X)
    rounded = X.astype(kind).astype(np.float32)
    stored = (rounded * rounded).astype(kind).astype(np.float64)
    ratio = 10 * np.log10(np.square(X * X).sum() / np.square(stored - X * X).sum())
    assert report.signal_to_noise_db["y"] == pytest.approx(ratio)
    assert 6 * bits - 5 < ratio < 6 * bits + 8


def test_a_mistake_below_the_rounding_is_found() -> None:
    program = squares("float8_e5m2", wrong=1e-6)
    assert True is fab.simulate(program, mode="functional").verified
    report = fab.simulate(program, exact=True)
    assert (False, 1) == (report.verified, report.exit_status)


def test_exact_run_is_the_same_by_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    whole = fab.simulate(squares(), exact=True)
    with fab.open_run(squares(), exact=True) as run:
        assert whole == run.finish()
    assert 0 == main(["run", f"{PROGRAMS / 'own_function.py'}", "--exact", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (True, True) == (found["exact"], found["verified"])
    assert 60 < found["signal_to_noise_db"]["y"] < 70
    with pytest.raises(fab.ConfigurationError, match="exact: a run in timing mode has no data"):
        fab.simulate(squares(), mode="timing", exact=True)
    assert 2 == main(["run", f"{PROGRAMS / 'own_function.py'}", "--exact", "--mode=timing"])
    assert fab.simulate(squares(), mode="timing").signal_to_noise_db == {}


@dataclass(frozen=True)
class Doubled(op.Function):
    def infer(self, *inputs: fab.TileType) -> fab.TileType:
        return inputs[0]

    def flops(self, *_: Any) -> int:
        return 0

    def apply(self, *inputs: fab.Tile) -> fab.Tile:
        (x,) = inputs
        data = None if x.data is None else (2 * x.data).astype(x.dtype)
        return fab.Tile(x.rows, x.cols, x.dtype, data)


def test_a_function_that_rounds_by_itself_is_refused() -> None:
    with fab.Program("doubled") as program:
        op.LinearOffChipStore("y")(op.Map(Doubled())(op.LinearOffChipLoad(X, tile=(4, 16))()))
    assert "completed" == fab.simulate(program, mode="functional").status
    report = fab.simulate(program, exact=True)
    assert report.failure is not None
    assert "expected an array of 4x16 float64, as an exact run keeps bfloat16" in (
        report.failure.message
    )


@dataclass(frozen=True)
class First(Total):
    @override
    async def run(self, ports: Ports) -> None:
        await ports.source.receive()
        ports.stored["total"] = np.array(0)


@pytest.mark.parametrize("last", [2, 3])
def test_expected_element_that_is_never_read_is_compared(last: int) -> None:
    with fab.Program("first", mode="functional") as program:
        numbers = Count(3, 10)()
        First("none")(numbers)
    numbers.expect(lambda: [np.array([[each]]) for each in (0, 1, last)])
    assert (last == 2) == fab.simulate(program).verified


def test_first_wrong_stage_is_named() -> None:
    tiled = X.reshape(2, 4, 4, 16).transpose(0, 2, 1, 3)[np.newaxis]
    with fab.Program("stages", mode="functional") as program:
        tiles = op.LinearOffChipLoad(X, tile=(4, 16))()
        twice = op.Map(op.Add())(tiles, tiles)
        fourfold = op.Map(op.Add())(twice, twice)
        op.LinearOffChipStore("y")(fourfold)
    wanted = 2 * tiled
    wanted[0, 1, 2, 3, 5] += 1
    fourfold.expect(lambda: 2 * wanted)
    twice.expect(lambda: wanted)
    tiles.expect(lambda: tiled)
    program.expect(y=lambda: X)
    report = fab.simulate(program)
    assert report.verification is not None
    assert [True, False, False] == [each.agrees for each in report.verification.streams]
    first, place, *_ = report.verification.lines()
    assert first.startswith("stream add_1.0: 1 of 512 elements wrong, largest error 1")
    assert place.startswith("  tile [0, 1, 2] at [3, 5] is ")
    places = report.as_json()["verification"]["places"]
    assert ("add_1.0", (0, 1, 2), (3, 5)) == tuple(
        places[0][key] for key in ("stream", "tile", "index")
    )
    assert fab.simulate(program, mode="timing").verified is None


@pytest.mark.parametrize("exact", [False, True])
def test_expected_ragged_groups_are_lists(exact: bool) -> None:
    choice = np.array([0, 1, 1, 0, 1, 1, 1, 1])
    with fab.Program("ragged", mode="functional") as program:
        rows = op.Flatten(0, 2)(op.LinearOffChipLoad(X, tile=(1, 64))())
        parts = op.Partition(2)(
            rows, op.Flatten(0, 1)(op.Selectors(choice[:, np.newaxis], width=2)())
        )
        for number, part in enumerate(parts):
            part.expect(partial(list, X[choice == number][:, np.newaxis]))
            op.LinearOffChipStore(f"y{number}")(op.Promote(0)(part))
    assert fab.simulate(program, exact=exact).verified is True


@pytest.mark.parametrize(
    ("groups", "misfit"),
    [
        ([[0, 1], [], [2]], None),
        ([[0, 1], [2]], "has a tile [0, 2, 0]: expected none there"),
        ([[0, 1], [], [2], []], "lacks an empty tensor [0, 3]: expected one there"),
    ],
)
def test_empty_groups_are_expected_as_empty_lists(
    groups: list[list[int]], misfit: str | None
) -> None:
    with fab.Program("groups", mode="functional") as program:
        rows = op.RandomOffChipLoad(X, (1, 64))(op.RaggedIntegers([[0, 1], [], [2]])())
        rows.expect(lambda: [[[X[[row]] for row in group] for group in groups]])
        op.LinearOffChipStore("y")(op.Promote(0)(op.Flatten(0, 2)(rows)))
    verification = fab.simulate(program).verification
    assert verification is not None
    assert verification.streams[0].misfit == misfit


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda: X.reshape(8, 1, 64)[:7], "stream flatten_1.0: has a tile [7]: expected none"),
        (
            lambda: [*X.reshape(8, 1, 64), X[:1]],
            "stream flatten_1.0: lacks a tile [8]: expected",
        ),
        (lambda: X, "stream flatten_1.0: tile [0] is 1 x 64, valid 1 x 64: expected 64"),
        (
            lambda: X.reshape(8, 1, 64).repeat(2, axis=1),
            "stream flatten_1.0: tile [0] is 1 x 64, valid 1 x 64: expected 2 x 64",
        ),
        (
            lambda: X.reshape(8, 1, 64)[..., :63],
            "stream flatten_1.0: tile [0] is 1 x 64, valid 1 x 64: expected 1 x 63",
        ),
        (lambda: -X.reshape(8, 1, 64), "stream flatten_1.0: 512 of 512 elements wrong"),
    ],
)
def test_expected_tiles_that_differ_are_reported(given: Any, sentence: str) -> None:
    with fab.Program("rows", mode="functional") as program:
        rows = op.Flatten(0, 2)(op.LinearOffChipLoad(X, tile=(1, 64))())
        rows.expect(given)
        op.LinearOffChipStore("y")(op.Promote(0)(rows))
    report = fab.simulate(program)
    assert report.verification is not None
    assert report.verified is False
    assert report.verification.lines()[0].startswith(sentence)
