"""One point of a study, in the process that works on it: what is known before, and the run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np

from fabric.hardware.file import varied_hardware
from fabric.loading.program_file import Loaded, executed, wired
from fabric.runs.report import Report
from fabric.runs.simulation import simulate
from fabric.study.conditions import METRICS
from fabric.study.memory_numbers import memory_numbers
from fabric.study.outcome import Outcome, Point, Status
from fabric.study.space import Scalar, Setting
from fabric.study.study import Study
from fabric.symbolic.bounds import lower_bounds
from fabric.telling.errors import ConfigurationError, FabricError
from fabric.telling.plain import JsonObject

__all__ = ["Before", "Job", "known_before", "loaded_of", "outcome_of", "run_point"]

_HARDWARE: Final = "hardware."
_DEPTH: Final = "depth."


@dataclass(frozen=True)
class Job:
    """What a worker has to know of a point.

    Attributes:
        point: which one.
        program, hardware: paths.
        whole: the point's setting with what is fixed.
        mode: see ``Study``.
    """

    point: Point
    program: str
    hardware: str | None
    whole: Setting
    mode: str | None

    @staticmethod
    def of(study: Study, point: Point) -> Job:
        """Return the job of a point of ``study``."""
        return Job(
            point,
            str(study.program),
            None if study.hardware is None else str(study.hardware),
            study.whole(point.setting),
            study.mode,
        )


@dataclass(frozen=True)
class Before:
    """What is known of a point before it runs.

    Attributes:
        index: of the point.
        bounds: metrics that are at least so much.
        exact: names of those that are just so much.
        refused: the outcome where the program cannot be wired.
    """

    index: int
    bounds: Mapping[str, int] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    refused: Outcome | None = None


def run_point(study: Study, point: Point) -> Outcome:
    """Run a point of a study here and now, and return what became of it."""
    return outcome_of(Job.of(study, point))


def known_before(job: Job) -> Before:
    """Wire the program of a point and return what is known without a run."""
    point = job.point
    try:
        with contextlib.redirect_stdout(sys.stderr):
            loaded, _ = loaded_of(job)
            known = lower_bounds(loaded.program)
    except FabricError as error:
        refused = Outcome(
            index=point.index, setting=point.setting, status="refused", reason=str(error)
        )
        return Before(point.index, refused=refused)
    return Before(point.index, {**known.exact, **known.at_least}, tuple(known.exact))


def outcome_of(job: Job) -> Outcome:
    """Run a point.

    Deadlocks are described and no remedy is looked for: a neighbouring point may be one.
    """
    point = job.point
    parameters: JsonObject = {}
    hardware: JsonObject | None = None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            loaded, depths = loaded_of(job)
            parameters = _plain(loaded.parameters)
            hardware = loaded.program.hardware.as_dict()
            report = simulate(
                loaded.program,
                mode=job.mode,
                depths=depths,
                parameters=loaded.parameters,
                program_file=job.program,
                on_deadlock="describe",
            )
    except FabricError as error:
        return Outcome(
            index=point.index,
            setting=point.setting,
            parameters=parameters,
            hardware=hardware,
            status="refused",
            reason=str(error),
        )
    if report.status == "interrupted":
        raise KeyboardInterrupt
    status: Status = "wrong" if report.verified is False else report.status
    return Outcome(
        index=point.index,
        setting=point.setting,
        parameters=parameters,
        hardware=hardware,
        status=status,
        numbers=_numbers(report),
        reason=_why(report),
        wall_seconds=report.wall_seconds,
    )


def loaded_of(job: Job) -> tuple[Loaded, dict[str, int]]:
    """Return a point's program, wired, and its depths."""
    keys: dict[str, object] = {}
    depths: dict[str, int] = {}
    parameters: list[str] = []
    for name, value in job.whole.items():
        if name.startswith(_HARDWARE):
            keys[name.removeprefix(_HARDWARE)] = value
        elif name.startswith(_DEPTH):
            depths[name.removeprefix(_DEPTH)] = _depth(name, value)
        else:
            parameters.append(f"{name}={value}")
    module = _module(job.program)
    hardware = varied_hardware(None if job.hardware is None else Path(job.hardware), keys)
    return wired(module, parameters, hardware), depths


@lru_cache(maxsize=1)
def _module(program: str) -> ModuleType:
    """Execute a program's file, once for all points of a worker."""
    return executed(program)


def _depth(name: str, value: Scalar) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ConfigurationError(f"{name} is {value!r}: expected an integer of at least 1")


def _numbers(report: Report) -> JsonObject:
    found: JsonObject = {name: getattr(report, name) for name in METRICS}
    found |= memory_numbers(report.hbm)
    return found | {f"extra.{name}": _own(value) for name, value in report.extra.items()}


def _own(value: object) -> object:
    """Return a number of numpy's as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _why(report: Report) -> str | None:
    """Return the sentence about a run that did not complete, or has a wrong result."""
    if report.explained is not None:
        loop = report.explained.loops[0]
        at = f" at cycle {report.cycles:,}" if report.cycles is not None else ""
        return f"{loop.code}{at}: {loop.cause}"
    if report.failure is not None:
        return str(report.failure.error())
    if report.verified is False and report.verification is not None:
        return "; ".join(report.verification.lines())
    return None


def _plain(parameters: Mapping[str, object]) -> JsonObject:
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in parameters.items()
    }
