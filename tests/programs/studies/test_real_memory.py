from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest
from paper.comparisons import RATIOS, rows
from paper.memories import BANKED, FLAT, VARIATIONS, View
from paper.memory_tables import lost

from fabric import Outcome, Study, load_hardware, run_point
from fabric.explore.study.evaluation import ProgramQuestion
from fabric.explore.study.result import StudyResult
from fabric.explore.study.space import Scalar
from fabric.graph.loading.program_file import executed
from fabric.runs.options import Options
from tests.programs.loading import PROGRAMS
from tests.programs.studies.made import made, opened

MODEL = "hardware.hbm.model"


@pytest.fixture(scope="module")
def study() -> Study:
    return opened("real_memory")


def rest(setting: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, each) for name, each in setting.items() if name != MODEL))


def numbers(setting: Mapping[str, Any], slower: float) -> dict[str, float]:
    banked = setting[MODEL] == "banked"
    cycles = 2000 if setting.get("tiling") == "static" else 1000
    cycles += 1500 if setting.get("strategy") in ("coarse", "interleaved") else 0
    cycles += setting.get("tile_n") or 0
    dynamic = setting.get("tiling") == "dynamic" or setting.get("strategy") == "dynamic"
    factor = 1 if not banked else slower if dynamic else 2
    found = {
        "cycles": cycles * factor,
        "compute_utilization": 1 / cycles / factor,
        "on_chip_requirement_artifact_bytes": 10 * (setting.get("tile_n") or 8),
        "extra.on_chip_requirement_artifact_active_bytes": 5 * (setting.get("tile_n") or 8),
    }
    if banked:
        found |= {"hbm.row_hits": 30, "hbm.row_misses": 10, "hbm.row_conflicts": 60}
        bus = {"data": 50, "refresh": 10, "turnaround": 1, "window": 30, "conflict": 4, "idle": 5}
        found |= {f"hbm.{name}_bus_cycles": count for name, count in bus.items()}
    return found


def test_points_are_of_both_memories(study: Study) -> None:
    points = [study.whole(setting) for setting in study.space]
    flat = {rest(each) for each in points if each[MODEL] == "flat"}
    banked = {rest(each) for each in points if each[MODEL] == "banked"}

    assert len(points) == len(flat) + len(banked)
    assert flat < banked
    assert 2 * sum(len(each.layers) for each in VARIATIONS if each.keys) == len(banked - flat)
    names = {name for each in points for name in each if not name.startswith("hardware.")}
    assert names <= set(inspect.signature(executed(study.program or "").build).parameters)


def test_varied_memories_have_the_same_peak(study: Study) -> None:
    seen: dict[object, int] = {}
    for index, setting in enumerate(study.space):
        keys = tuple((name, each) for name, each in setting.items() if name.startswith("hardware"))
        seen.setdefault(keys, index)
    peaks = set()
    for index in seen.values():
        point = study.point(index)
        small: dict[str, Scalar] = {"part": "moe", "model": "tiny", "batch": 8, "tile_f": 16}
        small |= {name: each for name, each in point.setting.items() if name.startswith("hardware")}
        loaded, _ = ProgramQuestion(str(study.program), None, {}, Options()).loaded(small)
        peaks.add(loaded.program.hardware.hbm.peak_bytes_per_cycle)

    assert {load_hardware(PROGRAMS / "hardware/paper.toml").hbm.peak_bytes_per_cycle} == peaks
    assert len(seen) == 2 + len([each for each in VARIATIONS if each.keys])


@pytest.mark.parametrize("slower", [2, 4])
def test_ratios_of_made_up_points_hold_if_equally_slower(study: Study, slower: float) -> None:
    result = made(study, lambda setting: numbers(setting, slower))
    found = {str(row[1]): row for row in rows(result, (FLAT, BANKED))}

    assert len(found) == len(RATIOS)
    for each in RATIOS:
        _, what, published, *texts, verdict = found[each.what]
        flat, banked = each.on(result, FLAT), each.on(result, BANKED)
        if each.what.startswith("PID"):
            continue  # the ratio also depends on the memory of the designs
        if "relative to" in each.what:
            # The number is the percentage of additional cycles, so the ratio is inverted.
            expected = [100 * ((1 + one / 100) * slower / 2 - 1) for one in flat]
        elif " vs " in each.what or each.what.startswith("Dynamic over"):
            expected = [one * 2 / slower for one in flat]
        else:
            expected = list(flat)  # both sides have one tiling
        assert pytest.approx(expected) == list(banked), what
        assert [each.printed.told(one) for one in (flat, banked)] == texts
        assert published == each.published
        assert ("holds" == verdict) == (expected == list(flat)), what
    assert f"{2008 / 1000:.4f}" == found["Qwen b64 dynamic vs tile=8 speedup"][3]


def test_lost_bus_cycles_of_a_run_add_up(study: Study) -> None:
    wanted = {"strategy": "dynamic", "requests": 16}
    outcomes: dict[str, Outcome] = {}
    for index, setting in enumerate(study.space):
        if wanted.items() <= setting.items():
            outcomes[str(setting[MODEL])] = run_point(study, study.point(index))
    flat, banked = outcomes["flat"], outcomes["banked"]
    result = StudyResult(study, (flat, banked))
    data_percent, causes = lost(View(result, BANKED), wanted)
    cycles = View(result, BANKED).value("cycles")
    moved = banked.numbers["hbm_bytes_moved"]

    assert ["completed"] * 2 == [flat.status, banked.status]
    assert flat.numbers["hbm_bytes_moved"] == moved
    assert cycles is not None
    assert cycles > (View(result, FLAT).value("cycles") or 0)
    # Computed from the bytes moved, without the counters: 1,024 bytes a cycle are the peak.
    assert pytest.approx(100 * moved / 1024 / cycles, abs=0.5) == data_percent
    assert causes
    requests = sum(banked.numbers[f"hbm.row_{each}"] for each in ("hits", "misses", "conflicts"))
    assert requests == moved / 64
    assert not [name for name in flat.numbers if name.startswith("hbm.")]
