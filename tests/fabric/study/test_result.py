"""The object of ``study --json``: what a study's own tables, known values and claims come to."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from fabric import ConfigurationError, StudyTable
from fabric.messages.telling.plain import json_text
from tests.fabric.study.written.made import RESULTS, design, over_inputs, paper

SIXTEEN = {"hardware.hbm.channels": 16}

TABLE = StudyTable("By tile", ("tile", "cycles"), lambda found: [(8, found.outcomes[0].index)], "!")


def test_claims_and_known_values() -> None:
    """A claim that cannot be computed says why, a value without a point is beside nothing."""
    found = json.loads(json_text(paper().as_json()))

    assert [2_100_000, 990_000, None] == [each["ours"] for each in found["known"]]
    assert {
        "setting": {"tiling": "static", "tile_n": 8},
        "metric": "cycles",
        "published": 2_000_000,
        "ours": 2_100_000,
        "source": "figure 9",
    } == found["known"][0]
    assert {
        "text": "dynamic tiles are faster",
        "location": "section 5.2",
        "published": "1.87 times",
        "found": "1.82",
        "verdict": "contradicted",
        "note": "with equal FLOPs per cycle",
        "trouble": None,
    } == found["claims"][0]
    assert ["contradicted", "reproduced", None, None] == [e["verdict"] for e in found["claims"]]
    assert "0 points have tiling=none" in found["claims"][3]["trouble"]
    assert [] == found["tables"]


def test_tables() -> None:
    """As they are printed, in JSON's own types; one that cannot be computed says why."""
    wrong = StudyTable("Too short", ("tile", "cycles"), lambda _: [(8,)])
    result = paper()
    raising = StudyTable(
        "By zero", ("tile",), lambda found: [(1 // len(found.matching(tile_n=9)),)]
    )
    result = replace(result, study=replace(result.study, tables=(TABLE, wrong, raising)))
    made, failed, raised = json.loads(json_text(result.as_json()))["tables"]

    assert {
        "title": "By tile",
        "columns": ["tile", "cycles"],
        "rows": [[8, 0]],
        "caption": "!",
        "trouble": None,
    } == made
    assert [] == failed["rows"]
    assert "a row has 1 cell: expected 2" in failed["trouble"]
    assert re.search(r"test_result\.py:\d+: ZeroDivisionError: ", raised["trouble"])


def test_all_studies() -> None:
    """Whatever a study is made of, its object is JSON."""
    for name, made in RESULTS.items():
        assert json.loads(json_text(made().as_json()))["study"], name


def test_counts_of_points() -> None:
    """Of 24 points 4 fail and 4 are proved away; those known before ran in another session."""
    found = design().as_json()

    assert {"total": 24, "run": 16, "pruned": 4, "failed": 4, "resumed": 4} == found["counts"]
    assert ["cycles", "on_chip_requirement_bytes"] == found["minimize"]
    assert ["off_chip_traffic_bytes <= 4000000"] == found["where"]
    values = {
        each["index"]: (each["cycles"], each["on_chip_requirement_bytes"])
        for each in found["points"]
        if each["status"] == "completed" and each["off_chip_traffic_bytes"] <= 4_000_000
    }
    assert found["pareto"] == [
        index
        for index, (cycles, size) in values.items()
        if not any(
            a <= cycles and b <= size and (a, b) != (cycles, size) for a, b in values.values()
        )
    ]
    assert not {"over", "run_counts", "held_out"} & found.keys()


def test_runs_over_inputs() -> None:
    """Of 10 designs with 4 inputs 6 runs are spared; five designs have 2 more, held out.

    One of these breaks the condition there, another one fails.
    """
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
    told = {each["index"]: (each["status"], each["breaks"]) for each in found["held_out"]}
    assert told == {
        first: ("completed", list(result.study.where)),
        second: ("deadlock", []),
        **dict.fromkeys(others, ("completed", [])),
    }
    without = [run for run in runs if run.index != max(result.study.runs_of(first, held_out=True))]
    apart = replace(result, runs=tuple(without)).held_out
    assert [second, *others] == [each.index for each in apart]


def test_points_by_their_values() -> None:
    """What is fixed counts, too, and a name that there is not is no point's."""
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
