"""What each task of attention reads, against a walk over the mask, one score after the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, simulate
from operators.kernels.attention import plan_attention
from operators.kernels.attention_keys import Heads, Mask, Part, Visits, causal, visits
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from operators.map import Map
from operators.off_chip_load import RandomOffChipLoad
from operators.partition import Partition
from operators.reassemble import Reassemble
from operators.sources import Consumer, RaggedIntegers
from tests.operators.kernels.driving import driven
from tests.profiles import examples

SIZES = st.integers(1, 3)
LOWEST = float(np.finfo(np.float32).min)


@st.composite
def tilings(draw: st.DrawFn) -> tuple[Heads, tuple[Part, ...]]:
    """Attention in any tiles; the last tile of what is in memory may have fewer rows."""
    rows, columns = draw(SIZES), draw(SIZES)
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            parts.append(Part(draw(st.integers(1, 6)), columns, knows_rows=False))
        else:
            own = draw(st.integers(1, columns))
            parts.append(Part(own * draw(SIZES), own, knows_rows=True))
    sizes = draw(SIZES), draw(SIZES), draw(SIZES)
    return Heads(*sizes, rows * draw(SIZES), rows, columns), tuple(parts)


def _scores(heads: Heads, parts: tuple[Part, ...], found: Visits) -> NDArray[np.float64]:
    """What each query adds to the score of each key: minus infinity where it is hidden."""
    keys = sum(part.count for part in parts)
    result = np.full((heads.batch, heads.heads, heads.queries, keys), -np.inf)
    stored = found.table()
    table = stored.astype(np.float64)
    if stored.dtype == np.bool_:
        table = np.where(stored, 0.0, -np.inf)
    columns = _columns(parts)
    tasks = itertools.product(range(heads.batch), range(heads.query_tiles), range(heads.key_heads))
    for (request, tile, key_head), seen, masks in zip(tasks, found.tiles, found.masks, strict=True):
        for key_tile, number in zip(seen, masks, strict=True):
            bias = np.zeros((1, heads.columns))
            if number >= 0:
                bias = table[number * found.rows : (number + 1) * found.rows]
            bias = np.tile(bias, (heads.group * heads.rows // len(bias), 1))
            for member, row in itertools.product(range(heads.group), range(heads.rows)):
                for column, key in enumerate(columns[key_tile]):
                    place = request, key_head * heads.group + member, tile * heads.rows + row, key
                    result[place] = bias[member * heads.rows + row, column]
            # What is behind the keys of a part has valid rows, or is hidden by the mask.
            behind = bias[:, len(columns[key_tile]) :]
            assert _knows_rows(parts, key_tile) or np.isneginf(behind).all()
    return result


def _columns(parts: tuple[Part, ...]) -> list[list[int]]:
    """Which keys each tile has."""
    found, first = [], 0
    for part in parts:
        for tile in range(0, part.count, part.rows):
            end = min(tile + part.rows, part.count)
            found.append(list(range(first + tile, first + end)))
        first += part.count
    return found


def _knows_rows(parts: tuple[Part, ...], tile: int) -> bool:
    return [part.knows_rows for part in parts for _ in range(part.tiles)][tile]


def _mask(array: NDArray[np.generic]) -> Mask:
    batch, heads, rows, keys = array.shape
    return Mask((batch, heads, rows, keys), lambda: array, array.dtype)


@examples(quick=50, deep=200)
@given(tilings(), st.data())
def test_is_the_mask(tiling: tuple[Heads, tuple[Part, ...]], data: st.DataObject) -> None:
    """Tiles, masks and what is left out together say what the mask says; nothing else is read."""
    heads, parts = tiling
    keys = sum(part.count for part in parts)
    shape = (
        data.draw(st.sampled_from([1, heads.batch])),
        data.draw(st.sampled_from([1, heads.heads])),
        data.draw(st.sampled_from([1, heads.queries])),
        keys,
    )
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    hidden = random.random(shape) < data.draw(st.sampled_from([0.0, 0.5, 0.9]))
    mask: NDArray[np.generic] = ~hidden
    wanted = np.where(hidden, -np.inf, 0.0)
    if data.draw(st.booleans()):
        wanted = np.where(hidden, -np.inf, random.integers(0, 2, shape))
        mask = wanted.astype(np.float32)

    found = visits(heads, parts, _mask(mask))

    whole = np.broadcast_to(wanted, (heads.batch, heads.heads, heads.queries, keys))
    np.testing.assert_array_equal(whole, _scores(heads, parts, found))
    columns = _columns(parts)
    split = whole.reshape(heads.batch, heads.key_heads, -1, heads.query_tiles, heads.rows, keys)
    seen = np.isfinite(split).any(axis=(2, 4)).transpose(0, 2, 1, 3).reshape(-1, keys)
    assert [
        tuple(tile for tile, own in enumerate(columns) if task[own].any()) for task in seen
    ] == list(found.tiles)
    tiles = found.table().reshape(found.count, found.rows, heads.columns)
    assert len({each.tobytes() for each in tiles}) == found.count


def test_without_a_mask() -> None:
    """Everything is seen, and only the end of what does not fill its last tile takes a mask."""
    heads = Heads(1, 1, 2, 2, 1, 4)

    found = visits(heads, (Part(6, 4, knows_rows=False), Part(2, 2, knows_rows=True)), None)

    assert ((0, 1, 2),) * 2 == found.tiles
    assert ((-1, 0, -1),) * 2 == found.masks
    assert [[True, True, False, False]] == found.table().tolist()


def test_causal_masks_are_one_tile() -> None:
    """Of 64 x 64 scores in tiles of 8 x 8 those on the diagonal are alike."""
    heads = Heads(1, 1, 1, 64, 8, 8)

    found = visits(heads, (Part(64, 8, knows_rows=False),), causal(64, 64))

    assert tuple(tuple(range(task + 1)) for task in range(8)) == found.tiles
    assert tuple((*(-1,) * task, 0) for task in range(8)) == found.masks
    np.testing.assert_array_equal(np.tri(8, dtype=np.bool_), found.table())


@pytest.mark.parametrize(("others", "expected"), [(0.0, ((0,),)), (LOWEST, ((0, 1),))])
def test_lowest_number(others: float, expected: tuple[tuple[int, ...], ...]) -> None:
    """It hides a key, but not where all keys of a query have it: their scores then all count."""
    bias = np.array([others, others, LOWEST, LOWEST], np.float32).reshape(1, 1, 1, 4)

    found = visits(Heads(1, 1, 1, 1, 1, 2), (Part(4, 2, knows_rows=False),), _mask(bias))

    assert expected == found.tiles


def _view(*shape: int, is_computed: bool = False) -> View:
    dtype = np.dtype(np.float32)
    if is_computed:
        return View.of(Computed("x", shape, dtype, Layout.tiled(shape, (1, 1, *shape[2:]))))
    return View.of(Stored.of("x", shape, dtype, None))


@pytest.mark.parametrize(
    ("keys", "wish", "columns", "padded"),
    [
        (12, 4, 4, 12),
        (10, 4, 2, 10),
        (3, 8, 3, 3),
        # Half the wish is enough; what is less than that is padded, and so is what is more.
        (14, 6, 6, 18),
        (97, 16, 16, 112),
        (22, 4, 2, 22),
        (26, 6, 6, 30),
    ],
)
def test_tiles_of_keys(keys: int, wish: int, columns: int, padded: int) -> None:
    """In memory near the wish; those that a kernel gives are divided."""
    schedule = Schedule(tile_keys=wish, tile_rows=4)

    def heads(*parts: View) -> Heads:
        queries = _view(2, 6, 20, 8)
        return plan_attention(
            "a", queries, parts, parts, None, scale=1.0, dtype=queries.dtype, schedule=schedule
        ).heads

    found = heads(_view(2, 6, keys, 8))
    assert Heads(2, 6, 1, 20, 4, columns) == found
    assert (2 * 6 * 5, 5, 6) == (found.tasks, found.query_tiles, found.heads)
    assert Part(keys, columns, knows_rows=False).tiles * columns == padded
    assert keys % heads(_view(2, 6, keys, 8, is_computed=True)).columns == 0
    # Three heads that an expand made of one are a group; of two parts the wider tiles count.
    shared = _view(2, 2, 1, keys, 8).expanded((2, 2, 3, keys, 8)).reshaped((2, 6, keys, 8))
    assert Heads(2, 2, 3, 20, 4, columns) == heads(shared)
    assert max(columns, wish) == heads(shared, _view(2, 6, 2 * wish, 8)).columns


@pytest.mark.parametrize("is_computed", [False, True])
def test_tiles_of_heads_that_are_interleaved(is_computed: bool) -> None:
    """Where no row of a head can be read whole, tiles are those wished for, not single rows."""
    inputs = _view(1, 1, 4, 6, is_computed=is_computed).reshaped((4, 2, 3))
    queries = inputs.permuted((2, 0, 1)).reshaped((1, 1, 8, 3))
    keys = _view(1, 1, 12, 3)
    schedule = Schedule(tile_keys=4, tile_rows=4)
    found = plan_attention(
        "a", queries, (keys,), (keys,), None, scale=1.0, dtype=keys.dtype, schedule=schedule
    ).heads
    assert Heads(1, 1, 1, 8, 4, 4) == found


def _sees(*keys: slice, offset: int | None = None) -> Mask:
    """Return the mask of four queries that see some of eight keys, each up to ``offset`` behind."""
    array = np.zeros((1, 1, 4, 8), np.bool_)
    for each in keys:
        array[..., each] = True
    if offset is not None:
        array &= np.arange(8) <= np.arange(4)[:, None] + offset
    return _mask(array)


ALL, FIRST, NOT_ONE, NOT_TWO = slice(8), slice(4), slice(1, 8), slice(1, 7)


@pytest.mark.parametrize(
    ("places", "mask", "regions", "counts"),
    [
        # Loads by address, Partition, Reassemble, Consumer, RaggedIntegers and Map.
        ("s", None, 1, (2, 0, 0, 0, 0, 3)),
        ("s", _sees(ALL), 1, (2, 0, 0, 0, 0, 3)),
        ("s", _sees(FIRST), 1, (2, 0, 0, 0, 0, 3)),
        ("c", None, 1, (0, 0, 0, 0, 0, 3)),
        # Masks are one load and one Map more; tiles that need none pass by.
        ("s", _sees(NOT_TWO), 1, (3, 0, 0, 0, 0, 4)),
        ("s", _sees(NOT_ONE), 1, (3, 1, 1, 0, 0, 4)),
        ("c", _sees(NOT_ONE), 1, (1, 1, 1, 0, 0, 4)),
        # Of what a kernel gives, what no query sees is dropped.
        ("c", _sees(FIRST), 1, (0, 2, 2, 2, 0, 3)),
        # Tasks that see one tile and two: three lists of numbers, each as long as it is.
        ("s", _sees(ALL, offset=2), 1, (3, 1, 1, 0, 3, 5)),
        ("c", _sees(ALL, offset=2), 1, (1, 3, 3, 2, 3, 7)),
        # Keys and values of two places are put together; smaller tiles are filled up.
        ("sc", None, 1, (2, 0, 2, 0, 0, 3)),
        ("ss", None, 1, (4, 0, 2, 0, 0, 3)),
        ("sn", None, 1, (2, 0, 2, 0, 0, 5)),
        ("cn", None, 1, (0, 0, 2, 0, 0, 5)),
        # Regions have all of it, as far as there are tasks: four.
        ("s", None, 2, (4, 0, 1, 0, 0, 6)),
        ("c", None, 3, (0, 0, 1, 0, 0, 9)),
        ("s", _sees(NOT_ONE), 4, (12, 4, 5, 0, 0, 16)),
        ("s", None, 9, (8, 0, 1, 0, 0, 12)),
    ],
)
def test_operators(places: str, mask: Mask | None, regions: int, counts: tuple[int, ...]) -> None:
    """As few as it takes: for keys that are stored, computed and computed in tiles of two rows."""
    dtype = np.dtype(np.float32)

    def computed(shape: tuple[int, ...], rows: int) -> View:
        layout = Layout.tiled(shape, (1, 1, rows, shape[-1]))
        return View.of(Computed("x", shape, dtype, layout))

    parts = {
        "s": _view(1, 2, 8, 8),
        "c": computed((1, 2, 8, 8), 4),
        "n": computed((1, 2, 2, 8), 2),
    }
    keys = [parts[place] for place in places]
    schedule = Schedule(tile_rows=2, tile_keys=4, attention_regions=regions)
    kernel = plan_attention(
        "a", computed((1, 2, 4, 8), 2), keys, keys, mask, scale=1.0, dtype=dtype, schedule=schedule
    )

    data = {each.view.source: np.zeros(each.view.source.shape) for each in kernel.operands}
    program = driven(kernel, data, lambda: np.zeros((1, 2, 4, 8)))

    kinds = RandomOffChipLoad, Partition, Reassemble, Consumer, RaggedIntegers, Map
    operators = [node.operator for node in program.nodes]
    assert counts == tuple(sum(isinstance(each, kind) for each in operators) for kind in kinds)
    assert simulate(program, mode="timing").status == "completed"
