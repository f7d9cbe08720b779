from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric as fab
import operators as op
from fabric.graph.values.conversion import check_converts, converted
from tests.operators.driving import Collect, Emit

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

_integers = st.one_of(
    st.integers(-300, 300),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 63).flatmap(lambda bits: st.integers(-2, 2).map(lambda off: 2**bits + off)),
)
_floats = st.one_of(
    st.floats(width=64),
    _integers.map(float),
    st.sampled_from([0.0, -0.0, 0.5, 448.0, 464.0, 465.0, 65504.0, 65520.0, 2.0**63, 2.0**64]),
)


def as_type(number: float, dtype: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float64(number).astype(dtype))


def refused(array: Any, dtype: Any) -> bool:
    answers = []
    for convert in (converted, check_converts):
        try:
            convert(array, dtype)
        except ValueError:
            answers.append(True)
        else:
            answers.append(False)
    assert answers[0] is answers[1]
    return answers[0]


class TestConverted:
    @given(st.lists(_integers, min_size=1, max_size=4), st.sampled_from(FLOATS + INTEGERS))
    def test_integers_are_kept_or_refused(self, numbers: list[int], name: str) -> None:
        array = np.array([each if each < 2**63 else each - 2**63 for each in numbers], np.int64)
        dtype = fab.dtype_named(name)
        if name in INTEGERS:
            info = np.iinfo(dtype)
            kept = all(info.min <= each <= info.max for each in array.tolist())
        else:
            with np.errstate(over="ignore"):
                rounded = [float(array[i : i + 1].astype(dtype)[0]) for i in range(len(array))]
            kept = all(
                math.isfinite(there) and Fraction(there) == here
                for here, there in zip(array.tolist(), rounded, strict=True)
            )

        assert refused(array, dtype) is not kept
        if kept:
            assert array.tolist() == [int(each) for each in converted(array, dtype)]

    @given(st.lists(_floats, min_size=1, max_size=4), st.sampled_from(FLOATS))
    def test_floats_are_rounded_or_refused(self, numbers: list[float], name: str) -> None:
        dtype = fab.dtype_named(name)
        lost = any(
            (math.isfinite(each) and not math.isfinite(as_type(each, dtype)))
            or (math.isinf(each) and math.isnan(as_type(each, dtype)))
            for each in numbers
        )

        assert refused(np.array(numbers), dtype) is lost

    @given(st.lists(_floats, min_size=1, max_size=4), st.sampled_from((*INTEGERS, "bool")))
    def test_whole_floats_become_integers_or_are_refused(
        self, numbers: list[float], name: str
    ) -> None:
        low, high = (0, 1) if name == "bool" else _ends(name)
        kept = all(
            math.isfinite(each) and each == int(each) and low <= int(each) <= high
            for each in numbers
        )

        assert refused(np.array(numbers), fab.dtype_named(name)) is not kept


def _ends(name: str) -> tuple[int, int]:
    info = np.iinfo(fab.dtype_named(name))
    return int(info.min), int(info.max)


def _types(array: Any, mode: str = "functional") -> tuple[str, Any]:
    seen: list[Any] = []
    with fab.Program("own", mode=mode) as program:
        stream = op.LinearOffChipLoad(array, (1, array.shape[-1]))()
        Collect(seen)(stream)
    assert fab.simulate(program).error is None
    value = stream.value
    assert isinstance(value, fab.TileType)
    return value.dtype.name, [tile.data.tolist() for tile, _ in seen if tile.data is not None]


class TestOwnType:
    @pytest.mark.parametrize("name", [*INTEGERS, "bool"])
    def test_integers_keep_their_own_type(self, name: str) -> None:
        ends = (False, True) if name == "bool" else _ends(name)
        array = np.array([ends], fab.dtype_named(name))

        assert (name, [[list(ends)]]) == _types(array)
        assert (name, []) == _types(array, "timing")

    def test_floats_take_the_type_of_the_hardware(self) -> None:
        assert ("bfloat16", [[[1.1015625]]]) == _types(np.array([[1.1]]))

    @pytest.mark.parametrize("name", ["uint8", "int16", "int64"])
    def test_hardware_file_sets_the_integer_type(self, name: Any) -> None:
        from fabric.graph.hardware.description import TileDescription
        from fabric.graph.wiring.program import hardware_scope

        with (
            hardware_scope(fab.Hardware(tile=TileDescription(dtype=name))),
            fab.Program("hardware", mode="functional") as program,
        ):
            op.LinearOffChipStore("y")(op.LinearOffChipLoad(np.full((2, 4), 3.0), (2, 4))())
        program.expect(y=lambda: np.full((2, 4), 3))
        report = fab.simulate(program)

        assert report.verified
        assert 2 * 8 * np.dtype(name).itemsize == report.off_chip_traffic_bytes


Wire = Callable[[], object]
EXPECTED = "expected values that do not change, or Tensor(..., dtype=...) of a type that holds them"


def load(tensor: op.Tensor) -> None:
    op.Consumer()(op.LinearOffChipLoad(tensor, (1, tensor.shape[1]), name="load")())


def random_store(tensor: Any, dtype: str = "bfloat16") -> None:
    data = op.Flatten(0, 2)(
        op.LinearOffChipLoad(op.Tensor((1, 2), np.ones((1, 2)), dtype=dtype), (1, 2))()
    )
    op.RandomOffChipStore("y", tensor, (1, 2), name="store")(
        op.Flatten(0, 1)(op.Metadata(np.array([0]))()), data
    )


@pytest.mark.parametrize("mode", ["timing", "functional"])
@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (
            lambda: load(op.Tensor((1, 2), np.array([[1, 257]]), dtype="bfloat16")),
            "LinearOffChipLoad: a tensor [1, 2] has 257 at [0, 1], which is 256.0 as bfloat16: "
            f"{EXPECTED}",
        ),
        (
            lambda: random_store(np.array([[0.0, 1e39]])),
            "RandomOffChipStore: a tensor [1, 2] has 1e+39 at [0, 1], which is inf as bfloat16: "
            f"{EXPECTED}",
        ),
        (
            lambda: random_store(np.array([[0, 257]])),
            "RandomOffChipStore stores flatten_1.0 [1] of 1x2 bfloat16 in a tensor of int64: "
            "expected one element type",
        ),
        (
            lambda: random_store(op.Tensor((1, 2), dtype="float16")),
            "RandomOffChipStore stores flatten_1.0 [1] of 1x2 bfloat16 in a tensor of float16: "
            "expected one element type",
        ),
    ],
)
def test_data_are_checked_at_the_line_that_loads_them(wire: Wire, message: str, mode: str) -> None:
    with fab.Program("wiring", mode=mode), pytest.raises(fab.ProgramError) as caught:
        wire()
    assert message == caught.value.message
    assert __file__ == caught.value.file


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (
            lambda: load(op.Tensor((1, 2), lambda: [[1, 257]])),
            "load: a tensor [1, 2] has 257 at [0, 1], which is 256.0 as bfloat16: "
            f"{EXPECTED}, at cycle 0, element 0",
        ),
        (
            lambda: op.Consumer()(
                op.RandomOffChipLoad(
                    op.Tensor((1, 2), lambda: [[1e9, 1]], dtype="float16"), (1, 2), name="load"
                )(op.Metadata(np.array([0]))())
            ),
            "load: a tensor [1, 2] has 1000000000.0 at [0, 0], which is inf as float16: "
            f"{EXPECTED}, at cycle 1, element 1",
        ),
        (
            lambda: random_store(op.Tensor((1, 2), lambda: np.array([[257, 0]]))),
            "store: a tensor [1, 2] has 257 at [0, 0], which is 256.0 as bfloat16: "
            f"{EXPECTED}, at cycle 0, element 0",
        ),
    ],
)
def test_lazy_data_are_checked_when_they_are_made(wire: Wire, message: str) -> None:
    for mode in ("functional", "timing"):
        with fab.Program("lazy", mode=mode) as program:
            wire()
        report = fab.simulate(program)
        if mode == "timing":
            assert report.status == "completed"
            continue
        assert report.error is not None
        assert (message, __file__) == (report.error["message"], report.error["file"])


def tiles_of(name: str) -> fab.Stream:
    dtype = fab.dtype_named(name)
    tile = fab.Tile(1, 1, dtype, np.ones((1, 1), dtype))
    return Emit(fab.StreamType((3,), fab.TileType(1, 1, dtype)), [(tile, 0)] * 3)()


class TestPads:
    @pytest.mark.parametrize(
        ("name", "pad"),
        [("int8", 0.5), ("int8", 300), ("uint8", -1), ("float16", 1e9), ("bool", 2)],
    )
    def test_padding_beyond_the_type_is_refused(self, name: str, pad: float) -> None:
        with fab.Program("pad"), pytest.raises(fab.ShapeError) as caught:
            op.Reshape(2, pad=pad)(tiles_of(name))
        assert caught.value.message == (
            f"Reshape pads emit_1.0 [3] of 1x1 {name} with {pad}: expected a number that "
            f"{name} holds"
        )
