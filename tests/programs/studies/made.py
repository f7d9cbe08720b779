"""Results of studies without runs: points with made-up numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from fabric import Outcome, Study
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.explore.study.result import StudyResult
from tests.programs.loading import PROGRAMS

STUDIES = sorted(
    path.stem
    for path in (PROGRAMS / "studies").glob("*.py")
    if path.stem.startswith(("figure_", "equal_resources"))
)


@cache
def opened(name: str, folder: str = "studies") -> Study:
    return open_study(PROGRAMS / folder / f"{name}.py", StudyOptions())


def made(
    study: Study, numbers: Callable[[Mapping[str, Any]], Mapping[str, float] | None]
) -> StudyResult:
    outcomes = []
    for index, setting in enumerate(study.space):
        found = numbers(study.whole(setting))
        outcomes.append(
            Outcome(
                index=index,
                setting=setting,
                status="deadlock" if found is None else "completed",
                numbers=dict(found or {}),
            )
        )
    return StudyResult(study, tuple(outcomes))
