"""int4: weights of four bits, two in each byte."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric as fab
import operators as op
from fabric.extend import FlatDescription
from fabric.graph.values.conversion import ValueChangedError, converted
from fabric.graph.wiring.elaborate import elaborate
from tests.profiles import examples

INT4 = np.dtype(ml_dtypes.int4)
BYTEWISE = fab.Hardware(hbm=FlatDescription(request_bytes=1))


def copied(rows: int, cols: int, dtype: str) -> fab.Report:
    values = np.arange(rows * cols).reshape(rows, cols) % 8
    with fab.hardware_scope(BYTEWISE), fab.Program("copy", mode="functional") as program:
        tensor = op.Tensor((rows, cols), lambda: values, dtype=dtype)
        op.LinearOffChipStore("y")(op.LinearOffChipLoad(tensor, tile=(1, cols))())
    program.expect(y=lambda: values)
    report = fab.simulate(program)
    assert report.verified
    assert () == report.warnings
    return report


@examples(quick=5, deep=20)
@given(rows=st.integers(1, 4), cols=st.integers(1, 33))
def test_row_of_int4_takes_half_a_byte_a_column(rows: int, cols: int) -> None:
    report = copied(rows, cols, "int4")

    moved_bytes = 2 * rows * len(np.packbits(np.zeros(4 * cols, bool)))
    assert moved_bytes == report.off_chip_traffic_bytes == report.hbm_bytes_moved


def test_tiles_of_int4_begin_at_whole_bytes() -> None:
    with fab.Program("places") as program:
        op.Consumer()(op.LinearOffChipLoad(op.Tensor((4, 8), dtype="int4"), (2, 4))())
    plan = elaborate(program)
    region = plan.memory_map.regions.get(plan.nodes[0])

    assert region is not None
    bursts = [region.burst(2, 2, number) for number in range(4)]
    assert [(0, 4), (2, 4), (8, 4), (10, 4)] == [
        (each.address, each.pitch_bytes) for each in bursts
    ]
    assert [6, 10] == [fab.Tile(2, cols, INT4).size_bytes for cols in (5, 10)]


@examples(quick=5, deep=20)
@given(
    seed=st.integers(0, 999),
    activations=st.sampled_from(["int8", "int16", "int32", "float32", "bfloat16"]),
    transposed=st.booleans(),
)
def test_product_with_int4_weights_is_numpys(seed: int, activations: str, transposed: bool) -> None:
    random = np.random.default_rng(seed)
    a, w = random.integers(-2, 3, (4, 6)), random.integers(-8, 8, (6, 10))
    w_stored = w.T if transposed else w
    with fab.Program("product", mode="functional") as program:
        x = op.LinearOffChipLoad(op.Tensor(a.shape, lambda: a, dtype=activations), tile=a.shape)()
        weights = op.Tensor(w_stored.shape, lambda: w_stored, dtype="int4")
        y = op.Map(op.Matmul(transposed=transposed))(
            x, op.LinearOffChipLoad(weights, tile=w_stored.shape)()
        )
        op.LinearOffChipStore("y")(y)
    program.expect(y=lambda: a @ w)

    report = fab.simulate(program)

    assert report.verified
    assert activations == str(report.outputs["y"].dtype)


@given(
    number=st.integers(-20, 20) | st.sampled_from([0.5, -8.5, 1e30, float("nan")]),
    dtype=st.sampled_from(["float32", "float64", "int64"]),
)
@examples(quick=12, deep=100)
def test_int4_holds_integers_from_minus_8_to_7(number: float, dtype: str) -> None:
    if dtype == "int64" and not isinstance(number, int):
        number = 99
    array = np.array([[number]], dtype)

    if isinstance(number, int) and -8 <= number <= 7:
        result = converted(array, INT4)
        assert INT4 == result.dtype
        assert number == int(result[0, 0])
        assert number == int(converted(result, np.dtype(np.int8))[0, 0])
    else:
        with pytest.raises(ValueChangedError, match=r"at \[0, 0\], which is -?\d as int4$"):
            converted(array, INT4)
