"""Streams with all of their addresses in few channels or in one bank."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.analysis.symbolic.check import Crowded, check, first_addresses
from fabric.extend import BankedDescription, PlacementDescription
from fabric.graph.wiring.elaborate import elaborate
from operators import Consumer, LinearOffChipLoad, LinearOffChipStore, Metadata, Tensor
from operators.off_chip_load import RandomOffChipLoad
from tests.memories.commands import locations
from tests.operators.recording_memory import RECORDING, recorded
from tests.profiles import examples

STOCK = BankedDescription(channels=8, mapping="row-bank-rank-column-channel")
"""From the lowest bit: 8 channels, 16 columns, 2 pseudo channels, 4 groups, 4 banks, rows."""

BANKS_BYTES = 64 * 8 * 16 * 2 * 4 * 4
"""The distance of two rows of a bank."""


def advice(build: Callable[[], Program], hbm: BankedDescription, **placement: object) -> list[str]:
    described = PlacementDescription(**placement)  # type: ignore[arg-type]
    with hardware_scope(Hardware(hbm=hbm, placement=described)):
        program = build()
    return [text.split(": ", 1)[1] for text in check(program, {}, data=False).warnings]


def columns(rows: int = 64, cols: int = 32, channels: int = 8) -> Program:
    with Program("columns") as program:
        x = Tensor((rows, BANKS_BYTES // 8 * channels // 2))
        Consumer()(LinearOffChipLoad(x, (rows, cols), (1,), (1,), name="x")())
    return program


def several() -> Program:
    with Program("several") as program:
        for number in range(5):
            x = Tensor((BANKS_BYTES // 128, 64))
            LinearOffChipStore(f"y{number}")(LinearOffChipLoad(x, (64, 64))())
    return program


def test_tensors_that_begin_in_one_bank_are_reported() -> None:
    assert advice(several, STOCK) == [
        "5 of 5 places from which tensors are read are in different rows of bank 0 of channel "
        "0: expected [placement] stagger_bytes, so that they are on different banks"
    ]
    assert advice(several, STOCK, stagger_bytes=64 * 8 * 16) == []


def test_readers_of_one_tensor_are_not_reported() -> None:
    def build() -> Program:
        with Program("shared") as program:
            x = Tensor((64, 64))
            for _ in range(4):
                Consumer()(LinearOffChipLoad(x, (64, 64))())
        return program

    assert advice(build, STOCK) == []


def test_addresses_that_data_decide_are_not_reported() -> None:
    def build() -> Program:
        with Program("random") as program:
            for _ in range(4):
                numbers = Metadata(np.zeros(64, np.int64))()
                x = Tensor((64, BANKS_BYTES // 2))
                Consumer()(RandomOffChipLoad(x, (1, 32))(numbers))
        return program

    assert advice(build, STOCK) == []


@st.composite
def _loads(draw: st.DrawFn) -> tuple[Callable[[], Program], PlacementDescription]:
    outer = draw(st.lists(st.integers(1, 3), max_size=1))
    down, across = draw(st.sampled_from([1, 3, 8, 64])), draw(st.sampled_from([1, 3, 8, 64]))
    rows, cols = draw(st.sampled_from([1, 2, 5])), draw(st.sampled_from([16, 32, 48, 512]))
    count = math.prod(outer) * down * across
    shape, strides, last = [], [], count - 1
    for _ in range(draw(st.integers(1, 3))):
        stride = draw(st.sampled_from([1, across, down * across, 8 * across, 0]))
        size = draw(st.integers(1, 1 + min(63, last // stride if stride else 2)))
        last -= stride * (size - 1)
        shape.append(size)
        strides.append(stride)

    def build() -> Program:
        with Program("load") as program:
            tensor = Tensor((*outer, down * rows, across * cols))
            view = tuple(shape), tuple(strides)
            Consumer()(LinearOffChipLoad(tensor, (rows, cols), *view, name="load")())
        return program

    contiguous = PlacementDescription(tiles="contiguous")
    padded = PlacementDescription(row_padding_bytes=64)
    return build, draw(st.sampled_from([PlacementDescription(), contiguous, padded]))


@examples(quick=7, deep=60)
@given(
    _loads(),
    st.sampled_from(["row-bank-rank-column-channel", "interleaved", "interleaved with hash"]),
    st.sampled_from([1, 8, 64]),
)
def test_report_of_a_load_is_that_of_its_first_requests(
    drawn: tuple[Callable[[], Program], PlacementDescription], mapping: str, channels: int
) -> None:
    build, placement = drawn
    hbm = BankedDescription(channels=channels, mapping=mapping)
    with hardware_scope(Hardware(hbm=hbm, placement=placement)):
        plan = elaborate(build())
    node = next(node for node in plan.nodes if node.name == "load")

    with hardware_scope(Hardware(hbm=RECORDING.hbm, placement=placement)):
        assert simulate(build()).status == "completed"
    with recorded() as bursts:
        addresses = [
            burst.address + row * burst.pitch_bytes + byte
            for burst in bursts["load"]
            for row in range(burst.rows)
            for byte in range(0, burst.row_bytes, 64)
        ][:1024]
    found = first_addresses(node, plan.memory_map.regions.get(node), hbm)
    if found is None:
        # No nest of loops has the order of this view.
        assert node.outputs[0].layout is None
    else:
        assert found.tolist() == addresses
        assert Crowded(plan).of(node) == _expected(addresses, hbm)


def _expected(addresses: list[int], hbm: BankedDescription) -> str | None:
    channels, count = hbm.channels, len(addresses)
    spread = "expected other tiles, or a [placement] that spreads them"
    if count < 4 * channels:
        return None
    places = locations(hbm, addresses)
    used = len({place.channel for place in places})
    if used < channels / 4:
        return f"its first {count:,} requests are on {used} of {channels} channels: {spread}"
    banks = Counter(each[:-1] for each in set(places))
    most = max(banks.values())
    (channel, pseudo, group, bank) = min(each for each, rows in banks.items() if rows == most)
    busiest = max(Counter(place.channel for place in places).values())
    # A channel delivers 32 bytes a cycle.
    if (most - 1) * 48 <= 2 * max(count, busiest * 2):
        return None
    number = (pseudo * 4 + group) * 4 + bank
    return (
        f"its first {count:,} requests are in {most:,} rows of bank {number} of channel {channel}, "
        f"which are opened in {(most - 1) * 48:,} cycles: {spread}"
    )
