"""Structures that differ while a program runs: the error names elements, places and producers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fabric import SelectorType, Stream
from operators import Bufferize, Expand, Partition, Reshape, Streamify, Zip
from tests.operators.driving import FLOAT, ragged, selector, tile
from tests.operators.writing import Input, run

N, M = ragged(0), ragged(1)


def _tiles(text: str, *shape: Any) -> Input:
    return text, shape, FLOAT, lambda word: tile(int(word))


def _selectors(text: str, *shape: Any) -> Input:
    return text, shape, SelectorType(2), lambda word: selector(2)({int(word)})


def _streamify(source: Stream, reference: Stream) -> Stream:
    return Streamify()(Bufferize()(source), reference)


def _reshape(source: Stream) -> Stream:
    return Reshape(2, 1)(source)[0]


CASES: list[tuple[Callable[..., Any], list[Input], str]] = [
    (
        Zip(),
        [("0 1|S1 2 3|S1 4 5|S2", (1, N, M)), ("0 1|S1 2 3|S1 4|S2", (1, N, M))],
        "zip_1: 4 at [0, 2, 0] of emit_1 closes 0 dimensions and 4 at [0, 2, 0] of emit_2"
        " closes 2 dimensions: expected equal structures, at cycle 1, element 5",
    ),
    (
        Zip(),
        [("0|S1 -0|S2", (1, N, M)), ("0|S1 1|S2", (1, N, M))],
        "zip_1: an empty dimension 0 at [0, 1, 0] of emit_1 closes 2 dimensions and 1 at "
        "[0, 1, 0] of emit_2 closes 2 dimensions: expected equal structures, at cycle 1, "
        "element 1",
    ),
    (
        Zip(),
        [("0|S1 -1|S2", (2, N, M)), ("0|S1 -0|S2", (2, N, M))],
        "zip_1: an empty dimension 1 at [0, 1, 0] of emit_1 closes 2 dimensions and an "
        "empty dimension 0 at [0, 1, 0] of emit_2 closes 2 dimensions: expected equal "
        "structures, at cycle 1, element 1",
    ),
    (
        Expand(1),
        [("7|S1 8|S2", (1, N, 1)), ("0 1|S1 2|S1 3|S2", (1, N, M))],
        "expand_1: 8 at [0, 1, 0] of emit_1 closes 2 dimensions and 2 at [0, 1, 0] of "
        "emit_2 closes 1 dimension: expected equal structures, at cycle 1, element 2",
    ),
    (
        Expand(1),
        [("7|S1 8|S2", (1, N, 1)), ("0 1|S2", (1, N, M))],
        "expand_1: 7 at [0, 0, 0] of emit_1 closes 1 dimension and 1 at [0, 0, 1] of "
        "emit_2 closes 2 dimensions: expected equal structures, at cycle 1, element 1",
    ),
    (
        Expand(1),
        [("7 8", (N,)), ("0 1", (N,))],
        "expand_1: 8 at [1] of emit_1 closes 0 dimensions and the end of emit_2 at [2]: "
        "expected equal structures, at cycle 1, element 1",
    ),
    (
        _streamify,
        [_tiles("0 1|S1 2 3|S2", 1, N, M), ("0 0|S1 0|S1 0|S2", (1, N, M))],
        "streamify_1: BufferReference(1 dimension, 2 elements) at [0, 1] of bufferize_1 "
        "closes 1 dimension and 0 at [0, 1, 0] of emit_2 closes 1 dimension: expected "
        "equal structures, at cycle 9, element 2",
    ),
    (
        _streamify,
        [_tiles("0 1|S1 2 3|S2", 1, N, M), ("0 0|S2", (1, N, M))],
        "streamify_1: BufferReference(1 dimension, 2 elements) at [0, 0] of bufferize_1 "
        "closes 0 dimensions and 0 at [0, 0, 1] of emit_2 closes 2 dimensions: expected "
        "equal structures, at cycle 7, element 1",
    ),
    (
        Partition(2),
        [("0 1 2", (N,)), _selectors("0 1", N)],
        "partition_1: 2 at [2] of emit_1 closes 0 dimensions and the end of emit_2 at "
        "[2]: expected equal structures, at cycle 3, element 2",
    ),
    (
        Partition(2),
        [("0 1", (N,)), _selectors("0 1 1", N)],
        "partition_1: the end of emit_1 at [2] and Selector(hits=(1,), width=2) at [2] of"
        " emit_2 closes 0 dimensions: expected equal structures, at cycle 3, element 2",
    ),
    (
        Partition(2, 1),
        [("0 1|S1 2|S2", (1, N, M)), _selectors("0 1 1|S1", 1, N)],
        "partition_1: 2 at [0, 1, 0] of emit_1 closes 2 dimensions and "
        "Selector(hits=(1,), width=2) at [0, 1] of emit_2 closes 0 dimensions: expected "
        "equal structures, at cycle 4, element 3",
    ),
    (
        _reshape,
        [("0|S1 1|S1 2|S2", (1, 2, M))],
        "reshape_1: emit_1 ends in a chunk of 1: expected chunks of 2, at cycle 1, element 3",
    ),
]


@pytest.mark.parametrize(("wire", "inputs", "message"), CASES, ids=range(len(CASES)))
def test_a_mismatch_is_explained(
    wire: Callable[..., Any], inputs: list[Input], message: str
) -> None:
    """Found element, place, producer, cycle, and what was expected."""
    report, _ = run(wire, *inputs)
    assert report.error is not None
    assert message == report.error["message"]
