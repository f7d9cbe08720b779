"""Streams that meet in few channels or in one bank, by the addresses that a run asks for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.analysis.symbolic.check import Crowded, check, first_addresses
from fabric.extend import BankedDescription, PlacementDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.memories.banked_tables import AddressMapping
from operators import Consumer, LinearOffChipLoad, LinearOffChipStore, Metadata, Tensor
from operators.off_chip_load import RandomOffChipLoad
from tests.operators.recording_memory import RECORDING, recorded
from tests.profiles import examples

STOCK = BankedDescription(channels=8, mapping="row-bank-rank-column-channel")
"""Low bits first: 8 channels, 16 columns, 2 pseudo channels, 4 groups, 4 banks, rows: 256 KB."""

BANKS_BYTES = 64 * 8 * 16 * 2 * 4 * 4
"""From a row of a bank to its next one."""


def told(build: Callable[[], Program], hbm: BankedDescription, **placement: object) -> list[str]:
    """Return the warnings of a program, without the file and the line in front."""
    described = PlacementDescription(**placement)  # type: ignore[arg-type]
    with hardware_scope(Hardware(hbm=hbm, placement=described)):
        program = build()
    return [text.split(": ", 1)[1] for text in check(program, {}, data=False).warnings]


def columns(rows: int = 64, cols: int = 32, channels: int = 8) -> Program:
    """Return a program that reads a tile of a tensor whose rows are all in one bank."""
    with Program("columns") as program:
        x = Tensor((rows, BANKS_BYTES // 8 * channels // 2))
        Consumer()(LinearOffChipLoad(x, (rows, cols), (1,), (1,), name="x")())
    return program


class TestOneStream:
    def test_one_channel(self) -> None:
        """Every request on one channel."""
        assert told(columns, STOCK) == [
            "x: its first requests, 64, are on 1 of 8 channels: expected other tiles, or a "
            "[placement] that spreads them"
        ]

    def test_one_bank(self) -> None:
        """A request further in each row: other channels, but new rows of one bank of each."""
        assert told(columns, STOCK, row_padding_bytes=64) == [
            "x: its first requests, 64, are in 8 rows of bank 0 of channel 0, which are opened in "
            "336 cycles: expected other tiles, or a [placement] that spreads them"
        ]

    def test_limits(self) -> None:
        """A quarter of the channels, and a bank that takes twice as long, are no reason."""
        assert "64 rows of bank 0" in told(partial(columns, cols=64), STOCK)[0]
        wide = [partial(columns, channels=channels) for channels in (16, 32)]
        hbm = [replace(STOCK, channels=channels) for channels in (16, 32)]
        assert "in 144 cycles" in told(wide[0], hbm[0], row_padding_bytes=64)[0]
        assert told(partial(wide[1], 256), hbm[1], row_padding_bytes=64) == []
        # A channel has 32 bytes a cycle: 24 requests take 48 cycles, 3 rows are opened in 96.
        one = replace(STOCK, channels=1)
        assert told(partial(columns, 3, 8 * 32, 1), one) == []
        assert (
            "in 4 rows of bank 0 of channel 0, which are opened in 144 cycles"
            in (told(partial(columns, 4, 8 * 32, 1), one)[0])
        )

    def test_few_requests(self) -> None:
        """A stream that has few requests for each channel is no matter."""
        assert told(partial(columns, 31), STOCK) == []
        assert told(partial(columns, 32), STOCK) != []

    def test_spread(self) -> None:
        """Tiles one behind the other, or a mapping that mixes higher bits in."""
        assert told(columns, STOCK, tiles="contiguous") == []
        assert told(columns, BankedDescription(channels=8)) == []

    def test_flat(self) -> None:
        """A memory without banks has nothing to say."""
        with hardware_scope(Hardware()):
            assert check(columns(), {}, data=False).warnings == ()


def several() -> Program:
    """Return a program that reads and writes tensors of 256 KB."""
    with Program("several") as program:
        for number in range(5):
            x = Tensor((BANKS_BYTES // 128, 64))
            LinearOffChipStore(f"y{number}")(LinearOffChipLoad(x, (64, 64))())
    return program


class TestTogether:
    def test_one_bank(self) -> None:
        """All tensors begin in rows of one bank, unless each begins a row of a bank further."""
        assert told(several, STOCK) == [
            "5 of 5 places from which tensors are read are in different rows of bank 0 of channel "
            "0: expected [placement] stagger_bytes, so that they are on different banks"
        ]
        assert told(several, STOCK, stagger_bytes=64 * 8 * 16) == []

    @pytest.mark.parametrize("others", [1, 2])
    def test_half(self, others: int) -> None:
        """Two that begin in one bank are most of three, and not of four."""

        def build() -> Program:
            with Program("half") as program:
                # Each that comes after the second one begins a row of a bank further.
                for rows in (0, 64, 64)[: 1 + others]:
                    x = Tensor((BANKS_BYTES // 128 + rows, 64))
                    Consumer()(LinearOffChipLoad(x, (64, 64))())
                Consumer()(LinearOffChipLoad(Tensor((64, 64)), (64, 64))())
            return program

        found = told(build, STOCK)
        assert (others == 1) == any(text.startswith("2 of 3 places ") for text in found)
        assert len(found) == (others == 1)

    def test_shared(self) -> None:
        """Who reads one tensor reads one row."""

        def build() -> Program:
            with Program("shared") as program:
                x = Tensor((64, 64))
                for _ in range(4):
                    Consumer()(LinearOffChipLoad(x, (64, 64))())
            return program

        assert told(build, STOCK) == []

    def test_decided_by_data(self) -> None:
        """Addresses that data decide are not known before a run."""

        def build() -> Program:
            with Program("random") as program:
                for _ in range(4):
                    numbers = Metadata(np.zeros(64, np.int64))()
                    x = Tensor((64, BANKS_BYTES // 2))
                    Consumer()(RandomOffChipLoad(x, (1, 32))(numbers))
            return program

        assert told(build, STOCK) == []


@st.composite
def _loads(draw: st.DrawFn) -> tuple[Callable[[], Program], PlacementDescription]:
    """Return what wires a load of a view, and a placement."""
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


@examples(quick=15, deep=60)
@given(
    _loads(),
    st.sampled_from(["row-bank-rank-column-channel", "interleaved", "interleaved with hash"]),
    st.sampled_from([1, 8, 64]),
)
def test_by_a_run(
    drawn: tuple[Callable[[], Program], PlacementDescription], mapping: str, channels: int
) -> None:
    """What is said of a load is so of the first requests of its bursts in a run."""
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
    found = first_addresses(node, plan.memory_map.region(node), hbm)
    if found is None:
        # No nest of loops walks such a view.
        assert node.outputs[0].layout is None
    else:
        assert found.tolist() == addresses
        assert Crowded(plan).of(node) == _expected(addresses, hbm)


def _expected(addresses: list[int], hbm: BankedDescription) -> str | None:
    """Say what is wrong with a stream of these requests."""
    mapping, channels, count = AddressMapping(hbm), hbm.channels, len(addresses)
    spread = "expected other tiles, or a [placement] that spreads them"
    if count < 4 * channels:
        return None
    places = [mapping.locate(address) for address in addresses]
    used = len({place.channel for place in places})
    if used < channels / 4:
        return f"its first {count:,} requests are on {used} of {channels} channels: {spread}"
    opened = {(at.channel, at.pseudo_channel, at.bank_group, at.bank, at.row) for at in places}
    banks = Counter(each[:-1] for each in opened)
    most = max(banks.values())
    (channel, pseudo, group, bank) = min(each for each, rows in banks.items() if rows == most)
    busiest = max(Counter(place.channel for place in places).values())
    # A channel has 32 bytes a cycle.
    if (most - 1) * 48 <= 2 * max(count, busiest * 2):
        return None
    number = (pseudo * 4 + group) * 4 + bank
    return (
        f"its first {count:,} requests are in {most:,} rows of bank {number} of channel {channel}, "
        f"which are opened in {(most - 1) * 48:,} cycles: {spread}"
    )
