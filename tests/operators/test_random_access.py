"""Random off-chip access, addresses and metadata: conformance cases, cycles, costs and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, ProgramError, Report, ShapeError, simulate
from fabric.extend import Ports, number_in
from operators import (
    CacheReadAddresses,
    Consumer,
    ExpertAddresses,
    FilterLastTile,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Metadata,
    Parallelize,
    RandomOffChipLoad,
    RandomOffChipStore,
    Selectors,
    Tensor,
)
from tests.bases import Sink
from tests.operators.driving import Collect
from tests.schedules import SCHEDULES, schedule

REQUESTS = ([0, 3, 11], [2, 4, 3])
WEIGHTS = np.arange(8 * 32 * 128, dtype=np.float32).reshape(8 * 32, 128)


def numbers(seen: list[Any]) -> list[tuple[int, int]]:
    """Return the integers of a stream with their stops."""
    return [(number_in(value), stop) for value, stop in seen]


def hits(seen: list[Any]) -> list[tuple[int, int]]:
    """Return the only hits of selectors with their stops."""
    return [(value.hits[0], stop) for value, stop in seen]


class TestAddresses:
    def test_experts(self) -> None:
        """Conformance G1: experts 2, 1, 3 and 7 of 3 tiles each."""
        seen: list[Any] = []
        with Program("experts") as program:
            chosen = Flatten(0, 1)(Selectors(np.array([[2], [1], [3], [7]]), 8)())
            Collect(seen)(ExpertAddresses(3)(chosen))
        simulate(program)

        plain = [number for number, _ in numbers(seen)]
        assert [6, 7, 8, 3, 4, 5, 9, 10, 11, 21, 22, 23] == plain
        assert [1, 1, 2] * 4 == [stop for _, stop in numbers(seen)]

    def test_caches(self) -> None:
        """Conformance G2: 16 tiles a request, requests 0, 3 and 11 of 2, 4 and 3 tiles."""
        seen: list[Any] = []
        with Program("caches") as program:
            requests, lengths = (Flatten(0, 1)(Metadata(np.array(each))()) for each in REQUESTS)
            Collect(seen)(CacheReadAddresses(16)(requests, lengths))
        simulate(program)

        expected = [
            (0, 0),
            (1, 1),
            (48, 0),
            (49, 0),
            (50, 0),
            (51, 1),
            (176, 0),
            (177, 0),
            (178, 1),
        ]
        assert expected == numbers(seen)

    def test_last_tiles(self) -> None:
        """Conformance G3: 0 for the last tile of each request, 1 for the others."""
        seen: list[Any] = []
        with Program("last") as program:
            Collect(seen)(FilterLastTile()(Flatten(0, 1)(Metadata(np.array([2, 4, 1]))())))
        simulate(program)

        assert [(1, 0), (0, 1), (1, 0), (1, 0), (1, 0), (0, 1), (0, 1)] == hits(seen)
        assert {2} == {selector.width for selector, _ in seen}


class TestMetadata:
    def test_one_number_a_cycle(self) -> None:
        """Conformance G4: element k is visible at cycle k, the first at 1; the last closes."""
        seen: list[Any] = []
        with Program("metadata", channel_depth=8) as program:
            Collect(seen, gaps=(0,))(Metadata(np.array([5, 3, 8, 1]))())
        report = simulate(program)

        assert [(5, 0), (3, 0), (8, 0), (1, 1)] == numbers(seen)
        assert report.cycles == 3

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (
                np.array([1.5]),
                "Metadata is given an array [1] of float64: "
                "expected integers in at least one dimension",
            ),
            (
                np.array(3),
                "Metadata is given an array [] of int64: "
                "expected integers in at least one dimension",
            ),
            (np.array([3, -2]), "Metadata is given -2: expected no number below 0"),
        ],
    )
    def test_values_that_are_no_numbers(self, values: Any, message: str) -> None:
        """The message says what was found."""
        with Program("metadata"), pytest.raises(ShapeError) as caught:
            Metadata(values)()
        assert message == caught.value.message


class TestRandomOffChipLoad:
    def test_tiles_of_experts(self) -> None:
        """Conformance O5: 32x32 tiles of experts 1, 0, 4, 7, 4: their 32 rows, left to right."""
        seen: list[Any] = []
        experts = [1, 0, 4, 7, 4]
        with Program("load", mode="functional") as program:
            chosen = Flatten(0, 1)(Selectors(np.array(experts)[:, np.newaxis], 8)())
            addresses = ExpertAddresses(4)(chosen)
            Collect(seen)(RandomOffChipLoad(WEIGHTS, (32, 32))(addresses))
        simulate(program)

        found = np.concatenate([value.data for value, _ in seen], axis=1).astype(np.float32)
        wanted = np.concatenate([WEIGHTS[32 * e : 32 * e + 32] for e in experts], axis=1)
        assert np.array_equal(wanted.astype(seen[0][0].dtype).astype(np.float32), found)

    def test_cycles_of_single_tiles(self) -> None:
        """A 2x32 tile of 2 bytes is 2 requests: 2 + 18 cycles each, the first one hop late.

        The memory stops 3 cycles after its last client.
        """
        with Program("load") as program:
            addresses = Metadata(np.zeros(3, np.int64))()
            Collect([])(RandomOffChipLoad(WEIGHTS, (2, 32))(addresses))

        assert simulate(program).cycles == 1 + 3 * 20 + 3

    def test_costs(self) -> None:
        """Traffic is the tiles read; on chip one tile, two in the paper's equations."""
        with Program("load") as program:
            Consumer()(RandomOffChipLoad(WEIGHTS, (32, 32))(Metadata(np.arange(5))()))
        report = simulate(program)
        tile = 32 * 32 * 2

        assert bytes_of(report) == (5 * tile, 5 * tile, 2 * tile, tile)

    def test_address_outside(self) -> None:
        """The message says which address, of what, and which there are."""
        with Program("load") as program:
            Consumer()(RandomOffChipLoad(WEIGHTS, (32, 32))(Metadata(np.array([31, 32]))()))
        report = simulate(program)

        assert report.error is not None
        assert report.error["message"] == (
            "random_off_chip_load_1: address 32 of a tensor [256, 128] in tiles of 32x32: "
            "expected 0 to 31, at cycle 51, element 2"
        )

    def test_other_streams_than_addresses(self) -> None:
        """Tiles of numbers are no addresses."""
        with Program("load"), pytest.raises(ShapeError) as caught:
            RandomOffChipLoad(WEIGHTS, (32, 32))(LinearOffChipLoad(WEIGHTS, (256, 128))())
        assert caught.value.message == (
            "RandomOffChipLoad is given linear_off_chip_load_1.0 [1, 1, 1] of 256x128 bfloat16: "
            "expected 1x1 tiles of integers"
        )

    def test_tiles_that_do_not_divide(self) -> None:
        """The message says what they have to divide."""
        with Program("load"), pytest.raises(ShapeError) as caught:
            RandomOffChipLoad(WEIGHTS, (33, 32))(Metadata(np.arange(5))())
        assert caught.value.message == (
            "RandomOffChipLoad cuts a tensor [256, 128] into tiles of 33x32: "
            "expected tiles that divide its last two dimensions"
        )


class TestRandomOffChipStore:
    def run(self, addresses: Any, mode: str = "functional") -> Report:
        """Store three 4x128 tiles in a tensor of 64x128 zeros."""
        tiles = np.arange(1, 12 * 128 + 1, dtype=np.float32).reshape(12, 128) % 251
        with Program("store", mode=mode) as program:
            data = Flatten(0, 1)(LinearOffChipLoad(tiles, (4, 128))())
            places = Metadata(np.array(addresses))()
            tensor = np.zeros((64, 128), np.float32)
            RandomOffChipStore("y", tensor, (4, 128), buffered=4)(places, data)
        wanted = np.zeros((64, 128))
        for number, address in enumerate(addresses):
            rows = slice(4 * address, 4 * address + 4)
            wanted[rows] = tiles[4 * number : 4 * number + 4]
        program.expect(y=lambda: wanted)
        return simulate(program)

    def test_places(self) -> None:
        """Conformance O6: tiles 0, 3 and 11 are set, the rest stays."""
        assert self.run([0, 3, 11]).verified is True

    def test_costs(self) -> None:
        """Traffic is the tiles, on chip two of them, or as many as the authors set aside."""
        report = self.run([0, 3, 11], "timing")
        tile = 4 * 128 * 2
        traffic = 2 * 3 * tile

        assert bytes_of(report) == (traffic, traffic, 2 * tile + 2 * tile, tile + 4 * tile)

    def test_other_tiles(self) -> None:
        """Data of another size are refused."""
        with Program("store"), pytest.raises(ShapeError) as caught:
            RandomOffChipStore("y", WEIGHTS, (4, 128))(
                Metadata(np.arange(8))(), Flatten(0, 1)(LinearOffChipLoad(WEIGHTS, (32, 128))())
            )
        assert caught.value.message == (
            "RandomOffChipStore stores flatten_1.0 [1, 8] of 32x128 bfloat16: "
            "expected tiles of 4x128"
        )

    def test_two_stores_of_one_tensor(self) -> None:
        """Stores that give one name and one tensor write to one output."""
        tensor = np.zeros((64, 128), np.float32)
        with Program("store", mode="functional") as program:
            for place in (0, 1):
                data = Flatten(0, 1)(LinearOffChipLoad(WEIGHTS[:32], (32, 128))())
                RandomOffChipStore("y", tensor, (32, 128))(Metadata(np.array([place]))(), data)
        wanted = np.concatenate([WEIGHTS[:32], WEIGHTS[:32]])
        program.expect(y=lambda: wanted)

        assert simulate(program).verified is True
        assert not tensor.any()

    @pytest.mark.parametrize("name", SCHEDULES)
    @pytest.mark.parametrize("places", [(0, 0, 0), (0, 2, 1)])
    def test_stores_to_one_place(self, places: tuple[int, ...], name: str | int) -> None:
        """The later cycle stays, of one cycle the later operator, in whatever order they ran."""
        tensor = np.zeros((4, 16))
        seen: list[tuple[int, int, int, float]] = []
        with Program("places", mode="functional") as program:
            for number, first in enumerate(places):
                data = Flatten(0, 1)(LinearOffChipLoad(np.full((3, 16), number + 1.0), (1, 16))())
                numbers = np.roll([0, 1, 2], -first)
                done = RandomOffChipStore("y", tensor, (1, 16))(Metadata(numbers)(), data)
                Acknowledged(seen, number, numbers.tolist())(done)
        program.expect(y=lambda: last_of(seen, tensor))
        with schedule(name):
            assert simulate(program).verified is True

    @pytest.mark.parametrize("other", [np.zeros((128, 128)), Tensor((256, 128))])
    def test_two_tensors_of_one_name(self, other: Any) -> None:
        """Which would be there before the first store was a matter of luck, whatever its shape."""
        with Program("store"):
            data = Flatten(0, 1)(LinearOffChipLoad(WEIGHTS[:32], (32, 128))())
            place = Metadata(np.arange(1))()
            RandomOffChipStore("y", np.zeros((128, 128)), (32, 128))(place, data)
            with pytest.raises(ProgramError) as caught:
                RandomOffChipStore("y", other, (32, 128))(place, data)
        line = caught.value.line
        assert line is not None
        assert caught.value.message == (
            "random_off_chip_store_2 stores an output 'y', as random_off_chip_store_1 does at "
            f"{__file__}:{line - 2}: expected the same tensor object and tiles as there, "
            "or a name of its own"
        )

    def test_two_element_types_of_one_name(self) -> None:
        """Neither's values are turned into the other's type."""
        tensor = np.zeros((128, 128), np.float32)
        with Program("store"):
            place = Metadata(np.arange(1))()
            single, half = (
                Flatten(0, 1)(LinearOffChipLoad(Tensor((32, 128), dtype=dtype), (32, 128))())
                for dtype in ("float32", "bfloat16")
            )
            RandomOffChipStore("y", tensor, (32, 128))(place, single)
            with pytest.raises(ProgramError, match="same tensor object and tiles"):
                RandomOffChipStore("y", tensor, (32, 128))(place, half)

    def test_two_linear_stores_of_one_name(self) -> None:
        """Each would write the whole output; both lines are named."""
        with Program("store"):
            data = LinearOffChipLoad(WEIGHTS, (32, 128))()
            LinearOffChipStore("y")(data)
            with pytest.raises(ProgramError) as caught:
                LinearOffChipStore("y", name="again")(data)
        line = caught.value.line
        assert line is not None
        assert caught.value.message == (
            "again stores an output 'y', as linear_off_chip_store_1 does at "
            f"{__file__}:{line - 2}: expected a name of its own"
        )

    def test_both_kinds_of_one_name(self) -> None:
        """A linear store shares its output with nobody."""
        with Program("store"):
            data = Flatten(0, 1)(LinearOffChipLoad(WEIGHTS, (256, 128))())
            LinearOffChipStore("y")(data)
            with pytest.raises(ProgramError, match="expected a name of its own"):
                RandomOffChipStore("y", WEIGHTS, (256, 128))(Metadata(np.arange(1))(), data)

    def test_output_without_a_name(self) -> None:
        """Nothing could be expected of it."""
        with Program("store"), pytest.raises(ProgramError, match="named '': expected a name"):
            LinearOffChipStore("")(LinearOffChipLoad(WEIGHTS, (32, 128))())


class TestParallelize:
    def test_in_turn(self) -> None:
        """Conformance L3: 6 sub-tensors on 4 outputs are 2, 2, 1 and 1."""
        with Program("parallelize"):
            outputs = Parallelize(4)(Flatten(0, 1)(Metadata(np.arange(6))()))

        assert [(2,), (2,), (1,), (1,)] == [each.shape for each in outputs]

    def test_other_ranks(self) -> None:
        """The rank is the stream's."""
        with Program("parallelize"), pytest.raises(ShapeError) as caught:
            Parallelize(4)(Metadata(np.arange(6))())
        assert caught.value.message == (
            "Parallelize(4, rank=0) is given metadata_1.0 [1, 6] of 1x1 uint64: "
            "expected rank 0 and at least 1 consumer"
        )


@dataclass(frozen=True)
class Acknowledged(Sink):
    """Note when each place was written: cycle, store, place, value."""

    seen: list[tuple[int, int, int, float]]
    number: int
    places: list[int]

    @override
    async def run(self, ports: Ports) -> None:
        for place in self.places:
            assert await ports.source.receive() is not None
            self.seen.append((ports.unit.now, self.number, place, self.number + 1.0))


def last_of(seen: list[tuple[int, int, int, float]], tensor: Any) -> Any:
    """Return ``tensor`` with what was written, in the order of cycles and operators."""
    result = tensor.copy()
    for _, _, place, value in sorted(seen):
        result[place] = value
    return result


def bytes_of(report: Report) -> tuple[int | None, ...]:
    """Return traffic and on-chip requirement, each in the paper's accounting and the authors'."""
    return (
        report.off_chip_traffic_bytes,
        report.off_chip_traffic_artifact_bytes,
        report.on_chip_requirement_bytes,
        report.on_chip_requirement_artifact_bytes,
    )
