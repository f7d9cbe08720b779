"""Models as programs: fused or spilled they compute the same, and cost what is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Layout, Program, Report, Stream, simulate
from operators import Add, LinearOffChipStore, Map, RandomOffChipStore, SiLU
from operators.kernels.fusion import buffer_bytes
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.model import Model, load, times_loaded
from operators.kernels.off_chip import Store
from operators.kernels.realise import realised
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from operators.shape import redimensioned
from tests.profiles import examples

FLOAT = np.dtype(np.float32)
SHAPE = (8, 12)


class Added(Kernel):
    """The sum of its operands, tile by tile."""

    family = "sum"

    def __init__(self, name: str, views: Sequence[View], layout: Layout) -> None:
        """Read all of ``views`` in ``layout``, and give the sum in that, too."""
        self.name = name
        self.operands = tuple(Operand(view, layout) for view in views)
        self.results = (Computed(name, layout.shape, FLOAT, layout),)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        first, *rest = (each for each in inputs if isinstance(each, Stream))
        for each in rest:
            first = Map(Add())(first, each)
        return (Map(SiLU(), name=self.name)(first),) if not rest else (first,)


def silu(x: np.ndarray) -> np.ndarray:
    """As the fabric computes it."""
    found: np.ndarray = x / (1 + np.exp(-x))
    return found


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...]) -> Layout:
    """Tiles of a tensor, in any order of its dimensions."""
    tile = tuple(draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])) for n in shape)
    return Layout.tiled(shape, (1,) * (len(shape) - 2) + tile[-2:], draw(orders(len(shape))))


def orders(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    """The dimensions of a tensor in any order."""
    return st.permutations(range(rank)).map(tuple)


@st.composite
def models(draw: st.DrawFn) -> tuple[Model, dict[str, np.ndarray]]:
    """Sums of earlier sums, as they are, transposed or repeated; what nobody reads is stored."""
    model = Model()
    given_: list[tuple[View, np.ndarray]] = []
    for name in ("a", "b"):
        data = np.arange(96, dtype=FLOAT).reshape(SHAPE) / 64 + draw(st.integers(0, 99))
        given_.append((View.of(Stored.of(name, SHAPE, FLOAT, data.copy)), data))
    unread: dict[str, tuple[View, np.ndarray]] = {}
    for number in range(draw(st.integers(2, 5))):
        chosen = draw(st.lists(st.sampled_from(given_), min_size=1, max_size=2))
        shape: tuple[int, ...] = SHAPE
        views, arrays = [view for view, _ in chosen], [array for _, array in chosen]
        if draw(st.booleans()):
            views = [each.permuted((1, 0)) for each in views]
            arrays = [array.T for array in arrays]
            shape = SHAPE[::-1]
        elif not any(isinstance(each.source, Stored) for each in views) and draw(st.booleans()):
            shape = (3, *SHAPE)
            views = [each.expanded(shape) for each in views]
            arrays = [np.broadcast_to(array, shape) for array in arrays]
        kernel = Added(f"sum{number}", views, draw(layouts(shape)))
        model.kernels.append(kernel)
        for view, _ in chosen:
            unread.pop(view.source.name, None)
        result = View.of(kernel.results[0]), computed(arrays)
        unread[kernel.name] = result
        given_.append(result if shape == SHAPE else kernel_shaped(result))
    for name, (view, _) in unread.items():
        layout = view.layout
        assert layout is not None
        model.kernels.append(Store(f"out_{name}", Operand(view, layout), view.shape))
    return model, {f"out_{name}": numbers for name, (_, numbers) in unread.items()}


def kernel_shaped(result: tuple[View, np.ndarray]) -> tuple[View, np.ndarray]:
    """A result as a tensor of the shape that all sums read: transposed back, or its first copy."""
    view, numbers = result
    if len(view.shape) == 2:
        return view.permuted((1, 0)), numbers.T
    return view.sliced(0, 0, 1).reshaped(SHAPE), numbers[0]


def computed(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """What a kernel makes of them."""
    first, *rest = arrays
    return silu(first) if not rest else first + rest[0]


def run(
    model: Model, expected: dict[str, np.ndarray], schedule: Schedule, mode: str = "functional"
) -> tuple[Program, Report]:
    """A run of the model under a schedule, that has computed what was expected."""
    program = realised("model", model, schedule)
    for name, numbers in expected.items():
        outputs: dict[str, Any] = {name: partial(np.copy, numbers)}
        program.expect(**outputs)
    report = simulate(program, mode=mode)
    assert report.status == "completed", report.failure or report.explained
    if mode == "functional":
        assert report.verified, report.verification
    return program, report


@given(models(), st.integers(0, 2_500))
@examples(quick=10, deep=40)
def test_fused_and_spilled_models_compute_the_same(
    given_: tuple[Model, dict[str, np.ndarray]], budget: int
) -> None:
    """With all on chip, some room and none: verified, and of one length in both modes."""
    model, expected = given_
    for on_chip_bytes in (None, budget, 0):
        schedule = Schedule(on_chip_bytes=on_chip_bytes)

        _, report = run(model, expected, schedule)

        if on_chip_bytes is not None:
            assert report.extra["largest_group_buffer_bytes"] <= on_chip_bytes
        _, timing = run(model, expected, schedule, mode="timing")
        assert timing.cycles == report.cycles


@given(models(), st.integers(0, 2_500))
@examples(quick=10, deep=40)
def test_what_is_said_of_spilling_is_what_it_costs(
    given_: tuple[Model, dict[str, np.ndarray]], budget: int
) -> None:
    """Traffic is what memory moves more than without a budget; buffers are what runs allocate."""
    model, expected = given_
    _, whole = run(model, expected, Schedule(), mode="timing")

    _, report = run(model, expected, Schedule(on_chip_bytes=budget), mode="timing")

    assert report.off_chip_traffic_bytes is not None
    assert whole.off_chip_traffic_bytes is not None
    more = report.off_chip_traffic_bytes - whole.off_chip_traffic_bytes
    assert more == report.extra["spilled_traffic_bytes"] - whole.extra["spilled_traffic_bytes"]
    edges = sum(1 for _ in model.edges())
    extra = report.extra
    assert extra["edges_on_chip"] + extra["edges_through_memory"] == edges
    between = {
        edge.consumer.operands[edge.operand].view.source
        for edge in model.edges()
        if not isinstance(edge.consumer, Store)
    }
    assert extra["intermediate_unfused_bytes"] == sum(4 * math.prod(s.shape) for s in between)


@pytest.mark.parametrize(
    ("given_", "seen", "rows", "tile", "stored"),
    [
        # As it comes; in row-major order no addresses are needed.
        (((4, 6), (2, 3)), (4, 6), 16, (2, 3), LinearOffChipStore),
        (((4, 6), (2, 3), (1, 0)), (4, 6), 16, (2, 3), RandomOffChipStore),
        (((4, 6), (4, 3), (1, 0)), (4, 6), 16, (4, 3), LinearOffChipStore),
        (((2, 4, 6), (2, 4, 3)), (2, 4, 6), 2, (2, 4, 3), LinearOffChipStore),
        (((2, 4, 6), (1, 2, 6)), (2, 4, 6), 16, (1, 2, 6), LinearOffChipStore),
        (((2, 4, 6), (1, 4, 3), (0, 2, 1)), (2, 4, 6), 16, (1, 4, 3), LinearOffChipStore),
        (((2, 4, 6), (1, 4, 3), (2, 0, 1)), (2, 4, 6), 16, (1, 4, 3), RandomOffChipStore),
        (((3, 2, 4, 6), (1, 2, 4, 6)), (3, 2, 4, 6), 4, (1, 2, 4, 6), LinearOffChipStore),
        (((4, 6), (4, 6)), (24,), 16, (24,), LinearOffChipStore),
        (((1, 1), (1, 1)), (), 16, (1,), LinearOffChipStore),
        # Rows that are no neighbours are put together to such.
        (((2, 4, 6), (2, 2, 6)), (2, 4, 6), 16, (2, 4, 6), LinearOffChipStore),
        (((2, 4, 6), (2, 2, 6)), (2, 4, 6), 2, (1, 2, 6), LinearOffChipStore),
        (((2, 4, 6), (2, 1, 6)), (2, 4, 6), 4, (1, 4, 6), LinearOffChipStore),
        (((3, 2, 4, 6), (1, 2, 2, 6)), (3, 2, 4, 6), 4, (1, 1, 4, 6), LinearOffChipStore),
        # Two rows of 2 out of a row of 6 only memory could give; single ones a converter can.
        (((4, 6), (2, 3)), (12, 2), 2, (1, 2), LinearOffChipStore),
        (((4, 6), (2, 3)), (12, 2), 3, (3, 2), LinearOffChipStore),
        # Nor single ones of 4.
        (((4, 6), (2, 3)), (6, 4), 2, (2, 4), LinearOffChipStore),
    ],
)
def test_how_outputs_are_stored(
    given_: tuple[Any, ...], seen: tuple[int, ...], rows: int, tile: tuple[int, ...], stored: type
) -> None:
    """In tiles of neighbouring rows, and where they come side by side without addresses."""
    layout = Layout.tiled(*given_)
    data = np.arange(math.prod(layout.shape), dtype=FLOAT).reshape(layout.shape)
    by_rows = Layout.tiled(data.shape, (*(1 for _ in data.shape[1:]), data.shape[-1]))
    first = Added("rows", [View.of(Stored.of("x", data.shape, FLOAT, data.copy))], by_rows)
    kernel = Added("tiles", [View.of(first.results[0])], layout)
    store = Store.of("y", View.of(kernel.results[0]).reshaped(seen), Schedule(tile_rows=rows))
    expected = silu(silu(data)).reshape(seen)

    program, _ = run(Model([first, kernel, store]), {"y": expected}, Schedule())

    found = store.operands[0].layout
    assert found is not None
    assert (tile, stored) == (found.tile, type(program.nodes[-1].operator))


def summarised(budget: int | None) -> Program:
    """Rows that are read in columns by two sums, and a smaller tensor that one reads so."""
    rows, cols = Layout.tiled((4, 6), (2, 6)), Layout.tiled((4, 6), (4, 2), (1, 0))
    small, narrow = Layout.tiled((2, 6), (1, 6)), Layout.tiled((2, 6), (2, 2), (1, 0))
    p = Added("p", [View.of(Stored.of("w", (2, 6), FLOAT, None))], small)
    q = Added("q", [View.of(p.results[0])], narrow)
    a = Added("a", [View.of(Stored.of("x", (4, 6), FLOAT, None))], rows)
    b = Added("b", [View.of(a.results[0])], cols)
    c = Added("c", [View.of(a.results[0]), View.of(b.results[0])], cols)
    y = Store("y", Operand(View.of(c.results[0]), cols), (4, 6))
    z = Store("z", Operand(View.of(q.results[0]), narrow), (2, 6))
    return realised("model", Model([p, q, a, b, c, y, z]), Schedule(on_chip_bytes=budget))


MISSING = "through memory, as on_chip_bytes leaves no room for it"
LARGE, SMALL = f"a (bytes: 192): {MISSING}", f"p (bytes: 96): {MISSING}"


@pytest.mark.parametrize(
    ("budget", "groups", "buffers", "largest", "through", "again"),
    [
        # Two buffers of 2 x 3 tiles of 16 bytes and one tile more; the same of 8 bytes.
        (None, 1, 208 + 104, 208 + 104, 0, []),
        (312, 1, 208 + 104, 208 + 104, 0, []),
        (311, 2, 104, 104, 2, [LARGE]),
        (104, 2, 104, 104, 2, [LARGE]),
        (103, 3, 0, 0, 3, [LARGE, SMALL]),
        (0, 3, 0, 0, 3, [LARGE, SMALL]),
    ],
)
def test_summary(
    budget: int | None, groups: int, buffers: int, largest: int, through: int, again: list[str]
) -> None:
    """What buffers, channels and traffic come to, by hand; the largest is told first."""
    program = summarised(budget)

    # Of a to its two readers, of what is sent to them and of b; then of p to its reader.
    large = [2 * 32, 2 * 3 * 32, 2 * 32]
    large += [2 * 48, 2 * 16, 2 * 16] if through < 2 else [2 * 8, 2 * 48, 2 * 1, 2 * 8]
    small = [2 * 16] + ([2 * 24, 2 * 8, 2 * 8] if through < 3 else [2 * 8, 2 * 24, 2, 2 * 8])
    channels, unfused = sum(large + small), 2 * 96 + 48
    moved = 192 * (through >= 2) + 96 * (through == 3)
    assert {key: value() for key, value in program.extra.items()} == {
        "kernels": 7,
        "kernel_groups": groups,
        "largest_group_buffer_bytes": largest,
        "edges_on_chip": 6 - through,
        "edges_through_memory": through,
        "spilled_traffic_bytes": moved,
        "intermediate_unfused_bytes": unfused,
        "intermediate_buffer_bytes": buffers,
        "intermediate_channel_bytes": channels,
        "intermediate_fused_percent": round(100 * (buffers + channels) / unfused, 1),
        "moved_again_bytes": moved,
        "moved_again": again,
    }
    # A fork sends all three tiles on, whoever waits.
    depths = {name: program.depth_of(name) for name in ("b.0", "add_1.0", "add_1.1", "q.0")}
    assert depths == {"b.0": 3, "add_1.0": 3, "add_1.1": 2, "q.0": 2}
    assert simulate(program, mode="timing").off_chip_traffic_bytes == 2 * (96 + 48) + moved


@pytest.mark.parametrize(
    ("loops", "times", "kept"),
    [
        # Loops over two tiles, and those that read again around them and inside.
        ([(2, 0)], 1, (0, 0)),
        ([(3, None), (2, 0)], 3, (2, 0)),
        ([(2, 0), (3, None)], 1, (1, 1)),
        ([(3, None), (2, 0), (5, None)], 3, (2, 1)),
        ([(3, None), (5, None), (2, 0)], 15, (2, 0)),
    ],
)
def test_what_is_loaded_again(
    loops: list[tuple[int, int | None]], times: int, kept: tuple[int, int]
) -> None:
    """All tiles are kept in a buffer, or loaded again; the same one at once is kept anyway."""
    data = np.arange(24, dtype=FLOAT).reshape(4, 6)
    trips, dims = zip(*loops, strict=True)
    steps = tuple(1 if dim is None else 2 for dim in dims)
    layout = Layout((4, 6), (2, 6), trips, steps, dims)
    view = View.of(Stored.of("x", (4, 6), FLOAT, data.copy))
    for resident, spilled, often in (
        (True, False, 1),
        (True, True, times),
        (False, False, times),
        (False, True, times),
    ):
        operand = Operand(view, layout, resident=resident)
        assert often == times_loaded(operand, spilled=spilled)
        if spilled:
            continue
        with Program("loaded", mode="functional") as program:
            stream = load("x", operand)
            assert (1, *trips) == stream.shape
            LinearOffChipStore("y")(redimensioned(stream, (1, layout.count, 1)))
        tiles = [data[place[0] : place[0] + 2] for place in layout.offsets()]
        program.expect(y=partial(np.concatenate, tiles))
        report = simulate(program)
        assert report.verified
        assert report.off_chip_traffic_bytes == often * data.nbytes + layout.count * 48
        # Two buffers, and the tile that comes.
        tiles_kept = kept[not resident]
        held = (2 * tiles_kept + 1) * 48 if tiles_kept else 0
        assert held == buffer_bytes(program, range(len(program.nodes)))


def test_converters_that_are_shared() -> None:
    """Readers of one layout have one, however it is spelled; not where they read tiles again."""
    rows, columns = Layout.tiled((4, 6), (2, 6)), Layout.tiled((4, 6), (4, 3))
    spelled = Layout((4, 6), (4, 3), (1, 2, 1), (4, 3, 1), (0, 1, None))
    again = Layout((4, 6), (4, 3), (3, 2), (1, 3), (None, 1))

    def wired(*layouts: Layout) -> tuple[int, list[str]]:
        x = View.of(Stored.of("x", (4, 6), FLOAT, None))
        given_ = Added("given", [x, x], rows)
        source = View.of(given_.results[0])
        readers = [Added(f"r{n}", [source], layout) for n, layout in enumerate(layouts)]
        program = realised("shared", Model([given_, *readers]), Schedule())
        names = [node.name for node in program.nodes]
        return sum("bufferize" in each for each in names), names

    assert wired(columns)[0] == wired(columns, columns)[0] == wired(columns, spelled)[0] == 1
    assert wired(columns, again)[0] == wired(again, again)[0] == 2
    assert wired(rows, rows)[0] == 0
    assert wired(rows)[1][:2] == ["given_load_x_0", "given_load_x_1"]
