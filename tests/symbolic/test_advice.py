"""Advice: warnings about wasteful programs."""

from __future__ import annotations

import numpy as np
import pytest

import operators as op
from fabric import Program, Stream
from fabric.analysis.symbolic.check import check
from tests.symbolic.programs import wired


def load(rows: int = 4, cols: int = 32, tile: tuple[int, int] = (1, 32)) -> Stream:
    return op.LinearOffChipLoad(np.zeros((rows, cols), np.float32), tile, name="x")()


def warnings_of(program: Program) -> list[str]:
    return [text.split(": ", 1)[1] for text in check(program, {}, data=False).warnings]


def test_sound_program_needs_no_advice() -> None:
    with Program("p") as program:
        op.LinearOffChipStore("y")(op.Map(op.SiLU())(load()))

    assert [] == warnings_of(program)


def test_requests_wider_than_rows_are_reported() -> None:
    with Program("p") as program:
        op.LinearOffChipStore("y", name="y")(load(4, 48, (1, 48)))
    rest = (
        "rows of 1x48 bfloat16 are 96 bytes, but 128 are moved for each (25 % wasted): expected a "
        "multiple of 64"
    )

    assert [f"x: {rest}", f"y: {rest}"] == warnings_of(program)


def test_read_per_row() -> None:
    weight = np.zeros((32, 64), np.float32)
    with Program("p") as program:
        rows = op.Flatten(0, 1)(load())
        columns = op.Flatten(0, 1)(op.LinearOffChipLoad(weight, (32, 64), name="w")(rows))
        op.LinearOffChipStore("y")(op.Map(op.Matmul())(rows, op.Flatten(0, 1)(columns)))

    assert [
        "w: reads 4,096 bytes again for every single row of flatten_1.0: expected tiles of several "
        "rows as its reference"
    ] == warnings_of(program)


def test_read_per_tile_or_address() -> None:
    # A row of the tensor for each address is what the program requests.
    weight = np.zeros((32, 64), np.float32)
    with Program("p") as program:
        rows = load()
        packed = op.Accum(op.RetileRow())(op.Reshape(4, pad=0.0)(op.Flatten(0, 2)(rows))[0])
        op.LinearOffChipStore("y")(op.LinearOffChipLoad(weight, (32, 64))(packed))
        addresses = op.Metadata(np.zeros(3, np.int64))()
        op.LinearOffChipStore("z")(op.RandomOffChipLoad(weight, (32, 64))(addresses))
        chosen = op.Selectors(np.array([[0], [1]]), 2)()
        op.LinearOffChipStore("v")(op.LinearOffChipLoad(weight, (32, 64))(chosen))
        op.LinearOffChipStore("w")(op.LinearOffChipLoad(weight, (1, 64))(rows))

    assert [] == warnings_of(program)


def test_operator_without_a_store_is_reported() -> None:
    with Program("p") as program:
        rows = load()
        op.LinearOffChipStore("y")(rows)
        other = op.Selectors(np.zeros((4, 1), np.int64), 2, name="route")()
        left, right = op.Partition(2, name="split")(op.Flatten(0, 1)(rows), other)
        op.LinearOffChipStore("z")(left)
        op.Consumer(name="dropped")(op.Map(op.SiLU(), name="useless")(right))

    assert [
        "useless: no stored output depends on it",
        "dropped: no stored output depends on it",
    ] == warnings_of(program)


def test_channel_of_depth_1_is_reported() -> None:
    with Program("p", channel_depth=1) as program:
        op.LinearOffChipStore("y")(load())

    assert [
        "channels of depth 1 pass an element every 2 cycles: expected a depth of 2, since an "
        "element and its credit take a cycle each"
    ] == warnings_of(program)


class Mine(op.Map):
    pass


@pytest.mark.parametrize(
    ("maps", "checks"), [(op.Map, "The run will"), (Mine, "Only Mine.run can")]
)
def test_undecided_dimensions_are_reported(maps: type[op.Map], checks: str) -> None:
    choice = np.array([[0], [1]])
    with Program("p") as program:
        rows = op.Flatten(0, 1)(load(2))
        first = op.Partition(2)(rows, op.Selectors(choice, 2, name="first")())
        second = op.Partition(2)(rows, op.Selectors(choice, 2, name="second")())
        for number, pair in enumerate(zip(first, second, strict=True)):
            op.LinearOffChipStore(f"y{number}")(maps(op.Matmul(transposed=True))(*pair))

    assert (
        f"matmul_1..2 (x2): D_first[0..1] and D_second[0..1] may differ. {checks} check; "
        "to state it now: stream.assume(...)"
    ) in warnings_of(program)


@pytest.mark.parametrize(
    ("rounds", "beside", "is_told"), [(200, 0, False), (200, 1, False), (201, 0, True)]
)
def test_a_recurrence_round_by_round(rounds: int, beside: int, is_told: bool) -> None:
    with Program("p") as program:
        first = stream = op.Flatten(0, 1)(load(2))
        for number in range(beside + rounds):
            made = op.Map(op.SiLU())(stream)
            if number < beside:
                op.LinearOffChipStore(f"x{number}")(made)
            stream = first if number < beside else made
        op.LinearOffChipStore("y")(stream)
        # 201 separate stores are not reported.
        for number in range(201):
            op.LinearOffChipStore(f"z{number}")(stream)
    found = [text for text in warnings_of(program) if "one behind the other" in text]

    assert is_told == bool(found)
    assert all(f"silu_1..{rounds}: {rounds} units" in text for text in found)


@pytest.mark.parametrize("program", ["simplified_moe", "swiglu"])
def test_shipped_programs_need_no_advice(program: str) -> None:
    assert all("wasted" in text for text in warnings_of(wired(program)))
