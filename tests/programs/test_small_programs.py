"""The programs that show single features, each against numpy, at several sizes."""

from __future__ import annotations

import pytest

from fabric import ConfigurationError, simulate
from tests.programs.loading import PROGRAMS, program

CASES: list[tuple[str, dict[str, object]]] = [
    ("ragged_attention", {}),
    ("ragged_attention", {"requests": 0}),
    ("ragged_attention", {"requests": 1, "longest": 1}),
    ("ragged_attention", {"requests": 13, "longest": 9, "seed": 3}),
    ("dynamic_tiling", {"tiling": "dynamic"}),
    ("dynamic_tiling", {"tiling": "static"}),
    ("dynamic_tiling", {"tiling": "dynamic", "sequences": 0}),
    ("dynamic_tiling", {"tiling": "static", "sequences": 0}),
    ("dynamic_tiling", {"tiling": "static", "rows": 5, "sequences": 11, "seed": 4}),
    ("buffer_twice", {}),
    ("buffer_twice", {"size": 48, "tile": 48}),
    ("buffer_twice", {"size": 60, "tile": 12, "seed": 7}),
    ("top2_moe", {}),
    ("top2_moe", {"tokens": 0}),
    ("top2_moe", {"tokens": 1, "experts": 4}),
    ("top2_moe", {"tokens": 33, "experts": 9, "seed": 2}),
    ("graph_layer", {}),
    ("graph_layer", {"vertices": 0}),
    ("graph_layer", {"vertices": 1}),
    ("graph_layer", {"vertices": 25, "seed": 5}),
    ("own_function", {"limit": 0.25}),
    ("own_operator", {"tiles": 8}),
    ("own_operator", {"tiles": 0}),
]


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_outputs_are_right_and_cycles_those_of_timing_mode(
    name: str, parameters: dict[str, object]
) -> None:
    functional = simulate(program(name, None, **parameters), mode="functional")
    timing = simulate(program(name, None, **parameters), mode="timing")
    assert ("completed", True, ()) == (functional.status, functional.verified, functional.warnings)
    assert (timing.cycles, timing.units) == (functional.cycles, functional.units)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "least"),
    [
        ("buffer_twice", "size", 0, 1),
        ("buffer_twice", "seed", -1, 0),
        ("dynamic_tiling", "sequences", -1, 0),
        ("dynamic_tiling", "longest", 0, 1),
        ("dynamic_tiling", "seed", -1, 0),
        ("graph_layer", "rows", 0, 1),
        ("ragged_attention", "requests", -1, 0),
        ("ragged_attention", "longest", 0, 1),
        ("ragged_attention", "seed", -1, 0),
        ("top2_moe", "tokens", -1, 0),
        ("top2_moe", "seed", -1, 0),
    ],
)
def test_values_that_cannot_be(name: str, parameter: str, value: int, least: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        program(name, None, **{parameter: value})
    assert f"{parameter} is {value}: expected at least {least}" == caught.value.message
    assert str(PROGRAMS / f"{name}.py") == caught.value.file


@pytest.mark.parametrize("name", ["own-function", "own-operator"])
def test_examples_are_short(name: str) -> None:
    page = (PROGRAMS.parent / f"docs/pages/how-to/{name}.md").read_text()
    example = page.partition("```python")[2].partition("```")[0]
    assert "def build(" in example
    assert len(example.splitlines()[1:]) < 40


def test_dynamic_tiling_moves_and_computes_less() -> None:
    static, dynamic = (
        simulate(program("dynamic_tiling", tiling=tiling)) for tiling in ("static", "dynamic")
    )
    assert dynamic.flops is not None
    assert static.flops is not None
    assert dynamic.hbm_bytes_moved is not None
    assert static.hbm_bytes_moved is not None
    assert dynamic.flops < static.flops
    assert dynamic.hbm_bytes_moved < static.hbm_bytes_moved


def test_a_buffer_saves_off_chip_reads() -> None:
    report = simulate(program("buffer_twice"))
    assert 2 * 64 * 64 * 2 == report.off_chip_traffic_bytes
