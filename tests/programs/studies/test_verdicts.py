from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from fabric import Outcome, Study, run_point
from fabric.explore.study.evaluation import Identities
from fabric.explore.study.outcome import metric
from fabric.explore.study.result import StudyResult
from tests.programs.studies.made import opened

QUICK = ("figure_08", pytest.param("figure_15", marks=pytest.mark.deep))
LONG = (
    "equal_resources",
    "figure_09",
    "figure_10",
    "figure_12",
    "figure_13",
    "figure_14",
    "figure_19",
    "figure_20",
    "figure_21",
)


RAN: dict[str, Outcome] = {}


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in LONG)]
)
def test_verdicts_of_runs_are_as_before(name: str, golden: Callable[[str, str], None]) -> None:
    study = opened(name)
    result = StudyResult(study, tuple(map(partial(ran, study), range(len(study.space)))))

    golden(f"{name}.txt", "".join(f"{line}\n" for line in lines_of(result)))


def ran(study: Study, index: int) -> Outcome:
    point = study.point(index)
    identity = Identities(study).of(point.setting)
    if identity not in RAN:
        RAN[identity] = run_point(study, point)
    return replace(RAN[identity], index=index, setting=point.setting)


def lines_of(result: StudyResult) -> Iterator[str]:
    for claim in result.study.claims:
        judgement = claim.judge(result)
        yield f"{claim.location}: {claim.text}: {claim.published}"
        yield f"    {judgement.verdict}: {judgement.found}"
        yield from (f"    {judgement.note}",) if judgement.note else ()
    differing = []
    for known, outcome in result.beside():
        assert outcome is not None
        found = metric(outcome, known.metric)
        assert found is not None
        if found != known.value:
            values = {name: str(each).split("/")[-1] for name, each in known.setting.items()}
            setting = ", ".join(f"{name}={value}" for name, value in values.items())
            differing.append(
                f"{setting}: {known.metric} {known.value:,} ({known.source}), here {found:,}"
            )
    equal = len(result.study.known) - len(differing)
    yield f"{equal} of {len(result.study.known)} published values are ours, too"
    yield from differing
