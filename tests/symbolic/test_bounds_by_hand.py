"""Lower bounds that can be worked out on paper, and which sizes they believe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from fabric import (
    Dim,
    Feedback,
    Hardware,
    Program,
    ProgramError,
    SelectorType,
    StreamType,
    TileType,
    TupleType,
    hardware_scope,
    lower_bounds,
)
from fabric.extend import (
    BankedDescription,
    BoolType,
    BufferType,
    Costs,
    FlatDescription,
    OffChipDescription,
    Ports,
    Rates,
)
from fabric.graph.hardware.least_cycles import (
    least_burst_cycles,
    least_shared_cycles,
    most_ahead_requests,
)
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.costs import artifact_bytes
from operators import (
    Accum,
    Bufferize,
    Consumer,
    EagerMerge,
    Exp,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Partition,
    Reassemble,
    Repeat,
    Reshape,
    RowSum,
    Selectors,
    Sum,
    Tensor,
)
from tests.bases import Hop as Passing
from tests.operators.driving import Emit, encode, tile
from tests.symbolic.bounded import compared, cycles, load


@dataclass(frozen=True)
class Keeping(Passing):
    """Need a byte on chip for each element of a group."""

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(on_chip_bytes=inputs[0].shape[-1])

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


class TestByHand:
    """Small programs of which every bound can be worked out on paper, and is what they take."""

    def test_client(self) -> None:
        """Tiles of 2 requests take 20 cycles each, the memory stops 3 later."""
        with Program("p") as built:
            Consumer()(load())
        known, report = compared(built)

        # The consumer has its last tile a hop later; the last request starts 7 after the first.
        hbm = 2 + 14 + 2 + 1 + 3
        assert {"memory": 4 * 20 + 3, "routing": 4 * 20 + 2, "hbm": hbm} == cycles(known)
        assert 4 * 20 + 3 == report.cycles
        assert 8 * 64 == known.exact["hbm_bytes_moved"]

    def test_compute(self) -> None:
        """32 cycles for each of 4 rows, between the first load and the last store."""
        with Program("p") as built:
            LinearOffChipStore("y")(Map(RowSum(), flops_per_cycle=1)(load()))
        known, report = compared(built)

        assert 21 + 4 * 32 + 1 + 19 + 3 == cycles(known)["compute"] == report.cycles
        assert 4 * 32 == known.exact["flops"]

    def test_shared_memory(self) -> None:
        """8 requests of two loads, one every 40 cycles."""
        with (
            hardware_scope(
                Hardware(hbm=FlatDescription(channels=1, initiation_interval_cycles=40))
            ),
            Program("p") as built,
        ):
            for _ in range(2):
                Consumer()(load(4, 16, (1, 16)))
        known, report = compared(built)

        assert 2 + 7 * 40 + 16 + 1 + 3 == cycles(known)["hbm"] == report.cycles

    def test_banked(self) -> None:
        """Rows of 4 bursts, 2 cycles each on the bus, and 14 more of the way of a read."""
        hbm = BankedDescription(channels=1, pseudo_channels=1)
        with hardware_scope(Hardware(hbm=hbm)), Program("p") as built:
            LinearOffChipStore("y")(load())
        known = lower_bounds(built)

        read, write = 3 + 14 + 4 * 2 + 1, 3 + 3 * 2 + 1
        assert 4 * read + 1 + write == cycles(known)["memory"]
        # When the first write is handed over, a second read may have been, and the other two not:
        # 24 bursts of both together; the last one is a write, which is ready with its command.
        assert (read + 1) + 3 + 23 * 2 + 1 == cycles(known)["hbm"]
        assert 16 * 64 == known.exact["hbm_bytes_moved"]

    def test_banked_idle(self) -> None:
        """A read of a closed bank: 15 cycles for its row, and then all that is known of it."""
        with hardware_scope(Hardware(hbm=BankedDescription())), Program("p") as built:
            Consumer()(load(1, 16, (1, 16)))
        known, report = compared(built)

        # Taken in 1, there in 2, its columns in 3 and 7, its data 16 cycles later.
        assert 3 + 4 + 16 + 1 + 2 == known.at_least["cycles"]
        assert known.at_least["cycles"] + 15 == report.cycles

    def test_banked_saturated(self) -> None:
        """A stream of 128 KiB through a channel: within 3 % of the bound, refreshes and all."""
        hbm = BankedDescription(channels=1, requests_per_bundle=64)
        with hardware_scope(Hardware(hbm=hbm)), Program("p") as built:
            Consumer()(load(256, 128, (256, 128)))
        known, report = compared(built)

        assert report.cycles is not None
        # A column slot for each of 4,096 bursts, and a refresh.
        assert 3 + 4095 + 348 + 16 + 1 + 2 == known.at_least["cycles"]
        assert 0.97 * report.cycles < known.at_least["cycles"]

    def test_late_clients(self) -> None:
        """What waits for the first load has its requests after that."""
        slow = FlatDescription(channels=1, initiation_interval_cycles=10)
        with hardware_scope(Hardware(hbm=slow)), Program("p") as built:
            first = load(1, 16, (1, 16))
            for _ in range(2):
                Consumer()(LinearOffChipLoad(Tensor((4, 16), dtype="float32"), (1, 16))(first))
        known, _ = compared(built)

        # A load, a hop and the Broadcast's hop; 8 requests.
        assert 19 + 1 + 1 + 2 + 7 * 10 + 16 + 1 + 3 == cycles(known)["hbm"]

    def test_padded(self) -> None:
        """The first chunk is there after 4 of 5 loads, though the second one is padded."""
        with Program("p") as built:
            chunks, _ = Reshape(4, pad=0.0)(Flatten(0, 2)(load(5)))
            Consumer()(Map(RowSum(), flops_per_cycle=1)(Accum(Sum(), 1)(chunks)))
        known, report = compared(built)

        # Three hops to the Accum, which adds the fourth row in a cycle; a hop, two sums, a hop.
        assert 4 * 20 + 3 + 1 + 1 + 2 * 32 + 1 == cycles(known)["compute"]
        # It is also loaded, in 2 cycles.
        assert cycles(known)["compute"] + 2 == report.cycles

    def test_dealt_out(self) -> None:
        """The last element goes to one of two consumers: nobody knows to which."""
        choice = np.array([[0], [0], [1]])
        with Program("p") as built:
            rows = Flatten(0, 1)(load(3))
            parts = Partition(2, switch_cycles=7)(rows, Selectors(choice, 2)())
            for number, part in enumerate(parts):
                built.bind(part.shape[0], 2 - number)
                busy = Map(RowSum(), flops_per_cycle=1)(part)
                Consumer()(Repeat(5)(busy) if number else busy)
        known, _ = compared(built)

        # Three loads and two hops to the partition, which loads a row in 2 cycles; the last one
        # goes to the consumer without a Repeat.
        assert 3 * 20 + 2 + (2 + 7) + 1 + 32 + 1 + 1 == cycles(known)["routing"]


class TestSizes:
    def test_guessed(self) -> None:
        """Of two sizes a run may see the product only: then it guesses each."""
        one = TileType(1, 1, np.dtype(np.float32))
        elements = encode([[tile(0)] * 4] * 3, 2)
        found = []
        for shows in (False, True):
            with Program("p") as built:
                sizes = built.symbol("A"), built.symbol("B")
                rows = Keeping()(Emit(StreamType(sizes, one), elements)())
                Consumer()(Bufferize()(rows) if shows else rows)
                for size, number in zip(sizes, (3, 4), strict=True):
                    built.bind(size, number)
            known, _ = compared(built)
            found.append("on_chip_requirement_bytes" in known.exact)

        assert [False, True] == found

    def test_unknown(self) -> None:
        """Without a size there is a least: what hangs on none."""
        choice = np.array([[0], [1], [0]])
        with Program("p") as built:
            parts = Partition(2)(Flatten(0, 1)(load(3)), Selectors(choice, 2)())
            for number, part in enumerate(parts):
                LinearOffChipStore(f"y{number}")(part)
        known, report = compared(built)

        assert 3 * 128 == known.at_least["off_chip_traffic_bytes"]
        assert 6 * 128 == report.off_chip_traffic_bytes

    def test_feedback(self) -> None:
        """What comes back counts as often as the program says; a promise of more is refused."""

        def built(promised: int) -> Program:
            with Program("p") as program:
                loop = Feedback(StreamType((promised,), TileType(1, 32, np.dtype(np.float32))))
                merged, _ = EagerMerge()([Flatten(0, 2)(load(3)), loop])
                Consumer()(LinearOffChipLoad(Tensor((4, 64)), (4, 16))(merged))
                route = Flatten(0, 1)(Selectors(np.zeros((2, 1), np.int64), 1)())
                (back,) = Partition(1)(Flatten(0, 2)(load(2)), route)
                program.bind(back.shape[0], 2)
                loop.connect(back)
            return program

        known, report = compared(built(2))

        assert "completed" == report.status
        assert 5 * 2 * 64 == known.at_least["hbm_bytes_moved"]
        with pytest.raises(ProgramError, match="is bound to 2: expected 1000, as the program"):
            lower_bounds(built(1000))

    def test_open_feedback(self) -> None:
        """What comes back is believed where its promise says no number, and no other's symbol."""
        row = TileType(1, 32, np.dtype(np.float32))
        found = []
        for kind in ("open", "a number", "of another stream", "of another feedback"):
            with Program("p") as built:
                parts = Partition(2)(
                    Flatten(0, 1)(load(4)), Selectors(np.array([[0], [1], [0], [1]]), 2)()
                )
                sizes: list[Dim] = [built.symbol("D"), built.symbol("E")]
                if kind == "of another stream":
                    sizes[0] = parts[0].shape[0]
                if kind == "of another feedback":
                    sizes[1] = sizes[0]
                shapes: list[tuple[Dim, ...]]
                shapes = [(2,), (sizes[1],)] if kind == "a number" else [(size,) for size in sizes]
                loops = [Feedback(StreamType(shape, row)) for shape in shapes]
                order = Flatten(0, 1)(Selectors(np.array([[0], [1], [0], [1]]), 2)())
                joined = Reassemble()(loops, order)
                Consumer()(LinearOffChipLoad(Tensor((4, 64)), (4, 16))(joined))
                for loop, part in zip(loops, parts, strict=True):
                    loop.connect(part)
            known, report = compared(built)
            assert "completed" == report.status
            found.append("hbm_bytes_moved" in known.exact)

        assert [True, False, False, False] == found

    def test_assumed(self) -> None:
        """What the program assumes of a stream where it is read counts for it, and its copies."""
        found = []
        for assumes in (True, False):
            with Program("p") as built:
                parts = Partition(2)(
                    Flatten(0, 1)(load(3)), Selectors(np.array([[0], [1], [0]]), 2)()
                )
                for size, part in zip((2, 1), parts, strict=True):
                    counted = part.assume(size) if assumes else part
                    LinearOffChipStore(f"y{size}")(counted)
                    Consumer()(part)
            known, report = compared(built)
            assert "completed" == report.status
            found.append("hbm_bytes_moved" in known.exact)

        assert [True, False] == found


FLAT = FlatDescription(
    channels=4,
    requests_per_bundle=2,
    startup_cycles=3,
    latency_cycles=10,
    initiation_interval_cycles=5,
)
BANKED = BankedDescription(
    channels=2, pseudo_channels=2, bank_groups=1, banks=1, request_bytes=64, burst_bytes=32,
    burst_cycles=2, ccd_s_cycles=3, ccd_l_cycles=4, cl_cycles=14, cwl_cycles=4, wtr_l_cycles=6,
    rcd_read_cycles=10, rcd_write_cycles=9, refreshes=False,
)  # fmt: skip
ALONE = replace(
    BANKED, channels=1, pseudo_channels=1, refreshes=True, refi_cycles=400, rfc_cycles=100
)


class TestMemories:
    @pytest.mark.parametrize(
        ("memory", "requests", "read", "write"),
        [
            (FLAT, 1, 2 + 0 + 13 + 1, 16),
            (FLAT, 4, 2 + 1 + 13 + 1, 17),
            (FLAT, 5, 2 + 5 + 13 + 1, 21),
            (replace(FLAT, initiation_interval_cycles=1), 9, 2 + 4 + 13 + 1, 20),
            (BANKED, 1, 3 + 4 + 16 + 1, 3 + 4 + 1),
            (BANKED, 9, 3 + 5 * 3 + 16 + 1, 3 + 5 * 3 + 1),
            (replace(BANKED, channels=16), 9, 3 + (8 + 4) + 16 + 1, 3 + 12 + 1),
            (replace(BANKED, channels=16, requests_per_bundle=2), 9, 3 + 8 + 16 + 1, 3 + 8 + 1),
            (replace(BANKED, prefetch_requests=3), 3, 1, 3 + (2 + 4) + 1),
            (replace(BANKED, prefetch_requests=3), 4, 3 + 4 + 16 + 1, 3 + (3 + 4) + 1),
        ],
    )
    def test_burst(self, memory: OffChipDescription, requests: int, read: int, write: int) -> None:
        """Bundles one a cycle, or the requests of a channel; a read has its data after it."""
        assert read == least_burst_cycles(memory, requests, write=False)
        assert write == least_burst_cycles(memory, requests, write=True)

    def test_shared(self) -> None:
        """Of all clients together; what is read ahead is none of it."""
        assert 2 + 5 + 13 + 1 == least_shared_cycles(FLAT, 3, 2)
        assert 3 + 15 + 16 + 1 == least_shared_cycles(BANKED, 9, 0)
        assert 3 + 15 + 1 == least_shared_cycles(BANKED, 8, 1)
        # The columns of 8 pseudo channels have one slot.
        assert 3 + 15 + 1 == least_shared_cycles(replace(BANKED, pseudo_channels=8), 0, 16)
        assert [0, 0] == [most_ahead_requests(each) for each in (FLAT, BANKED)]
        assert 3 == most_ahead_requests(replace(BANKED, prefetch_requests=3))

    @pytest.mark.parametrize(
        ("refresh", "requests", "cycles"),
        [
            (100, 67, 399),
            (100, 68, 405 + 97),
            (100, 130, 777 + 2 * 97),
            # A row that was opened is read for 73 cycles: so late may a short refresh begin.
            (50, 70, 417),
            (50, 71, 423 + 47),
            (50, 130, 777 + 2 * 47),
            (3, 1000, 5997),
        ],
    )
    def test_refreshed(self, refresh: int, requests: int, cycles: int) -> None:
        """Columns 3 cycles apart go on behind each refresh, of which there may be more by then."""
        memory = replace(ALONE, rfc_cycles=refresh)
        assert 3 + cycles + 1 == least_shared_cycles(memory, 0, requests)


class TestRates:
    """What an operator says of one element, on FLAT, with 64 bytes a cycle of a port."""

    TILE = TileType(2, 33, np.dtype(np.float32))
    RATES = Rates(
        flops_per_cycle=10,
        bytes_per_cycle=64,
        memory=FLAT,
        off_chip="read",
        in_memory=(True, False, True),
    )

    def test_bytes(self) -> None:
        """264 bytes take 5 cycles through a port; rows of 132 bytes take 3 requests of 64 each."""
        ragged = TileType(symbol("n"), 33, np.dtype(np.float32))
        streams = [StreamType((3,), each) for each in (self.TILE, self.TILE, BoolType())]
        assert 5 == self.RATES.transfer(self.TILE) == self.RATES.load(streams)
        assert 10 == replace(self.RATES, in_memory=(True, True, True)).load(streams)
        assert 6 == self.RATES.requests(self.TILE)
        assert (None, 0, 0) == (
            self.RATES.requests(ragged), self.RATES.burst(ragged), self.RATES.transfer(ragged)
        )  # fmt: skip

    def test_bursts(self) -> None:
        """6 requests on 4 channels: 2 + 5 + 13 + 1 cycles, one burst after the other."""
        work = self.RATES.bursts(StreamType((3, 2), self.TILE), in_memory=True)
        assert 21 == work.first_cycles == work.last_cycles == work.pace_cycles
        assert (6 * 21, 6, True) == (work.cycles, work.bursts, work.in_memory)
        banked = replace(self.RATES, memory=BANKED, off_chip="write")
        # Five more bundles, two bursts each, 4 cycles apart.
        assert 3 + max(5 + 4, 3 * 3) + 1 == banked.burst(self.TILE)

    def test_compute(self) -> None:
        """Operations by the bandwidth, rounded up; nothing of what a user may have changed."""
        flops = Exp().flops(self.TILE)
        assert isinstance(flops, int)
        assert flops % 9
        ours: Any = Exp()
        assert -(-flops // 9) == replace(self.RATES, flops_per_cycle=9).compute(ours, self.TILE)
        assert 0 == replace(self.RATES, flops_per_cycle=0).compute(ours, self.TILE)

        class Mine(Exp):
            """A user's."""

        own: Any = Mine()
        assert 0 == self.RATES.compute(own, self.TILE)

    def test_artifact(self) -> None:
        """Numbers take 4 bytes each, but for addresses and truth values."""
        types = [
            TileType(2, 3, np.dtype(each))
            for each in (np.float16, np.int8, np.uint64, np.int64, np.bool_)
        ]
        assert [24, 24, 48, 24, 6] == list(map(artifact_bytes, types))
        assert 10 * 24 == artifact_bytes(BufferType((2, 5), types[0]))
        assert 24 + 1 + 8 == artifact_bytes(TupleType((types[0], BoolType(), SelectorType(8))))
