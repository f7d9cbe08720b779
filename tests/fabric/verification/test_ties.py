"""A number at a tie between two elements of a block-scaled type is right either way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fabric import Program, dtype_named, simulate
from fabric.graph.values.block_scaled import blocks_of, numbers_of
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.expected_tiles import Roundings, roundings_of
from fabric.runs.verify import verify
from operators import (
    Add,
    AsType,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Tensor,
)
from tests.fabric.verification.storing import Array, judged, random_numbers
from tests.fabric.verification.wrong_data import FAULTS
from tests.operators.test_block_scaled import FORMATS, numbers
from tests.profiles import spread

WAYS = ("stored", "product", "chain")
"""What is stored: blocks that a product was rounded to; a product with them; one with such blocks
of a product with blocks."""


def rounding(form: str, way: str, x: Any = None, w: Any = None, weights: Any = None) -> Program:
    """Return a program that rounds twice ``x @ w.T`` to blocks on its way to ``y``, of 64 columns.

    Without data that is 64 rows, too.
    """
    with Program("rounding", mode="functional") as program:

        def loaded(data: Any) -> Any:
            shape = (64, 64) if data is None else data.shape
            return LinearOffChipLoad(Tensor(shape, data, dtype="float32"), tile=shape)()

        product = Map(Matmul(transposed=True))(loaded(x), loaded(w))
        y = Map(AsType(form))(Map(Add())(product, product))
        for number in range(WAYS.index(way)):
            y = Map(AsType(form))(y) if number else y
            y = Map(Matmul(transposed=True))(y, Map(AsType(form))(loaded(weights)))
        LinearOffChipStore("y")(y)
    return program


def in_blocks(numbers: Array, form: str) -> Array:
    """Return what blocks of ``form`` hold of numbers; those that are not finite stay."""
    finite = np.isfinite(numbers)
    rounded = numbers_of(blocks_of(np.where(finite, numbers, 0), dtype_named(form)))
    return np.where(finite, rounded, numbers)


def expected(form: str, way: str, x: Array, w: Array, weights: Array) -> Array:
    """Return what ``rounding`` stores, of products in float64."""
    second = in_blocks(weights, form).astype(np.float64)
    product = 2 * (x.astype(np.float64) @ w.T.astype(np.float64))
    y = in_blocks(product, form)
    # ml_dtypes would round to float32 first.
    y[:1] = numbers(product[:1], FORMATS[form])
    if way != "stored":
        y = y @ second.T
    return in_blocks(y, form) @ second.T if way == "chain" else y


STEPS = {name: 0.5**each.mantissa_bits for name, each in FORMATS.items()}
"""From an element to the next one, as a part of it."""

_ROW = ("a_bias_of_5_percent_in_a_row",)
_TWO_PERCENT = (*_ROW, "a_bias_of_2_percent", "scaled_by_1_02", "rounded_to_8_bits")
_ELEMENT = "one_element_off_by_half"

BELOW_A_STEP = {
    ("stored", 0.125): (*_ROW, "rounded_to_8_bits"),
    ("stored", 0.25): (*_ROW, _ELEMENT),
    ("stored", 0.5): (*_ROW, _ELEMENT, "one_element_zero", "one_row_scaled"),
    ("product", 0.125): _ROW,
    ("product", 0.25): (*_TWO_PERCENT, _ELEMENT, "one_row_scaled"),
    ("chain", 0.125): (*_TWO_PERCENT, _ELEMENT, "one_row_scaled"),
    ("chain", 0.25): (*_TWO_PERCENT, _ELEMENT, "one_row_scaled", "a_bias_of_5_percent"),
}
BELOW_A_STEP["product", 0.5] = (
    *BELOW_A_STEP["chain", 0.25],
    "a_bias_of_a_half_in_a_row",
)
BELOW_A_STEP["chain", 0.5] = (*BELOW_A_STEP["product", 0.5], "one_element_zero")
"""What is not refused, since ties alone can do as much: one number of 64 rows may be off by a step,
and so may the products with it. Errors of all rows explain less, the more rows there are. Nothing
of it passes a run that is exact."""


def refused(name: str, form: str, way: str, *, exact: bool = False) -> list[bool]:
    """Return for five draws whether a fault is refused; what is right never is."""
    program = rounding(form, way)
    program.expect(y=lambda: None)
    found = []
    for seed in range(5):
        draw = random_numbers(np.random.default_rng(seed), np.dtype(np.float32))
        numbers = FAULTS[name](draw)
        wanted, wrong = (in_blocks(each, form) if way == "stored" else each for each in numbers)
        if np.array_equal(wanted, wrong):
            continue  # blocks hold the same of both
        expectation = program.expected["y"]
        program.expected["y"] = expectation._replace(compute=partial(np.asarray, wanted))
        stored = [each.astype(np.float64 if exact else np.float32) for each in (wrong, wanted)]
        verdicts = [verify(elaborate(program), {"y": each}, {}, exact=exact) for each in stored]
        assert verdicts[0] is not None
        assert verdicts[1] is not None
        assert verdicts[1].verified or not np.isfinite(wanted).all()
        found.append(not verdicts[0].verified)
    return found


CASES = [(name, form, way) for form in FORMATS for way in WAYS for name in FAULTS]


@pytest.mark.parametrize(("name", "form", "way"), spread(CASES, 30))
def test_wrong_data_are_refused(name: str, form: str, way: str) -> None:
    """The fault is found, but for what is listed; in a run that is exact also that."""
    if name not in BELOW_A_STEP[way, STEPS[form]]:
        assert all(refused(name, form, way))
    assert all(refused(name, form, way, exact=True))


@pytest.mark.deep
@pytest.mark.parametrize(("way", "step"), BELOW_A_STEP)
def test_what_is_below_a_step_is_known(way: str, step: float) -> None:
    """The list has nothing that would be refused in all types of that step."""
    for name in BELOW_A_STEP[way, step]:
        forms = [form for form in FORMATS if STEPS[form] == step]
        assert not all(each for form in forms for each in refused(name, form, way))


def test_ways() -> None:
    """Numbers have what the worst of their ways has; integers round nothing, nor does a store."""
    with Program("ways", mode="functional") as program:
        whole = LinearOffChipLoad(Tensor((32, 32), dtype="int32"), tile=(32, 32), name="whole")()
        wide = LinearOffChipLoad(Tensor((32, 32), dtype="float32"), tile=(32, 32), name="wide")()
        blocks = LinearOffChipLoad(Tensor((32, 32), dtype="mxfp4"), tile=(32, 32), name="blocks")()
        LinearOffChipStore("i", name="counts")(Map(Add(), name="twice")(whole, whole))
        once = Map(AsType("bfloat16"), name="once")(wide)
        both = Map(Matmul(), name="both")(once, Map(AsType("bfloat16"), name="read")(blocks))
        LinearOffChipStore("y", name="kept")(Map(AsType("float16"), name="narrow")(both))
    found = {node.name: each for node, each in roundings_of(elaborate(program)).items()}
    exact, wide_unit, unit = Roundings(0.0, 0.0), 2.0**-19, 2.0**-7
    two = 1 + (wide_unit / unit) ** 2
    last = two + 1 + (2.0**-10 / unit) ** 2
    assert found == {
        **dict.fromkeys(("whole", "broadcast_whole_0", "twice", "counts", "blocks"), exact),
        "wide": Roundings(wide_unit, 1.0),
        "once": Roundings(unit, two),
        "read": Roundings(unit, 1.0),
        "both": Roundings(unit, two + 1),
        **dict.fromkeys(("narrow", "kept"), Roundings(unit, last)),
    }


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rows", [1, 64])
def test_what_ties_explain(form: str, rows: int) -> None:
    """An element and a row of what may be off by a step, and of all the part that ties make."""
    shape = rows, 64
    with Program("blocks", mode="functional") as program:
        loaded = LinearOffChipLoad(Tensor(shape, dtype="float32"), tile=shape)()
        LinearOffChipStore("y")(Map(AsType(form))(Map(Add())(loaded, loaded)))
    program.expect(y=lambda: np.ones(shape))
    (output,) = judged(program, {"y": np.ones(shape, np.float32)}).outputs

    # From 448, the largest element of that type, to the least with the next scale it is a seventh.
    step = 1 / 7 if form == "mxfp8_e4m3" else STEPS[form]
    assert (2.0, 2.0**-19) == (output.roundings, output.unit)
    assert pytest.approx(step) == output.step
    noise = 2.0**-19 * 2**0.5
    share = min(1, 32 * (1 / (64 * rows) + 0.25 * noise / (step / 2)))
    assert output.bounds == pytest.approx(
        (3.5 * noise + 1.5 * step, 1.25 * noise + step, 0.6 * noise + share**0.5 * step), rel=1e-12
    )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rows", [64, pytest.param(1024, marks=pytest.mark.deep)])
def test_more_rows_explain_less(form: str, rows: int) -> None:
    """Of 1024 rows a bias of 5 % is refused in every type, of 64 in all but MXFP4."""
    x, w = np.zeros((rows, 64), np.float32), np.zeros((64, 64), np.float32)
    program = rounding(form, "product", x, w)
    wanted = np.random.default_rng(0).standard_normal((rows, 64)).astype(np.float32)
    program.expect(y=lambda: wanted)

    found = judged(program, {"y": wanted + np.float32(0.05)})

    assert found.verified is (form == "mxfp4" and rows == 64)


TIES: dict[str, tuple[float, Callable[[float], float], float]] = {
    "the largest number of a row": (1, lambda step: 16 + 8 * step, 1e-9),
    "one of many": (1, lambda step: 0.5 + step / 4, 1e-9),
    "a row of one number": (0, lambda step: 16 + 8 * step, 1e-9),
    "the scale of a block": (1, lambda _: 16.0, -1e-9),
}
"""What others in the row of a number are multiplied by, the number, and what float32 loses of it.
Numbers are in the middle between two elements, or the least one with a larger scale."""


AT = [(form, way, place) for form in FORMATS for way in WAYS for place in TIES]


@pytest.mark.parametrize(("form", "way", "place"), spread(AT, 20))
def test_ties_are_right_either_way(form: str, way: str, place: str) -> None:
    """Float32 loses what float64 decides a tie by; the result is verified all the same."""
    random = np.random.default_rng(1)
    factor, number_of, lost = TIES[place]
    x, weights = random.standard_normal((2, 64, 64)).astype(np.float32)
    x[0] *= factor
    x[0, 5] = number_of(STEPS[form])
    # Float32 does not see the last column beside the others.
    x = np.concatenate([x / 2, np.full((64, 1), lost, np.float32)], axis=1)
    w = np.concatenate([np.eye(64), np.ones((64, 1))], axis=1).astype(np.float32)
    program = rounding(form, way, x, w, weights)
    wanted = expected(form, way, x, w, weights)
    program.expect(y=lambda: wanted)

    report = simulate(program)

    errors = np.abs(report.outputs["y"] - wanted).max(axis=1) / np.sqrt(np.mean(wanted**2, axis=1))
    assert errors.max() > 1e-3 > np.median(errors)
    assert report.verified, report.verification


def test_a_stream_of_blocks() -> None:
    """Blocks are expected as their numbers."""
    x = np.random.default_rng(2).standard_normal((8, 64)).astype(np.float32)
    for wrong in (0, 1):
        with Program("stream", mode="functional") as program:
            blocks = Map(AsType("mxfp6_e2m3"))(LinearOffChipLoad(x, tile=(8, 64))())
            blocks.expect(lambda: [[[wrong + numbers(x, FORMATS["mxfp6_e2m3"])]]])  # noqa: B023
            LinearOffChipStore("y")(blocks)

        assert simulate(program).verified is not bool(wrong)
