from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
from amaranth.lib import data

from operators.rtl import blocks, compute, description, memory, pieces, routing, sequences
from operators.rtl.blocks import FIELDS, Unit
from tests.rtl.driving import driven, tokens

SEEDS = (None, 1, 2, 3, 4)


# Streams and cycles of several ports have a slash between them. `sent` and `done` are the cycles
# without waiting; `given` are tokens from outside, `asked` the cycles of off-chip requests.
class Case(NamedTuple):
    build: Callable[[], Unit]
    inputs: str
    outputs: str
    sent: str
    done: int
    parameters: dict[str, int]
    given: str = ""
    latencies: tuple[int, ...] = ()
    asked: str = ""
    taken: str | None = None


def streams(text: str) -> list[list[dict[str, int]]]:
    return [tokens(each) for each in text.split("/")] if text else []


def cycles(text: str) -> list[list[int]]:
    found = []
    for part in text.split("/"):
        of_part: list[int] = []
        for each in part.split():
            first, _, last = each.partition("-")
            of_part += range(int(first), int(last or first) + 1)
        found.append(of_part)
    return found


def second(rows: int, cols: int, valid_rows: int, valid_cols: int, in_memory: int = 0) -> int:
    return rows | cols << 20 | valid_rows << 40 | valid_cols << 60 | in_memory << 80


MODULES: dict[str, Case] = {
    "ReshapeOuter with flags": Case(
        partial(sequences.reshape_outer, 2),
        "1. 2.. 3 4.. 5.. 6.. 7. 8.. 9...",
        " / ".join(["1. 2.. 3 4.. 5... 6.. 7. 8.. 9...."] * 2),
        "0-8 / 0-8",
        8,
        {"chunk": 3, "dimension": 2},
    ),
    "FlatMap told": Case(
        partial(sequences.flat_map_told, description.Parts(2, 3)),
        "9. 8 7. -1.. 6 5..",
        "2x3 2x3 2x3. -0. -1.. 2x3 2x3 2x3..",
        "0-7",
        7,
        {},
        given="3 0 0 2 1",
    ),
    "RandomStore": Case(
        partial(memory.random_store, 1),
        "5 6. -1.. / 2x4 2x4. -1..",
        "#0 #0. -1..",
        "1 4 5",
        5,
        {},
        latencies=(1, 2),
        asked="0 2",
        taken="1 4 5 / 1 4 5",
    ),
    "Intersect with payloads": Case(
        partial(routing.intersect, (0, 1, 2), (2, 2)),
        f"#{7 << 64 | 4} #{8 << 64 | 6}. / #{9 << 64 | 4}.",
        "4 -0. / 7 -0. / 9 -0.",
        "0 2 / 0 2 / 0 2",
        2,
        {},
    ),
    "Accum RunningMaximum": Case(
        partial(compute.fold, compute.ACCUMULATIONS["RunningMaximum"], [1], every=False),
        "2x5(1x5)m. -0.",
        f"2x1(1x1)m#{second(2, 1, 1, 1, 1)} 2x1m#{second(2, 1, 2, 1, 1)}",
        "2 3",
        3,
        {
            "rank": 1,
            "rate": 11,
            "bytes_0": 2,
            "bandwidth": 20,
            "to_memory": 1,
            "store_bytes": 7,
            "rows": 2,
            "cols": 1,
        },
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_module_sends_these_tokens_in_these_cycles(name: str) -> None:
    case = MODULES[name]
    inputs, outputs, told = streams(case.inputs), streams(case.outputs), tokens(case.given)
    runs = driven(
        case.build(),
        inputs,
        case.parameters,
        given=told,
        latencies=case.latencies,
        seeds=SEEDS,
    )

    for found in runs:
        assert (found.sent, found.fault, found.told) == (outputs, False, len(told))
        assert found.done_cycle >= 0
        assert [len(each) for each in found.taken_cycles] == [
            len(each) for each in runs[0].taken_cycles
        ]
    first = runs[0]
    assert (first.sent_cycles if outputs else [[]]) == cycles(case.sent)
    assert first.done_cycle == case.done
    assert first.asked_cycles == cycles(case.asked)[0]
    if case.taken is None:
        assert [len(each) for each in first.taken_cycles] == [len(each) for each in inputs]
    else:
        assert first.taken_cycles == cycles(case.taken)


def test_expert_addresses_count_from_the_first_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "Token", data.StructLayout({**FIELDS, "control": 16}))
    experts = {0: "", 3: ".", 11: "", 15: ".."}
    given = " ".join(f"#{1 << each}{stop}" for each, stop in experts.items())
    expected = " ".join(
        f"{each * 3}. {each * 3 + 1}. {each * 3 + 2}..{stop}" for each, stop in experts.items()
    )
    runs = driven(
        sequences.expert_addresses(), [tokens(f"{given} -1...")], {"tiles": 3}, seeds=SEEDS
    )

    for found in runs:
        assert found.sent == [tokens(f"{expected} -3.....")]
    assert runs[0].sent_cycles == [[*range(13)]]


FAULTS: dict[str, tuple[Callable[[], Unit], str, dict[str, int]]] = {
    "a chunk that is not whole": (
        partial(sequences.reshape_outer, 1), "1. 2.. 3..", {"chunk": 2, "dimension": 1},
    ),
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
    "a side without groups": (partial(routing.intersect, (0,), (1, 1)), "-1. / 1.", {}),
    "groups of two sides": (partial(routing.intersect, (0,), (1, 1)), "2. / 2..", {}),
    "groups of two sides, one with a bare stop": (
        partial(routing.intersect, (0,), (1, 1)), "1 3. / 1 2 -0..", {},
    ),
    "a large coordinate": (
        partial(routing.intersect, (0,), (1, 1)), f"#{1 << 42}. / #{1 << 42}.", {},
    ),
    "a large payload": (
        partial(routing.intersect, (0,), (2, 1)), f"#{1 << 107 | 5}. / 5.", {},
    ),
    "operands of a Map": (
        partial(compute.map_, compute.FUNCTIONS["Binary"], [1, 1]), "1. / 1..", {"rate": 1},
    ),
    "operands of an Accum": (
        partial(compute.fold, compute.ACCUMULATIONS["MatmulSum"], [1, 1], every=False),
        "1. / 1..", {"rank": 1, "rate": 1},
    ),
    "pieces of two streams": (partial(pieces.map_, 2, 1), "1. / 1..", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_module_reports_what_it_is_not_built_for(name: str) -> None:
    build, inputs, parameters = FAULTS[name]
    (found,) = driven(build(), streams(inputs), parameters, latencies=(1, 1), most=30)

    assert found.fault


@pytest.mark.parametrize(
    ("build", "inputs", "parameters"),
    [
        # Tiles of another group may have another size, also after a bare stop.
        (memory.bufferize, "2x3 2x3. 1x4 1x4. 2x2 -0. 3x3m.", {"rank": 1}),
        (sequences.reshape_outer, "1. 2. 3.. 4. 5. 6.. -1..", {"chunk": 3, "dimension": 1}),
        (partial(routing.partition, 2), "-0. -1.. / #1 -0.", {"rank": 1}),
        (partial(routing.intersect, (0,), (2, 1)), f"#{(1 << 42) - 1}. / #{(1 << 42) - 1}.", {}),
        # A bare stop closes one side, an element the other.
        (partial(routing.intersect, (0,), (1, 1)), "1 3.. / 1 2 -0..", {}),
        (partial(routing.intersect, (0,), (1, 1)), "1 2 -0.. / 1 3..", {}),
    ],
)
def test_module_accepts_input_at_its_limit(
    build: Callable[..., Unit], inputs: str, parameters: dict[str, int]
) -> None:
    unit = build(1) if build is sequences.reshape_outer else build()
    (found,) = driven(unit, streams(inputs), parameters, most=30)

    assert not found.fault
