"""Conformance, section 4: memory and channels; names begin with the case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric import Program, Stream, Tile, TileType, simulate
from fabric.extend import ADDRESS_DTYPE
from operators import (
    Bufferize,
    ExpertAddresses,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Metadata,
    RandomOffChipLoad,
    RandomOffChipStore,
    Selectors,
    Streamify,
    Tensor,
)
from tests.operators.driving import FLOAT, Collect, Emit, encode, number_in, tile
from tests.operators.writing import Input, run, write
from tests.own import Anything


def _numbers(text: str, *shape: int) -> Input:
    return text, shape, FLOAT, lambda word: tile(int(word))


def _show(value: Tile) -> str:
    return f"{number_in(value):g}"


def _text(tensor: Any, dims: int) -> str:
    return write(encode(tensor, dims))


def test_b1_bufferize() -> None:
    """B1: two buffers of three tiles; the second carries S1."""
    source = _numbers("0 1 2|S1 3 4 5|S2", 1, 2, 3)
    _, (found,) = run(Bufferize(), source, show=lambda value: str(len(value.elements)))
    assert found == "3 3|S1"


CUBES = [[[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]]


def test_b2_every_buffer_twice() -> None:
    """B2: [1, 3, 2, 2] with one repeat of 2 is [1, 3, 2, 2, 2]; S4 at the very end."""

    def wire(source: Stream) -> Stream:
        return Streamify((2,))(Bufferize(2)(source))

    _, (found,) = run(wire, _numbers(_text([CUBES], 5), 1, 1, 3, 2, 2), show=_show)
    assert found.split()[:8] == ["0", "1|S1", "2", "3|S2", "0", "1|S1", "2", "3|S3"]
    assert _text([[[[cube, cube] for cube in CUBES[0]]]], 6) == found


def test_b3_without_repeats_nothing_changes() -> None:
    """B3: the identity."""
    text = _text(CUBES, 4)
    _, (found,) = run(
        lambda source: Streamify()(Bufferize(2)(source)), _numbers(text, 1, 3, 2, 2), show=_show
    )
    assert text == found


def test_b4_repeats_multiply() -> None:
    """B4: two repeat factors are their product; the original adds them (a bug)."""

    def wire(source: Stream) -> Stream:
        return Streamify((2, 3))(Bufferize()(source))

    _, (found,) = run(wire, _numbers("7 8|S1", 1, 2), show=_show)
    assert _text([[[[7, 8]] * 3] * 2], 4) == found


def test_b5_one_buffer_for_four_references() -> None:
    """B5: one buffer of 2, a reference of 4: S1 after every second tile."""

    def wire(source: Stream, reference: Stream) -> Stream:
        return Streamify()(Bufferize()(source), reference)

    _, (found,) = run(wire, _numbers("7 8|S1", 1, 2), ("0 0 0 0|S1", (1, 4)), show=_show)
    assert found == "7 8|S1 7 8|S1 7 8|S1 7 8|S2"


def test_b6_buffers_as_often_as_a_reference_says() -> None:
    """B6: [2, 3] of [2, 2] buffers, reference [2, 3, 2, 4]: [2, 3, 2, 4, 2, 2]."""
    buffers = [[[[6 * b + n] * 2, [60 + 6 * b + n] * 2] for n in range(3)] for b in range(2)]
    reference = [[[[0] * 4] * 2] * 3] * 2

    def wire(source: Stream, guide: Stream) -> Stream:
        return Streamify()(Bufferize(2)(source), guide)

    _, (found,) = run(
        wire,
        _numbers(_text([buffers], 5), 1, 2, 3, 2, 2),
        (_text([reference], 5), (1, 2, 3, 2, 4)),
        show=_show,
    )
    assert _text([[[[[buffer] * 4] * 2 for buffer in row] for row in buffers]], 7) == found


def test_an_affine_pattern_turns_a_buffer() -> None:
    """A [2, 3] buffer read by columns, each column twice."""

    def wire(source: Stream) -> Stream:
        return Streamify((), (3, 2, 2), (1, 0, 3))(Bufferize(2)(source))

    _, (found,) = run(wire, _numbers("0 1 2|S1 3 4 5|S2", 1, 2, 3), show=_show)
    assert found == "0 3|S1 0 3|S2 1 4|S1 1 4|S2 2 5|S1 2 5|S3"


def _verified(wire: Any, expected: np.ndarray[Any, Any]) -> bool | None:
    with Program("stored") as program:
        wire()
    program.expect(y=lambda: expected)
    return simulate(program, mode="functional").verified


def test_o1_load_buffer_stream_store() -> None:
    """O1: 32x48 in 16x16 tiles comes out as it went in."""
    x = np.random.default_rng(0).normal(size=(32, 48)).astype(np.float32)

    def wire() -> None:
        tiles = LinearOffChipLoad(x, (16, 16))()
        LinearOffChipStore("y")(Streamify()(Bufferize(2)(tiles)))

    assert _verified(wire, x)


def test_o2_load_and_store() -> None:
    """O2: [16, 64, 128] in 1x32 tiles comes out as it went in."""
    x = np.random.default_rng(0).normal(size=(16, 64, 128)).astype(np.float32)
    assert _verified(
        lambda: LinearOffChipStore("y")(LinearOffChipLoad(x, (1, 32))()), x.reshape(-1, 128)
    )


@pytest.mark.parametrize("strides", [(1, 2), (0, 1), (1, 0)])
def test_o3_affine_loads(strides: tuple[int, int]) -> None:
    """O3: transposed order and stride 0, against numpy's own strides."""
    x = np.arange(4 * 2, dtype=np.float32).reshape(4, 2)
    tiles = np.lib.stride_tricks.as_strided(x.reshape(-1), (2, 2), tuple(s * 4 for s in strides))
    assert _verified(
        lambda: LinearOffChipStore("y")(LinearOffChipLoad(x, (1, 1), (2, 2), strides)()), tiles
    )


def test_o4_loads_by_a_reference() -> None:
    """O4: reference [2, 3], tensor of 2x2 tiles: the last tile's stop is 2 + the reference's."""
    x = np.arange(4).reshape(2, 2)
    _, (found,) = run(LinearOffChipLoad(x, (1, 1)), ("0 0 0|S1 0 0 0|S2", (1, 2, 3)), show=_show)
    assert _text([[[x.tolist()] * 3] * 2], 5) == found


def test_o5_random_load() -> None:
    """O5: [256, 128] in 32x32 tiles, experts 1, 0, 4, 7 of four tiles each."""
    weights = np.random.default_rng(0).normal(size=(256, 128)).astype(np.float32)

    def wire() -> None:
        chosen = Selectors(np.array([[1], [0], [4], [7]]), 8)()
        tiles = RandomOffChipLoad(weights, (32, 32))(ExpertAddresses(4)(chosen))
        LinearOffChipStore("y")(tiles)

    rows = np.concatenate([weights[32 * e : 32 * e + 32] for e in (1, 0, 4, 7)])
    stored = rows.reshape(4, 32, 4, 32).swapaxes(1, 2).reshape(-1, 32)
    assert _verified(wire, stored)


def test_o6_random_store() -> None:
    """O6: three 4x128 tiles at 0, 3 and 11 of a zero [64, 128]; one acknowledgement a tile."""
    blocks = {str(i): _block(i) for i in (1, 2, 3)}
    address = TileType(1, 1, ADDRESS_DTYPE)
    store = RandomOffChipStore("y", np.zeros((64, 128)), (4, 128))
    with Program("store") as program:
        places = Emit(
            _kind((3,), address),
            [(Tile(1, 1, ADDRESS_DTYPE, np.array([[n]], ADDRESS_DTYPE)), 0) for n in (0, 3, 11)],
        )()
        data = Emit(_kind((3,), TileType(4, 128, FLOAT.dtype)), [(b, 0) for b in blocks.values()])()
        acknowledged: list[Any] = []
        Collect(acknowledged)(store(places, data))
    expected = np.zeros((64, 128))
    for number, row in ((1, 0), (2, 12), (3, 44)):
        expected[row : row + 4] = number
    program.expect(y=lambda: expected)
    assert simulate(program, mode="functional").verified
    assert acknowledged == [(True, 0)] * 3


@pytest.mark.parametrize("shape", [(8, 16), (2, 4, 16), (2, 2, 2, 2, 8), (128,)])
def test_outputs_have_the_shape_that_is_said(shape: tuple[int, ...]) -> None:
    """Of both stores, in both modes; memory and cycles do not ask for it."""
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)

    def stored(shape: tuple[int, ...] | None, before: Tensor) -> Program:
        with Program("shapes") as program:
            LinearOffChipStore("linear", shape)(LinearOffChipLoad(x, (4, 8))())
            tiles = Flatten(0, 1)(LinearOffChipLoad(x, (4, 8))())
            RandomOffChipStore("random", before, (4, 8))(Metadata(np.array([0, 1, 2, 3]))(), tiles)
        return program

    before = Tensor(shape, np.zeros(shape, np.float32)).viewed((8, 16))
    program = stored(shape, before)
    run, timed = simulate(program, mode="functional"), simulate(program, mode="timing")
    for name in ("linear", "random"):
        found = run.outputs[name]
        assert isinstance(found, np.ndarray)
        assert found.shape == timed.outputs[name].shape == shape
        assert found.tolist() == x.astype(found.dtype).reshape(shape).tolist()
    plain = simulate(stored(None, Tensor.of(np.zeros((8, 16)))), mode="timing")
    assert plain.outputs["linear"].shape == (8, 16)
    assert (plain.cycles, plain.hbm) == (timed.cycles, timed.hbm)


def _block(number: int) -> Tile:
    return Tile(4, 128, FLOAT.dtype, np.full((4, 128), number, FLOAT.dtype))


def _kind(shape: tuple[int, ...], value: Any) -> Any:
    from fabric import StreamType

    return StreamType(shape, value)


@pytest.mark.parametrize(("readers", "rows"), [(2, 8), (16, 128)])
def test_h1_all_responses_arrive(readers: int, rows: int) -> None:
    """H1: every reader gets its tile; no sooner than the channels can serve all requests."""
    seen: list[list[Any]] = [[] for _ in range(readers)]
    with Program("readers") as program:
        for each in seen:
            Collect(each)(LinearOffChipLoad(np.zeros((rows, 1)), (rows, 1))())
    report = simulate(program)
    requests = readers * rows
    assert [1] * readers == [len(each) for each in seen]
    assert report.hbm_bytes_moved == requests * 64
    assert report.cycles is not None
    assert report.cycles >= max(requests * 2 // 32, rows + 18)


def test_d1_elements_are_seen_at_their_stamps() -> None:
    """D1: sent at 0 to 4, each is seen one cycle later; several may be taken in one cycle."""
    with Program("channel", channel_depth=8) as program:
        seen: list[Any] = []
        Collect(seen, (0,))(
            Emit(_kind((5,), Anything()), encode(list(range(5)), 1), (0, 1, 1, 1, 1))()
        )
    report = simulate(program)
    assert [value for value, _ in seen] == [0, 1, 2, 3, 4]
    assert [unit.empty_cycles for unit in report.units] == [0, 5]
