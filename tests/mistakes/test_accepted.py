"""What is no mistake: numpy's integers, lists for tuples, paths as strings, and several runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import pytest

from fabric import FabricError, Program, StreamType, TileType, dtype_named, simulate
from fabric.extend import Bounds
from fabric.graph.arguments.checks import Unfit, check_of, several
from fabric.graph.arguments.described import Described
from fabric.graph.arguments.keywords import taking
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


class _Closing(Protocol):
    def close(self) -> None: ...
    def flush(self) -> None: ...


_TWICE = Annotated[int, Bounds(2), Bounds(0, 8)]

CHECKS: list[tuple[Any, str, str, list[Any], list[Any]]] = [
    (int, "an integer", "integers", [0, -3], [True, 1.0, "1", None]),
    (float, "a number", "numbers", [1, 0.5, -1], [True, "1", None, 1j]),
    (bool, "True or False", "truth values", [True, False], [0, 1, None, np.int8(1)]),
    (str, "text", "texts", ["", "a"], [b"a", 1]),
    (None, "None", "None", [None], [0, False]),
    (Any, "anything", "anything", [0, None], []),
    (Sequence, "anything", "anything", [0, None], []),
    (Callable, "a function", "functions", [len, int], [1, "len"]),
    (Callable[[], int], "a function", "functions", [len], [1]),
    (np.ndarray, "an array", "arrays", [], [[1, "a"], 1]),
    (np.dtype, "an element type", "element types", [np.dtype("int8")], [np.int8, "int8"]),
    (type, "a class", "classes", [int], [1]),
    (tuple, "a tuple", "tuples", [(), (1, "a")], [[1]]),
    (tuple[int, ...], "a tuple of integers", "tuples of integers", [(), (1, 2)], [(1, "a"), 1]),
    (tuple[int, str], "a tuple of 2 integers", "tuples of 2 integers", [(1, "a")], [(1,), (1, 2)]),
    (int | None, "an integer or None", "integers or None", [1, None], ["a"]),
    (str | int, "text or an integer", "texts or integers", [1, "a"], [None, 0.5]),
    (Literal["a", 1], "one of a, 1", "one of a, 1", ["a", 1], [True, 1.0, "b"]),
    (Annotated[int, "of what"], "an integer", "integers", [1], [0.5]),
    (ClassVar[int], "an integer", "integers", [1], [0.5]),
    (Annotated[int, Bounds(2)], "an integer of at least 2", "integers of at least 2", [2], [1]),
    (_TWICE, "an integer of at least 2 from 0 to 8", "integers of at least 2 from 0 to 8",
        [2, 8], [1, 9]),
    (Annotated[float, Bounds(0, 1)], "a number from 0 to 1", "numbers from 0 to 1",
        [0, 0.5, 1.0], [-0.1, 1.1, float("nan")]),
    (Annotated[float, Bounds(0)], "a number of at least 0", "numbers of at least 0",
        [0.0, float("inf")], [-0.1, float("nan")]),
    (Mapping[str, int], "a dict from texts to integers", "dicts from texts to integers",
        [{}, {"a": 1}], [[], {"a": "b"}, {1: 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "text", "plural", "taken", "refused"), CHECKS, ids=str)
def test_annotations(
    annotation: Any, text: str, plural: str, taken: list[Any], refused: list[Any]
) -> None:
    """What an annotation says in words is what it takes; several of a kind are a tuple of them."""
    check = check_of(annotation)
    assert (check.text, check.plural) == (text, plural)
    assert several(check).text == f"a tuple of {plural}"
    for value in taken:
        assert check.settle(value) is value or check.settle(value) == value
        assert several(check).settle([value, value]) == (value, value)
    for value in refused:
        with pytest.raises(Unfit):
            check.settle(value)
        with pytest.raises(Unfit):
            several(check).settle((value,))


def test_capable() -> None:
    """Whatever has all methods of a protocol fits, but for a class that has them."""
    check = check_of(_Closing)
    assert check.text == "a _Closing, with close() and flush()"
    with Path(__file__).open() as file:
        assert check.settle(file) is file
        with pytest.raises(Unfit):
            check.settle(type(file))
    with pytest.raises(Unfit):
        check.settle(_ for _ in ())  # it can be closed


def test_settled() -> None:
    """Values of numpy's become Python's; what is Python's already is the same object."""
    for annotation, given, settled in (
        (int, np.int64(3), 3),
        (float, np.float32(0.5), 0.5),
        (float, Fraction(1, 2), 0.5),
        (bool, np.True_, True),
        (str, np.str_("a"), "a"),
        (tuple[int, ...], [np.int8(1), 2], (1, 2)),
        (Mapping[str, int], {"a": np.int8(1)}, {"a": 1}),
    ):
        found = check_of(annotation).settle(given)
        assert (type(found), found) == (type(settled), settled)
    pair = (1, "a")
    assert check_of(tuple[int, str]).settle(pair) is pair
    assert check_of(int | None).hint(1) == ""
    assert check_of(int | SiLU).hint(SiLU) == ", such as SiLU()"
    assert check_of(SiLU).hint(program) == " (is program() meant?)"
    assert check_of(SiLU).hint(lambda: 0).startswith(", which defines ")
    assert check_of(np.dtype).hint("int8") == ", such as dtype_named('bfloat16')"


@dataclass(frozen=True, kw_only=True)
class _Keywords(Described):
    """What a function takes.

    Attributes:
        first: its meaning.
        second: %s.
        third: not for everybody.
    """

    first: int = 1
    second: int = 2
    third: int = 3


def test_keywords() -> None:
    """A function that takes the fields of a description is documented with all of them."""
    words = " ".join([*["word"] * 40, "x" * 90])
    _Keywords.__doc__ = (_Keywords.__doc__ or "") % words

    @taking(_Keywords, {"third": "nothing has it"})
    def told(about: int, taken: _Keywords) -> tuple[int, int, int]:
        """Tell.

        Args:
            about: what what what what what what what what what what what what what what what what
                un-what.
            first: its own.

        Raises:
            FabricError: always.
        """
        return about, taken.first, taken.second

    text = (told.__doc__ or "").splitlines()
    # Words stay whole: there would be room for the first part of the last one.
    assert text[:6] == [
        "Tell.", "", "It takes no ``third``: nothing has it.", "", "Args:",
        f"    about: {' '.join(['what'] * 16)}",
    ]  # fmt: skip
    assert text.pop(6) == "        un-what."
    assert text[6] == "    first: its own."
    # Lines of 96 letters at most: one more word would make 101 of the first, 97 of the second.
    assert text[7] == f"    second: {' '.join(['word'] * 17)}"
    assert text[8] == f"        {' '.join(['word'] * 17)}"
    assert text[9] == f"        {' '.join(['word'] * 6)}"
    assert text.pop(10) == f"        {'x' * 90}."
    assert text[10:] == ["", "Raises:", "    FabricError: always."]
    assert told(1, second=5) == (1, 1, 5)
    with pytest.raises(FabricError, match="told: third is given: nothing has it: expected none"):
        told(1, third=3)
    with pytest.raises(FabricError, match="told: first is 'a': expected an integer"):
        told(1, first="a")  # type: ignore[arg-type]


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

    def test_two_of_one_name(self) -> None:
        """A call that does not fit is told by what the newest class of that name takes."""

        @dataclass(frozen=True)
        class Lately(Half):
            nth: int = 2

        @dataclass(frozen=True)
        class Lately(Half):  # type: ignore[no-redef]  # noqa: F811
            label: str = ""

        with (
            pytest.raises(
                FabricError, match=r"^\S+: Lately: nth is given: expected one of label, name$"
            ),
            Program("newest"),
        ):
            Lately(nth=3)

    def test_said_again(self) -> None:
        """A program may say again what it has said, and what it is by itself."""
        made = Program("again")
        for runs in (1, 4, 4):
            made.stands_for(runs)
        for _ in range(2):
            made.tokens(1200, phase="prefill")
        assert (4, "1,200 of prefill") == (made.stands_for_runs, str(made.token_count))


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
