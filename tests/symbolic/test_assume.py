"""Assumptions about shapes: believed while wiring, checked while running, told when needless."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fabric import (
    Feedback,
    Layout,
    Program,
    ProgramError,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    TileType,
    simulate,
)
from fabric.analysis.symbolic.check import check
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.elaborate import elaborate
from operators import (
    Consumer,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Partition,
    Reassemble,
    Repeat,
    Selectors,
)
from tests.compiled.both import Engine
from tests.definitions import at_depth
from tests.operators.driving import Emit, encode
from tests.symbolic.small_operators import HitList

HERE = Path(__file__).name


def routed(choice: list[list[int]]) -> tuple[Stream, ...]:
    """Rows of 1x32 routed to two consumers."""
    array = np.array(choice)
    x = np.arange(32.0 * len(choice), dtype=np.float32).reshape(len(choice), 32)
    rows = Flatten(0, 1)(LinearOffChipLoad(x, (1, 32))())
    return Partition(2)(rows, Selectors(array, 2, name="route")())


def located(error: ProgramError) -> str | None:
    """The message, if it points into this file."""
    return error.message if error.file is not None and error.file.endswith(HERE) else None


class TestWiring:
    def test_shape(self) -> None:
        """The stream has the stated shape, and no operator is added for it."""
        with Program("p") as program:
            left, right = routed([[0], [1], [0]])
            known = left.assume(2)
            LinearOffChipStore("y")(known)
            LinearOffChipStore("z")(right)

        assert ("[2] of 1x32 bfloat16", 6) == (str(known.type), len(elaborate(program).nodes))

    def test_known_to_be_false(self) -> None:
        """What cannot be is refused at once."""
        with Program("p"), pytest.raises(ShapeError) as refused:
            Selectors(np.zeros((3, 1), np.int64), 2, name="route")().assume(1, 4)

        assert (
            "assume says that route.0 [1, 3] of selector of 2 has shape [1, 4]: expected 2 "
            "dimensions that can be equal"
        ) == located(refused.value)

    def test_number_of_dimensions(self) -> None:
        """Dimensions cannot be added or left out."""
        with Program("p"), pytest.raises(ShapeError) as refused:
            routed([[0]])[0].assume(1, 1)

        assert (
            "assume says that partition_1.0 [D_route[0]] of 1x32 bfloat16 has shape [1, 1]: "
            "expected 1 dimension that can be equal"
        ) == located(refused.value)

    def test_feedback(self) -> None:
        """A feedback is declared with the shape it has."""
        with Program("p"), pytest.raises(ProgramError) as refused:
            Feedback(routed([[0]])[0].type).assume(1)

        assert (
            "assume is told the shape of feedback [D_route[0]] of 1x32 bfloat16: expected the "
            "shape in the Feedback itself"
        ) == located(refused.value)

    def test_needless(self) -> None:
        """Assumptions that add nothing, or that nobody uses, are told."""
        with Program("p") as program:
            left, right = routed([[0], [1]])
            right.assume(1)
            LinearOffChipStore("y")(left.assume(*left.shape))
            LinearOffChipStore("z")(right)

        first, second = check(program, {}, data=False).warnings
        assert second.endswith(
            "partition_1.0: the assumed shape [D_route[0]] is what its operators say: expected no "
            "assume(...)"
        )
        assert first.endswith(
            "partition_1.1: the assumed shape [1] is used by no operator: expected no assume(...)"
        )

    def test_layout(self) -> None:
        """A layout that is stated is no assumption about a shape, used or not."""
        with Program("p") as program:
            tiles = LinearOffChipLoad(np.ones((32, 32), np.float32), (16, 32))()
            tiles.laid_out(Layout.tiled((32, 32), (16, 32)))
            LinearOffChipStore("y")(tiles.laid_out(Layout.tiled((32, 32), (16, 32))))

        assert check(program, {}, data=False).warnings == ()


class TestRunning:
    def test_true(self) -> None:
        """A true assumption changes nothing, the cycles included."""
        reports = []
        for size in (None, 2):
            with Program("p") as program:
                left, right = routed([[0], [1], [0]])
                LinearOffChipStore("y")(left if size is None else left.assume(size))
                LinearOffChipStore("z")(right)
            reports.append(simulate(program))

        assert ["completed"] * 2 == [report.status for report in reports]
        assert reports[0].cycles == reports[1].cycles

    @pytest.mark.parametrize("mode", ["timing", "functional"])
    def test_false_number(self, mode: str) -> None:
        """The error names the stream, the symbol, the sizes and the line."""
        with Program("p") as program:
            left, right = routed([[0], [1], [0]])
            LinearOffChipStore("y")(left.assume(3))
            LinearOffChipStore("z")(right)
        report = simulate(program, mode=mode)

        assert report.error is not None
        assert ("error", 1) == (report.status, report.exit_status)
        assert (
            "partition_1.0: dimension 0 (D_route[0]) is 2: expected 3, as the program assumes"
        ) == report.error["message"]
        assert report.error["file"].endswith(HERE)

    def test_false_symbol(self) -> None:
        """One symbol for another is compared when both are known."""
        with Program("p") as program:
            left, right = routed([[0], [1], [0]])
            LinearOffChipStore("y")(left.assume(*right.shape))
            LinearOffChipStore("z")(right)
        report = simulate(program)

        assert report.error is not None
        assert (
            "partition_1.0: dimension 0 (D_route[0]) is 2: expected D_route[1], here 1, as the "
            "program assumes"
        ) == report.error["message"]

    @pytest.mark.parametrize(("hits", "message"), [([[0], [1]], None), ([[0, 1], []], "")])
    def test_groups(self, hits: list[list[int]], message: str | None) -> None:
        """Every group is looked at, not their mean: one of 2 and one of 0 are not two of 1."""
        with Program("p") as program:
            chosen = HitList(tuple(map(tuple, hits)))()
            rows = Flatten(0, 1)(LinearOffChipLoad(np.zeros((2, 32), np.float32), (1, 32))())
            streams = Partition(2)(rows, chosen)
            y = Reassemble()(streams, chosen).assume(1, 2, 1)
            LinearOffChipStore("y")(y)
        report = simulate(program)

        if message is None:
            assert ("completed", None) == (report.status, report.error)
        else:
            assert report.error is not None
            assert (
                "reassemble_1.0: dimension 0 (D_reassemble_1~) is 2 in group 1: expected 1, as the "
                "program assumes"
            ) == report.error["message"]

    @pytest.mark.parametrize("engine", ["tasks", "compiled"])
    @pytest.mark.parametrize(
        ("size", "message"), [(1, None), (2, "is 1 in group 1: expected 2, as the program assumes")]
    )
    def test_beside_a_size_that_nothing_else_tells(
        self, size: int, message: str | None, engine: Engine
    ) -> None:
        """Of two unknown sizes of a shape the one that is assumed tells the other."""
        one = Tile(1, 1, np.dtype(np.float32))
        elements = encode(at_depth(lambda _: one, 3, [[[0], [0]], [[0], [0], [0]]]), 3)
        outer, inner = symbol("R", ragged=True), symbol("S", ragged=True)
        with Program("p", mode="timing") as program:
            kind = StreamType((2, outer, inner), TileType(1, 1, one.dtype))
            rows = Repeat(2)(Emit(kind, elements)())
            Consumer()(rows.assume(2, rows.shape[1], size, 2))
        report = simulate(program, engine=engine)

        if message is None:
            assert ("completed", None, ()) == (report.status, report.error, report.warnings)
            assert report.elements == 5 + 2 * 5
        else:
            assert report.error is not None
            assert report.error["message"] == f"repeat_1.0: dimension 1 (S~) {message}"
