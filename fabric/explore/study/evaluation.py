"""Evaluate one point of a study: the digest of its inputs, its bounds and its run."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from signal import SIGINT
from types import ModuleType
from typing import Final

from fabric.analysis.symbolic.bounds import lower_bounds
from fabric.explore.study.outcome import METRICS, Outcome, Point, Status, memory_numbers
from fabric.explore.study.space import Axis, Scalar, Setting, Space, whole
from fabric.explore.study.study import Study
from fabric.graph.hardware.file import varied_hardware
from fabric.graph.hardware.latency import Hop
from fabric.graph.loading.program_file import (
    Loaded,
    build_of,
    executed,
    executes_still,
    files_of,
    parameter_value,
    wired,
)
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.files import open_given
from fabric.messages.text import JsonObject, plain
from fabric.messages.users_code import Interrupted, users_values
from fabric.runs.options import Options, Settings
from fabric.runs.report import Report
from fabric.runs.simulation import refuse_in_trio, simulated

_ENGINE: Final = ("fabric", "operators")

_HARDWARE: Final = "hardware."

_DEPTH: Final = "depth."

_HOP: Final = "hop."

AXES_BESIDE_PARAMETERS: Final = (_HARDWARE, _DEPTH, _HOP)
"""Prefixes of axes that are not parameters of ``build``."""

_executed: Final[dict[str, ModuleType]] = {}


class Identities:
    """Digests of the points of a study.

    A digest covers the program's file, the hardware file, the options of the runs, the sources of
    the fabric and the operators, and the whole setting, with the content of files that values
    name, but not their paths. The modules that a program executes are only known after its run;
    ``executed_still`` checks them. Other files that the program opens are not covered.
    """

    def __init__(self, study: Study) -> None:
        """Compute the digest of the common parts."""
        self._study: Final = study
        self._still: Final[dict[tuple[tuple[str, str | None], ...], bool]] = {}
        self._common: Final = _digest(
            [_file_digest(study.program), _hardware_of(study), _options_of(study), engine_digest()]
        )
        self._hardware: Final = _hardware_of(study)
        values = itertools.chain(study.fixed.values(), *study.runs.values.values())
        self._content: Final = {each: _content(each) for each in values if isinstance(each, str)}

    def have_changed(self, setting: Setting) -> bool:
        """Return whether the hardware file or a file named by a value has changed."""
        values = self._study.whole(setting).values()
        return _hardware_of(self._study) != self._hardware or any(
            _content(each) != self._content[each] for each in values if isinstance(each, str)
        )

    def executed_still(self, executed: Mapping[str, str | None]) -> bool:
        """Return whether the program would execute the same files; False if unknown.

        Files are read once for each different set.
        """
        key = tuple(executed.items())
        if key not in self._still:
            self._still[key] = bool(key) and executes_still(self._study.program, executed)
        return self._still[key]

    def of(self, setting: Setting) -> str:
        """Return the digest of a point."""
        whole = self._study.whole(setting)
        content = {name: self._cached_content(whole[name]) for name in sorted(whole)}
        return _digest([self._common, content])

    def _cached_content(self, value: Scalar) -> list[Scalar]:
        content = self._content.get(value) if isinstance(value, str) else None
        return _content(value) if content is None else content


def _hardware_of(study: Study) -> str | None:
    return None if study.hardware is None else _file_digest(study.hardware)


def _options_of(study: Study) -> JsonObject:
    # Channels are sorted and files replaced by their digests: equal options have equal digests.
    options = {
        name: {channel: str(value[channel]) for channel in sorted(value)}
        if isinstance(value, Mapping)
        else value
        for name, value in vars(Options.of(study)).items()
    }
    if study.placement is not None:
        options["placement"] = _file_digest(Path(study.placement))
    return options


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _content(value: Scalar) -> list[Scalar]:
    if isinstance(value, str) and Path(value).is_file():
        return ["file", _file_digest(Path(value))]
    return [type(value).__name__, value]  # with its type: 1, 1.0, true and "1" are different


def _file_digest(path: Path) -> str:
    with open_given(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Return the digest of the sources of the fabric and the operators."""
    digests: list[list[str]] = []
    for name in _ENGINE:
        spec = importlib.util.find_spec(name)
        for folder in (spec and spec.submodule_search_locations) or ():
            root = Path(folder)
            digests.extend(
                [path.relative_to(root).as_posix(), _file_digest(path)]
                for path in sorted(root.rglob("*.py"))
            )
    return _digest(digests)


@dataclass(frozen=True)
class Job:
    """A point for a worker; ``whole`` is its setting with the study's fixed values."""

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
    """Facts of a point before it runs, as in ``Outcome``.

    Attributes:
        refused: the outcome if the program cannot be wired.
    """

    index: int
    bounds: Mapping[str, int | float] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    refused: Outcome | None = None
    executed: Mapping[str, str | None] = field(default_factory=dict)


def run_point(study: Study, point: Point) -> Outcome:
    """Run a point of a study in this process, and return its outcome."""
    refuse_in_trio("run_point", "study, point")
    return outcome_of(Job.of(study, point))


def known_before(job: Job) -> Before:
    """Wire the program of a point and return its bounds."""
    point = job.point
    try:
        with contextlib.redirect_stdout(sys.stderr), users_values():
            loaded, options = loaded_of(job)
            lower = lower_bounds(loaded.program, options.depths or {})
    except FabricError as error:
        refused = Outcome(
            index=point.index,
            setting=point.setting,
            status="refused",
            reason=str(error),
            executed=_files(job.program),
        )
        return Before(point.index, refused=refused)
    bounds = {**lower.exact, **lower.at_least, **lower.sized}
    return Before(point.index, bounds, tuple(lower.exact), executed=_files(job.program))


def outcome_of(job: Job) -> Outcome:
    """Run a point.

    Deadlocks are described without a remedy, since a neighbouring point may be a remedy.
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
        raise Interrupted(report.signal or SIGINT)
    status: Status = "wrong" if report.verified is False else report.status
    return Outcome(
        index=point.index,
        setting=point.setting,
        parameters=parameters,
        hardware=hardware,
        status=status,
        numbers=_numbers(report),
        reason=_failure(report),
        wall_seconds=report.wall_seconds,
        executed=_files(job.program),
    )


def loaded_of(job: Job) -> tuple[Loaded, Options]:
    """Return a point's wired program and the options of its run."""
    depths = dict(job.options.depths or {})
    hops = dict(job.options.hops or {})
    parameters: list[str] = []
    for name, value in job.whole.items():
        if name.startswith(_DEPTH):
            depths[name.removeprefix(_DEPTH)] = _depth(name, value)
        elif name.startswith(_HOP):
            hops[name.removeprefix(_HOP)] = _hop(name, value)
        elif not name.startswith(_HARDWARE):
            parameters.append(f"{name}={value}")
    module = module_of(job.program)
    file = None if job.hardware is None else Path(job.hardware)
    hardware = varied_hardware(file, _hardware_keys(job.whole))
    return wired(module, parameters, hardware), replace(job.options, depths=depths, hops=hops)


def check_values(study: Study) -> None:
    """Refuse invalid values before any point runs."""
    build = build_of(module_of(str(study.program)))
    fixed = {name: (value,) for name, value in study.fixed.items()}
    for name, values in (fixed | study.runs.values).items():
        for value in values:
            if name.startswith(_DEPTH):
                _depth(name, value)
            elif name.startswith(_HOP):
                _hop(name, value)
            elif not name.startswith(_HARDWARE):
                parameter_value(build, name, str(value))
    _check_hardware(study)


def _check_hardware(study: Study) -> None:
    # Keys may be valid only in combination: a value is refused if all its settings are invalid.
    fixed = _hardware_keys(study.fixed)
    products = study.runs.products
    space = Space(tuple(tuple(filter(_is_of_hardware, axes)) for axes in products))
    used: set[tuple[str, Scalar]] = set()
    refused: dict[tuple[str, Scalar], ConfigurationError] = {}
    for setting in space:
        values = {("", None), *setting.items()}
        if values <= used:
            continue
        try:
            varied_hardware(study.hardware, fixed | _hardware_keys(setting))
            used |= values
        except ConfigurationError as error:
            refused = dict.fromkeys(values, error) | refused
    for value, refusal in refused.items():
        if value not in used:
            raise refusal


def _is_of_hardware(axis: Axis) -> bool:
    return any(name.startswith(_HARDWARE) for name in axis.names)


def _hardware_keys(setting: Setting) -> dict[str, Scalar]:
    return {
        name.removeprefix(_HARDWARE): whole(value)
        for name, value in setting.items()
        if name.startswith(_HARDWARE)
    }


def module_of(program: str) -> ModuleType:
    """Execute a program's file, unless the module of the last call is still up to date."""
    module = _executed.get(program)
    if module is None or not executes_still(Path(program), files_of(module)):
        _executed.clear()
        module = _executed[program] = executed(program)
    return module


def _files(program: str) -> dict[str, str | None]:
    module = _executed.get(program)
    return {} if module is None else files_of(module)


def _depth(name: str, value: Scalar) -> int:
    value = whole(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ConfigurationError(f"{name} is {value!r}: expected an integer of at least 1")


def _hop(name: str, value: Scalar) -> Hop:
    try:
        return Hop.parse(str(value))
    except ConfigurationError as error:
        raise ConfigurationError(f"{name} is {error.message}") from None


def _numbers(report: Report) -> JsonObject:
    numbers: JsonObject = {name: getattr(report, name) for name in METRICS}
    numbers |= memory_numbers(report.hbm)
    return numbers | {f"extra.{name}": plain(value) for name, value in report.extra.items()}


def _failure(report: Report) -> str | None:
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
