"""One point of a study, in the process that works on it: what is known before, and the run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Final

from fabric.analysis.symbolic.bounds import lower_bounds
from fabric.explore.study.conditions import METRICS, memory_numbers
from fabric.explore.study.outcome import Outcome, Point, Status
from fabric.explore.study.space import Scalar, Setting
from fabric.explore.study.study import Study
from fabric.graph.hardware.file import varied_hardware
from fabric.graph.hardware.hop import Hop
from fabric.graph.loading.beside import executes_still, files_of
from fabric.graph.loading.program_file import Loaded, executed, wired
from fabric.messages.telling.errors import ConfigurationError, FabricError
from fabric.messages.telling.plain import JsonObject, plain
from fabric.messages.telling.users_code import users_values
from fabric.runs.options import Options, Settings
from fabric.runs.report import Report
from fabric.runs.simulation import simulated

__all__ = ["Before", "Job", "known_before", "loaded_of", "outcome_of", "run_point"]

_HARDWARE: Final = "hardware."
_DEPTH: Final = "depth."
_HOP: Final = "hop."

_executed: Final[dict[str, ModuleType]] = {}
"""The program that points were run of last, by its path."""


@dataclass(frozen=True)
class Job:
    """What a worker has to know of a point.

    Attributes:
        point: which one.
        program, hardware: paths.
        whole: the point's setting with what is fixed.
        options: of the runs of all points.
    """

    point: Point
    program: str
    hardware: str | None
    whole: Setting
    options: Options

    @staticmethod
    def of(study: Study, point: Point) -> Job:
        """Return the job of a point of ``study``."""
        return Job(
            point,
            str(study.program),
            None if study.hardware is None else str(study.hardware),
            study.whole(point.setting),
            Options.of(study),
        )


@dataclass(frozen=True)
class Before:
    """What is known of a point before it runs.

    Attributes:
        index: of the point.
        bounds: metrics that are at least so much.
        exact: names of those that are just so much.
        refused: the outcome where the program cannot be wired.
        executed: see ``Outcome``.
    """

    index: int
    bounds: Mapping[str, int | float] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    refused: Outcome | None = None
    executed: Mapping[str, str | None] = field(default_factory=dict)


def run_point(study: Study, point: Point) -> Outcome:
    """Run a point of a study here and now, and return what became of it."""
    return outcome_of(Job.of(study, point))


def known_before(job: Job) -> Before:
    """Wire the program of a point and return what is known without a run."""
    point = job.point
    try:
        with contextlib.redirect_stdout(sys.stderr), users_values():
            loaded, options = loaded_of(job)
            known = lower_bounds(loaded.program, options.depths or {})
    except FabricError as error:
        refused = Outcome(
            index=point.index,
            setting=point.setting,
            status="refused",
            reason=str(error),
            executed=_files(job.program),
        )
        return Before(point.index, refused=refused)
    bounds = {**known.exact, **known.at_least, **known.sized}
    return Before(point.index, bounds, tuple(known.exact), executed=_files(job.program))


def outcome_of(job: Job) -> Outcome:
    """Run a point.

    Deadlocks are described and no remedy is looked for: a neighbouring point may be one.
    """
    point = job.point
    parameters: JsonObject = {}
    hardware: JsonObject | None = None
    try:
        with contextlib.redirect_stdout(sys.stderr), users_values():
            loaded, options = loaded_of(job)
            parameters = _plain(loaded.parameters)
            hardware = loaded.program.hardware.as_dict()
            settings = replace(
                Settings.of(options),
                on_deadlock="describe",
                parameters=loaded.parameters,
                program_file=job.program,
            )
            report = simulated(loaded.program, settings)
    except FabricError as error:
        return Outcome(
            index=point.index,
            setting=point.setting,
            parameters=parameters,
            hardware=hardware,
            status="refused",
            reason=str(error),
            executed=_files(job.program),
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
        executed=_files(job.program),
    )


def loaded_of(job: Job) -> tuple[Loaded, Options]:
    """Return a point's program, wired, and how it runs."""
    keys: dict[str, object] = {}
    depths = dict(job.options.depths or {})
    hops = dict(job.options.hops or {})
    parameters: list[str] = []
    for name, value in job.whole.items():
        if name.startswith(_HARDWARE):
            keys[name.removeprefix(_HARDWARE)] = value
        elif name.startswith(_DEPTH):
            depths[name.removeprefix(_DEPTH)] = _depth(name, value)
        elif name.startswith(_HOP):
            hops[name.removeprefix(_HOP)] = _hop(name, value)
        else:
            parameters.append(f"{name}={value}")
    module = _module(job.program)
    hardware = varied_hardware(None if job.hardware is None else Path(job.hardware), keys)
    return wired(module, parameters, hardware), replace(job.options, depths=depths, hops=hops)


def _module(program: str) -> ModuleType:
    """Execute a program's file, once for all points for as long as its files are what they were."""
    module = _executed.get(program)
    if module is None or not executes_still(Path(program), files_of(module)):
        _executed.clear()
        module = _executed[program] = executed(program)
    return module


def _files(program: str) -> dict[str, str | None]:
    """Return which files of a program have been executed here; none where it could not be."""
    module = _executed.get(program)
    return {} if module is None else files_of(module)


def _depth(name: str, value: Scalar) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ConfigurationError(f"{name} is {value!r}: expected an integer of at least 1")


def _hop(name: str, value: Scalar) -> Hop:
    try:
        return Hop.parse(str(value))
    except ConfigurationError as error:
        raise ConfigurationError(f"{name} is {error.message}") from None


def _numbers(report: Report) -> JsonObject:
    found: JsonObject = {name: getattr(report, name) for name in METRICS}
    found |= memory_numbers(report.hbm)
    return found | {f"extra.{name}": plain(value) for name, value in report.extra.items()}


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
