"""Conformance, section 3: shape operators, stop for stop; names begin with the case."""

from __future__ import annotations

from typing import Any

import pytest

from fabric import Program, Stream, StreamType, Tile
from operators import Expand, Flatten, Promote, Repeat, Reshape
from tests import definitions
from tests.operators.driving import FLOAT, Emit, encode, number_in, tile
from tests.operators.writing import run, write


def _numbered(*shape: int) -> str:
    """Return a regular tensor of 0, 1, ... as text, its outermost dimension closed as well."""
    count = iter(range(1000))

    def part(axis: int) -> Any:
        return [part(axis + 1) for _ in range(shape[axis])] if axis < len(shape) else next(count)

    return write(encode([part(0)], len(shape) + 1))


def _show(value: Tile) -> str:
    number = number_in(value)
    return "pad" if number is None else f"{number:g}"


def _only(wire: Any, text: str, *shape: int) -> str:
    _, (found,) = run(wire, (text, (1, *shape)))
    return found


def test_s1_flatten_joins_the_inner_dimensions() -> None:
    """S1: Flatten(0, 1) of [3, 2, 4] is [3, 8]."""
    assert _numbered(3, 8) == _only(Flatten(0, 1), _numbered(3, 2, 4), 3, 2, 4)


def test_s2_flatten_of_single_elements() -> None:
    """S2: Flatten(0, 1) of [3, 2, 1]: S1 disappears, S2 becomes S1."""
    assert _numbered(3, 2, 1) == "0|S1 1|S2 2|S1 3|S2 4|S1 5|S3"
    assert _only(Flatten(0, 1), _numbered(3, 2, 1), 3, 2, 1) == "0 1|S1 2 3|S1 4 5|S2"


def test_s3_flatten_of_inner_levels() -> None:
    """S3: Flatten(1, 3) of [5, 2, 3, 2, 4] is [5, 12, 4]."""
    assert _numbered(5, 12, 4) == _only(Flatten(1, 3), _numbered(5, 2, 3, 2, 4), 5, 2, 3, 2, 4)


def test_s4_promote_outermost() -> None:
    """S4: the last stop rises by one, the others stay."""
    found = _only(Promote(2), "0 1 2 3 5|S1 0 1 2 3 5|S2", 2, 5)
    assert found == "0 1 2 3 5|S1 0 1 2 3 5|S3"


@pytest.mark.parametrize(
    ("inside", "shape"),
    [
        (0, (2, 3, 4, 5, 1)),
        (1, (2, 3, 4, 1, 5)),
        (2, (2, 3, 1, 4, 5)),
        (3, (2, 1, 3, 4, 5)),
        (4, (1, 2, 3, 4, 5)),
        (None, (1, 2, 3, 4, 5)),
    ],
)
def test_s4_promoted_shape(inside: int | None, shape: tuple[int, ...]) -> None:
    """S4: a dimension of 1 with ``inside`` dimensions inside of it, outermost by default."""
    with Program("shapes"):
        tiles = Emit(StreamType((2, 3, 4, 5), FLOAT), [])()
        assert shape == Promote(inside)(tiles).shape


def test_s4_promote_outermost_by_default() -> None:
    """S4: a new outermost dimension of 1 closes with the stream."""
    _, (found,) = run(Promote(), ("0 1|S1 2 3|S1", (2, 2)))
    assert found == "0 1|S1 2 3|S2"


def test_s5_promote_rank_0() -> None:
    """S5: every element becomes a group of its own."""
    assert _only(Promote(0), "0 1 2|S1", 3) == "0|S1 1|S1 2|S2"


def test_s6_promote_rank_0_of_a_rank_0_stream() -> None:
    """S6: without stops before, S1 on every element."""
    _, (found,) = run(Promote(0), ("0 1", (2,)))
    assert found == "0|S1 1|S1"


def _chunks(wire: Any, text: str, *shape: int) -> list[str]:
    def both(source: Stream) -> Any:
        return wire(source)

    _, found = run(both, (text, shape, FLOAT, lambda word: tile(int(word))), show=_data_or_flag)
    return found


def _data_or_flag(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else _show(value)


def test_s7_reshape_pads_every_row() -> None:
    """S7: [3, 9] in chunks of 4 is [3, 3, 4] with three padding tiles a row."""
    found, flags = _chunks(Reshape(4, pad=0.0), _numbered(3, 9), 1, 3, 9)
    assert found.split()[8:13] == ["8", "pad", "pad", "pad|S2", "9"]
    assert found.split()[-4:] == ["26", "pad", "pad", "pad|S3"]
    assert [9, 27, 36] == [found.count("pad"), flags.count("0"), len(found.split())]


def test_s8_reshape_of_a_rank_0_stream() -> None:
    """S8: 9 elements without stops: S1 after every 4, the last group padded."""
    found, flags = _chunks(Reshape(4, pad=0.0), "0 1 2 3 4 5 6 7 8", 9)
    assert found == "0 1 2 3|S1 4 5 6 7|S1 8 pad pad pad|S1"
    assert flags == "0 0 0 0|S1 0 0 0 0|S1 0 1 1 1|S1"


def test_s9_reshape_with_an_outer_dimension() -> None:
    """S9: as S8, with S2 on the very last."""
    found, _ = _chunks(Reshape(4, pad=0.0, outermost=True), "0 1 2 3 4 5 6 7 8", 9)
    assert found == "0 1 2 3|S1 4 5 6 7|S1 8 pad pad pad|S2"


def test_s10_reshape_with_an_outer_dimension_without_padding() -> None:
    """S10: S1, S1, S2: the last chunk waits for the end."""
    found, _ = _chunks(Reshape(3, pad=0.0, outermost=True), "0 1 2 3 4 5 6 7 8", 9)
    assert found == "0 1 2|S1 3 4 5|S1 6 7 8|S2"


def test_s11_reshape_in_chunks_of_one() -> None:
    """S11: [3, 2] becomes [3, 2, 1]."""
    found, _ = _chunks(Reshape(1), _numbered(3, 2), 1, 3, 2)
    assert found == "0|S1 1|S2 2|S1 3|S2 4|S1 5|S3"


def test_s12_reshape_of_an_outer_dimension() -> None:
    """S12: dimension 1 of [5, 6, 4] in chunks of 3 is [5, 2, 3, 4]."""
    found, _ = _chunks(Reshape(3, 1), _numbered(5, 6, 4), 1, 5, 6, 4)
    assert _numbered(5, 2, 3, 4) == found


@pytest.mark.parametrize(
    ("text", "split", "flags"),
    [
        ("-2|S3 0|S1 1|S3", "-3|S4 0|S1 1|S4", "-3|S4 0|S1 0|S4"),
        ("0|S1 1|S1 -1|S3 -2|S3", "0|S1 1|S2 -2|S4 -3|S4", "0|S1 0|S2 -2|S4 -3|S4"),
    ],
)
def test_reshape_behind_empty_tensors(text: str, split: str, flags: str) -> None:
    """[2, B, 2, 1] becomes [2, B, 1, 2, 1]; what is empty, or closed late, is one further out."""
    assert [split, flags] == _chunks(Reshape(2, 1), text, 2, 1, 2, 1)


def test_s13_repeat() -> None:
    """S13: every element three times, its stop one higher on the last copy."""
    assert _only(Repeat(3), "0 1|S1", 2) == "0 0 0|S1 1 1 1|S2"


def test_s14_expand_a_single_element() -> None:
    """S14: one element for a reference of three."""
    _, (found,) = run(Expand(1), ("1", (1,)), ("5 6 7", (3,)))
    assert found == "1 1 1"


def test_s15_expand_two_dimensions() -> None:
    """S15: [2, 3, 1, 1] as [2, 3, 2, 4]: value i eight times with the reference's stops."""
    source = "1|S2 2|S2 3|S3 4|S2 5|S2 6|S4"
    reference = _numbered(2, 3, 2, 4)
    _, (found,) = run(Expand(2), (source, (1, 2, 3, 1, 1)), (reference, (1, 2, 3, 2, 4)))
    parts = [[[[i] * 4] * 2 for i in row] for row in ((1, 2, 3), (4, 5, 6))]
    assert write(encode([parts], 5)) == found


@pytest.mark.parametrize(
    ("text", "flat"),
    [("-1|S2 -1|S3", "-0|S1 -0|S2"), ("-0|S1 -0|S2 0|S3", "-0|S1 0|S2"), ("0|S1 -0|S3", "0 -0|S2")],
)
def test_flatten_of_empty_tensors(text: str, flat: str) -> None:
    """[2, 0, 3] becomes [2, 0]; a part that is empty leaves a stop that only closes."""
    assert flat == _only(Flatten(0, 1), text, 2, 2, 2)


def test_definitions_agree_on_flatten() -> None:
    """The written-out cases and the definitions are of one mind."""
    assert definitions.flatten(1, 3, 5, [[[[[1, 2]]], [[[3, 4]]]]]) == [[[1, 2], [3, 4]]]
