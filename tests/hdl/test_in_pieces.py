from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import operators as op
from fabric import Program, ProgramError, Stream, simulate
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program
from operators.pieces import in_pieces
from tests.hdl.banks import BankedMemory
from tests.hdl.design import IdealMemory, Memory, Sizes, swiglu
from tests.hdl.test_design import COUNTED
from tests.operators.true_types import Watched
from tests.profiles import examples, spread
from tests.programs.loading import PROGRAMS
from tests.programs.loading import program as loaded

MEMORIES: dict[str, Callable[[], Memory]] = {
    "hdl_ideal": IdealMemory,
    "hdl_as_run": BankedMemory,
}


def _built(hardware: str, sizes: Sizes, **more: Any) -> Program:
    names = ("batch", "hidden", "inter", "tile_batch", "tile_inter")
    given = dict(zip(names, astuple(sizes), strict=True))
    return in_pieces(loaded("swiglu", f"{hardware}.toml", **given, **more), 16, 16)


def test_streams_carry_what_their_types_say() -> None:
    built = _built("hdl_ideal", Sizes(16, 32, 32, 16, 16))
    watched = Watched(built)
    assert simulate(built, mode="functional").status == "completed"
    assert watched.sizes() == {}


@pytest.mark.parametrize("memory", list(MEMORIES))
@pytest.mark.parametrize(
    "row", [COUNTED[-1], *(pytest.param(row, marks=pytest.mark.deep) for row in COUNTED[:-1])]
)
def test_cycles_are_those_of_the_hardware(row: dict[str, int], memory: str) -> None:
    *sizes, cycles, ideal_cycles = row.values()
    report = simulate(_built(memory, Sizes(*sizes)), mode="timing")
    assert report.cycles == (ideal_cycles if memory == "hdl_ideal" else cycles)


def _divided(most: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(1, most).flatmap(
        lambda whole: st.tuples(
            st.just(whole), st.sampled_from([n for n in range(1, whole + 1) if whole % n == 0])
        )
    )


@st.composite
def _sizes(draw: st.DrawFn) -> Sizes:
    # Buffers hold at most 256 pieces.
    (batch, tile_batch), (inter, tile_inter) = draw(_divided(4)), draw(_divided(10))
    hidden = draw(st.integers(1, 17))
    assume(batch * inter * hidden < 150 or draw(st.integers(0, 9)) == 0)
    return Sizes(*(16 * each for each in (batch, hidden, inter, tile_batch, tile_inter)))


@pytest.mark.parametrize("memory", list(MEMORIES))
@examples(quick=2, deep=40)
@given(sizes=_sizes())
def test_cycles_are_those_of_the_model(sizes: Sizes, memory: str) -> None:
    report = simulate(_built(memory, sizes), mode="timing")
    assert report.cycles == swiglu(sizes, MEMORIES[memory]()).run()


@pytest.mark.parametrize("memory", spread(list(MEMORIES), 1))
@pytest.mark.parametrize("hidden", [48, 160])
def test_every_piece_moves_in_its_cycle(hidden: int, memory: str, tmp_path: Path) -> None:
    # A token has up to 20 pieces: sets are freed inside a token and at its end.
    sizes = Sizes(batch=32, hidden=hidden, inter=64, tile_batch=32, tile_inter=32)
    design = swiglu(sizes, MEMORIES[memory]())
    design.run()
    report = simulate(_built(memory, sizes), mode="timing", trace="events", log_dir=tmp_path)
    rows = report.trace().query(
        "select reader, sent_cycle, taken_cycle from transfers join channels using (channel) "
        "order by channel, element"
    )
    moved: dict[str, tuple[list[int], list[int]]] = {}
    for link, sent, taken in rows.rows():
        sent_cycles, taken_cycles = moved.setdefault(link, ([], []))
        sent_cycles.append(sent)
        taken_cycles.append(taken)
    for name, (source, target) in design.links.items():
        assert moved[name] == (source.put_cycles, target.take_cycles), name


@pytest.mark.parametrize("memory", list(MEMORIES))
def test_every_piece_moves_so_on_wires(memory: str, tmp_path: Path) -> None:
    parameters = ["batch=32", "hidden=48", "inter=64", "tile_batch=32"]
    hardware = load_hardware(PROGRAMS / "hardware" / f"{memory}.toml")
    found: list[Any] = []
    for each in (hardware, hardware.of_wires()):
        program = load_program(PROGRAMS / "swiglu_in_pieces.py", parameters, each).program
        folder = tmp_path / str(len(found))
        report = simulate(program, mode="timing", trace="events", log_dir=folder)
        query = "select channel, element, sent_cycle, taken_cycle from transfers order by all"
        found.append(report.trace().query(query).rows())
    assert found[0] == found[1]


@pytest.mark.parametrize("memory", list(MEMORIES))
@pytest.mark.parametrize("by_columns", [False, True])
def test_work_and_data_are_those_of_tiles(memory: str, *, by_columns: bool) -> None:
    sizes = Sizes(batch=64, hidden=32, inter=64, tile_batch=32, tile_inter=32)
    pieces = _built(memory, sizes, by_columns=by_columns)
    tiles = simulate(
        loaded("swiglu", "hdl_validation.toml", by_columns=by_columns, **vars(sizes)), mode="timing"
    )
    functional = simulate(pieces, mode="functional")
    timing = simulate(pieces, mode="timing", engine="tasks")
    assert functional.verified
    for report in (functional, timing):
        assert (report.cycles, report.flops) == (timing.cycles, tiles.flops)
        assert report.off_chip_traffic_bytes == tiles.off_chip_traffic_bytes


def test_wrong_data_are_found() -> None:
    with Program("copy", mode="functional") as program:
        x = np.arange(1024.0, dtype=np.float32).reshape(32, 32)
        loads = op.LinearOffChipLoad(x, (32, 16))()
        op.LinearOffChipStore("y")(op.Map(op.SiLU())(loads))
    program.expect(y=lambda: -x)
    assert simulate(in_pieces(program, 16, 16)).verified is False


class Others(op.MatmulSum):
    pass


def _load(*shape: int, tile: tuple[int, int] = (16, 16), **more: Any) -> Stream:
    return op.LinearOffChipLoad(
        op.Tensor(tile), tile, shape=shape, strides=(0,) * len(shape), **more
    )()


def _two_orders() -> None:
    both = _load(1, 1, 1)
    op.Accum(op.MatmulSum(), name="sums")(_load(1, 1, 1), both)
    op.LinearOffChipStore("y", name="stored")(both)


def _by_columns() -> Stream:
    first = op.Accum(op.MatmulSum())(_load(1, 1, 1), _load(1, 1, 1))
    return op.Accum(op.MatmulSum())(first, _load(1, 1))


def _two_readers() -> None:
    twice = op.Map(op.SiLU(), name="twice")(_load(1, 1))
    op.LinearOffChipStore("y", name="first")(twice)
    op.LinearOffChipStore("z")(twice)


ALL = (
    "LinearOffChipLoad without a reference, LinearOffChipStore, Map, Accum(MatmulSum()) of two "
    "streams, or Reshape with chunk=1"
)
LOWERED_NOT: list[tuple[Callable[[], object], str]] = [
    (
        lambda: op.Accum(Others(), name="mine")(_load(1, 1), _load(1, 1)),
        "mine: Others cannot be lowered to pieces: expected MatmulSum",
    ),
    (
        lambda: op.Accum(op.Sum(), name="sum")(_load(1, 1)),
        f"sum: Accum cannot be lowered to pieces: expected {ALL}",
    ),
    (
        lambda: op.LinearOffChipLoad(op.Tensor((16, 16)), (16, 16), name="again")(_load(1, 1)),
        f"again: LinearOffChipLoad cannot be lowered to pieces: expected {ALL}",
    ),
    (
        _two_orders,
        "stored: a load that is read in two orders cannot be lowered to pieces: expected one "
        "order of pieces",
    ),
    (
        lambda: op.Accum(op.MatmulSum(), name="long")(
            _load(1, 1, 1, tile=(16, 16 * 257)), _load(1, 1, 1, tile=(16 * 257, 16))
        ),
        "long: a buffer of 257 pieces cannot be lowered to pieces: expected at most 256",
    ),
    (
        lambda: op.Accum(op.MatmulSum(), name="late")(_load(1, 1), op.Map(op.SiLU())(_load(1, 1))),
        "late: a product with a second operand that is computed cannot be lowered to pieces: "
        "expected one that is loaded",
    ),
    (
        _two_readers,
        "first: twice.0 [1, 1, 1] of 16x16 bfloat16, which has several readers, cannot be lowered "
        "to pieces: expected one reader",
    ),
    (
        lambda: op.LinearOffChipStore("y")(op.Map(op.RowSum(), name="rows")(_load(1, 1))),
        "rows: RowSum cannot be lowered to pieces: expected an elementwise function",
    ),
    (
        lambda: op.Accum(op.MatmulSum(), name="third")(_by_columns(), _load(1)),
        "third: a first operand in columns of pieces cannot be lowered to pieces: expected rows of "
        "pieces",
    ),
    (
        lambda: op.Map(op.Add(), name="sums")(_by_columns(), _load(1)),
        "sums: operands in different orders of pieces cannot be lowered to pieces: expected one "
        "order",
    ),
    (
        lambda: op.LinearOffChipStore("y", name="stored")(_load(1, 1, tile=(16, 24))),
        "stored: a tile of 16x24 cannot be lowered to pieces: expected tiles that 16x16 divides",
    ),
]


@pytest.mark.parametrize(("wire", "message"), LOWERED_NOT)
def test_programs_without_a_form_in_pieces_are_refused(
    wire: Callable[[], object], message: str
) -> None:
    with Program("refused") as program:
        wire()
    with pytest.raises(ProgramError) as caught:
        in_pieces(program, 16, 16)
    assert caught.value.message == message
    assert caught.value.file == __file__


def test_buffer_of_256_pieces_is_accepted() -> None:
    with Program("long") as program:
        product = op.Accum(op.MatmulSum())(
            _load(1, 1, 1, tile=(16, 16 * 256)), _load(1, 1, 1, tile=(16 * 256, 16))
        )
        op.LinearOffChipStore("y")(product)
    assert in_pieces(program, 16, 16).depths["matmul_sum_1_left_store.1"] == 2 * 256


def test_pieces_have_at_least_one_element() -> None:
    with Program("copy", mode="functional") as program:
        op.LinearOffChipStore("y")(op.LinearOffChipLoad(np.eye(2, 3), (2, 3))())
    for rows, cols in ((16, 8), (0, 0), (-1, -1)):
        with pytest.raises(ProgramError) as caught:
            in_pieces(program, rows, cols)
        assert caught.value.message == f"pieces of {rows}x{cols}: expected squares, as in 16x16"
    program.expect(y=lambda: np.eye(2, 3))
    assert simulate(in_pieces(program, 1, 1)).verified


def test_views_move_piece_by_piece() -> None:
    # The tensor has 3 x 4 tiles of 2 x 3 pieces each.
    x = np.arange(6 * 12.0).reshape(6, 12)
    tiles = x.reshape(3, 2, 4, 3).swapaxes(1, 2).reshape(12, 2, 3)

    def program() -> Program:
        with Program("views", mode="functional") as built:
            tensor = op.Tensor((6, 12), x, dtype="float32")
            view = op.LinearOffChipLoad(tensor, (2, 3), (2, 3), (4, 1), 5)()
            op.LinearOffChipStore("y")(op.Map(op.Add())(view, view))
            turned = op.LinearOffChipLoad(tensor, (2, 3), (4, 3), (1, 4))()
            op.LinearOffChipStore("z", (2, 4, 9))(turned)
            left = op.LinearOffChipLoad(tensor, (2, 3), (3, 1, 4), (4, 0, 1))()
            weights = op.Tensor((12, 2), x.reshape(36, 2)[:12], dtype="float32")
            right = op.LinearOffChipLoad(weights, (3, 2), (3, 1, 4), (0, 0, 1))()
            op.LinearOffChipStore("p")(op.Accum(op.MatmulSum())(left, right))
        built.expect(
            y=lambda: 2 * np.block([[*tiles[5:8]], [*tiles[9:12]]]),
            z=lambda: np.block([[*tiles[j::4]] for j in range(4)]).reshape(2, 4, 9),
            p=lambda: x @ x.reshape(36, 2)[:12],
        )
        return built

    assert simulate(program()).verified
    assert simulate(in_pieces(program(), 1, 1)).verified
