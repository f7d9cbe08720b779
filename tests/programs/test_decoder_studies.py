from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from decoders.factorial import effects
from decoders.matching import ARTIFACT, PAPER, compared
from decoders.points import DECODERS
from hypothesis import given
from hypothesis import strategies as st

from fabric import Outcome, Study, Verdict
from fabric.explore.study.result import StudyResult
from fabric.graph.loading.program_file import executed
from tests.programs.studies.made import opened

FILES = ("figure_17", "long/optimisations", "long/figure_17_assumptions", "long/whole_models")

CYCLES: Mapping[str, Mapping[str, int]] = {
    "mixtral-8x7b": {"8": 400, "16": 300, "32": 210, "64": 190, "ours": 200},
    "qwen3-30b-a3b": {"8": 900, "16": 700, "32": 610, "64": 660, "ours": 600, "unshared": 500},
}


def ended(study: Study, cycles: Mapping[str, Mapping[str, int]] = CYCLES) -> StudyResult:
    outcomes = []
    for index, setting in enumerate(study.space):
        regions, tile = setting["regions"], setting.get("tile_n")
        assert isinstance(regions, int)
        of_model = cycles[str(setting["model"])]
        dynamic = "unshared" if regions == 128 else "ours"
        size = 100 * regions + (1000 * tile if isinstance(tile, int) else 9000)
        numbers: dict[str, Any] = {
            "cycles": of_model.get(dynamic if tile is None else str(tile)),
            "on_chip_requirement_bytes": size,
            "on_chip_requirement_artifact_bytes": 2 * size,
            "allocated_flops_per_cycle": 10 * regions,
            "extra.on_chip_requirement_artifact_idle_bytes": size // 5,
        }
        status: Any = "deadlock" if numbers["cycles"] is None else "completed"
        outcomes.append(Outcome(index=index, setting=setting, status=status, numbers=numbers))
    return StudyResult(study, tuple(outcomes))


@pytest.mark.parametrize("name", FILES)
def test_points_name_parameters_of_the_program(name: str) -> None:
    study = opened(name)
    known = inspect.signature(executed(study.program or "").build).parameters

    assert set(known) >= {*study.fixed, *study.space.values}
    for file in (*study.space.values["kv"], *study.space.values["routing"]):
        assert file is None or Path(str(file)).is_file()


def test_static_designs_are_matched_by_memory_and_cycles() -> None:
    mixtral, qwen = (compared(ended(opened("figure_17")), each) for each in DECODERS)
    assert mixtral is not None
    assert qwen is not None

    assert 16 == mixtral.memory_matched.setting["tile_n"]
    assert 32 == mixtral.performance_matched.setting["tile_n"]
    assert 1.5 == mixtral.speedup(mixtral.memory_matched)
    assert 1.05 == mixtral.speedup(mixtral.performance_matched)
    assert 8 == qwen.memory_matched.setting["tile_n"]
    assert 64 == qwen.performance_matched.setting["tile_n"]
    assert 1.1 == qwen.speedup(qwen.performance_matched)
    ours, theirs = 3200 + 9000, 12800 + 8000
    assert 1 - ours / theirs == qwen.saved_bytes(qwen.memory_matched, PAPER)
    assert 1 - ours / theirs == qwen.saved_bytes(qwen.memory_matched, ARTIFACT)
    unequal = qwen.saved_bytes_unequally(qwen.memory_matched)
    assert 1 - (2 * ours - ours // 5) / (2 * theirs) == unequal
    assert 0.75 == qwen.saved_compute(qwen.memory_matched)


def test_claims_of_made_up_points() -> None:
    study = opened("figure_17")
    found = [claim.judge(ended(study)) for claim in study.claims]
    inconsistent = [
        claim.published
        for claim, each in zip(study.claims, found, strict=True)
        if each.verdict is Verdict.INCONSISTENT
    ]

    assert {Verdict.RECOMPUTED, Verdict.INCONSISTENT} == {each.verdict for each in found}
    assert ["1.15", "69%"] == inconsistent
    assert [
        *("1.5000", "1.5000", "41.35 %", "75.00 %"),
        *("70.12 %", "84.11 %", "1.0500", "1.1000"),
    ] == [each.found for each in found]
    assert (
        "Mixtral-8x7B, against tile 16. Against all tiles: 8 2.00, 16 1.50, 32 1.05, 64 0.95. "
        "The graph behind the bars and its traces are not public. The published points give "
        "1.2709."
    ) == found[0].note


@given(st.lists(st.floats(0.1, 10), min_size=8, max_size=8))
def test_effects_equal_their_definition(values: list[float]) -> None:
    combinations = list(itertools.product((False, True), repeat=3))
    of = dict(zip(combinations, values, strict=True))
    found = effects(of)
    first = math.prod(of[True, b, c] / of[False, b, c] for b, c in combinations_of(2)) ** 0.25
    both = [
        of[True, True, c] * of[False, False, c] / of[True, False, c] / of[False, True, c]
        for c in (False, True)
    ]
    all_three = both[1] / both[0]

    assert [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)] == list(found)
    assert found[0,] == pytest.approx(first)
    assert found[0, 1] == pytest.approx(math.sqrt(math.prod(both)))
    assert found[0, 1, 2] == pytest.approx(all_three)


def combinations_of(count: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((False, True), repeat=count))
