"""Small programs that get stuck, each in a known way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fabric import Hardware, Program, Stream, hardware_scope
from fabric.graph.hardware.description import OnChipDescription
from operators import (
    Bufferize,
    EagerMerge,
    Flatten,
    Initial,
    LinearOffChipLoad,
    LinearOffChipStore,
    Partition,
    Reassemble,
    Selectors,
    Streamify,
    Tensor,
)
from tests.deadlock.parts import Leak, Rows, Script, feedback, gather, relay, sink, source


@dataclass(frozen=True)
class Case:
    build: Callable[..., Program]
    code: str
    depths: dict[str, int] | None
    loops: tuple[int, ...]
    given: dict[str, int] = field(default_factory=dict)
    capacity_bytes: int | None = None
    begun: int = 0


CASES: dict[str, Case] = {}
Build = TypeVar("Build", bound=Callable[..., Program])


def case(
    code: str,
    *,
    depths: dict[str, int] | None = None,
    loops: tuple[int, ...],
    given: dict[str, int] | None = None,
    capacity_bytes: int | None = None,
    begun: int = 0,
) -> Callable[[Build], Build]:

    def add(build: Build) -> Build:
        CASES[build.__name__] = Case(build, code, depths, loops, given or {}, capacity_bytes, begun)
        return build

    return add


# ------------------------------------------------------------------------- capacity


def fork_join(name: str, *, size: int, relays: int, count: int = 64) -> Stream:
    rows = source(f"{name}_rows", count)
    tiles = gather(f"{name}_pack", rows, size)
    for number in range(relays):
        tiles = relay(f"{name}_relay_{number}", tiles)
    steps = ("r0", *["r1"] * size, "s0", "c1")
    return Script(steps, counts=(count // size,), name=f"{name}_join")(tiles, rows)[0]


@case("FAB-D001", depths={"a_join.1": 8}, loops=(4,))
def pack_rows() -> Program:
    with Program("pack-rows") as program:
        sink("y", fork_join("a", size=8, relays=1))
    return program


@case("FAB-D001", depths={"a_join.1": 16}, loops=(9,))
def unequal_branches() -> Program:
    with Program("unequal-branches", channel_depth=1) as program:
        sink("y", fork_join("a", size=16, relays=6))
    return program


@case("FAB-D001", depths={"a_join.1": 8}, loops=(40,))
def loop_of_40() -> Program:
    with Program("loop-of-40") as program:
        sink("y", fork_join("a", size=8, relays=37))
    return program


@case("FAB-D001", depths={"reader.0": 10}, loops=(2,))
def loop_of_2() -> Program:
    with Program("loop-of-2") as program:
        writer = Script(("s0",) * 10 + ("s1",) * 10, rounds=1, counts=(10, 10), name="writer")
        reader = Script(("r1", "r0", "c1"), counts=(), name="reader")
        reader(*writer())
    return program


@case("FAB-D001", depths={"last.0": 4, "last.1": 4}, loops=(2,))
def two_depths() -> Program:
    with Program("two-depths") as program:
        first = Script(("s0",) * 4 + ("s1",) * 4 + ("s2",), rounds=3, counts=(12, 12, 3))
        last = Script(("r2",) + ("r0",) * 4 + ("r1",) * 4, counts=(), name="last")
        last(*first())
    return program


@case("FAB-D001", depths={"tree.0": 5}, loops=(1,))
def waits_for_itself() -> Program:
    with Program("waits-for-itself") as program:
        loop = feedback(7)
        again, done = Script(
            ("r0", "s0", "r0", "s1", "r0", "s1", "c1"),
            once=("s0",) * 5,
            rounds=2,
            counts=(7, 4),
            name="tree",
        )(loop)
        loop.connect(again)
        sink("y", done)
    return program


@case("FAB-D001", depths={"a_join.1": 4}, loops=(3,), given={"a_join.1": 1})
def depth_given() -> Program:
    with Program("depth-given", channel_depth=2) as program:
        sink("y", fork_join("a", size=4, relays=0))
    return program


@case("FAB-D001", depths={"a_join.1": 4, "b_join.1": 6}, loops=(3, 4))
def two_at_once() -> Program:
    with Program("two-at-once") as program:
        sink("y", fork_join("a", size=4, relays=0))
        sink("z", fork_join("b", size=6, relays=1, count=60))
    return program


@case("FAB-D001", depths={"a_join.1": 4}, loops=(3,))
def long_tail() -> Program:
    with Program("long-tail") as program:
        stream = fork_join("a", size=4, relays=0)
        for number in range(60):
            stream = relay(f"behind_{number}", stream)
        sink("y", stream)
    return program


@case("FAB-D001", depths={"reassemble_1.2": 7}, loops=(4,))
def packed_experts() -> Program:
    choice = np.array([[0], [1], [1], [1], [0], [1], [0], [0]])
    with Program("packed-experts") as program:
        route = Flatten(0, 1)(Selectors(choice, width=2)())
        packed = []
        for number, stream in enumerate(Partition(2)(tokens_of(8), route)):
            steps = ("r0",) * 4 + ("s0",) * 4
            again = Script(steps, counts=(4,), name=f"expert_{number}")(stream)
            packed.append(again[0])
        sink("y", Reassemble()(packed, route))
    return program


@case("FAB-D001", depths={"eager_merge_1.0": 2, "return.0": 2, "unit.0": 4}, loops=(3,))
def merge_in_a_loop() -> Program:
    with Program("merge-in-a-loop", channel_depth=1) as program:
        back = feedback(24)
        data, _ = EagerMerge()([back, source("work", 3)])
        steps = ("r0", *["s0"] * 8, *["r0"] * 8, "s1")
        again, done = Script(steps, rounds=3, counts=(24, 3), name="unit")(data)
        back.connect(relay("return", again))
        sink("y", done)
    return program


# ----------------------------------------------------------------------- dependency


def tokens_of(count: int) -> Stream:
    return Flatten(0, 2)(LinearOffChipLoad(Tensor((count, 64)), tile=(1, 64))())


def ring(name: str, size: int, begun: int = 0) -> None:
    loop = feedback(8)
    stream: Stream = loop
    for number in range(size):
        stream = relay(f"{name}_{number}", stream)
    if begun:
        stream = Initial(True, begun, keep_length=True)(stream)
    loop.connect(stream)


@case("FAB-D002", loops=(1,), begun=1)
def ring_of_1(begun: int = 0) -> Program:
    with Program("ring-of-1") as program:
        ring("relay", 1, begun)
    return program


@case("FAB-D002", loops=(7,), begun=1)
def ring_of_7(begun: int = 0) -> Program:
    with Program("ring-of-7") as program:
        ring("relay", 7, begun)
        sink("y", relay("other", source("x", 5)))
    return program


@case("FAB-D002", loops=(2, 3, 2), begun=1)
def three_rings(begun: int = 0) -> Program:
    with Program("three-rings") as program:
        ring("a", 2, begun)
        ring("b", 3, begun)
        ring("c", 2, begun)
    return program


@case("FAB-D002", loops=(3,), begun=1)
def gather_in_a_ring(begun: int = 0) -> Program:
    with Program("gather-in-a-ring") as program:
        loop = feedback(9)
        (started,) = Script(("r0", "s0"), once=("s0", "s0"), counts=(9,), name="start")(loop)
        tiles = gather("pack", started, 3)
        (stream,) = Script(("r0", "s0", "s0", "s0"), counts=(9,), name="unpack")(tiles)
        if begun:
            stream = Initial(True, begun, keep_length=True)(stream)
        loop.connect(stream)
    return program


def rounds_of_a_loop(begun: int, *, wanted: int = 1) -> None:
    loop = feedback(12)
    steps = ("r0", *["r1"] * wanted, "c2", *["s0"] * wanted, "s1")
    rounds = 12 // wanted
    again, done = Script(steps, rounds=rounds, counts=(12, rounds), name="turn")(
        source("x", rounds), loop
    )
    loop.connect(Initial(True, begun, keep_length=True)(again) if begun else again)
    sink("y", done)


@case("FAB-D002", loops=(1,), begun=1)
def sums_without_a_first(begun: int = 0) -> Program:
    with Program("sums-without-a-first") as program:
        rounds_of_a_loop(begun)
    return program


@case("FAB-D002", loops=(1,), begun=3)
def three_at_a_time(begun: int = 0) -> Program:
    with Program("three-at-a-time", channel_depth=4) as program:
        rounds_of_a_loop(begun, wanted=3)
    return program


@case("FAB-D002", depths={"initial_1.0": 2}, loops=(1,), begun=4)
def slots_for_what_goes_round(begun: int = 0) -> Program:
    with Program("slots-for-what-goes-round", channel_depth=1) as program:
        rounds_of_a_loop(begun, wanted=4)
    return program


@case("FAB-D002", loops=(4,))
def attention_without_selectors() -> Program:
    with Program("attention-without-selectors") as program:
        requests = tokens_of(8)
        free = [feedback(4), feedback(4)]
        _, selectors = EagerMerge()(free)
        regions = Partition(2)(requests, selectors)
        for number, (stream, signal) in enumerate(zip(regions, free, strict=True)):
            steps = ("r0", "c9", "s0", "s1")
            counts = (*stream.shape, *stream.shape)
            done, again = Script(steps, counts=counts, name=f"region_{number}")(stream)
            sink(f"y_{number}", done)
            signal.connect(again)
    return program


# ----------------------------------------------------------------- streams that end


@case("FAB-D003", loops=(1,))
def cut_off_sub_tensor() -> Program:
    with Program("cut-off-sub-tensor") as program:
        route = Flatten(0, 1)(Selectors(np.zeros((2, 1), int), width=1)())
        rows = Rows((0, 1, 0, 2, 0, 1, 0), name="rows")()
        sink("y", Reassemble(rank=2)([rows], route))
    return program


@case("FAB-D003", loops=(1,))
def ended_behind_a_chain() -> Program:
    with Program("ended-behind-a-chain") as program:
        route = Flatten(0, 1)(Selectors(np.zeros((4, 1), int), width=1)())
        (short,) = Script(("s0", "c5"), rounds=3, counts=(4,), name="short")()
        merged = Reassemble()([relay("between", short)], route)
        sink("y", relay("behind", Script(("r0", "s0"), counts=(4,), name="next")(merged)[0]))
    return program


@case("FAB-D001", loops=(3,))
def no_depth_is_enough() -> Program:
    with Program("no-depth-is-enough") as program:
        rows = source("rows", 6)
        tiles = gather("pack", rows, 4)
        (both,) = Script(("r0",) + ("r1",) * 4 + ("s0",), counts=(1,), name="join")(tiles, rows)
        route = Flatten(0, 1)(Selectors(np.zeros((2, 1), int), width=1)())
        sink("y", Reassemble()([both], route))
    return program


# ------------------------------------------------------------ slots and memory, both


@case("FAB-D005", loops=(1,))
def leaking_slots() -> Program:
    with Program("leaking-slots", channel_depth=4) as program:
        sink("y", Leak(name="leak")(source("x", 8)))
    return program


@case("FAB-D005", loops=(2,))
def lost_buffer() -> Program:
    with on_a_small_chip(11 * 2048, "lost-buffer") as program:
        small = Bufferize(rank=2)(LinearOffChipLoad(Tensor((64, 64)), tile=(16, 64))())
        sink("forgetful", small)
        large = Bufferize(rank=2)(LinearOffChipLoad(Tensor((128, 64)), tile=(16, 64))())
        LinearOffChipStore("y")(Streamify()(large))
    return program


def on_a_small_chip(capacity_bytes: int, name: str) -> Program:
    hardware = Hardware(on_chip=OnChipDescription(capacity_bytes=capacity_bytes))
    with hardware_scope(hardware):
        return Program(name)


TWO_BUFFERS_BYTES = (8 + 8 + 1) * 2048


@case("FAB-D006", loops=(5,), capacity_bytes=TWO_BUFFERS_BYTES)
def two_buffers(capacity_bytes: int = 10 * 2048) -> Program:
    with on_a_small_chip(capacity_bytes, "two-buffers") as program:
        for name in "ab":
            tiles = LinearOffChipLoad(Tensor((128, 64)), tile=(16, 64))()
            LinearOffChipStore(name)(Streamify()(Bufferize(rank=2)(tiles)))
    return program


@case("FAB-D006", depths={"a_join.1": 4}, loops=(5, 3), capacity_bytes=TWO_BUFFERS_BYTES)
def slots_and_room(capacity_bytes: int = 10 * 2048) -> Program:
    with two_buffers(capacity_bytes) as program:
        sink("z", fork_join("a", size=4, relays=0))
    return program


@case(
    "FAB-D006",
    depths={"a_join.1": 4},
    loops=(5, 3, 1),
    capacity_bytes=TWO_BUFFERS_BYTES,
    begun=1,
)
def all_together(capacity_bytes: int = 10 * 2048, begun: int = 0) -> Program:
    with slots_and_room(capacity_bytes) as program:
        rounds_of_a_loop(begun)
    return program


@case("FAB-D006", loops=(5, 2), capacity_bytes=TWO_BUFFERS_BYTES, begun=1)
def two_buffers_and_a_ring(capacity_bytes: int = 10 * 2048, begun: int = 0) -> Program:
    with two_buffers(capacity_bytes) as program:
        ring("turn", 2, begun)
    return program


# ------------------------------------------------------------------- moving for ever


@case("FAB-L001", loops=(2,))
def round_and_round() -> Program:
    with Program("round-and-round") as program:
        loop = feedback(1)
        (started,) = Script(("r0", "s0"), once=("s0",), name="start")(loop)
        turned, never = Script(("r0", "s0"), counts=(1, 1), name="turn")(started)
        loop.connect(turned)
        sink("y", never)
    return program


@case("FAB-L001", loops=(2, 2))
def round_and_round_beside_a_ring() -> Program:
    with round_and_round() as program:
        ring("rest", 2)
    return program
