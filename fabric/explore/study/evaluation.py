"""Evaluate one point of a study: the digest of its inputs, its bounds and its run."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from signal import SIGINT
from types import ModuleType
from typing import Final

from fabric.analysis.symbolic.bounds import lower_bounds
from fabric.explore.study.outcome import (
    METRICS,
    Before,
    Outcome,
    Point,
    Question,
    memory_numbers,
)
from fabric.explore.study.space import Axis, Scalar, Setting, Space, whole
from fabric.explore.study.study import Study
from fabric.graph.hardware.file import varied_hardware
from fabric.graph.hardware.latency import Hop
from fabric.graph.loading.program_file import (
    Loaded,
    build_of,
    call_function,
    executed,
    executes_same_files,
    files_of,
    parameter_value,
    wired,
)
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.files import open_given
from fabric.messages.text import JsonObject, plain
from fabric.messages.users_code import Interrupted, users_code, users_values
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

    A digest covers the sources of the fabric and the operators, and the identity that the question
    states. It does not cover the modules that a program imports, since only a run finds them;
    ``executed_still`` checks them. No digest covers other files that a program opens.
    """

    def __init__(self, study: Study) -> None:
        self._question: Final = question_of(study)
        self._still: Final[dict[tuple[tuple[str, str | None], ...], bool]] = {}
        values = itertools.chain(study.fixed.values(), *study.runs.values.values())
        self._content: Final = {text: _content(text) for text in values if isinstance(text, str)}
        self._files: Final = self._file_digests()

    def have_changed(self, setting: Setting) -> bool:
        """Return whether a file of the question, or a file that a value names, has changed."""
        values = [*setting.values(), *getattr(self._question, "fixed", {}).values()]
        return self._file_digests() != self._files or any(
            _content(each) != self._content[each] for each in values if isinstance(each, str)
        )

    def executed_still(self, executed: Mapping[str, str | None]) -> bool:
        """Return whether the program would execute the same files; False if unknown."""
        if not isinstance(self._question, ProgramQuestion):
            return True
        key = tuple(executed.items())
        if key not in self._still:
            program = Path(self._question.program)
            self._still[key] = bool(key) and executes_same_files(program, executed)
        return self._still[key]

    def of(self, setting: Setting) -> str:
        return _digest([engine_digest(), self._question.identity(setting)])

    def _file_digests(self) -> list[str | None]:
        question = self._question
        return question.file_digests() if isinstance(question, ProgramQuestion) else []


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
class ProgramQuestion:
    """The ``Question`` of a program's designs; ``fixed`` are values that do not vary."""

    program: str
    hardware: str | None
    fixed: Setting
    options: Options

    @staticmethod
    def of(study: Study) -> ProgramQuestion:
        hardware = None if study.hardware is None else str(study.hardware)
        return ProgramQuestion(str(study.program), hardware, study.fixed, Options.of(study))

    def identity(self, setting: Setting) -> str:
        """Return a digest of the files, the options and the values.

        A value that names a file has the file's content instead of its path.
        """
        whole = {**self.fixed, **setting}
        content = {name: _content(whole[name]) for name in sorted(whole)}
        return _digest([self.file_digests(), self._option_values(), content])

    def file_digests(self) -> list[str | None]:
        """Return the digests of the program, the hardware file and the placement, if stated."""
        files = (self.program, self.hardware, self.options.placement)
        return [None if each is None else _file_digest(Path(each)) for each in files]

    def _option_values(self) -> JsonObject:
        # Channels are sorted: equal options have equal digests.
        return {
            name: {channel: str(value[channel]) for channel in sorted(value)}
            if isinstance(value, Mapping)
            else value
            for name, value in vars(self.options).items()
            if name != "placement"
        }

    def bounds(self, point: Point) -> Before:
        try:
            with contextlib.redirect_stdout(sys.stderr), users_values():
                loaded, options = self.loaded(point.setting)
                lower = lower_bounds(loaded.program, options.depths or {})
        except FabricError as error:
            files = _files(self.program)
            refused = point.outcome("refused", reason=str(error), executed=files)
            return Before(point.index, refused=refused)
        bounds = {**lower.exact, **lower.at_least, **lower.sized}
        return Before(point.index, bounds, tuple(lower.exact), executed=_files(self.program))

    def run(self, point: Point) -> Outcome:
        """Run the program. A deadlock is reported without a remedy, which another point may be."""
        parameters: JsonObject = {}
        hardware: JsonObject | None = None
        try:
            with contextlib.redirect_stdout(sys.stderr), users_values():
                loaded, options = self.loaded(point.setting)
                parameters = _plain(loaded.parameters)
                hardware = loaded.program.hardware.as_dict()
                settings = replace(
                    Settings.of(options),
                    on_deadlock="describe",
                    parameters=loaded.parameters,
                    program_file=self.program,
                )
                report = simulated(loaded.program, settings)
        except FabricError as error:
            return point.outcome(
                "refused",
                parameters=parameters,
                hardware=hardware,
                reason=str(error),
                executed=_files(self.program),
            )
        if report.status == "interrupted":
            raise Interrupted(report.signal or SIGINT)
        return point.outcome(
            "wrong" if report.verified is False else report.status,
            parameters=parameters,
            hardware=hardware,
            numbers=_numbers(report),
            reason=_failure(report),
            code=None if report.explained is None else report.explained.loops[0].code,
            wall_seconds=report.wall_seconds,
            executed=_files(self.program),
        )

    def loaded(self, setting: Setting) -> tuple[Loaded, Options]:
        """Return a point's wired program and the options of its run."""
        depths = dict(self.options.depths or {})
        hops = dict(self.options.hops or {})
        parameters: list[str] = []
        whole = {**self.fixed, **setting}
        for name, value in whole.items():
            if name.startswith(_DEPTH):
                depths[name.removeprefix(_DEPTH)] = _depth(name, value)
            elif name.startswith(_HOP):
                hops[name.removeprefix(_HOP)] = _hop(name, value)
            elif not name.startswith(_HARDWARE):
                parameters.append(f"{name}={value}")
        module = module_of(self.program)
        file = None if self.hardware is None else Path(self.hardware)
        hardware = varied_hardware(file, _hardware_keys(whole))
        options = replace(self.options, depths=depths, hops=hops)
        return wired(module, parameters, hardware), options


@dataclass(frozen=True)
class FileQuestion:
    """The question of a study file, which workers execute."""

    file: str

    def identity(self, setting: Setting) -> str:
        return _digest([_file_digest(Path(self.file)), self._question().identity(setting)])

    def bounds(self, point: Point) -> Before:
        return self._question().bounds(point)

    def run(self, point: Point) -> Outcome:
        return self._question().run(point)

    def _question(self) -> Question:
        study = call_function(module_of(self.file), "study")
        assert isinstance(study, Study)
        assert study.asks is not None
        return study.asks


@dataclass(frozen=True)
class Job:
    """A point for a worker, and the question that answers it."""

    point: Point
    question: Question

    @staticmethod
    def of(study: Study, point: Point) -> Job:
        return Job(point, question_of(study))


def question_of(study: Study) -> Question:
    """Return the question of a study; by default, a ``ProgramQuestion``."""
    return study.asks or ProgramQuestion.of(study)


def run_point(study: Study, point: Point) -> Outcome:
    """Run a point of a study in this process, and return its outcome."""
    refuse_in_trio("run_point", "study, point")
    return outcome_of(Job.of(study, point))


def known_before(job: Job) -> Before:
    """Return the bounds of a point, or the outcome that refuses it."""
    if isinstance(job.question, ProgramQuestion):
        return job.question.bounds(job.point)
    try:
        with contextlib.redirect_stdout(sys.stderr), users_code("bounds() of the question"):
            return job.question.bounds(job.point)
    except FabricError as error:
        refused = job.point.outcome("refused", reason=str(error))
        return Before(job.point.index, refused=refused)


def outcome_of(job: Job) -> Outcome:
    if isinstance(job.question, ProgramQuestion):
        return job.question.run(job.point)
    try:
        with contextlib.redirect_stdout(sys.stderr), users_code("run() of the question"):
            return job.question.run(job.point)
    except FabricError as error:
        return job.point.outcome("error", reason=str(error))


def check_values(study: Study) -> None:
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
    space = Space(tuple(tuple(filter(_is_of_hardware, axes)) for axes in study.runs.products))
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
    """Execute a program's file, or return the module of the last call if no file changed."""
    module = _executed.get(program)
    if module is None or not executes_same_files(Path(program), files_of(module)):
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
