from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

import fabric.extend as ext
import operators as op
from fabric import Hardware, Program, StreamType, hardware_scope
from fabric.graph.loading.program_file import load_program
from tests.compiled.both import run
from tests.compiled.turning import Turning
from tests.operators.recording_memory import RECORDING, Bursts, recorded
from tests.profiles import examples, spread
from tests.programs.loading import PROGRAMS

QUICK = examples(quick=5, deep=30)

Build = Callable[[], Program]


def same_bursts(build: Build, folder: Path) -> tuple[Bursts, int]:
    with recorded() as bursts:
        tasks = run(build, "tasks", folder)
        of_tasks = {name: list(each) for name, each in bursts.items()}
        found = run(build, "compiled", folder)
        assert of_tasks == bursts
    assert tasks.state == found.state
    assert not found.gave_up
    return of_tasks, found.compiled


def shipped(name: str, hardware: Hardware, parameters: dict[str, Any]) -> Program:
    given = [f"{key}={value}" for key, value in parameters.items()]
    return load_program(PROGRAMS / f"{name}.py", given, hardware).program


@pytest.mark.parametrize(
    ("name", "parameters"),
    spread(
        [
            ("ragged_attention", {}),
            ("moe", {"batch": 4, "tiling": "dynamic"}),
            ("attention", {"requests": 4, "strategy": "dynamic"}),
            ("breadth_first_search", {}),
            ("sparse_matrix", {"columns": 3}),
        ],
        1,
    ),
)
def test_bursts_of_shipped_programs_are_equal_in_both_engines(
    name: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    bursts, count = same_bursts(lambda: shipped(name, RECORDING, parameters), tmp_path)

    flat = run(lambda: shipped(name, Hardware(), parameters), "compiled", tmp_path)
    assert 0 < flat.compiled == count
    addresses = {each.address for its in bursts.values() for each in its}
    assert len(addresses) > len(bursts)


# The number of tiles down and across, and the rows and columns of each tile.
_cuts = st.tuples(*[st.integers(1, 4)] * 4)


@st.composite
def _programs(draw: st.DrawFn) -> Build:
    kinds = st.sampled_from(["whole", "view", "referred", "random", "store", "number"])
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        down, across, rows, cols = draw(_cuts)
        count = down * across
        numbers = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=6))
        stride = draw(st.integers(0, max(1, count // 3)))
        size = 1 if not stride else 1 + (count - 1) // stride
        shape = (down * rows, across * cols)
        parts.append((draw(kinds), shape, (rows, cols), numbers, size, stride))
    times = draw(st.integers(1, 3))

    def build() -> Program:
        with Program("loads", mode="timing") as program:
            for number, (kind, shape, tile, numbers, size, stride) in enumerate(parts):
                for copy in range(times):
                    tensor = op.Tensor(shape, dtype="float32")
                    # The Promote and the Repeat pass the numbers on, so the compiled loop contains
                    # them, too.
                    addresses = op.Promote(0)(op.Repeat(2)(op.Metadata(np.array(numbers))()))
                    if kind == "whole":
                        tiles = op.LinearOffChipLoad(tensor, tile)()
                        op.Consumer()(addresses)
                    elif kind == "view":
                        tiles = op.LinearOffChipLoad(tensor, tile, (size,), (stride,))()
                        op.Consumer()(addresses)
                    elif kind == "referred":
                        tiles = op.LinearOffChipLoad(tensor, tile)(addresses)
                    elif kind == "number":
                        count = shape[0] * shape[1] // tile[0] // tile[1]
                        data = np.arange(count)[::-1].reshape(1, -1).copy()
                        linked = op.RandomOffChipLoad(data, (1, 1))(addresses)
                        tiles = op.RandomOffChipLoad(tensor, tile)(linked)
                    else:
                        tiles = op.RandomOffChipLoad(tensor, tile)(addresses)
                    if kind == "store":
                        name = f"y{number}_{copy}"
                        tiles = op.RandomOffChipStore(name, op.Tensor(shape), tile)(
                            addresses, tiles
                        )
                    op.Consumer()(tiles)
        return program

    return build


@QUICK
@given(build=_programs())
def test_bursts_of_random_loads_and_stores_are_equal_in_both_engines(
    build: Build, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("random")
    with hardware_scope(RECORDING):
        _, count = same_bursts(build, folder)
    assert count


@dataclass(frozen=True)
class Reading(Turning):
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"
    conducted = turns = carries_numbers = True

    tile: tuple[int, int] | None = (2, 4)

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> ext.OffChipTensor | None:
        return ext.OffChipTensor((8, 16), np.dtype("int8"), source=self, tile=self.tile)


def reading(does: Any, folder: Path, tile: tuple[int, int] | None = (2, 4)) -> tuple[Bursts, bool]:
    def build() -> Program:
        with Program("reading", mode="timing") as program:
            operator = Reading(does, tile, name="reading")
            op.Consumer()(operator(op.Metadata(np.array([3, 1, 4, 1, 5]))()))
        return program

    with recorded() as bursts:
        tasks = run(build, "tasks", folder)
        of_tasks = {name: list(each) for name, each in bursts.items()}
        found = run(build, "compiled", folder)
        assert tasks.state == found.state
        assert of_tasks == bursts
    return of_tasks, not found.gave_up


class TestUsers:
    def test_number_of_a_tile_addresses_its_tile(self, tmp_path: Path) -> None:
        async def does(ports: ext.Ports, _: int, tile: Any) -> None:
            number = ports.number(tile, 16)
            assert number is not None
            await ports.burst(2, 4, number)

        bursts, is_compiled = reading(does, tmp_path)
        addresses = [burst.address for burst in bursts["reading"]]
        assert addresses == [12, 4, 32, 4, 36]
        assert is_compiled

    def test_numbers_without_tiles_are_bytes(self, tmp_path: Path) -> None:
        async def does(ports: ext.Ports, _: int, __: Any) -> None:
            await ports.burst(1, 4)
            await ports.burst(2, 8, 100)

        bursts, is_compiled = reading(does, tmp_path, None)
        assert [(0, 4), (100, 8)] * 5 == [(at, pitch) for at, _, _, pitch, _ in bursts["reading"]]
        assert is_compiled

    def test_calculated_address_is_left_to_tasks(self, tmp_path: Path) -> None:
        async def does(ports: ext.Ports, _: int, tile: Any) -> None:
            number = ports.number(tile, 16)
            assert number is not None
            await ports.burst(2, 4, number + 1)

        bursts, is_compiled = reading(does, tmp_path)
        assert [burst.address for burst in bursts["reading"]] == [32, 8, 36, 8, 40]
        assert not is_compiled

    def test_operator_that_reads_its_base_address_is_a_task(self, tmp_path: Path) -> None:
        async def does(ports: ext.Ports, _: int, __: Any) -> None:
            assert ports.region is not None
            ports.unit.charge(ports.region.first_address + 1)

        _, is_compiled = reading(does, tmp_path)
        assert not is_compiled
