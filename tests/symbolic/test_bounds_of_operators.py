"""No run of any operator, in any surroundings, beats what its ``work`` says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric
import operators
from fabric import (
    Program,
    SelectorType,
    Stream,
    StreamType,
    TileType,
    hardware_scope,
)
from fabric.extend import (
    BufferType,
    ComputeOperator,
    Costs,
    FlatDescription,
    Operator,
    Rates,
    ValueType,
    Work,
)
from fabric.graph.values.dims import symbol
from operators import (
    INTEGER,
    Accum,
    Add,
    Bufferize,
    CacheReadAddresses,
    Consumer,
    EagerMerge,
    Expand,
    ExpertAddresses,
    FilterLastTile,
    FlatMap,
    Flatten,
    Intersect,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    MatmulSum,
    Metadata,
    Parallelize,
    Partition,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reassemble,
    Repeat,
    Reshape,
    Scan,
    Scatter,
    Selectors,
    SplitRows,
    Streamify,
    Sum,
    Tensor,
    Union,
    Zip,
)
from tests.operators.driving import Choices, Emit
from tests.profiles import examples
from tests.symbolic.bounded import compared, drawn_hardware, drawn_options
from tests.symbolic.surroundings import CASES, Surroundings

NAMES = {kind.__name__: kind for kind in CASES}


def test_every_operator() -> None:
    """Each operator that a user can wire has a case."""
    exported = [getattr(module, name) for module in (operators, fabric) for name in module.__all__]
    found = {each for each in exported if isinstance(each, type) and issubclass(each, Operator)}
    assert set(CASES) == found - {Operator, ComputeOperator}


@pytest.mark.parametrize("engine", ["compiled", "tasks"])
@pytest.mark.parametrize("name", NAMES)
@examples(quick=8, deep=2_000)
@given(data=st.binary(min_size=80, max_size=80))
def test_no_run_beats_them(name: str, engine: str, data: bytes) -> None:
    """All parameters drawn, on each of the three memories."""
    choices, source = Choices(data), random.Random(data)
    with (
        hardware_scope(drawn_hardware(Choices(source.randbytes(20)))),
        Program("drawn", channel_depth=1000) as built,
    ):
        around = Surroundings(choices, built)
        for stream in CASES[NAMES[name]](around):
            around.end(stream)
        around.beside()
    compared(built, **{**drawn_options(built, source), "engine": engine})


F16 = np.dtype(np.float16)
TILE = TileType(2, 65, F16)
"""Of 130 numbers and 260 bytes: 5 cycles through a port, 520 bytes in the authors' counting."""

RATES = Rates(
    flops_per_cycle=40,
    bytes_per_cycle=64,
    memory=FlatDescription(
        channels=4,
        requests_per_bundle=2,
        startup_cycles=3,
        latency_cycles=10,
        initiation_interval_cycles=5,
    ),
    off_chip="read",
    in_memory=(),
)
"""Of which a sum of two tiles takes 4 cycles, and a burst of the 6 requests of one 21."""

WHOLE = Tensor((6, 195), dtype="float16")
N = symbol("n", ragged=True)


def _of(*shape: object, value: ValueType = TILE) -> Stream:
    return Emit(StreamType(shape, value), [])()


def _steers(width: int, *shape: object, hits: int = 1) -> Stream:
    return _of(*shape, value=SelectorType(width, hits))


def _numbers(*shape: object) -> Stream:
    return _of(*shape, value=INTEGER)


def _buffers(*shape: object, of: tuple[object, ...]) -> Stream:
    return _of(*shape, value=BufferType(of, TILE))


def _paced(count: int, cycles: int, **more: Any) -> Work:
    each = Work(first_cycles=cycles, last_cycles=cycles, pace_cycles=cycles, passes=True)
    return replace(each, cycles=count * cycles, **more)


def _bursts(count: int, **more: Any) -> Work:
    each = _paced(count, 21, tile=TILE, bursts=count, passes=False, in_memory=True)
    return replace(each, **more)


STATED: list[tuple[Callable[[], object], tuple[bool, ...], Work, Costs]] = [
    (
        lambda: Map(Add())(_of(3, 5), _of(3, 5)),
        (False, False),
        _paced(15, 4),
        Costs(flops=15 * 130, artifact_fifo_bytes=3 * 520),
    ),
    (
        lambda: Map(Add())(_of(3, 5), _of(3, 5)),
        (True, True),
        _paced(15, 5 + 5),
        Costs(flops=15 * 130, artifact_fifo_bytes=3 * 520),
    ),
    (
        lambda: Map(Add(), to_memory=True)(_of(3, 5), _of(3, 5)),
        (False, False),
        _paced(15, 5, in_memory=True),
        Costs(flops=15 * 130, artifact_fifo_bytes=3 * 520),
    ),
    (
        lambda: Accum(Sum())(_of(3, 5)),
        (False,),
        Work(cycles=15 * 4, first_cycles=5 * 4, last_cycles=4, gathers=5),
        Costs(0, 0, 260, 15 * 130, 0, 520, 520),
    ),
    (
        lambda: Accum(Sum(), rank=2, to_memory=True)(_of(7, 3, 5)),
        (True,),
        Work(cycles=105 * 5, first_cycles=15 * 5, last_cycles=5, gathers=15, in_memory=True),
        Costs(0, 0, 260, 105 * 130, 0, 520, 520),
    ),
    (
        lambda: Accum(MatmulSum())(_of(3, 5), _of(3, 5, value=TileType(65, 4, F16))),
        (False, False),
        # 2 * 2 * 65 * 4 operations.
        Work(cycles=15 * 26, first_cycles=5 * 26, last_cycles=26, gathers=5),
        Costs(0, 0, 16 * 65 + 520 + 16, 15 * 1040, 0, 32, 3 * 520 - 32),
    ),
    (
        lambda: Scan(Sum(), to_memory=True)(_of(3, 5)),
        (False,),
        Work(cycles=15 * 4, first_cycles=4, last_cycles=4, gathers=1, in_memory=True),
        Costs(0, 0, 260, 15 * 130, 0, 520, 520),
    ),
    (
        lambda: Bufferize()(_of(3, 5)),
        (True,),
        Work(cycles=15 - 3, first_cycles=4, gathers=5, in_memory=True),
        Costs(on_chip_bytes=11 * 260, artifact_on_chip_bytes=11 * 520),
    ),
    (
        lambda: Bufferize(2)(_of(7, 3, 5)),
        (False,),
        Work(cycles=105 - 7, first_cycles=14, gathers=15),
        Costs(on_chip_bytes=31 * 260, artifact_on_chip_bytes=31 * 520),
    ),
    (
        lambda: Streamify((2, 3))(_buffers(7, of=(5,))),
        (True,),
        Work(cycles=7 * 30 - 1, last_cycles=29, closing=(0,), in_memory=True),
        Costs(artifact_on_chip_bytes=6 * 520),
    ),
    (
        lambda: Streamify()(_buffers(7, of=(5, 2)), _of(7, 3)),
        (False, True),
        Work(cycles=7 * 3 * 10 - 1, last_cycles=9, closing=(1,)),
        Costs(artifact_on_chip_bytes=11 * 520),
    ),
    (
        lambda: Streamify((2,), (0,), (1,))(_buffers(7, of=(5,))),
        (False,),
        Work(cycles=-1, last_cycles=-1, closing=()),
        Costs(artifact_on_chip_bytes=6 * 520),
    ),
    (
        lambda: Repeat(1)(_of(3, 5)),
        (True,),
        Work(cycles=14, in_memory=True),
        Costs(on_chip_bytes=260, artifact_on_chip_bytes=520, artifact_fifo_bytes=520),
    ),
    (
        lambda: Repeat(4)(_of(3, 5)),
        (False,),
        Work(cycles=14 * 4 + 2, last_cycles=2),
        Costs(on_chip_bytes=260, artifact_on_chip_bytes=520, artifact_fifo_bytes=520),
    ),
    (
        lambda: Expand(1)(_of(3, 1), _of(3, 5)),
        (True, False),
        Work(closing=(1,), in_memory=True),
        Costs(on_chip_bytes=260, artifact_on_chip_bytes=520, artifact_fifo_bytes=520),
    ),
    (
        lambda: Partition(3, 1, 7)(_of(4, 5), _steers(3, 4)),
        (True, False),
        _paced(20, 5 + 7, closing=(0,), deals=True),
        Costs(artifact_fifo_bytes=4 * 520),
    ),
    (
        lambda: Partition(3)(_of(4, 5), _steers(3, 4, 5)),
        (False, True),
        _paced(20, 1, closing=(0,), deals=True),
        Costs(artifact_fifo_bytes=4 * 520),
    ),
    (
        lambda: Partition(3)(_of(4, 5), _steers(3, 4, 5, hits=0)),
        (False, False),
        _paced(20, 0, closing=(), deals=True),
        Costs(artifact_fifo_bytes=4 * 520),
    ),
    (
        lambda: Parallelize(3, 0, 7)(_of(4)),
        (True,),
        Work(delay_cycles=6, passes=True, deals=True, in_memory=True),
        Costs(artifact_fifo_bytes=4 * 520),
    ),
    (
        lambda: Parallelize(3, 0, 0)(_of(4)),
        (False,),
        Work(passes=True, deals=True),
        Costs(artifact_fifo_bytes=4 * 520),
    ),
    (
        lambda: Reassemble(1)([_of(2, 5), _of(3, 5)], _steers(2, 5)),
        (False, False, False),
        Work(needs="selected", closing=(0, 1, 2), sees=(2,)),
        Costs(artifact_fifo_bytes=3 * 520),
    ),
    (
        lambda: Reassemble(1)([_of(2, 5), _of(3, 5)], _steers(2, 4)),
        (False, False, False),
        Work(needs="selected", closing=(2,), sees=(2,)),
        Costs(artifact_fifo_bytes=3 * 520),
    ),
    (
        lambda: Reassemble(1)([_of(2, 5), _of(3, 5)], _steers(2, 4, hits=0)),
        (False, False, False),
        Work(needs="any", closing=(), sees=(2,)),
        Costs(artifact_fifo_bytes=3 * 520),
    ),
    (
        lambda: EagerMerge(1)([_of(2, 5), _of(3, 5)]),
        (True, True),
        Work(cycles=8 + 12, first_cycles=-1, needs="any", late=(0,), in_memory=True),
        Costs(artifact_fifo_bytes=3 * (520 + 2)),
    ),
    (
        lambda: EagerMerge()([_of(2), _of(3)]),
        (True, False),
        Work(first_cycles=-1, needs="any", late=(0,)),
        Costs(artifact_fifo_bytes=3 * (520 + 2)),
    ),
    (
        lambda: Scatter(11, banks=2, width=3)(_numbers(3, 5), _of(3, 5)),
        (False, False),
        # Two banks make 15 updates of 5 cycles, then 33 words are read back.
        Work(cycles=37 + 32 * 5, first_cycles=12, last_cycles=55, pace_cycles=5),
        Costs(on_chip_bytes=11 * 260, artifact_on_chip_bytes=11 * 520),
    ),
    (
        lambda: Scatter(11, rank=2, banks=3, width=2)(_numbers(7, 1, 1), _of(7, 1, 1)),
        (False, False),
        Work(cycles=17 + 76 * 5, first_cycles=2, last_cycles=55, pace_cycles=5),
        Costs(on_chip_bytes=11 * 260, artifact_on_chip_bytes=11 * 520),
    ),
    (
        lambda: Scatter(11)(_numbers(3, 0), _of(3, 0)),
        (False, False),
        Work(cycles=10 * 5, last_cycles=55, pace_cycles=5),
        Costs(on_chip_bytes=11 * 260, artifact_on_chip_bytes=11 * 520),
    ),
    (
        lambda: Scatter(11)(_numbers(3, N), _of(3, N)),
        (False, False),
        Work(cycles=10 * 5, last_cycles=55, pace_cycles=5),
        Costs(on_chip_bytes=11 * 260, artifact_on_chip_bytes=11 * 520),
    ),
    *[
        (wire, (in_memory,), Work(passes=True, in_memory=in_memory, holds=holds), costs)
        for costs in [Costs(artifact_fifo_bytes=2 * 520)]
        for wire, in_memory, holds in (
            (lambda: Flatten(0, 1)(_of(3, 5)), True, False),
            (lambda: Promote()(_of(3)), False, True),
            (lambda: Promote(1)(_of(3)), True, True),
            (lambda: Promote(0)(_of(3)), True, False),
            (lambda: Promote()(_of(3, 5)), False, False),
            (lambda: Promote(1)(_of(3, 5)), True, False),
            (lambda: Reshape(5)(_of(3, 10)), True, False),
            (lambda: Reshape(3, 1)(_of(6, 10)), False, False),
        )
    ],
    (
        lambda: Reshape(4, pad=0.0)(_of(7)),
        (True,),
        Work(passes=True, pads=True),
        Costs(artifact_fifo_bytes=2 * 520),
    ),
    (
        lambda: Reshape(4, pad=0.0)(_of(3, 7)),
        (True,),
        Work(pads=True),
        Costs(artifact_fifo_bytes=2 * 520),
    ),
    (
        lambda: Reshape(4, pad=0.0, outermost=True)(_of(7)),
        (True,),
        Work(passes=True, pads=True, holds=True),
        Costs(artifact_fifo_bytes=2 * 520),
    ),
    (
        lambda: LinearOffChipLoad(WHOLE, (2, 65))(),  # noqa: PLW0108 - each program wires its own
        (),
        _bursts(9, last_cycles=9 * 21),
        Costs(load_bytes=9 * 260, on_chip_bytes=520, artifact_on_chip_bytes=260),
    ),
    (
        lambda: LinearOffChipLoad(WHOLE, (2, 65), (2, 2), (3, 1))(_of(7)),
        (False,),
        _bursts(28, last_cycles=4 * 21),
        Costs(load_bytes=28 * 260, on_chip_bytes=520, artifact_on_chip_bytes=260),
    ),
    (
        lambda: LinearOffChipLoad(WHOLE, (2, 65), (0,), (1,))(_of(7)),
        (False,),
        _bursts(0, last_cycles=0, closing=()),
        Costs(on_chip_bytes=520, artifact_on_chip_bytes=260),
    ),
    (
        lambda: RandomOffChipLoad(WHOLE, (2, 65))(_numbers(7)),
        (False,),
        _bursts(7, passes=True),
        Costs(load_bytes=7 * 260, on_chip_bytes=520, artifact_on_chip_bytes=260),
    ),
    (
        lambda: LinearOffChipStore("y")(_of(1, 3, 5)),
        (True,),
        _bursts(15, in_memory=False),
        Costs(0, 15 * 260, 520, 0, 15 * 520, 520),
    ),
    (
        lambda: RandomOffChipStore("y", WHOLE, (2, 65), 3)(_numbers(7), _of(7)),
        (False, False),
        _bursts(7, in_memory=False, passes=True),
        Costs(0, 7 * 260, 520, 0, 7 * 260, 3 * 260),
    ),
    *[
        (wire, (False,) * inputs, work, Costs())
        for wire, inputs, work in (
            (lambda: Metadata(np.ones((3, 5), int))(), 0, Work()),  # noqa: PLW0108
            (lambda: Selectors(np.ones((3, 5, 1), int), 2)(), 0, Work(cycles=14)),  # noqa: PLW0108
            (lambda: Consumer()(_of(3, 5)), 1, Work(cycles=15, last_cycles=1)),
            (lambda: Zip()(_of(3), _of(3)), 2, Work(passes=True)),
            (lambda: ExpertAddresses(3)(_steers(2, 3)), 1, Work()),
            (lambda: CacheReadAddresses(3)(_numbers(3), _numbers(3)), 2, Work(closing=())),
            (lambda: FilterLastTile()(_numbers(3)), 1, Work(closing=())),
            (lambda: FlatMap(SplitRows())(_of(3, 5)), 1, Work()),
            (lambda: FlatMap(SplitRows(valid_only=True))(_of(3, 5)), 1, Work(closing=())),
            (lambda: Intersect()(_numbers(3, 5), _numbers(3, 4)), 2, Work(closing=())),
            (lambda: Union()(_numbers(3, 5), _numbers(3, 4)), 2, Work(cycles=14, needs="any")),
            (lambda: Union()(_numbers(3, 4), _numbers(3, 5)), 2, Work(cycles=14, needs="any")),
        )
    ],
]  # fmt: skip
"""What is wired, which of its inputs are in a memory, and what it states, worked out on paper."""


@pytest.mark.parametrize(("wire", "in_memory", "work", "costs"), STATED)
def test_what_each_states(
    wire: Callable[[], object], in_memory: tuple[bool, ...], work: Work, costs: Costs
) -> None:
    """Before a run: each number of the least it takes, and of what it costs."""
    with Program("stated") as program:
        wire()
        *_, node = program.nodes
        operator, types = node.operator, (node.input_types, node.output_types)
        assert work == operator.work(*types, replace(RATES, in_memory=in_memory))
        assert costs == operator.costs(*types)


def test_ragged_integers() -> None:
    """A cycle for each of them but the last, however many there are."""
    with Program("stated") as program:
        numbers = RaggedIntegers([[1, 2], [], [3]])()
    ((_, lists, length), (node,)) = numbers.shape, program.nodes
    work = node.operator.work((), node.output_types, RATES)
    assert work == Work(cycles=lists * length - 1)
