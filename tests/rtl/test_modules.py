"""Each module of hardware by itself: which tokens leave it, and when, whatever waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

# Any: amaranth has no types.
from typing import Any, NamedTuple

import pytest
from amaranth import Module
from amaranth.hdl import Fragment
from amaranth.lib import data
from amaranth.sim import Simulator

from operators.rtl import blocks, compute, memory, pieces, routing, sequences
from operators.rtl.__main__ import builders
from operators.rtl.blocks import FIELDS, Unit, packed
from tests.rtl.driving import Driven, driven, tokens

SEEDS = (None, 1, 2, 3, 4)


class Case(NamedTuple):
    """What a module is given, and what it makes of it.

    Attributes:
        inputs, outputs: streams with a slash between them.
        sent: in which cycles, where nothing waits.
        done: the first cycle in which it has ended then.
        given: tokens that it is told.
        latencies: of off-chip memory, one after the other.
        asked: when it asks for them.
        parameters: tied to its ports.
    """

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
    """Return the tokens of streams with a slash between them."""
    return [tokens(each) for each in text.split("/")] if text else []


def cycles(text: str) -> list[list[int]]:
    """Return lists of cycles with a slash between them; ``2-5`` are all of these."""
    found = []
    for part in text.split("/"):
        of_part: list[int] = []
        for each in part.split():
            first, _, last = each.partition("-")
            of_part += range(int(first), int(last or first) + 1)
        found.append(of_part)
    return found


def second(rows: int, cols: int, valid_rows: int, valid_cols: int, in_memory: int = 0) -> int:
    """Return what ``control`` is of a tuple whose second tile is this one."""
    return rows | cols << 20 | valid_rows << 40 | valid_cols << 60 | in_memory << 80


MODULES: dict[str, Case] = {
    "Flatten 0 1": Case(
        sequences.flatten,
        "1 2. 3.. 4m. -0. 5...",
        "1 2 3. 4m 5..",
        "0-3 5",
        5,
        {"inner": 0, "outer": 1},
    ),
    "Flatten 1 3": Case(
        sequences.flatten,
        "1 2. 3.. 4... 5.... -1.. -1.... -0. -4.....",
        "1 2. 3. 4. 5.. -1.. -0. -2...",
        "0-4 6-8",
        8,
        {"inner": 1, "outer": 3},
    ),
    "Promote inside": Case(
        sequences.promote,
        "1 2. 3.. -0. -1..",
        "1 2.. 3... -0.. -2...",
        "0-4",
        4,
        {"inside": 1},
    ),
    # What may be the last waits for the next one, or the end.
    "Promote outermost": Case(
        sequences.promote,
        "1 2. 3 4.",
        "1 2. 3 4..",
        "0 2 3 4",
        4,
        {"inside": 2, "outermost": 1},
    ),
    "Promote the last two": Case(
        sequences.promote,
        "1. 2.",
        "1. 2..",
        "1 2",
        2,
        {"inside": 2, "outermost": 1},
    ),
    "Promote one": Case(
        sequences.promote,
        "7.",
        "7..",
        "0",
        0,
        {"inside": 2, "outermost": 1},
    ),
    "Reshape": Case(
        partial(sequences.reshape, 1),
        "1 2 3. 4 5. 6. -0. -1.. 7 -0..",
        "1 2. 3 1x2(0x2).. 4 5.. 6 1x2(0x2).. -1.. -2... 7 1x2(0x2)...",
        "0-11",
        11,
        {"chunk": 2, "rows": 1, "cols": 2},
        taken="0-5 7-10",
    ),
    "Reshape by 3, with flags": Case(
        partial(sequences.reshape, 2),
        "1. 2 3. 4 5 6. 7 -0..",
        " / ".join(["1 4x2(0x2) 4x2(0x2).. 2 3 4x2(0x2).. 4 5 6.. 7 4x2(0x2) 4x2(0x2)..."] * 2),
        "0-11 / 0-11",
        11,
        {"chunk": 3, "rows": 4, "cols": 2},
    ),
    "Reshape outermost, padded": Case(
        partial(sequences.reshape, 1),
        "1 2 3",
        "1 2. 3 1x2(0x2)..",
        "0 2 3 4",
        4,
        {"chunk": 2, "rows": 1, "cols": 2, "outermost": 1},
    ),
    "Reshape outermost, whole": Case(
        partial(sequences.reshape, 1),
        "1 2 3 4",
        "1 2. 3 4..",
        "0 2 3 4",
        4,
        {"chunk": 2, "rows": 1, "cols": 2, "outermost": 1},
    ),
    "Reshape outermost, by 1": Case(
        partial(sequences.reshape, 1), "1 2", "1. 2..", "1 2", 2, {"chunk": 1, "outermost": 1}
    ),
    "ReshapeOuter": Case(
        partial(sequences.reshape_outer, 1),
        "1 2. 3. 4 5. 6.. 7. -0.. -1..",
        "1 2. 3.. 4 5. 6... 7. -0... -2...",
        "0-8",
        8,
        {"chunk": 2, "dimension": 1},
    ),
    "ReshapeOuter with flags": Case(
        partial(sequences.reshape_outer, 2),
        "1. 2.. 3 4.. 5.. 6.. 7. 8.. 9...",
        " / ".join(["1. 2.. 3 4.. 5... 6.. 7. 8.. 9...."] * 2),
        "0-8 / 0-8",
        8,
        {"chunk": 3, "dimension": 2},
    ),
    "Repeat": Case(
        sequences.repeat,
        "1 2m. -0. 3",
        "1 1 1. 2m 2m 2m.. -1.. 3 3 3.",
        "0-9",
        9,
        {"count": 3},
        taken="2 5 6 9",
    ),
    "Repeat once": Case(sequences.repeat, "1 2.", "1. 2..", "0 1", 1, {"count": 1}),
    "Broadcast": Case(
        partial(sequences.broadcast, 3),
        "1 2m. -0.",
        "1 2m. -0. / 1 2m. -0. / 1 2m. -0.",
        "0-2 / 0-2 / 0-2",
        2,
        {},
    ),
    "Consumer": Case(sequences.consumer, "1 2. -0.", "", "", 2, {}, taken="0-2"),
    "Expand": Case(
        sequences.expand,
        "7m 8 9. / 1 2. -0. 3 4..",
        "7m 7m. -0. 9 9..",
        "0-4",
        4,
        {"rank": 1},
        taken="1 2 4 / 0-4",
    ),
    "Expand two dimensions": Case(
        sequences.expand,
        "7 8.. / 1 2. 3.. 4..",
        "7 7. 7.. 8..",
        "0-3",
        3,
        {"rank": 2},
        taken="2 3 / 0-3",
    ),
    "Zip": Case(
        sequences.zip_,
        "2x3m 4x5. -0. / 6x7(5x4) 8x9m. -0.",
        f"2x3m#{second(6, 7, 5, 4)} 4x5#{second(8, 9, 8, 9, 1)}. -0.",
        "0-2",
        2,
        {},
    ),
    "Zip numbers": Case(
        routing.zip_numbers,
        "2 3. -0. / 5 7. -0.",
        f"1x1#{5 << 64 | 2} 1x1#{7 << 64 | 3}. -0.",
        "0-2",
        2,
        {},
    ),
    "Initial": Case(
        sequences.initial,
        "1 2. 3 4.",
        "2x3#5 2x3#5. 2x3#5 2x3#5. 1 2. 3 4.",
        "0-7",
        7,
        {"rank": 1, "count": 2, "size_0": 2, "rows": 2, "cols": 3, "control": 5},
        taken="3-6",
    ),
    # What is not kept is taken all the same, and what is behind it is not.
    "Initial keeps one of two": Case(
        sequences.initial,
        "1. 2 3. 4.",
        "2x3. 1.",
        "0 1",
        2,
        {"rank": 1, "count": 1, "size_0": 1, "rows": 2, "cols": 3, "kept": 1, "groups": 2},
        taken="0-2",
    ),
    "Initial keeps nothing": Case(
        sequences.initial,
        "1..",
        "#1 #1. #1 #1..",
        "0-3",
        3,
        {"rank": 2, "count": 1, "size_0": 2, "size_1": 2, "control": 1, "groups": 1},
        taken="3",
    ),
    "SplitRows of what is valid": Case(
        partial(sequences.flat_map, "SplitRows"),
        "3x4(2x3)m. 1x2 2x5(0x5). 2x5(0x5) -1.. 1x2...",
        "1x4(1x3)m 1x4(1x3)m. 1x2 -0. -1.. 1x2...",
        "0-5",
        5,
        {"valid_only": 1},
    ),
    "SplitRows": Case(
        partial(sequences.flat_map, "SplitRows"),
        "4x5(2x3)m. 1x2",
        "1x5(1x3)m 1x5(1x3)m 1x5(0x3)m 1x5(0x3)m. 1x2",
        "0-4",
        4,
        {},
        taken="0 3",
    ),
    "SplitCols": Case(
        partial(sequences.flat_map, "SplitCols"),
        "5x4(3x2)m.",
        "1x5(1x3)m 1x5(1x3)m 1x5(0x3)m 1x5(0x3)m.",
        "0-3",
        3,
        {},
    ),
    "SplitCols of what is valid": Case(
        partial(sequences.flat_map, "SplitCols"),
        "5x4(3x2)m.",
        "1x5(1x3)m 1x5(1x3)m.",
        "0 1",
        1,
        {"valid_only": 1},
    ),
    "FlatMap told": Case(
        partial(sequences.flat_map_told, sequences.Parts(2, 3)),
        "9. 8 7. -1.. 6 5..",
        "2x3 2x3 2x3. -0. -1.. 2x3 2x3 2x3..",
        "0-7",
        7,
        {},
        given="3 0 0 2 1",
    ),
    "FlatMap told, of numbers": Case(
        partial(sequences.flat_map_told, sequences.Parts()),
        "9m",
        "1x1 1x1",
        "0 1",
        1,
        {},
        given="2",
    ),
    "SplitTiles": Case(
        sequences.split_tiles,
        "4x6(3x5)m. 0x6 0x6. -0. 2x6(1x2)..",
        "2x3m 2x3(2x2)m. 2x3(1x3)m 2x3(1x2)m.. -0.. -1.. 2x3(1x2) 2x3(1x0)...",
        "0-7",
        7,
        {"rows": 2, "cols": 3, "across": 2},
    ),
    "SplitTiles of three columns": Case(
        sequences.split_tiles,
        "6x12(3x9)",
        "2x4 2x4 2x4(2x1). 2x4(1x4) 2x4(1x4) 2x4(1x1). 2x4(0x4) 2x4(0x4) 2x4(0x1).",
        "0-8",
        8,
        {"rows": 2, "cols": 4, "across": 3},
    ),
    "CacheReadAddresses": Case(
        sequences.read_addresses,
        "3 5. 7 -0. -1.. / 2 0. 3 -0. -1..",
        "30 31. -0.. 70 71 72. -1.. -2...",
        "0-7",
        7,
        {"stride": 10},
    ),
    "FilterLastTile": Case(
        sequences.filter_last,
        "3 1. 0.. -0.",
        "#2 #2 #1. #1.. -0... -1..",
        "0-5",
        5,
        {},
    ),
    "Source": Case(memory.source, "", "1 2m. -0..", "0-2", 2, {"charges": 1}, given="1 2m. -0.."),
    # A value that charges is over in the cycle after it.
    "Source of values": Case(memory.source, "", "1 2.", "0 1", 2, {"charges": 1}, given="1 2."),
    "Source at no cost": Case(memory.source, "", "1 2.", "0 1", 1, {}, given="1 2."),
    "Load": Case(
        partial(memory.load, 0),
        "",
        "2x4m 2x4m 2x4m. 2x4m 2x4m 2x4m..",
        "1 3 4 7 8 9",
        9,
        {"rank": 2, "size_0": 3, "size_1": 2, "rows": 2, "cols": 4},
        latencies=(1, 2, 1, 3, 1, 1),
        asked="0 1 3 4 7 8",
    ),
    "Load one": Case(
        partial(memory.load, 0),
        "",
        "3x5m",
        "2",
        2,
        {"rows": 3, "cols": 5},
        latencies=(2,),
        asked="0",
    ),
    "Load what is referred to": Case(
        partial(memory.load, 1),
        "5 -0. 6..",
        "2x4m 2x4m. -1.. 2x4m 2x4m...",
        "1-5",
        5,
        {"rank": 1, "size_0": 2, "rows": 2, "cols": 4},
        latencies=(1, 1, 1, 1),
        asked="0 1 3 4",
        taken="0 2 3",
    ),
    "Load numbers": Case(
        partial(memory.load, 1, numbers=True),
        "5 6.",
        "7m 9m.",
        "2 5",
        5,
        {"rows": 1, "cols": 1},
        given="7 9",
        latencies=(2, 3),
        asked="0 2",
    ),
    "Store": Case(
        memory.store,
        "2x4 -0. 3x4",
        "",
        "",
        6,
        {},
        latencies=(2, 2),
        asked="0 4",
        taken="2 3 6",
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
    "RandomStore that nobody awaits": Case(
        partial(memory.random_store, 0),
        "5 6. -1.. / 2x4 2x4. -1..",
        "",
        "",
        5,
        {},
        latencies=(1, 2),
        asked="0 2",
        taken="1 4 5 / 1 4 5",
    ),
    "Bufferize": Case(
        memory.bufferize,
        "2x3 2x3. 4x4.. -0. -1.. 1x2m -0.",
        "2x3#2 4x4#1. #0 -0. 1x2m#1",
        "1-4 6",
        6,
        {"rank": 1},
        taken="0-6",
    ),
    "Bufferize two dimensions": Case(
        memory.bufferize,
        "2x3 2x3. 2x3 2x3.. 4x4... -0.. -2...",
        "2x3#2 4x4#1. #0 -0.",
        "3-6",
        6,
        {"rank": 2},
        taken="0-6",
    ),
    "Streamify": Case(
        partial(memory.streamify, 1),
        "2x3#2 2x3m#3. -0.. #0. 1x1#1",
        "2x3 2x3. 2x3m 2x3m 2x3m.. -1... -0.. 1x1.",
        "0 1 3-5 7-9",
        10,
        {"rank": 1},
        taken="2 6-8 10",
    ),
    "Streamify again and again": Case(
        partial(memory.streamify, 1),
        "2x3#2. #0",
        "2x3 2x3. 2x3 2x3.. 2x3 2x3. 2x3 2x3.... -1.. -1...",
        "0-7 9 10",
        10,
        {"rank": 3, "ragged": 1, "size_0": 2, "size_2": 2},
        taken="8 10",
    ),
    # With a shape the buffer's own size does not matter.
    "Streamify a shape": Case(
        partial(memory.streamify, 1),
        "2x3#9",
        "2x3 2x3. 2x3 2x3..",
        "0-3",
        4,
        {"rank": 2, "ragged": 2, "size_0": 2, "size_1": 2},
        taken="4",
    ),
    "Streamify by references": Case(
        partial(memory.streamify, 2),
        "2x3#2 2x3#1 4x5#1. / 0 1. -0. 5..",
        "2x3 2x3. 2x3 2x3.. -1.. 4x5...",
        "0-3 5 6",
        7,
        {"rank": 1, "repeats": 1},
        taken="4 5 7 / 0 2 5 6",
    ),
    "Scatter": Case(
        partial(memory.scatter, 2),
        "1 0 2. / 1x2 1x2 1x2m.",
        "1x2 1x2 1x2.",
        "7 9 11",
        13,
        {
            "rank": 1,
            "words": 3,
            "width": 2,
            "word_cycles": 2,
            "load_cycles": 3,
            "rows": 1,
            "cols": 2,
        },
        taken="0 3 4 / 0 3 4",
    ),
    # Both updates are in bank 0.
    "Scatter into one bank": Case(
        partial(memory.scatter, 2),
        "2 4. -1.. -0.. / 1x2 1x2. -1.. -0..",
        "3x2. -1.. 3x2..",
        "5 7 8",
        10,
        {
            "rank": 1,
            "words": 1,
            "width": 2,
            "word_cycles": 2,
            "load_cycles": 9,
            "rows": 3,
            "cols": 2,
        },
        taken="0 5 7 8 / 0 5 7 8",
    ),
    # Places 2 and 5 are both in bank 2 of three.
    "Scatter into three banks": Case(
        partial(memory.scatter, 3),
        "2 5 1. / 1x2 1x2 1x2.",
        "1x2 1x2.",
        "8 10",
        12,
        {
            "rank": 1,
            "words": 2,
            "width": 2,
            "word_cycles": 2,
            "load_cycles": 9,
            "rows": 1,
            "cols": 2,
        },
    ),
    "Parallelize": Case(
        partial(routing.parallelize, 3),
        "1 2. 3. 4 5.. 6 -0. 7.",
        "1 2. 6 -0. / 3. 7. / 4 5..",
        "0 1 5 6 / 2 7 / 3 4",
        7,
        {"rank": 1},
    ),
    "Partition": Case(
        partial(routing.partition, 2),
        "1 2. 3.. 4. 5m. / #1 #3. #0 #2.",
        "1 2. 3. / 3. 5.",
        "1-3 / 3 5",
        5,
        {"rank": 1, "switch": 1},
        taken="0-4 / 0 2-4",
    ),
    "Partition at once": Case(
        partial(routing.partition, 2),
        "1 2. 3.. 4. 5m. -0. / #1 #3. #0 #2. #1",
        "1 2. 3. -0. / 3. 5.",
        "0-2 5 / 2 4",
        5,
        {"rank": 1},
        taken="0-5 / 0-4",
    ),
    # 4 bytes a cycle: 16 bytes before the switch, then 3 cycles in it.
    "Partition what is in memory": Case(
        partial(routing.partition, 2),
        "2x4m 1x1m. -0. -1.. / #2 #3 -0.",
        "-0. / 2x4 1x1. -0.",
        "11 / 7 11 12",
        12,
        {"rank": 1, "switch": 3, "bytes_0": 2, "bandwidth": 4},
    ),
    "Intersect": Case(
        partial(routing.intersect, (0, 1), (1, 1)),
        "1 3 5. 2. -0.. -1.. / 3 4 5 9. 2. 4.. -1..",
        "3 5 -0. 2. -0.. -1.. / 3 5 -0. 2. -0.. -1..",
        "1 3 5 6 8 9 / 1 3 5 6 8 9",
        9,
        {},
    ),
    # A side that is empty ends a group as one that has ended does.
    "Intersect empty groups": Case(
        partial(routing.intersect, (0, 2), (1, 1)),
        "5 6. -0. -0... 8. / -0. 7. -0... 8.",
        "-0. -0. -0... 8. / -0. -0. -0... 8.",
        "2-5 / 2-5",
        6,
        {},
        taken="0-4 / 0 2-4",
    ),
    "Intersect where the right ends first": Case(
        partial(routing.intersect, (0,), (1, 1)),
        "1 2 3. 4. / 1. 4.",
        "1 -0. 4.",
        "0 3 4",
        5,
        {},
        taken="0-3 / 0 3",
    ),
    "Intersect with payloads": Case(
        partial(routing.intersect, (0, 1, 2), (2, 2)),
        f"#{7 << 64 | 4} #{8 << 64 | 6}. / #{9 << 64 | 4}.",
        "4 -0. / 7 -0. / 9 -0.",
        "0 2 / 0 2 / 0 2",
        2,
        {},
    ),
    "Intersect a payload of the right": Case(
        partial(routing.intersect, (2,), (1, 2)),
        f"4 5 6.. / #{9 << 64 | 5} #{3 << 64 | 6}..",
        "9 3..",
        "1 2",
        3,
        {},
    ),
    # 2 cycles in the switch, and what is left of 16 bytes after it at 4 a cycle.
    "Reassemble one way": Case(
        partial(routing.reassemble, 1),
        "2x4m 1x1m. 1x1m. -0. / #1 #1. #1",
        "2x4 1x1.. 1x1... -0..",
        "6 7 11 12",
        12,
        {"rank": 1, "switch": 2, "bytes_0": 2, "bandwidth": 4},
    ),
    # 8 operations at 4 a cycle, 16 bytes read and 32 written at 8 a cycle; then 1, 1 and 2 cycles.
    "Map Binary": Case(
        partial(compute.map_, compute.FUNCTIONS["Binary"], [1, 1]),
        "2x4m 1x4. -0. / 2x1 1x1m. -0.",
        "2x4m 1x4m. -0.",
        "4 7 8",
        8,
        {"rate": 4, "bytes_0": 2, "bytes_1": 2, "bandwidth": 8, "to_memory": 1, "result_bytes": 4},
        taken="4 7 8 / 4 7 8",
    ),
    # 16 bytes, then 8; 18, then 9: whole cycles of 8 each.
    "Map loads one after the other": Case(
        partial(compute.map_, compute.FUNCTIONS["Binary"], [1, 1]),
        "2x4m 3x3m. / 2x4m 3x3m.",
        "2x4 3x3.",
        "3 9",
        9,
        {"rate": 100, "bytes_0": 2, "bytes_1": 1, "bandwidth": 8, "result_bytes": 4},
    ),
    # 48 operations and 24, at 10 a cycle.
    "Map Matmul": Case(
        partial(compute.map_, compute.FUNCTIONS["Matmul"], [1, 1]),
        "2x4(1x4) 1x4. / 4x3(4x2) 4x3.",
        "2x3(1x2) 1x3.",
        "5 9",
        9,
        {"rate": 10, "bytes_0": 2, "bytes_1": 2, "bandwidth": 8},
    ),
    "Map a tuple": Case(
        partial(compute.map_, compute.FUNCTIONS["Binary"], [2]),
        f"2x4m#{second(2, 1, 2, 1, 1)} 2x4#{second(2, 4, 1, 4)}",
        "2x4 2x4",
        "3 5",
        5,
        {"rate": 8, "bytes_0": 2, "bytes_1": 2, "bandwidth": 8},
    ),
    "Map CacheWriteAddress": Case(
        partial(compute.map_, compute.FUNCTIONS["CacheWriteAddress"], [1, 1]),
        "3 4. -0. / 2 1. -0.",
        "31 40. -0.",
        "1 3 4",
        4,
        {"rate": 1, "stride": 10},
    ),
    "Map OneHot": Case(
        partial(compute.map_, compute.FUNCTIONS["OneHot"], [1]),
        "1x8 1x8. -0.",
        "4 2. -0.",
        "1 3 4",
        4,
        {"rate": 1},
        given="4 2",
    ),
    "Map SelectorOf": Case(
        partial(compute.map_, compute.FUNCTIONS["SelectorOf"], [1, 1]),
        "1x8 1x8. -0. / #5 #3. -0.",
        "#5 #3. -0.",
        "1 3 4",
        4,
        {"rate": 1},
    ),
    "Map SetOffset": Case(
        partial(compute.map_, compute.FUNCTIONS["SetOffset"], [1, 1]),
        "4x8 4x7(4x6). / 3 2.",
        "4x8(3x8) 4x7(2x6).",
        "1 3",
        3,
        {"rate": 1},
    ),
    "Map PadRows": Case(
        partial(compute.map_, compute.pad_rows(6), [1]),
        "2x8(1x7)m",
        "6x8(1x7)",
        "3",
        3,
        {"rate": 1, "bytes_0": 1, "bandwidth": 7},
    ),
    # 8 and 16 bytes at 16 a cycle; nothing is computed.
    "Accum RetileRow": Case(
        partial(compute.fold, compute.ACCUMULATIONS["RetileRow"], [1], every=False),
        "1x4m 2x4(1x4)m. -0. 3x4.. -1..",
        "3x4(2x4)m 0x4 3x4. -0.",
        "3-6",
        6,
        {"rank": 1, "rate": 1, "bytes_0": 2, "bandwidth": 16, "cols": 4},
        taken="1 3-6",
    ),
    "Accum RetileCol of two dimensions": Case(
        partial(compute.fold, compute.ACCUMULATIONS["RetileCol"], [1], every=False),
        "4x1 4x2(4x1). 4x3.. 4x1.. -2... -1..",
        "4x6(4x5) 4x1 -0. 4x0",
        "2-5",
        5,
        {"rank": 2, "rate": 1, "rows": 4},
    ),
    # 6 operations at 6 a cycle; with the last one of a group 20 bytes at 8 a cycle.
    "Accum Sum": Case(
        partial(compute.fold, compute.ACCUMULATIONS["Sum"], [1], every=False),
        "2x3(1x3) 2x3. 2x3. 2x3 -0. -0.",
        "2x3m 2x3m 2x3m 5x7m",
        "5 9 12 13",
        13,
        {
            "rank": 1,
            "rate": 6,
            "bandwidth": 8,
            "to_memory": 1,
            "store_bytes": 20,
            "rows": 5,
            "cols": 7,
        },
        taken="1 5 9 11-13",
    ),
    "Accum MatmulSum": Case(
        partial(compute.fold, compute.ACCUMULATIONS["MatmulSum"], [1, 1], every=False),
        "2x4(1x4)m 2x4. / 4x3(4x1)m 4x3(4x1).",
        "2x3",
        "5",
        5,
        {"rank": 1, "rate": 48, "bytes_0": 2, "bytes_1": 1, "bandwidth": 12},
        taken="3 5 / 3 5",
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
    "Accum RescaledSum": Case(
        partial(compute.fold, compute.ACCUMULATIONS["RescaledSum"], [1, 1, 2], every=False),
        f"2x4(1x4). / 4x3. / 2x1#{second(2, 1, 2, 1)}.",
        f"2x3#{second(2, 1, 2, 1)}",
        "2",
        2,
        {"rank": 1, "rate": 32},
    ),
    "Accum SignalAllRead": Case(
        partial(compute.fold, compute.ACCUMULATIONS["SignalAllRead"], [1], every=False),
        "2x3 2x3. 2x3. -1.. -0.",
        "1 1 -0. 1",
        "3 5 6 7",
        7,
        {"rank": 1, "rate": 1, "rows": 1, "cols": 1},
    ),
    "Scan Sum": Case(
        partial(compute.fold, compute.ACCUMULATIONS["Sum"], [1], every=True),
        "2x3 2x3(1x3). -0. 2x3.. -1..",
        "2x3m 2x3m. -0. 2x3m.. -1..",
        "2 5 6 9 10",
        10,
        {"rank": 1, "rate": 6, "to_memory": 1, "store_bytes": 12, "bandwidth": 6},
    ),
    "Scan RetileRow": Case(
        partial(compute.fold, compute.ACCUMULATIONS["RetileRow"], [1], every=True),
        "1x4m 2x4. 1x4 -0. 5x4 6x4..",
        "1x4m 3x4m. 1x4 -0. 5x4 11x4..",
        "0-5",
        5,
        {"rank": 1, "rate": 1},
    ),
    "MapPieces": Case(
        partial(pieces.map_, 2, 2),
        "2x2 2x2. 2x2.. / 2x2 2x2. 2x2..",
        "2x2 2x2. 2x2.. / 2x2 2x2. 2x2..",
        "0-2 / 0-2",
        2,
        {},
    ),
    "PromotePieces": Case(
        pieces.promote, "2x2 2x2. 2x2.. 2x2...", "2x2 2x2. 2x2... 2x2....", "0-3", 3, {"level": 2}
    ),
    "AccumPieces": Case(
        pieces.accumulate, "2x2 2x2. 2x2 2x2 2x2..", "2x2 2x2.", "1 4", 4, {}, taken="0-4"
    ),
    "RepeatPieces": Case(
        pieces.repeat, "1. 2", "1 1.. 2 2.", "0 1 3 4", 5, {"times": 2}, taken="2 5"
    ),
    "BigTile": Case(
        pieces.big_tile,
        "1 2.. 3 4... 5. 6... 7.... / 1 2.. 3 4... 5. 6... 7....",
        "1 2.. 3 4... 5. 6... 7.... / 3 4.. 5. 6.. 7...",
        "0-3 6 7 10 / 4 5 8 9 11",
        12,
        {},
        taken="0-3 6 7 10 / 2-5 8 9 11",
    ),
    "ReadPieces": Case(
        pieces.read,
        "7 7. 8",
        "2x2 2x2 2x2. 2x2 2x2 2x2.. 2x2 2x2 2x2. 2x2 2x2 2x2... 2x2 2x2 2x2. 2x2 2x2 2x2.. / 1x1.",
        "1-6 8-13 15-20 / 13",
        20,
        {"rank": 2, "size_0": 3, "size_1": 2, "times": 2, "rows": 2, "cols": 2},
        taken="0 7 14",
    ),
    # Sets of 8 pieces; the one in which a token has just one piece is shared.
    "ReadPieces of more than a set": Case(
        pieces.read,
        "7. 8.",
        "3x2 3x2 3x2 3x2 3x2 3x2 3x2 3x2 3x2.. 3x2 3x2 3x2 3x2 3x2 3x2 3x2 3x2 3x2.. "
        "/ 1x1 1x1. 1x1 1x1.",
        "1-9 11-19 / 8 9 17 19",
        19,
        {"rank": 1, "size_0": 9, "times": 1, "rows": 3, "cols": 2},
    ),
    # What the memory has is there at once.
    "LoadPieces": Case(
        pieces.load,
        "",
        "2x3 2x3. 2x3 2x3.",
        "0 2 5 6",
        7,
        {"rank": 2, "size_0": 2, "size_1": 2, "rows": 2, "cols": 3},
        latencies=(0, 1, 2, 0),
        asked="0 1 3 6",
    ),
    "StorePieces": Case(
        pieces.store,
        "1 2. 3..",
        "",
        "",
        4,
        {"top": 2},
        latencies=(2, 0),
        asked="1 4",
        taken="0 3 4",
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_what_leaves(name: str) -> None:
    """Tokens, whatever waits; and cycles where nothing does."""
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


WIDTHS = {
    5: "rank level top inner outer inside dimension repeats ragged bytes result_bytes",
    1: "outermost valid_only to_memory charges",
    8: "switch",
    20: "rows cols size chunk count across tiles kept groups width words word_cycles load_cycles "
    "times",
    32: "bandwidth rate stride",
    48: "store_bytes",
    128: "control",
}


def test_widths() -> None:
    """Bits of each parameter, by what it is, in modules of all kinds."""
    bits = {name: width for width, names in WIDTHS.items() for name in names.split()}
    # Those of more ways have the same ones.
    large = ("_4", "_8", "_16", "_ds", "_tied", "_static", "_credits")
    small = [build for name, build in builders().items() if not name.endswith(large)]
    of_pieces = [pieces.promote, pieces.repeat, pieces.token_store, pieces.read, pieces.load]
    found = set()
    for build in [*small, *of_pieces, pieces.store]:
        unit = build()
        # What is built has to be used.
        Fragment.get(unit.m, None)
        found |= {(name.rstrip("_0123456789"), len(port)) for name, port in unit.parameters.items()}

    assert found == set(bits.items())


def test_together() -> None:
    """A Broadcast sends to all at once, and so does a Map of pieces."""
    for build in (partial(sequences.broadcast, 2), partial(pieces.map_, 1, 2)):
        for found in driven(build(), [tokens("1 2 3 4")], {}, seeds=range(4)):
            assert found.sent_cycles[0] == found.sent_cycles[1]


def test_addresses_of_an_expert(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number times its tiles, and so on; with selectors that the simulator has depth for."""
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


@pytest.mark.parametrize("switch", [0, 2, 5])
def test_reassembled(switch: int) -> None:
    """Sub-tensors that a selector names, in the order in which they came, each by itself."""
    given = ["1. 2. 9.", "5 4. 6 7 8.", "3. 10 11.."]
    named = [(0, 2), (1,), (0, 1), (), (2, 0)]
    steering = "#5 #2 #3. -0 #5.."
    waiting = [tokens(each) for each in given]
    runs = driven(
        routing.reassemble(3),
        [*waiting, tokens(steering)],
        {"rank": 1, "switch": switch},
        seeds=(None, 1, 3, 10),
        since=(2,),
    )
    orders = set()

    for found in runs:
        left = [
            list(zip(each, found.shown_cycles[at], strict=True)) for at, each in enumerate(waiting)
        ]
        expected: list[dict[str, int]] = []
        for ways, selector in zip(named, tokens(steering), strict=True):
            closing = selector.get("level", 0) + 1
            came = sorted(ways, key=lambda way: (left[way][0][1], way))
            orders.add(tuple(came))
            if not came:
                expected.append({"bare": 1, "level": closing + 1, "empty": 2})
            for number, way in enumerate(came):
                level = 0
                while not level:
                    token, _ = left[way].pop(0)
                    level = token.get("level", 0)
                    last = bool(level) and number == len(came) - 1
                    new = {"level": level + closing} if last else {}
                    expected.append(token | new)
        assert found.sent == [expected]
        assert found.done_cycle >= 0
    if switch == 2:
        assert {(0, 2), (2, 0), (0, 1), (1, 0)} <= orders
        assert runs[0].sent_cycles == [[2, *range(4, 15)]]


@pytest.mark.parametrize("reads", ["ds", "sd", "d", "s"])
def test_merged(reads: str) -> None:
    """First come, first served, of two that come at once the first; a selector says whose it is."""
    given = [tokens(each) for each in ("1 2. 3. -0.", "4. 5 6.. 7.", "8 9. 10. 11..")]
    orders = set()
    runs = driven(routing.eager_merge(3, reads), given, {"rank": 1}, seeds=(None, *range(4)))

    for found in runs:
        left = [
            list(zip(each, found.shown_cycles[at], strict=True)) for at, each in enumerate(given)
        ]
        sent: dict[str, list[dict[str, int]]] = {"d": [], "s": []}
        while any(left):
            way = min((each[0][1], at) for at, each in enumerate(left) if each)[1]
            sent["s"] += tokens(f"#{1 << way}")
            level = 0
            while not level:
                token, _ = left[way].pop(0)
                level = token.get("level", 0)
                sent["d"].append(token)
        assert found.sent == [sent[each] for each in reads]
        assert found.done_cycle >= 0
        orders.add(str(sent["s"]))
    assert len(orders) > 2
    # A sub-tensor may begin in the cycle in which the one before has left.
    if reads == "ds":
        assert runs[0].sent_cycles == [[*range(12)], [0, 1, 2, 4, 5, 7, 8, 9, 10]]


@pytest.mark.parametrize(
    ("slots", "hops", "depth", "forward", "backward"),
    [
        *((1, 1, 1, 1, 1), (2, 1, 2, 1, 1), (2, 1, 1, 1, 1), (3, 1, 3, 1, 1), (3, 2, 2, 2, 1)),
        *((4, 3, 4, 1, 3), (5, 3, 5, 3, 2), (5, 3, 4, 2, 3), (8, 4, 8, 4, 4)),
    ],
)
def test_a_channel(slots: int, hops: int, depth: int, forward: int, backward: int) -> None:
    """What is sent is shown after the way there, and a slot is free after the way back."""
    m, ports = blocks.channel(slots, hops)
    inner, sent, shown = Module(), ports[5], ports[8]
    inner.submodules.channel = m
    for port, value in zip(ports, (depth, forward, backward), strict=False):
        inner.d.comb += port.eq(value)
    ready, send, closing, valid, take, ended, final = (ports[at] for at in (3, 4, 6, 7, 9, 10, 11))
    random, found = Random(slots), []

    async def drive(context: Any) -> None:
        sends: list[int] = []
        takes: list[int] = []
        end = 120
        for cycle in range(140):
            # Those that write are faster at first, and those that read later.
            speed = 0.9 if cycle // 30 % 2 else 0.3
            here = [at for at in sends if at + forward <= cycle][len(takes) :]
            free = depth - len(sends) + sum(at + backward <= cycle for at in takes)
            sending = bool(free) and cycle < end and random.random() < speed
            taking = bool(here) and random.random() < 1.1 - speed
            number = len(sends) + 1
            context.set(send, sending)
            context.set(sent.as_value(), packed(control=number, level=number % 7) * sending)
            context.set(closing, cycle >= end)
            context.set(take, taking)
            is_over = cycle >= end + forward
            assert context.get(ready) == (free > 0)
            assert context.get(valid) == bool(here)
            assert (context.get(ended), context.get(final)) == (is_over, is_over and len(here) == 1)
            if here:
                first = len(takes) + 1
                assert (context.get(shown.control), context.get(shown.level)) == (first, first % 7)
            found.append((free, len(here)))
            sends += [cycle] * sending
            takes += [cycle] * taking
            await context.tick()

    simulator = Simulator(inner)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert {0, depth} <= {free for free, _ in found}
    assert {0, depth} <= {held for _, held in found}


def stored(data: str, freed: str, since: tuple[int, int], rank: int = 1) -> Driven:
    """Return what a store of tokens does, for whose memory nobody waits."""
    (found,) = driven(
        pieces.token_store(),
        [tokens(data), tokens(freed)],
        {"rank": rank, "rows": 2, "cols": 3},
        since=since,
        most=410,
    )
    return found


def test_stored_pieces() -> None:
    """Pieces from cycle 257 on, one a cycle; a token with the last one, over when it is freed."""
    found = stored("1 2 3. 4. 5 6..", "1 1 1", (0, 300))

    # The second token has just one piece, and leaves its set to the next one.
    assert found.taken_cycles == [[*range(257, 263)], [300, 301, 302]]
    assert (found.sent, found.sent_cycles) == ([tokens("2x3 2x3 2x3.")], [[259, 260, 262]])
    assert (found.done_cycle, found.fault) == (303, False)
    # 8 pieces fill a set, 2 dimensions are a token, and what forgets a token keeps one waiting.
    found = stored("1 2. 3 4. 5 6. 7 8. 9 10.. 11 12... 13..", "1. 1 1. 1 1", (0, 260), rank=2)

    assert found.taken_cycles[0] == [257, 258, 259, 261, *range(263, 272)]
    assert (found.sent, found.sent_cycles) == ([tokens("2x3 2x3. 2x3")], [[268, 270, 271]])


def test_sets() -> None:
    """There are 32, and 64 tokens are held; one more after one was freed is a fault."""
    full = stored(" ".join(["1."] * 70), "1", (0, 400))
    assert full.taken_cycles[0] == [*range(257, 321), 401, 402]
    assert full.fault
    two = stored(" ".join(["1."] * 66), "1 1", (0, 400))
    assert two.taken_cycles[0] == full.taken_cycles[0]
    assert not two.fault


FAULTS: dict[str, tuple[Callable[[], Unit], str, dict[str, int]]] = {
    "a chunk that is not whole": (
        partial(sequences.reshape_outer, 1), "1. 2.. 3..", {"chunk": 2, "dimension": 1},
    ),
    "a bare value to expand": (sequences.expand, "-0. / 1.", {"rank": 1}),
    "stops of a Zip": (sequences.zip_, "1 2. / 1 2..", {}),
    "values of a Zip": (sequences.zip_, "1. / -0.", {}),
    "stops and values of a Zip": (sequences.zip_, "1. / -0..", {}),
    "stops and values of numbers": (routing.zip_numbers, "1. / -0..", {}),
    "stops and values of a Scatter": (
        partial(memory.scatter, 1),
        "1. / -0..",
        {"rank": 1, "width": 9},
    ),
    "stops of numbers": (routing.zip_numbers, "1 2. / 1 2..", {}),
    "values of numbers": (routing.zip_numbers, "1. / -0.", {}),
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
    "another side without groups": (partial(routing.intersect, (0,), (1, 1)), "1. / -1.", {}),
    "groups of two sides": (partial(routing.intersect, (0,), (1, 1)), "2. / 2..", {}),
    "groups of two sides without a match": (
        partial(routing.intersect, (0,), (1, 1)), "1. / 2..", {},
    ),
    "groups of two sides, one with a bare stop": (
        partial(routing.intersect, (0,), (1, 1)), "1 3. / 1 2 -0..", {},
    ),
    "a large coordinate": (
        partial(routing.intersect, (0,), (1, 1)), f"#{1 << 42}. / #{1 << 42}.", {},
    ),
    "a large payload": (
        partial(routing.intersect, (0,), (2, 1)), f"#{1 << 107 | 5}. / 5.", {},
    ),
    "large payloads on both sides": (
        partial(routing.intersect, (0,), (2, 2)),
        f"#{1 << 107 | 5}. / #{1 << 107 | 5}.",
        {},
    ),
    "rows and columns of a buffer": (memory.bufferize, "2x3 4x5(2x3).", {"rank": 1}),
    "two operands of a Map": (
        partial(compute.map_, compute.FUNCTIONS["ShiftedExp"], [1, 1, 1]),
        "1. / 1.. / 1..",
        {"rate": 1},
    ),
    "two more streams of pieces": (partial(pieces.map_, 3, 1), "1. / 1.. / 1..", {}),
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
def test_faults(name: str) -> None:
    """What a module is not built for, it says."""
    build, inputs, parameters = FAULTS[name]
    (found,) = driven(build(), streams(inputs), parameters, latencies=(1, 1), most=30)

    assert found.fault


@pytest.mark.parametrize(
    ("build", "inputs", "parameters"),
    [
        # Groups of their own may have tiles of other sizes, and so may what is behind a bare one.
        (memory.bufferize, "2x3 2x3. 1x4 1x4. 2x2 -0. 3x3m.", {"rank": 1}),
        (sequences.reshape_outer, "1. 2. 3.. 4. 5. 6.. -1..", {"chunk": 3, "dimension": 1}),
        (partial(routing.partition, 2), "-0. -1.. / #1 -0.", {"rank": 1}),
        (partial(routing.intersect, (0,), (2, 1)), f"#{(1 << 42) - 1}. / #{(1 << 42) - 1}.", {}),
        # A bare stop closes one side, an element the other.
        (partial(routing.intersect, (0,), (1, 1)), "1 3.. / 1 2 -0..", {}),
        (partial(routing.intersect, (0,), (1, 1)), "1 2 -0.. / 1 3..", {}),
    ],
)
def test_no_faults(build: Callable[..., Unit], inputs: str, parameters: dict[str, int]) -> None:
    """What is just not one."""
    unit = build(1) if build is sequences.reshape_outer else build()
    (found,) = driven(unit, streams(inputs), parameters, most=30)

    assert not found.fault
