"""What is no mistake: numpy's integers, lists for tuples, paths as strings, and several runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from fabric import FabricError, Program, StreamType, TileType, dtype_named, simulate
from fabric.extend import Bounds
from operators import (
    Accum,
    Consumer,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    RaggedIntegers,
    RandomOffChipLoad,
    Reshape,
    RetileRow,
    SiLU,
)
from tests.mistakes.users import Half


def program() -> Program:
    """Return a program that loads and stores four tiles."""
    with Program("accepted", mode="functional") as made:
        x = np.ones((32, 32), np.float32)
        LinearOffChipStore("y")(Map(SiLU())(LinearOffChipLoad(x, tile=(16, 16))()))
    return made


class TestValues:
    @pytest.mark.parametrize("one", [np.int64(1), np.uint8(1), np.array(1)])
    def test_integers(self, one: Any) -> None:
        """An integer of numpy's is turned into Python's: dimensions are told apart by it."""
        zero: Any = np.int8(0)
        flatten = Flatten(zero, one)
        tile = TileType(one, 16, dtype_named("int8"))

        assert (int, int, int) == tuple(map(type, (flatten.inner, flatten.outer, tile.rows)))
        assert (0, 1, 1) == (flatten.inner, flatten.outer, tile.rows)

    def test_lists(self) -> None:
        """A list is turned into the tuple that is meant."""
        tile: Any = [np.int32(16), 16]

        assert (16, 16) == LinearOffChipLoad(np.ones((32, 32)), tile=tile).tile

    def test_inferred_types(self) -> None:
        """What a user's operator infers is put right, too."""
        shape: Any = [np.int64(4)]

        class Longer(Half):
            def infer(self, *_: Any) -> tuple[StreamType, ...]:
                return (StreamType(shape, TileType(1, 1, dtype_named("int8"))),)

        with Program("longer"):
            stream = Longer()(LinearOffChipLoad(np.ones((4, 4)), tile=(1, 1))())

        assert (4,) == stream.shape
        assert type(stream.shape[0]) is int


class TestOwnOperators:
    def test_bounds(self) -> None:
        """A field of a user's own says what it takes, and in which bounds."""

        @dataclass(frozen=True)
        class Every(Half):
            nth: Annotated[int, Bounds(2, 8)] = 2

        assert 8 == Every(8).nth
        with pytest.raises(FabricError, match=r"Every: nth is 9: expected an integer from 2 to 8$"):
            Every(9)

    def test_what_cannot_be_told_is_not_checked(self) -> None:
        """An annotation with names that only a type checker has refuses nothing."""

        @dataclass(frozen=True)
        class Every(Half):
            nth: Nowhere = 2  # type: ignore[name-defined]  # noqa: F821

        assert "second" == Every("second").nth

    def test_subclass(self) -> None:
        """A class that is derived and adds a field checks it, besides those it has already."""

        @dataclass(frozen=True)
        class Every(Half):
            nth: int = 2

        @dataclass(frozen=True)
        class Named(Every):
            label: str = ""

        wrong: Any = 3
        with pytest.raises(FabricError, match=r"Named: label is 3: expected text$"):
            Named(2, wrong)
        with pytest.raises(FabricError, match=r"Named: nth is 2\.5: expected an integer$"):
            Named(2.5)  # type: ignore[arg-type]


class TestPaths:
    def test_strings(self, tmp_path: Path) -> None:
        """A log folder may be text, and ``events`` is a trace of everything."""
        report = simulate(program(), log_dir=str(tmp_path), trace="events")

        assert report.log_dir is not None
        assert (tmp_path / "accepted-1" / "trace").is_dir()
        assert report.log_dir == str(tmp_path / "accepted-1")

    def test_counters(self, tmp_path: Path) -> None:
        """``counters`` is what the command line calls a run without a trace."""
        simulate(program(), log_dir=tmp_path, trace="counters")

        assert not (tmp_path / "accepted-1" / "trace").exists()

    def test_twice(self) -> None:
        """A program may be run again, and does the same."""
        once = program()
        first, second = simulate(once), simulate(once)

        assert "completed" == first.status
        assert first.as_json() | {"wall_seconds": 0} == second.as_json() | {"wall_seconds": 0}

    def test_wired_again(self) -> None:
        """The ``with`` block of a program may be opened again, once it is closed."""
        made = Program("again")
        with made:
            stream = LinearOffChipLoad(np.ones((4, 4)), tile=(2, 2))()
        with made:
            Consumer()(stream)

        assert "completed" == simulate(made).status


def test_ragged_rows() -> None:
    """What is stored is a matrix; the run ends where a row of tiles is wider than the first."""
    with Program("ragged", mode="functional") as made:
        addresses = RaggedIntegers([[0, 1], [2]])()
        tiles = RandomOffChipLoad(np.ones((32, 64)), (16, 32))(addresses)
        LinearOffChipStore("y", name="store")(tiles)

    report = simulate(made)

    assert report.error is not None
    assert report.error["message"].startswith(
        "store: row of tiles 1 is 32 wide in all: expected 64, as in row 0, since "
        "what is stored is a matrix, at cycle "
    )
    assert __file__ == report.error["file"]


def test_rows_of_several_heights() -> None:
    """Tiles side by side are as high as the first one; the run says which row has another."""
    with Program("heights", mode="functional") as made:
        addresses = RaggedIntegers([[0, 1], [2, 3], [4], [5], [6, 7], [8]])()
        rows = RandomOffChipLoad(np.ones((18, 64)), (2, 64))(addresses)
        pairs, _ = Reshape(chunk=2)(Accum(RetileRow())(rows))
        LinearOffChipStore("y", name="store")(pairs)

    report = simulate(made)

    assert report.error is not None
    assert report.error["message"].startswith(
        "store: row of tiles 2 has a tile 2 high: expected 4, as in the tile it begins with, at "
        "cycle "
    )
