from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from operators.rtl import compute, memory, pieces, routing, sequences
from operators.rtl.blocks import Unit, Widths, building
from tests.rtl.driving import sent_by, tokens


def streams(text: str) -> list[list[int]]:
    return [tokens(each) for each in text.split("/")]


INTERSECT = partial(routing.intersect, (0,), (1, 1))
SPLIT = partial(sequences.reshape_outer, 1)
BINARY = partial(compute.map_, compute.FUNCTIONS["Binary"], [1, 1])


def fold(function: str, inputs: int) -> Callable[[], Unit]:
    return partial(compute.fold, compute.ACCUMULATIONS[function], [1] * inputs, every=False)


# Numbers and cycles of a wait are at most 15.
NARROW = Widths(number=4, cycles=4)

FAULTS: dict[str, tuple[Callable[[], Unit], str, dict[str, int]]] = {
    "a chunk that is not whole": (SPLIT, "1. 2.. 3..", {"chunk": 2, "dimension": 1}),
    "a bare value to expand": (sequences.expand, "-0. / 1.", {"rank": 1}),
    "stops of a Zip": (sequences.zip_, "1 2. / 1 2..", {}),
    "values of a Zip": (sequences.zip_, "1. / -0.", {}),
    "stops of numbers": (routing.zip_numbers, "1 2. / 1 2..", {}),
    "stops of requests": (sequences.read_addresses, "1. / 1..", {"stride": 1}),
    "stops of addresses": (partial(memory.random_store, 1), "1. / 2x3..", {}),
    "rows of a buffer": (memory.bufferize, "2x3 1x3(2x3).", {"rank": 1}),
    "columns of a buffer": (memory.bufferize, "2x3 2x4(2x3).", {"rank": 1}),
    "valid rows of a buffer": (memory.bufferize, "2x3 2x3(1x3).", {"rank": 1}),
    "valid columns of a buffer": (memory.bufferize, "2x3 2x3(2x1).", {"rank": 1}),
    "memory of a buffer": (memory.bufferize, "2x3 2x3m.", {"rank": 1}),
    "a buffer that is bare": (partial(memory.streamify, 2), "-0. / 1.", {"rank": 1}),
    "stops of a Scatter": (partial(memory.scatter, 1), "1. / 1..", {"rank": 1, "width": 9}),
    "values of a Scatter": (partial(memory.scatter, 1), "1. / -0.", {"rank": 1, "width": 9}),
    "a bare selector": (partial(routing.partition, 2), "1. / -0.", {"rank": 1}),
    "a side without groups": (INTERSECT, "-1. / 1.", {}),
    "groups of two sides": (INTERSECT, "2. / 2..", {}),
    "groups of two sides, one with a bare stop": (INTERSECT, "1 3. / 1 2 -0..", {}),
    "a large coordinate": (INTERSECT, "#16. / #16.", {}),
    "a large payload": (partial(routing.intersect, (0,), (2, 1)), f"#{1 << 8 | 5}. / 5.", {}),
    "a large number": (routing.zip_numbers, "#1. / #16.", {}),
    "a long buffer": (memory.bufferize, f"{'2x3 ' * 15} 2x3.", {"rank": 1}),
    "a long wait": (partial(routing.reassemble, 2), "1. / / #3.", {"rank": 1}),
    "a long wait at a merge": (partial(routing.eager_merge, 2, "d"), "1 / 1.", {"rank": 1}),
    "rows of a group": (fold("RetileRow", 1), f"{(1 << 20) - 1}x1 1x1.", {"rank": 1, "rate": 1}),
    "operands of a Map": (BINARY, "1. / 1..", {"rate": 1}),
    "operands of an Accum": (fold("MatmulSum", 2), "1. / 1..", {"rank": 1, "rate": 1}),
    "pieces of two streams": (partial(pieces.map_, 2, 1), "1. / 1..", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_module_reports_what_it_is_not_built_for(name: str) -> None:
    build, inputs, parameters = FAULTS[name]

    with building(NARROW):
        assert sent_by(build(), streams(inputs), parameters) is None


SENT: list[tuple[Callable[[], Unit], str, dict[str, int], str]] = [
    # Tiles of different groups may have different sizes, also after a bare stop.
    (memory.bufferize, "2x3 2x3. 1x4 1x4. 2x2 -0. 3x3m.", {"rank": 1}, "2x3#2 1x4#2 2x2#1 3x3m#1"),
    (SPLIT, "1. 2.. 3. 4.. -1..", {"chunk": 2, "dimension": 1}, "1. 2... 3. 4... -2..."),
    (partial(routing.partition, 2), "-0. -1.. / #1 -0.", {"rank": 1}, "-0."),
    (partial(routing.intersect, (0,), (2, 1)), "#15. / #15.", {}, "15."),
    # A bare stop closes the group on one side, an element on the other.
    (INTERSECT, "1 3.. / 1 2 -0..", {}, "1 -0.."),
    (INTERSECT, "1 2 -0.. / 1 3..", {}, "1 -0.."),
    (sequences.promote, "1 2. 3.. -0. -1..", {"inside": 1}, "1 2.. 3... -0.. -2..."),
    (sequences.initial, "1.", {"rank": 1, "count": 1, "size_0": 2, "control": 5}, "#5 #5. 1."),
    # A token of two pieces has a set, and there are 32 sets.
    (pieces.token_store, "1 1. " * 33 + "/", {"rank": 1, "rows": 2, "cols": 3}, "2x3 " * 32),
]  # fmt: skip


@pytest.mark.parametrize(("build", "inputs", "parameters", "expected"), SENT)
def test_module_sends_expected_tokens(
    build: Callable[[], Unit], inputs: str, parameters: dict[str, int], expected: str
) -> None:
    with building(NARROW):
        assert sent_by(build(), streams(inputs), parameters) == tokens(expected)
