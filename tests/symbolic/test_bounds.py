"""Bounds before a run hold in the run."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric import hardware_scope
from fabric.explore.study.outcome import Condition
from fabric.extend import OnChipDescription
from fabric.graph.loading.program_file import load_program
from tests.operators.driving import Choices
from tests.profiles import examples, spread
from tests.programs.loading import PROGRAMS, program
from tests.symbolic import bounded

Engine = Literal["compiled", "tasks"]

SHIPPED: list[tuple[str, dict[str, Any]]] = [
    ("attention", {"requests": 8, "strategy": "dynamic"}),
    ("attention", {"requests": 8, "strategy": "coarse", "channel_depth": 3}),
    ("attention", {"requests": 6, "strategy": "interleaved", "regions": 2}),
    ("buffer_twice", {"size": 32}),
    ("decoder", {"model": "tiny", "batch": 3, "regions": 2}),
    ("dynamic_tiling", {}),
    ("dynamic_tiling", {"tiling": "static"}),
    ("edit_distance", {}),
    ("graph_layer", {}),
    ("matrix_vector", {}),
    ("moe", {"model": "tiny", "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 3, "tiling": "dynamic"}),
    ("moe", {"model": "tiny", "batch": 16, "regions": 2, "tile_n": 4}),
    ("moe", {"model": "tiny", "batch": 16, "regions": 2, "tiling": "dynamic"}),
    ("own_function", {}),
    ("own_operator", {}),
    ("ragged_attention", {}),
    ("simplified_moe", {}),
    ("sparse_matrix", {}),
    ("swiglu", {}),
    ("swiglu", {"tile_batch": 64, "tile_inter": 256}),
    ("top2_moe", {}),
]


@pytest.mark.parametrize("engine", ["compiled", "tasks"])
@pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED, 4))
def test_shipped_program_is_within_its_bounds(
    name: str, parameters: dict[str, Any], engine: Engine
) -> None:
    _, report = bounded.compared(program(name, **parameters), engine=engine)
    assert "completed" == report.status


@pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED[::-1], 1))
def test_shipped_program_on_drawn_hardware_is_within_its_bounds(
    name: str, parameters: dict[str, Any]
) -> None:
    for number in range(2):
        source = random.Random(f"{name} {parameters} {number}")
        given = [f"{key}={value}" for key, value in parameters.items()]
        hardware = bounded.drawn_hardware(Choices(source.randbytes(20)))
        built = load_program(PROGRAMS / f"{name}.py", given, hardware).program
        bounded.compared(built, **bounded.drawn_options(built, source))


@pytest.mark.parametrize("rows", [16, 64])
@pytest.mark.parametrize("cols", [16, 32, 128, 256])
def test_bound_of_published_swiglu_is_within_a_fifth_of_the_cycles(rows: int, cols: int) -> None:
    built = program("swiglu", "hdl_validation.toml", tile_batch=rows, tile_inter=cols)
    bound, report = bounded.compared(built)
    assert report.cycles is not None
    assert bound.at_least["cycles"] > Fraction(4, 5) * report.cycles


@pytest.mark.parametrize("model", spread(["qwen3-30b-a3b", "mixtral-8x7b"], 1))
@pytest.mark.parametrize("tiling", [{"tile_n": 4}, {"tiling": "dynamic"}])
def test_all_figures_of_published_moe_but_cycles_are_exact(
    model: str, tiling: dict[str, Any]
) -> None:
    bound, report = bounded.compared(program("moe", "paper.toml", model=model, batch=2, **tiling))
    assert report.cycles is not None
    assert bound.at_least["cycles"] > Fraction(9, 10) * report.cycles
    assert ["cycles"] == list(bound.at_least)
    assert bound.sized["channel_bytes"] == report.channel_bytes


@pytest.mark.parametrize("memory", bounded.MEMORIES)
def test_bytes_that_spilling_changes_are_bounded(memory: bounded.Memory) -> None:
    on_chip = OnChipDescription(page_bytes=256, capacity_bytes=6_000, spill=True)
    hardware = replace(bounded.drawn_hardware(Choices(b""), memory), on_chip=on_chip)
    bound, report = bounded.compared(
        load_program(PROGRAMS / "buffer_twice.py", [], hardware).program
    )
    assert report.spilled_bytes
    assert "hbm_bytes_moved" in bound.at_least
    condition = Condition.parse(f"hbm_bytes_moved >= {report.hbm_bytes_moved}")
    assert not condition.broken_by({**bound.exact, **bound.at_least}, tuple(bound.exact))


def check_random(data: bytes) -> None:
    source = random.Random(data)
    with hardware_scope(bounded.drawn_hardware(Choices(source.randbytes(20)))):
        built = bounded.Bounded(Choices(data), functional=False, operators=16).program
    bounded.compared(built, **bounded.drawn_options(built, source))


@examples(quick=12, deep=100)
@given(st.binary(min_size=120, max_size=120))
def test_random_program_is_within_its_bounds(data: bytes) -> None:
    check_random(data)


@pytest.mark.exhaustive
@settings(max_examples=20_000)
@given(st.binary(min_size=120, max_size=120))
def test_many_random_programs_are_within_their_bounds(data: bytes) -> None:
    check_random(data)
