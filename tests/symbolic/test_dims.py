"""Dimensions as expressions: what simplifies, what is equal, what is said to be unknown."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

# Any: a program that has what is asked for.
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.symbolic.substitution import Substitution, followed, peaks
from fabric.graph.values.dims import (
    Dim,
    at_least_one,
    ceil_div,
    dim_text,
    is_polynomial_in,
    is_ragged,
    is_total,
    least_of,
    product,
    same,
    short_text,
    symbol,
    undecided_in,
    with_totals,
)
from fabric.graph.values.stream_type import BufferType, StreamType, TileType, TupleType
from fabric.graph.wiring.operator import Wiring
from fabric.graph.wiring.program import Program

D, E = symbol("D"), symbol("E")
N = symbol("n", ragged=True)


class TestText:
    @pytest.mark.parametrize(
        ("dim", "text"),
        [
            (ceil_div(D, 16), "ceil(D/16)"),
            (ceil_div(ceil_div(D, 4), 4), "ceil(D/16)"),
            (ceil_div(16 * ceil_div(D, 16), 16), "ceil(D/16)"),
            (ceil_div(16 * D, 16), "D"),
            (ceil_div(D, 1), "D"),
            (ceil_div(D + 33, 16), "ceil((D + 1)/16) + 2"),
            (ceil_div(at_least_one(D), 8), "min(1, D)"),
            (at_least_one(at_least_one(D)), "min(1, D)"),
            (at_least_one(ceil_div(D, 4)), "min(1, D)"),
            (at_least_one(3 * D), "min(1, D)"),
            (product((at_least_one(D), D)), "D"),
            (product((at_least_one(D), ceil_div(D, 16))), "ceil(D/16)"),
            (product((at_least_one(D), at_least_one(D))), "min(1, D)"),
            (product((at_least_one(D), E)), "E*min(1, D)"),
            (product((D, 4)), "4*D"),
            (product((D, 0)), "0"),
            (N, "n~"),
        ],
    )
    def test_simplified(self, dim: Dim, text: str) -> None:
        """Roundings of roundings, and flags beside what they are flags of, disappear."""
        assert text == dim_text(dim)

    def test_long_sums_are_folded(self) -> None:
        """Many terms alike are written once, with the range of what differs; few are not."""
        terms = [ceil_div(symbol(f"D_route[{i}]"), 4) for i in range(6)]

        assert "sum(ceil(D_route[0..5]/4))" == short_text(sum(terms))
        assert "ceil(D_route[0]/4) + ceil(D_route[1]/4)" == short_text(sum(terms[:2]))
        assert "E*(sum(ceil(D_route[0..5]/4)))" == short_text(product((E, sum(terms))))
        assert ["D/E", "-D", "D - E"] == [short_text(dim) for dim in (D / E, -D, D - E)]


class TestEqual:
    @pytest.mark.parametrize(
        ("left", "right", "equal"),
        [
            (3, 3, True),
            (3, 4, False),
            (D, D, True),
            (D, E, None),
            (D, 3, None),
            (D + 1, D, False),
            (0, D + 1, False),
            (D, 2 * D, None),
            (2 * (D + 1), 2 * D + 2, True),
            (ceil_div(D, 4), ceil_div(D, 4), True),
            (ceil_div(D + 16, 16), ceil_div(D, 16) + 1, True),
            (ceil_div(D, 4), D, None),
            (D * E + D + 3, D, False),
            (1, D - 1, None),
            (D + 1, E, None),
            ((D + 1) * (D + 2) * 3, 3 * D * D + 9 * D + 6, True),
            ((D + 1) * E / D, E + E / D, True),
            ((D + 1) ** 2 / E, D * D / E + 2 * D / E + 2 / E, None),
            (ceil_div(D * (E + 1), 4), ceil_div(D * E + D, 4), True),
            (at_least_one(D * (E + 1)), at_least_one(D * E + D), True),
            (at_least_one(D * (E + 1)), at_least_one(D * E + D) + 1, False),
        ],
    )
    def test_decided(self, left: Dim, right: Dim, equal: bool | None) -> None:
        """Equality is decided where it can be, either way round."""
        assert (equal, equal) == (same(left, right), same(right, left))

    def test_undecided_is_noted(self) -> None:
        """What cannot be decided is told to whoever asks; what can be is not."""
        with undecided_in() as pairs:
            same(D, E)
            same(D, D)
            same(D + 1, D)

        assert [(D, E)] == pairs


def evaluated(dim: Dim, d: Any, e: Any = 0) -> Any:
    """The value of ``dim``."""
    return Substitution({D: d, E: e}).dim(dim)


@given(d=st.integers(0, 100), e=st.integers(0, 100), k=st.integers(1, 20), m=st.integers(1, 20))
def test_simplifying_keeps_values(d: int, e: int, k: int, m: int) -> None:
    """Whatever was simplified has the value of the plain arithmetic."""
    assert -(-d // k) == evaluated(ceil_div(D, k), d)
    assert math.ceil(math.ceil(Fraction(d, k)) / m) == evaluated(ceil_div(ceil_div(D, k), m), d)
    assert -(-(k * d + m * e + 7) // m) == evaluated(ceil_div(k * D + m * E + 7, m), d, e)
    assert min(d, 1) * -(-d // k) * e == evaluated(
        product((at_least_one(D), ceil_div(D, k), E)), d, e
    )
    assert -(-max(d - k + 1, 1 - k) // k) == evaluated(ceil_div(D - k + 1, k), d)


def test_means_are_exact() -> None:
    """The mean of a ragged symbol stays a fraction; roundings of it round up."""
    half = Fraction(33, 2)
    at = Substitution({N: half})

    assert half * 4 == at.dim(4 * N)
    assert 2 == at.dim(ceil_div(N, 16))
    # What is no whole number stays inside, also where the divisor divides what is in front of it.
    assert 1 == evaluated(ceil_div(4 * D / E, 4), 1, 3)
    assert 3 == evaluated(ceil_div(8 * D / E + 4, 4), 2, 3)
    assert is_ragged(4 * N + D)
    assert not is_ragged(D)


@pytest.mark.parametrize("dim", [D, D + E, D * E, D + D * E, D * D])
def test_a_total_is_a_sum_of_elements(dim: Dim) -> None:
    """Each part counts something: a size, or a product of sizes."""
    assert is_total(dim)


@pytest.mark.parametrize(
    "dim", [7, 2 * D, D + 1, D - E, ceil_div(D, 8), D + ceil_div(E, 8), D * ceil_div(E, 8)]
)
def test_what_is_no_total(dim: Dim) -> None:
    """Padded or scaled, or no size at all."""
    assert not is_total(dim)


@pytest.mark.parametrize(
    ("dim", "least"),
    [
        (7, 7),
        (D, 0),
        (D + 3, 3),
        (D - 3, 0),
        (7 - D, 0),
        ((D + 2) * (E + 3), 6),
        ((D + 2) * (7 - E), 0),
        ((D + 2) / (E + 1), 0),
        (D / 2 + Fraction(7, 3), 3),
        (ceil_div(D + 17, 16), 2),
        (ceil_div(D + 3, 16), 1),
        (at_least_one(D + 1), 1),
        (ceil_div(D, 16) - D + 5, 0),
    ],
)
def test_least(dim: Dim, least: int) -> None:
    """A bound for any sizes: that of sizes of 0 where nothing shrinks, else 0."""
    assert least == least_of(dim)


@pytest.mark.parametrize(
    ("dim", "known"),
    [
        (5, 5),
        (D + E, 10),
        (D, D),
        (2 * D + 3 * E + 1, 21 + E),
        (3 * D + 2 * E, 20 + D),
        (-1 * D - E, -1 * D - E),
        (D * N + D + E, D * N + 10),
    ],
)
def test_totals(dim: Dim, known: Dim) -> None:
    """What a dimension has of each part of a total is a number, as often as it has all parts."""
    whole: Any = D + E
    assert known == with_totals(dim, {whole: 10})


@pytest.mark.parametrize(
    ("dim", "polynomial"),
    [
        (3, True),
        (D * E + 2 * D, True),
        (D**2, True),
        (D * ceil_div(E, 4), True),
        (ceil_div(D, 4) + 1, False),
        (E * at_least_one(D), False),
        (E / (D + 1), False),
        (D / E, True),
    ],
)
def test_polynomial(dim: Dim, polynomial: bool) -> None:
    """A symbol may stand in sums and products, not in a rounding nor in what divides."""
    assert polynomial == is_polynomial_in(dim, frozenset({D}))


F32 = np.dtype(np.float32)
A, B, C, F = (symbol(name) for name in "ABCF")


def test_what_follows() -> None:
    """What stands for others follows from them in turn; of parts the mean, by their counts."""
    program: Any = SimpleNamespace(
        absorbed={A: 2 * D, B: A + 1, C: E},
        mixtures={F: ((D, A), (3, 4)), N: ((0, 7), (D, E))},
    )
    assert {D: 3, A: 6, B: 7, F: 5} == followed({D: 3}, program)
    assert {D: 3, A: 7, B: 8, F: Fraction(11, 2)} == followed({D: 3, A: 7}, program)
    assert {E: 9, C: 9} == followed({E: 9}, program)
    assert {D: 0, E: 5, A: 0, B: 1, C: 5, F: 4, N: 0} == followed({D: 0, E: 5}, program)
    assert {D: 1, E: 5, A: 2, B: 3, C: 5, F: Fraction(7, 2), N: 5} == followed(
        {D: 1, E: 5}, program
    )
    assert int is type(followed({D: 3}, program)[F])
    assert 8 == followed({D: 3, F: 8}, program)[F]

    # The largest of parts that have any elements.
    assert {F: 6, N: 9} == peaks({D: 3, A: 6, E: 9}, program)
    assert {F: 4, N: 0} == peaks({D: 0, A: 6, E: 9}, program)
    assert {F: 4} == peaks({D: 3, A: 1}, program)
    assert {} == peaks({E: 9}, program)


def test_equal_streams_are_one() -> None:
    """Of equal streams, and of equal values in them, there is one with sizes; symbols stay."""
    at = Substitution({D: 3})
    one, other = (StreamType((D, E, 2), TileType(D, 4, F32)) for _ in range(2))
    found = at.stream(one)
    assert StreamType((3, E, 2), TileType(3, 4, F32)) == found
    assert found is at.stream(one)
    assert found is at.stream(other)
    assert found is at.stream(StreamType((3, E, 2), TileType(3, 4, F32)))
    assert found.value is at.stream(StreamType((1,), TileType(D, 4, F32))).value
    assert found != at.stream(StreamType((D, E, 2), TileType(E, 4, F32)))
    assert found != at.stream(StreamType((E, D, 2), TileType(D, 4, F32)))
    buffer = BufferType((D, E), TileType(1, D, F32))
    sized = BufferType((3, E), TileType(1, 3, F32))
    assert StreamType((3,), sized) == at.stream(StreamType((D,), buffer))
    assert one == Substitution({}).stream(one)
    assert (3, 6, D) == (at.dim(D), at.dim(2 * D), Substitution({}).dim(D))


def test_what_operators_ask_for() -> None:
    """Symbols have names of their own, and are ragged where the operator or its place says so."""
    with Program("p") as program:
        asks = {inner: Wiring(program, "op", inner) for inner in (None, False, True)}
    names = [str(asks[inner].symbol("D")) for inner in (None, False, True)]
    names += [str(asks[True].symbol("D", ragged=False)), str(asks[False].symbol("D", ragged=True))]
    assert names == ["D", "D_2", "D_3~", "D_4", "D_5~"]
    shared = [asks[None].symbol("S", shared_by=key, size=7) for key in ((1,), (2,), (1,))]
    assert [str(each) for each in shared] == ["S", "S_2", "S"]
    assert {str(each): size for each, size in program.listed_sizes.items()} == {"S": 7, "S_2": 7}

    # What is ragged and stands for itself stays; what is worked out has a symbol of its own.
    absorbed = [asks[inner].absorb(dim) for inner in asks for dim in (7, D + 1, N, 2 * N)]
    assert [str(each) for each in absorbed] == [
        "7", "D + 1", "n~", "D_op~",
        "7", "D + 1", "D_op_2", "D_op_3",
        "7", "D + 1", "n~", "D_op_4~",
    ]  # fmt: skip
    rounded = asks[True].absorb(ceil_div(N, 4), ragged=False)
    expected = [absorbed[3], absorbed[6], absorbed[7], absorbed[11]]
    assert program.absorbed == dict(zip(expected, (2 * N, N, 2 * N, 2 * N), strict=True))
    assert str(rounded) == "D_op_5"

    value = asks[None].renewed_value(TupleType((TileType(N, D, F32), TileType(D, 2 * N, F32))))
    assert str(value) == "(D_op_6~xD float32, DxD_op_7~ float32)"
    again = asks[None].renewed((3, D, N))
    assert [str(each) for each in again] == ["3", "D", "D_op_8~"]
    assert [*program.renewed.values()] == [N, 2 * N, N]


@pytest.mark.parametrize(
    "sizes", [(4, 4, 5), (5, 4, 4), (4, 5, 4), (5, 4, 3), (0, 0, 4), (D, D, E)]
)
def test_mixtures(sizes: tuple[Dim, ...]) -> None:
    """Where all parts have one size it is that; where any has another, what they have is kept."""
    program = Program("p")
    wiring = Wiring(program, "merge_1")
    assert wiring.mixture("rows", (2, D, 7), (sizes[0],) * 3) == sizes[0]
    assert not program.mixtures
    found = wiring.mixture("rows", (2, D, 7), sizes)
    assert str(found) == "D_merge_1_rows~"
    assert program.mixtures == {found: tuple(zip((2, D, 7), sizes, strict=True))}
