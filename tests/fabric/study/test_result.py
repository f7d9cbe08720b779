from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fabric import ConfigurationError
from fabric.messages.text import json_text
from tests.fabric.study.written.made import RESULTS, design, over_inputs

SIXTEEN = {"hardware.hbm.channels": 16}


def test_study_of_every_kind_is_json() -> None:
    for name, made in RESULTS.items():
        assert json.loads(json_text(made().as_json()))["study"], name


def test_json_over_inputs_counts_runs_and_breaks() -> None:
    result = over_inputs()
    assert [1, 3] == sorted(result.study.held_out)
    first, second, *others = result.front
    runs = list(result.runs)
    for place, run in enumerate(runs):
        if result.study.is_held_out(run.index):
            design = result.study.design_of(run.index)
            if design == first:
                more = run.numbers | {"off_chip_traffic_bytes": 2_510_001}
                runs[place] = replace(run, numbers=more)
            elif design == second:
                runs[place] = replace(run, status="deadlock", numbers={}, reason="stuck")
    found = replace(result, runs=tuple(runs)).as_json()

    counts = {"total": 40, "run": 40 + 10 - 6 - 5, "spared": 6, "resumed": 5, "held_out": 10}
    assert counts == found["run_counts"]
    assert ["routing", "seed"] == sorted(found["over"][0])
    statuses = {each["index"]: (each["status"], each["breaks"]) for each in found["held_out"]}
    assert statuses == {
        first: ("completed", list(result.study.where)),
        second: ("deadlock", []),
        **dict.fromkeys(others, ("completed", [])),
    }
    without = [run for run in runs if run.index != max(result.study.runs_of(first, held_out=True))]
    apart = replace(result, runs=tuple(without)).held_out
    assert [second, *others] == [each.index for each in apart]


def test_points_are_matched_by_varied_and_fixed_values() -> None:
    result = design()

    assert [6, 7, 8, 9, 10, 11] == [each.index for each in result.matching(tile_n=16)]
    assert [8] == [each.index for each in result.matching(tile_n=16, regions=8, **SIXTEEN)]
    assert 24 == len(result.matching(batch=64))
    assert [] == result.matching(batch=65) == result.matching(tile=16)
    cycles = 40_000_000 // (16 * 16) + 300 * 4
    assert cycles == result.value("cycles", tile_n=16, regions=4, **SIXTEEN)
    assert result.value("cycles", tile_n=16, regions=8, **SIXTEEN) is None
    with pytest.raises(ConfigurationError) as raised:
        result.value("cycles", tile_n=16, regions=4)
    assert raised.value.message == (
        "study design: 2 points have tile_n=16, regions=4: expected one"
    )
