"""The object of ``study --json``: what a study's own tables, known values and claims come to."""

from __future__ import annotations

import json
from dataclasses import replace

from fabric import StudyTable
from fabric.messages.telling.plain import json_text
from tests.fabric.study.written.made import RESULTS, paper

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
    result = replace(result, study=replace(result.study, tables=(TABLE, wrong)))
    made, failed = json.loads(json_text(result.as_json()))["tables"]

    assert {
        "title": "By tile",
        "columns": ["tile", "cycles"],
        "rows": [[8, 0]],
        "caption": "!",
        "trouble": None,
    } == made
    assert [] == failed["rows"]
    assert "a row has 1 cell: expected 2" in failed["trouble"]


def test_all_studies() -> None:
    """Whatever a study is made of, its object is JSON."""
    for name, made in RESULTS.items():
        assert json.loads(json_text(made().as_json()))["study"], name
