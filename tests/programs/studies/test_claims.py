from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from paper import camera_ready
from paper.claims import Found, compared, mean, published_claim, published_claims
from paper.printed import Printed
from paper.tables import rows
from paper.tiling import BATCH_64, BATCH_1024

from fabric import ConfigurationError, Verdict
from tests.programs.studies.made import STUDIES, made, opened

QUOTIENT = re.compile(r"(\d+(?:\.\d+)?) / (\d+(?:\.\d+)?)$")


def test_every_claim_is_computed_once() -> None:
    table = Counter((each.text, each.location, each.value) for each in published_claims())
    found = Counter(
        (each.text, each.location, each.published)
        for name in STUDIES
        for each in opened(name).claims
    )

    assert 43 == table.total() == len(table)
    assert table == found


@pytest.mark.parametrize("row", rows("paper_claims.csv"), ids=lambda row: row["claim"])
def test_value_of_a_claim_follows_from_its_published_points(row: dict[str, str]) -> None:
    said, named = row["value_of_published_points"], QUOTIENT.search(row["points"])
    if named is None:
        return
    ratio = float(named[1]) / float(named[2])
    unit = Printed.parse(row["published_value"]).unit
    as_said = {ratio} if unit != "%" else {100 * (ratio - 1), 100 * (1 - ratio)}

    assert any(abs(each - float(said)) <= 0.5001e-4 for each in as_said), as_said


@pytest.mark.parametrize("text", [*BATCH_64, *BATCH_1024])
def test_claim_of_printed_points_equals_its_table(text: str) -> None:
    name, compare = ("figure_09", BATCH_64) if text in BATCH_64 else ("figure_10", BATCH_1024)
    study = opened(name)
    printed = [each for each in study.known if each.source.endswith("printed")]

    def numbers(setting: Mapping[str, Any]) -> dict[str, float]:
        return {
            each.metric: each.value for each in printed if each.setting.items() <= setting.items()
        }

    (of_points,) = published_claim(text).of_points
    result = made(study, numbers)
    as_published = replace(compare[text], of_cycles=False, of_memory=False)
    assert of_points == pytest.approx(as_published(result).values[0], abs=0.5001e-4)


def test_claim_of_printed_bars_equals_its_table() -> None:
    def of_points(text: str) -> tuple[float, ...]:
        return published_claim(text).of_points

    for kv_class in ("low", "high"):
        (bars,) = (
            each for (series, _), each in camera_ready.bars(14).items() if kv_class in series
        )
        text = f"Dynamic over interleave, {kv_class} variation (range)"
        assert (min(bars), max(bars)) == pytest.approx(of_points(text), abs=1e-4)
    for strategy, what in (("coarse", "coarse"), ("interleaved", "interleave")):
        bars = [
            bar
            for (series, _), (bar,) in camera_ready.bars(21).items()
            if series.startswith(f"static {strategy}")
        ]
        (value,) = of_points(f"Overall geomean, dynamic over {what}")
        assert 9 == len(bars)
        assert value == pytest.approx(mean(bars), abs=1e-4)
    for model, name in (("Mixtral", "Mixtral-8x7B"), ("Qwen", "Qwen3-30B-A3B")):
        ours = camera_ready.bars(17)["dynamic (all three)", name][0]
        for matched in ("memory", "performance"):
            theirs = camera_ready.bars(17)[f"static, {matched}-matched", name][0]
            (value,) = of_points(f"{model} speedup vs {matched}-matched")
            assert value == pytest.approx(ours / theirs, abs=1e-4)


GUESSED = "The runs are not named."
EQUAL = {"equal FLOPs": 1.2155}


@pytest.mark.parametrize(
    ("found", "of_points", "verdict"),
    [
        # If the published points give another value than the claim, the claim is inconsistent.
        (Found((1.8724,)), 1.91, Verdict.INCONSISTENT),
        (Found((1.2155,), EQUAL), 1.8849, Verdict.INCONSISTENT),
        (Found((1.8724,), unpublished=GUESSED), 1.5, Verdict.INCONSISTENT),
        # Guessed points do not settle a claim, whether they fit or not.
        (Found((1.8724,), unpublished=GUESSED), None, Verdict.UNPUBLISHED),
        (Found((1.2155,), unpublished=GUESSED), None, Verdict.UNPUBLISHED),
        (Found((1.8724,), unpublished=GUESSED), 1.8724, Verdict.RECOMPUTED),
        (Found((1.2155,), unpublished=GUESSED), 1.8724, Verdict.RECOMPUTED),
        # Our value decides if its distance exceeds the error of our cycles.
        (Found((1.91,)), 1.8724, Verdict.CONTRADICTED),
        (Found((1.91,)), None, Verdict.CONTRADICTED),
        (Found((1.2155,), {"equal FLOPs": 1.87}), None, Verdict.CONTRADICTED),
        # With equal resources, a claim holds in all ways of counting or not.
        (Found((1.8724,), EQUAL), 1.8724, Verdict.UNEQUAL),
        (Found((1.8724,), {"all": 1.2, "active": 1.87}), 1.8724, Verdict.UNEQUAL),
        (Found((1.8724,), {"all": 1.87, "active": 1.2}), None, Verdict.UNEQUAL),
        (Found((1.8724,), {"all": 1.8701, "active": 1.87}), None, Verdict.REPRODUCED),
        (Found((1.8724,)), 1.8724, Verdict.REPRODUCED),
        # Within the error of our cycles, the published points decide.
        (Found((1.8849,)), 1.8724, Verdict.RECOMPUTED),
        (Found((1.8849,)), None, Verdict.UNPUBLISHED),
        (Found((1.8724,), {"all": 1.8849}), 1.8724, Verdict.RECOMPUTED),
    ],
)
def test_verdict_follows_from_values_and_equal_resources(
    found: Found, of_points: float | None, verdict: Verdict
) -> None:
    judgement = compared(found, Printed.parse("1.87"), () if of_points is None else (of_points,))

    assert verdict == judgement.verdict
    assert f"{found.values[0]:.4f}" == judgement.found
    assert all(how in judgement.note for how in found.equal)
    assert (of_points is not None) == ("The published points give" in judgement.note)


@pytest.mark.parametrize("name", ["figure_09", "figure_10", "figure_12", "figure_15", "figure_21"])
def test_claim_with_incomplete_points_is_refused(name: str) -> None:
    study = opened(name)
    result = made(study, lambda _: None)

    for each in study.claims:
        if each.text != "artifact run time":
            with pytest.raises(ConfigurationError, match="did not complete"):
                each.judge(result)
