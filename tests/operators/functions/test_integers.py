from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from random import Random
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import operators as op
from fabric import Program, Selector, ShapeError, Tile, TileType, simulate
from operators.functions.elementwise import NUMBERS
from operators.functions.row_functions import Reduced
from operators.functions.steps import Chain, Number, Pointwise
from tests.profiles import examples, spread

Matrix: TypeAlias = list[list[Any]]
Shapes: TypeAlias = tuple[tuple[int, int], ...]

SEEDS = st.integers(0, 2**32).map(Random)

TYPES = {
    each.name: each
    for each in (
        *(np.dtype(bits) for bits in ("bool", "int8", "int16", "int32", "int64")),
        *(np.dtype(bits) for bits in ("uint8", "uint16", "uint32", "uint64")),
        *(
            np.dtype(getattr(ml_dtypes, name))
            for name in ("int1", "int2", "int4", "uint1", "uint2", "uint4")
            if hasattr(ml_dtypes, name)
        ),
    )
}


def ends_of(dtype: Any) -> tuple[int, int]:
    if dtype == np.bool_:
        return 0, 1
    bits = int(dtype.name.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def number_of(random: Random, dtype: Any) -> int:
    least, most = ends_of(dtype)
    near = random.choice((-1, 1)) * 2 ** random.randrange(65) + random.randrange(-1, 2)
    any_one = random.choice((least, most, near, random.randint(least, most)))
    chosen = random.choice((any_one, random.randint(-3, 3)))
    return min(max(chosen, least), most)


def matrix_of(random: Random, dtype: Any, rows: int, cols: int) -> Matrix:
    return [[number_of(random, dtype) for _ in range(cols)] for _ in range(rows)]


def tile_of(matrix: Matrix, dtype: Any) -> Tile:
    # Some types of ml_dtypes do not accept Python's integers.
    word = np.uint64 if dtype == np.uint64 else np.int64
    data = np.array(matrix, word).astype(dtype)
    data.flags.writeable = False
    rows, cols = data.shape
    return Tile(rows, cols, dtype, data)


def numbers_in(tile: Tile) -> Matrix:
    assert tile.data is not None
    return [[int(each) for each in row] for row in tile.data]


def paired(operation: Callable[[Any, Any], Any]) -> Callable[[Matrix, Matrix], Matrix]:
    def oracle(left: Matrix, right: Matrix) -> Matrix:
        rows, cols = max(len(left), len(right)), max(len(left[0]), len(right[0]))
        return [
            [operation(*(x[row % len(x)][col % len(x[0])] for x in (left, right)))
             for col in range(cols)]
            for row in range(rows)
        ]  # fmt: skip

    return oracle


def quotient(left: int, right: int) -> Any:
    return Fraction(left, right) if right else None


def multiplied(left: Matrix, right: Matrix) -> Matrix:
    return [
        [sum(x * y for x, y in zip(row, col, strict=True)) for col in zip(*right, strict=True)]
        for row in left
    ]


def turned(matrix: Matrix) -> Matrix:
    return [list(each) for each in zip(*matrix, strict=True)]


def added(parts: Sequence[Matrix]) -> Matrix:
    return [[sum(each) for each in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)]


@dataclass(frozen=True)
class Case:
    function: Any
    shapes: Shapes
    oracle: Callable[..., Matrix] | None
    wide: bool = False
    narrower: bool = False


SQUARE: Shapes = ((2, 2), (2, 2))
BESIDE: Shapes = ((2, 3), (2, 1))
FACTORS: Shapes = ((2, 3), (3, 2))
CASES = [
    *(
        Case(function, shapes, paired(operation))
        for function, operation in (
            (op.Add(), lambda x, y: x + y),
            (op.Mul(), lambda x, y: x * y),
            (op.Div(), quotient),
            (op.Maximum(), max),
        )
        for shapes in (SQUARE, BESIDE, ((1, 3), (2, 1)))
    ),
    Case(op.ScaledAdd(), BESIDE, paired(lambda x, y: x + y)),
    Case(op.ScaledAdd(3, -2), SQUARE, paired(lambda x, y: 3 * x - 2 * y)),
    Case(op.ScaledAdd(2.0**63, -2.0**70), SQUARE, paired(lambda x, y: 2**63 * x - 2**70 * y)),
    Case(op.ScaledAdd(alpha=0.5), SQUARE, None),
    Case(op.Exp(), ((2, 2),), None),
    Case(op.SiLU(), ((2, 2),), None),
    Case(op.AsType("bfloat16"), ((2, 2),), None),
    Case(op.MaskScores(), SQUARE, None),
    Case(op.RunningMaximum(), ((2, 2),), None),
    Case(op.ShiftedExp(), ((2, 2), (2, 1), (2, 1)), None),
    Case(op.RescaledSum(), ((2, 3), (3, 2), (2, 1), (2, 1)), None),
    Case(op.Matmul(), FACTORS, multiplied),
    Case(op.Matmul(), FACTORS, multiplied, narrower=True),
    Case(op.Matmul(unrounded=True), FACTORS, multiplied, wide=True),
    Case(op.Matmul(transposed=True), ((2, 3), (2, 3)), lambda a, b: multiplied(a, turned(b))),
    Case(op.RowSum(), ((2, 3),), lambda x: [[sum(row)] for row in x]),
    Case(op.RowMaximum(), ((2, 3),), lambda x: [[max(row)] for row in x]),
    Case(op.LeadingCols(2), ((2, 3),), lambda x: [row[:2] for row in x]),
    Case(op.PadRows(3), ((2, 2),), lambda x: [*x, [0, 0]]),
    Case(op.Sum(), ((2, 2),), added),
    Case(op.MatmulSum(), FACTORS, lambda a, b: added(list(map(multiplied, a, b)))),
    Case(op.MatmulSum(unrounded=True), FACTORS, lambda a, b: added(list(map(multiplied, a, b))),
         wide=True),
    Case(op.RetileRow(), ((2, 2),), lambda x: [row for part in x for row in part]),
    Case(op.RetileCol(), ((2, 2),), lambda x: turned([row for part in x for row in turned(part)])),
    Case(op.SplitRows(), ((2, 3),), lambda x: x),
    Case(op.SplitCols(), ((2, 3),), turned),
    Case(op.SplitTiles(rows=1, cols=1), ((2, 2),), lambda x: [[each] for row in x for each in row]),
]  # fmt: skip

# Functions with results of other types, which tests below compare.
ELSEWHERE = {op.AttentionScores, op.CacheWriteAddress, op.OneHot, op.Quotient, op.RowAppend,
             op.SetOffset, op.SignalAllRead}  # fmt: skip


def test_every_function_of_the_library_has_a_case() -> None:
    kinds = (op.Function, op.Reduction, op.Split)
    listed = {
        each
        for name in vars(op)["__all__"]
        if isinstance(each := getattr(op, name), type) and issubclass(each, kinds)
    }
    assert listed - set(kinds) == {type(case.function) for case in CASES} | ELSEWHERE


def outcome(apply: Callable[[], Matrix], wanted: Matrix, dtype: Any, name: str) -> None:
    least, most = ends_of(dtype)
    lacking = [
        (number, [row, col])
        for row, numbers in enumerate(wanted)
        for col, number in enumerate(numbers)
        if number is None or number != int(number) or not least <= number <= most
    ]
    if not lacking:
        assert wanted == apply()
        return
    with pytest.raises(ValueError, match=f"^{name} gives ") as caught:
        apply()
    number, place = lacking[0]
    message = str(caught.value)
    assert f" at {place}: expected a whole number from {least} to {most}, as " in message
    assert number is None or message.startswith(f"{name} gives {number} ")


def computed(function: Any, tiles: Sequence[Sequence[Tile]], dtype: Any) -> Matrix:
    if isinstance(function, op.Reduction):
        result = function.infer(1, *map(_type_of, tiles[0]))
        state = function.start(result, True)
        for element in tiles:
            state = function.update(state, *element)
        found = function.finish(state, result, True)
        assert isinstance(found, Tile)
    elif isinstance(function, op.Split):
        parts = [part for part, _ in function.apply(tiles[0][0])]
        assert {dtype} == {each.dtype for each in parts if isinstance(each, Tile)}
        return [numbers_in(part)[0] for part in parts if isinstance(part, Tile)]
    else:
        found = function.apply(*tiles[0])
    assert found.data is not None
    assert (dtype, dtype) == (found.dtype, found.data.dtype)
    return numbers_in(found)


def _type_of(tile: Tile) -> TileType:
    return TileType(tile.rows, tile.cols, tile.dtype)


@pytest.mark.parametrize("case", spread(CASES, 8), ids=lambda case: f"{case.function}{case.shapes}")
@examples(quick=20, deep=200)
@given(name=st.sampled_from(sorted(TYPES)), random=SEEDS, group=st.integers(1, 3))
def test_functions_are_exact_or_refuse(case: Case, name: str, random: Random, group: int) -> None:
    dtype, function = TYPES[name], case.function
    types = [dtype] * len(case.shapes)
    if case.narrower:
        fewer = [each for each in ("bool", "int4", "int8", "uint16") if _is_factor(name, each)]
        types[1] = TYPES[random.choice(fewer or [name])]
    asked = tuple(TileType(*shape, each) for shape, each in zip(case.shapes, types, strict=True))
    if case.oracle is None:
        with pytest.raises(ShapeError, match=r"expected (floating-point|whole) numbers"):
            function.check("what", asked)
        return
    if not isinstance(function, op.Split):
        function.check("what", asked)
    matrices = [
        [matrix_of(random, each, *shape) for shape, each in zip(case.shapes, types, strict=True)]
        for _ in range(group if isinstance(function, op.Reduction) else 1)
    ]
    tiles = [list(map(tile_of, element, types)) for element in matrices]
    if isinstance(function, op.Reduction):
        wanted = case.oracle(*map(list, zip(*matrices, strict=True)))
    else:
        wanted = case.oracle(*matrices[0])
    result = dtype if not case.wide or name == "uint64" else np.dtype(np.int64)
    outcome(lambda: computed(function, tiles, result), wanted, result, type(function).__name__)


def _is_factor(name: str, fewer: str) -> bool:
    types = tuple(TileType(2, 2, TYPES[each]) for each in (name, fewer))
    try:
        op.Matmul().check("what", types)
    except ShapeError:
        return False
    return True


EXACTLY: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "add": lambda x, y: x + y,
    "add_scaled": lambda x, y, z: x + y * z,
    "and": lambda x, y: bool(x) and bool(y),
    "ceil": lambda x: x,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "copy": lambda x: x,
    "eq": lambda x, y: x == y,
    "floor": lambda x: x,
    "floor_div": lambda x, y: x // y,
    "fmod": lambda x, y: abs(x) % abs(y) * (1 if x > 0 else -1),
    "ge": lambda x, y: x >= y,
    "gt": lambda x, y: x > y,
    "le": lambda x, y: x <= y,
    "lt": lambda x, y: x < y,
    "maximum": max,
    "minimum": min,
    "mul": lambda x, y: x * y,
    "ne": lambda x, y: x != y,
    "neg": lambda x: -x,
    "not": lambda x: not x,
    "or": lambda x, y: bool(x) or bool(y),
    "pow": lambda x, y: x ** (y % 8),
    "relu": lambda x: max(x, 0),
    "remainder": lambda x, y: x % y,
    "round": lambda x: x,
    "sign": lambda x: (x > 0) - (x < 0),
    "square": lambda x: x * x,
    "sub": lambda x, y: x - y,
    "sub_scaled": lambda x, y, z: x - y * z,
    "trunc": lambda x: x,
    "where": lambda x, y, z: y if x else z,
    "xor": lambda x, y: bool(x) != bool(y),
}
ARGUMENTS = {1: ("abs", "ceil", "copy", "floor", "neg", "not", "relu", "round", "sign", "square",
                 "trunc"),
              3: ("add_scaled", "clamp", "sub_scaled", "where")}  # fmt: skip

DIVISIONS = ("floor_div", "fmod", "remainder")


@pytest.mark.parametrize("name", DIVISIONS)
def test_division_of_integers_by_zero_is_refused(name: str) -> None:
    step = Pointwise((0, 1), np.dtype(np.int32), name)
    tiles = [tile_of([[each]], np.dtype(np.int32)) for each in (7, 0)]
    with pytest.raises(ValueError, match=r"^a whole number is divided by 0: expected a divisor"):
        Chain(2, (step,)).apply(*tiles)


@pytest.mark.parametrize("name", spread(NUMBERS, 12))
@examples(quick=15, deep=100)
@given(dtype=st.sampled_from(list(TYPES.values())), random=SEEDS)
def test_pointwise_steps_are_exact_or_refuse(name: str, dtype: Any, random: Random) -> None:
    if name not in EXACTLY:
        function = NUMBERS[name].function
        count = getattr(function, "nin", None) or function.__code__.co_argcount
        step = Pointwise(tuple(range(count)), dtype, name)
        with pytest.raises(ValueError, match=f"^{name} gives integers: expected floating-point"):
            Chain(count, (step,)).apply(*[tile_of([[1]], dtype)] * count)
        return
    count = next((each for each, names in ARGUMENTS.items() if name in names), 2)
    drawn = [number_of(random, dtype) for _ in range(count)]
    if name == "pow":
        drawn[1] = min(drawn[1] % 8, ends_of(dtype)[1])
    if name in DIVISIONS and not drawn[1]:
        drawn[1] = ends_of(dtype)[1] or -1
    fixed = random.randint(1, count)
    step = Pointwise((*range(fixed), *map(Number, drawn[fixed:])), dtype, name)
    tiles = [tile_of([[each]], dtype) for each in drawn[:fixed]]
    chain = Chain(fixed, (step,))
    outcome(lambda: computed(chain, [tiles], dtype), [[EXACTLY[name](*drawn)]], dtype, name)


@pytest.mark.parametrize(
    ("name", "oracle"),
    spread([("sum", sum), ("prod", prod), ("amax", max), ("amin", min),
     ("all", all), ("any", any)], 2),
)  # fmt: skip
@examples(quick=20)
@given(dtype=st.sampled_from(list(TYPES.values())), random=SEEDS, cols=st.integers(1, 5))
def test_reduced_rows_are_exact_or_refuse(
    name: Any, oracle: Any, dtype: Any, random: Random, cols: int
) -> None:
    (row,) = matrix_of(random, dtype, 1, cols)
    function = Chain(1, (Reduced((0,), dtype, name=name),))
    tiles = [[tile_of([row], dtype)]]
    outcome(lambda: computed(function, tiles, dtype), [[oracle(row)]], dtype, name)


@examples(quick=50, deep=1_000)
@given(
    dtype=st.sampled_from(list(TYPES.values())),
    name=st.sampled_from(("int4", "int8", "int64", "uint16", "uint64", "bool")),
    random=SEEDS,
)
def test_quotients_of_another_type_are_exact_or_refuse(
    dtype: Any, name: str, random: Random
) -> None:
    result = TYPES[name]
    left, right = (number_of(random, dtype) for _ in range(2))
    tiles = [tile_of([[each]], dtype) for each in (left, right)]
    wanted = [[quotient(left, right)]]
    outcome(lambda: computed(op.Quotient(name), [tiles], result), wanted, result, "Quotient")


@examples(quick=25, deep=500)
@given(dtype=st.sampled_from(list(TYPES.values())), random=SEEDS)
def test_scores_are_exact_products_rounded_once(dtype: Any, random: Random) -> None:
    queries, keys = (matrix_of(random, dtype, 2, 3) for _ in range(2))
    with np.errstate(over="ignore"):
        found = op.AttentionScores(1.0).apply(tile_of(queries, dtype), tile_of(keys, dtype))
        exact = np.array(multiplied(queries, turned(keys)), object).astype(np.float32)
    assert found.data is not None
    assert exact.tolist() == found.data.tolist()


@examples(quick=50, deep=1_000)
@given(
    dtype=st.sampled_from(list(TYPES.values())),
    counted=st.sampled_from([each for name, each in TYPES.items() if name != "bool"]),
    random=SEEDS,
)
def test_counts_and_places_of_any_type_are_exact_or_refused(
    dtype: Any, counted: Any, random: Random
) -> None:
    rows = matrix_of(random, dtype, 3, 2)
    tile, last = tile_of(rows, dtype), tile_of(rows[:1], dtype)
    number = number_of(random, counted)
    count = tile_of([[number]], counted)

    assert refused(op.SetOffset(), tile, count) is not (0 <= number <= 3)
    if 0 <= number <= 3:
        found = op.SetOffset().apply(tile, count)
        assert (rows, number) == (numbers_in(found), found.valid_rows)
        assert refused(op.RowAppend(), found, last) is (number == 3)
        if number < 3:
            after = numbers_in(op.RowAppend().apply(found, last))
            assert [*rows[:number], rows[0], *rows[number + 1 :]] == after
    assert refused(op.OneHot(4), count) is not (0 <= number < 4)
    if 0 <= number < 4:
        assert Selector((number,), 4) == op.OneHot(4).apply(count)
    address = number * 2**40 + number - 1
    function = op.CacheWriteAddress(stride=2**40)
    held = number > 0 and address < 2**64
    assert refused(function, count, count) is not held
    if held:
        assert [[address]] == numbers_in(function.apply(count, count))
    result = op.SignalAllRead().infer(1, _type_of(tile))
    signal = op.SignalAllRead().finish(None, result, True)
    assert isinstance(signal, Tile)
    assert [[1]] == numbers_in(signal)


def refused(function: op.Function, *tiles: Tile) -> bool:
    try:
        function.apply(*tiles)
    except ValueError:
        return True
    return False


def test_overflow_is_reported_at_its_operator() -> None:
    x = np.array([[1, 7], [0, 3]]).astype(ml_dtypes.int4)
    with Program("overflow", mode="functional") as program:
        tiles = op.LinearOffChipLoad(x, tile=(2, 2))()
        op.LinearOffChipStore("y")(op.Map(op.Add(), name="twice")(tiles, tiles))
    error = simulate(program).error

    assert error is not None
    assert error["file"] == __file__
    assert (
        "twice: ValueError: Add gives 14 from 7 and 7 at [0, 1]: expected a whole number from -8 "
        "to 7, as int4 holds them, at cycle 22, element 0"
    ) == error["message"]
