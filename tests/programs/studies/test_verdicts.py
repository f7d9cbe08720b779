"""What comes of every claim and every published value when the points really run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fabric import run_point
from fabric.study.outcome import metric
from fabric.study.result import StudyResult
from tests.programs.studies.made import opened

QUICK = ("figure_08", "figure_15")
LONG = ("equal_resources", "figure_09", "figure_10", "figure_12", "figure_13", "figure_14")
LONG += ("figure_19", "figure_20", "figure_21")


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in LONG)]
)
def test_verdicts(name: str, golden: Callable[[str, str], None]) -> None:
    """The verdicts of a study, and its numbers beside the published ones."""
    study = opened(name)
    points = (study.point(index) for index in range(len(study.space)))
    result = StudyResult(study, tuple(run_point(study, each) for each in points))

    golden(f"{name}.txt", "".join(f"{line}\n" for line in told(result)))


def told(result: StudyResult) -> Iterator[str]:
    """Yield a line for each claim and for each published value."""
    for claim in result.study.claims:
        judgement = claim.judge(result)
        yield f"{claim.location}: {claim.text}: {claim.published}"
        yield f"    {judgement.verdict}: {judgement.found}"
        yield from (f"    {judgement.note}",) if judgement.note else ()
    for known, outcome in result.beside():
        assert outcome is not None
        where = ", ".join(
            f"{name}={str(value).rsplit('/', maxsplit=1)[-1]}"
            for name, value in known.setting.items()
        )
        found = metric(outcome, known.metric)
        assert found is not None
        yield f"{where}: {known.metric} {known.value:,} ({known.source}), here {found:,}"
