from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import operators as op
from fabric import Program, simulate
from fabric.explore.sizing.running import Stuck, recorded, unbounded
from fabric.graph.loading.program_file import load_on
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.retiming.retimer import Retimer
from tests.deadlock.test_random import Network, networks
from tests.fabric.sizing.problems import cycles_of
from tests.profiles import examples, spread


def stored(program: Program, repeats: int) -> dict[str, NDArray[Any]]:
    settings = Settings(mode="functional", depths=unbounded(program))
    run = Execution(program, settings, repeats=repeats)

    assert run.execute() == "completed"

    return dict(run.machine.stored)


@pytest.mark.parametrize(
    "name",
    spread(
        [
            "breadth_first_search",
            "dynamic_tiling",
            "matrix_vector",
            "ragged_attention",
            "simplified_moe",
            "top2_moe",
        ],
        3,
    ),
)
def test_repeated_programs_store_n_results(name: str) -> None:
    program = shipped(name)
    alone = stored(program, 1)

    found = stored(program, 3)

    assert alone
    for output, rows in alone.items():
        np.testing.assert_allclose(
            np.asarray(found[output], float), np.concatenate([np.asarray(rows, float)] * 3)
        )


@examples(quick=5, deep=25)
@given(
    rows=st.integers(1, 5), cols=st.integers(1, 3), count=st.integers(1, 4),
    depth=st.integers(1, 4),
)  # fmt: skip
def test_repeated_sources_take_the_cycles_of_one_longer_source(
    rows: int, cols: int, count: int, depth: int
) -> None:
    once, whole = pipeline(rows, cols, depth), pipeline(rows * count, cols, depth)

    cycles = recorded(once, {}, repeats=count).cycles
    assert simulate(whole).cycles == cycles == cycles_of(once, {}, count)


@examples(quick=7, deep=60)
@given(network=networks(merging=False), count=st.integers(1, 4))
def test_record_of_repeats_gives_the_cycles_of_other_depths(network: Network, count: int) -> None:
    program = network.program
    try:
        record = recorded(program, unbounded(program), repeats=count).record
    except Stuck:
        assume(False)
    depths = [
        network.depths.get(channel.option, program.channel_depth) for channel in record.channels
    ]

    event(f"completes: {Retimer(record).time(depths).cycles is not None}")
    assert Retimer(record).time(depths).cycles == cycles_of(program, network.depths, count)


def test_second_input_may_deadlock_with_depths_for_one() -> None:
    program = shipped("matrix_vector")

    assert cycles_of(program, {}) == simulate(program).cycles
    assert cycles_of(program, {}, 2) is None


def shipped(name: str) -> Program:
    return load_on(None, f"programs/{name}.py", [], {}).program


def pipeline(rows: int, cols: int, depth: int) -> Program:
    with Program("pipeline", channel_depth=depth) as program:
        op.Consumer()(op.Metadata(np.arange(rows * cols).reshape(rows, cols))())
        op.Consumer()(op.Selectors(np.zeros((rows, cols, 1), int), width=1)())
        tiles = op.LinearOffChipLoad(np.ones((rows * 4, cols * 16)), tile=(4, 16))()
        op.LinearOffChipStore("y")(tiles)
    return program
