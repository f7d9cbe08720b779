"""Conformance, section 2: routing and merging; names begin with the case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fabric import Selector, SelectorType, Stream
from operators import EagerMerge, Flatten, LinearOffChipLoad, Parallelize, Partition, Reassemble
from tests.operators.driving import NUMBER, Emit, encode, ragged, selector
from tests.operators.writing import Input, run, write


def _hot(width: int) -> Any:
    return lambda word: selector(width)(set() if word == "x" else set(map(int, word)))


def _selectors(text: str, shape: Sequence[int], width: int) -> Input:
    return text, shape, SelectorType(width), _hot(width)


RAGGED = ragged(1)
NINE = "0 1 2|S1 3 4 5|S1 6 7 8|S2"


def test_p1_partition_multi_hot() -> None:
    """P1: rows of three to the consumers their selector names; the outer stop is removed."""
    _, found = run(Partition(4, rank=1), (NINE, (1, 3, 3)), _selectors("01 12 23|S1", (1, 3), 4))
    assert found == ["0 1 2|S1", "0 1 2|S1 3 4 5|S1", "3 4 5|S1 6 7 8|S1", "6 7 8|S1"]


P2_SELECTORS = " ".join(f"{t % 4}{(t + 1) % 4}" for t in range(9))


def test_p2_partition_of_single_elements() -> None:
    """P2: plain values, no stops: element t goes to t mod 4 and the next."""
    data: Input = ("0 1 2 3 4 5 6 7 8|S1", (1, 9))
    _, found = run(Partition(4), data, _selectors(P2_SELECTORS + "|S1", (1, 9), 4))
    assert found == ["0 3 4 7 8", "0 1 4 5 8", "1 2 5 6", "2 3 6 7"]


@pytest.mark.parametrize(
    ("case", "text", "shape", "counts"),
    [
        ("P3", "0 1 2|S1 1 1 2|S2", (1, 2, 3), [1, 3, 2, 0]),
        ("P4", "01 12 12 10 21 23", (6,), [2, 5, 4, 1]),
    ],
)
def test_p3_p4_selectors_part_themselves(
    case: str, text: str, shape: Sequence[int], counts: list[int]
) -> None:
    """P3 and P4: one-hot and multi-hot counts, one output empty."""
    _, found = run(
        lambda chosen: Partition(4)(chosen, chosen),
        _selectors(text, shape, 4),
        show=lambda value: "".join(map(str, value.hits)),
    )
    assert counts == [len(output.split()) for output in found], case


def test_r1_reassemble_restores_and_closes() -> None:
    """R1: S1 between streams, S2 a selector, and the selector's stop on top."""

    def wire(data: Stream, chosen: Stream) -> Stream:
        return Reassemble(rank=1)(Partition(4, rank=1)(data, chosen), chosen)

    _, (found,) = run(wire, (NINE, (1, 3, 3)), _selectors("01 12 23|S1", (1, 3), 4))
    assert found == "0 1 2|S1 0 1 2|S2 3 4 5|S1 3 4 5|S2 6 7 8|S1 6 7 8|S3"


def test_r2_reassemble_single_elements() -> None:
    """R2: without stops before, every selector closes a group."""

    def wire(data: Stream, chosen: Stream) -> Stream:
        return Reassemble()(Partition(4)(data, chosen), chosen)

    data: Input = (" ".join(map(str, range(9))), (9,))
    _, (found,) = run(wire, data, _selectors(P2_SELECTORS, (9,), 4))
    assert " ".join(f"{t} {t}|S1" for t in range(9)) == found


@pytest.mark.parametrize(
    ("late", "expected"), [(0, "71|S1 70|S2"), (7, "70|S1 71|S2"), (None, "70|S1 71|S2")]
)
def test_r3_the_earliest_stream_comes_first(late: int | None, expected: str) -> None:
    """R3: selector {0, 7}: the stream with earlier data leads; a tie goes to the lower index."""

    def wire(chosen: Stream) -> Stream:
        streams = []
        for port in range(8):
            parts = [[70 + (port == 7)]] if port in (0, 7) else []
            kind = chosen.type.__class__((len(parts), 1), NUMBER)
            streams.append(Emit(kind, encode(parts, 2), (50 if port == late else 3,))())
        return Reassemble(rank=1)(streams, chosen)

    _, (found,) = run(wire, _selectors("07", (1,), 8))
    assert expected == found


def test_r3_a_sub_tensor_is_not_interleaved() -> None:
    """R3: the slow stream that came first is passed on as a whole."""

    def wire(chosen: Stream) -> Stream:
        kind = chosen.type.__class__((1, 3), NUMBER)
        slow = Emit(kind, encode([[0, 1, 2]], 2), (1, 40))()
        quick = Emit(kind, encode([[10, 11, 12]], 2), (2, 0, 0))()
        return Reassemble(rank=1)([quick, slow], chosen)

    _, (found,) = run(wire, _selectors("01", (1,), 2))
    assert found == "0 1 2|S1 10 11 12|S2"


@pytest.mark.parametrize(
    ("rank", "streams", "text", "expected"),
    [
        # A group without selectors, one whose selector names nobody, and nothing at all.
        (0, ("7 8", "9"), "0|S1 -0|S1 01|S2", "7|S2 -1|S2 8 9|S3"),
        (1, ("7|S1 8|S1", "9|S1"), "0|S1 -0|S1 01|S2", "7|S3 -2|S3 8|S1 9|S4"),
        (1, ("7|S1", "9|S1"), "0|S1 x|S1 1|S2", "7|S3 -1|S3 9|S4"),
        (2, ("7|S2", ""), "0|S1 -0|S2", "7|S4 -3|S5"),
        (1, ("", ""), "-1|S2", "-3|S4"),
    ],
)
def test_empty_groups_of_selectors(
    rank: int, streams: tuple[str, str], text: str, expected: str
) -> None:
    """A bare stop among the selectors closes the output's inner dimensions, too."""
    shape = (RAGGED, *[1] * rank)
    data: list[Input] = [(each, shape) for each in streams]
    _, (found,) = run(
        lambda left, right, chosen: Reassemble(rank=rank)([left, right], chosen),
        *data,
        _selectors(text, (1, 3, RAGGED), 2),
    )
    assert expected == found


def test_r4_partition_after_reassemble_restores_each_stream() -> None:
    """R4: one-hot selectors: what was put together is taken apart again."""

    def wire(left: Stream, right: Stream, chosen: Stream) -> Sequence[Stream]:
        joined = Flatten(1, 2)(Reassemble(rank=1)([left, right], chosen))
        return Partition(2, rank=1)(joined, chosen)

    streams: list[Input] = [("0|S1 1 2|S1", (2, 2)), ("5 6|S1", (1, 2))]
    _, found = run(wire, *streams, _selectors("0 1 0", (3,), 2))
    assert found == ["0|S1 1 2|S1", "5 6|S1"]


def test_r5_loads_by_routed_references() -> None:
    """R5: block (b, n) of [2, 3, 1, 4, 2] holds the number of the expert chosen there."""
    choice = ((0, 1, 2), (3, 1, 2))

    def wire(chosen: Stream) -> Stream:
        parts = Partition(4)(chosen, chosen)
        loads = [
            LinearOffChipLoad(np.full((4, 2), expert), (1, 1))(part)
            for expert, part in enumerate(parts)
        ]
        return Reassemble(rank=2)(loads, chosen)

    _, (found,) = run(
        wire,
        _selectors("0 1 2|S1 3 1 2|S2", (1, 2, 3), 4),
        show=lambda value: str(int(value.data[0, 0])),
    )
    blocks = [[[[[[expert] * 2] * 4] for expert in row] for row in choice]]
    assert write(encode(blocks, 6)) == found


def _chunks(*times: int, first: int) -> tuple[list[Any], tuple[int, ...]]:
    """Return [2, 2] chunks and the gaps that make each visible at its time."""
    parts, gaps, now = [], [], 0
    for number, time in enumerate(times):
        base = first + 10 * number
        parts.append([[base, base + 1], [base + 2, base + 3]])
        gaps += [time - 1 - now, 0, 0, 0]
        now = time - 1
    return parts, tuple(gaps)


def _merge(wire: Any) -> list[str]:
    def build() -> Any:
        streams = []
        for parts, gaps in (_chunks(12, 24, 36, first=100), _chunks(14, first=200)):
            kind = _kind((len(parts), 2, 2))
            streams.append(Emit(kind, encode(parts, 3), gaps)())
        return wire(*EagerMerge(rank=2)(streams))

    def show(value: Any) -> str:
        return str(value.hits[0]) if isinstance(value, Selector) else str(value)

    return run(build, show=show)[1]


def _kind(shape: tuple[int, ...]) -> Any:
    from fabric import StreamType

    return StreamType(shape, NUMBER)


def test_e1_eager_merge() -> None:
    """E1: chunks at 12, 24, 36 and one at 14: A B A A; the chunks keep their stops."""
    data, selectors = _merge(lambda data, selectors: [data, selectors])
    assert selectors == "0 1 0 0"
    assert data == " ".join(f"{b} {b + 1}|S1 {b + 2} {b + 3}|S2" for b in (100, 200, 110, 120))


def test_e2_merged_streams_are_parted_by_their_selectors() -> None:
    """E2: A's three chunks on output 0, B's on output 1."""
    found = _merge(Partition(2, rank=2))
    assert found == [
        " ".join(f"{b} {b + 1}|S1 {b + 2} {b + 3}|S2" for b in bases)
        for bases in ((100, 110, 120), (200,))
    ]


def test_l1_parallelize_single_elements() -> None:
    """L1: one each."""
    assert run(Parallelize(4), ("1 2 3 4", (4,)))[1] == ["1", "2", "3", "4"]


def test_l2_parallelize_rows() -> None:
    """L2: S1 is kept."""
    found = run(Parallelize(4, rank=1), ("1|S1 2|S1 3|S1 4|S1", (4, 1)))[1]
    assert found == ["1|S1", "2|S1", "3|S1", "4|S1"]


def test_l3_parallelize_six_on_four() -> None:
    """L3: the outputs get 2, 2, 1 and 1."""
    assert run(Parallelize(4), ("1 2 3 4 5 6", (6,)))[1] == ["1 5", "2 6", "3", "4"]


def test_a_selector_that_names_nobody() -> None:
    """Partition drops the sub-tensor; Reassemble emits an empty one."""
    _, found = run(Partition(2), ("1 2", (2,)), _selectors("x 1", (2,), 2))
    assert found == ["", "2"]
    _, (joined,) = run(
        lambda a, b, chosen: Reassemble()([a, b], chosen),
        ("1", (1,)),
        ("2", (1,)),
        _selectors("x 01|S1", (1, 2), 2),
    )
    assert joined == "-0|S1 1 2|S2"


def test_a_sub_tensor_that_does_not_close_with_its_selector_is_an_error() -> None:
    """Both elements, their places and their producers are named."""
    report, _ = run(Partition(2), ("1 2 3|S1", (1, 3)), _selectors("0 1|S1", (1, 3), 2))
    assert report.error is not None
    assert report.error["message"] == (
        "partition_1: 2 at [0, 1] of emit_1 closes 0 dimensions and "
        "Selector(hits=(1,), width=2) at [0, 1] of emit_2 closes 1 dimension: "
        "expected equal structures, at cycle 3, element 2"
    )
