"""Open study files, and make studies from program files and options."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Final

from fabric.explore.study.evaluation import (
    AXES_BESIDE_PARAMETERS,
    FileQuestion,
    check_values,
    module_of,
)
from fabric.explore.study.outcome import Condition, check_metric
from fabric.explore.study.space import Scalar, Space, geometric, grid, listed
from fabric.explore.study.study import Study
from fabric.graph.arguments.numbers import NUMBER, number_of
from fabric.graph.hardware.latency import Hop
from fabric.graph.loading.program_file import build_of, call_function, parameter_value
from fabric.messages.errors import ConfigurationError, ProgramError
from fabric.messages.text import counted, found_text
from fabric.runs.options import Options


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Options of a study of a program file, as in ``Study``; axes are texts for ``space_of``."""

    vary: Sequence[str] = ()
    over: Sequence[str] = ()
    hold_out: int = 0
    again: Sequence[str] = ()
    parameters: Sequence[str] = ()
    hardware: Path | None = None
    options: Options = field(default_factory=Options)
    minimize: Sequence[str] = ()
    where: Sequence[str] = ()


def open_study(path: Path, options: StudyOptions) -> Study:
    """Return the study of a file, with checked values.

    The file defines ``study() -> Study``, and then takes no option but ``again``; or it defines
    ``build() -> Program``.
    """
    module = module_of(str(path))
    read = _of_file if hasattr(module, "study") else _of_program
    study = read(module, path, options)
    if study.asks is None:
        check_values(study)
        if study.again.values:
            check_values(study.repeated(study.space))
    return study


def _of_file(module: ModuleType, path: Path, options: StudyOptions) -> Study:
    if replace(options, again=()) != StudyOptions():
        raise ConfigurationError(
            "defines study(): expected a program's file for --vary, --over, --hold-out, -p, "
            "--hardware, --minimize, --where and options of runs",
            file=str(path),
        )
    study = call_function(module, "study")
    if not isinstance(study, Study):
        raise ProgramError(
            f"study() returned {found_text(study)}: expected a Study", file=str(path)
        )
    asks = None if study.asks is None else FileQuestion(str(path))
    read = scalar if study.program is None else _reader(module_of(str(study.program)))
    again = space_of(options.again, "--again", read) if options.again else study.again
    return replace(study, name=study.name or path.stem, asks=asks, again=again)


def _of_program(module: ModuleType, path: Path, options: StudyOptions) -> Study:
    if not options.vary and not options.over:
        raise ConfigurationError(
            "defines no study(): expected a file with study(), or --vary NAME=VALUE,VALUE",
            file=str(path),
        )
    read = _reader(module)
    fixed = {}
    for text in options.parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise ProgramError(f"-p {text}: expected NAME=VALUE")
        if name in fixed:
            raise ProgramError(f"-p {text}: {name} is given twice: expected one value")
        fixed[name] = read(name, value)
    for metric in options.minimize:
        with _typed(f"--minimize {metric}"):
            check_metric(metric)
    for condition in options.where:
        with _typed(f"--where {condition}"):
            check_metric(Condition.parse(condition).metric)
    return Study(
        program=path,
        space=space_of(options.vary, "--vary", read),
        over=space_of(options.over, "--over", read),
        hold_out=options.hold_out,
        again=space_of(options.again, "--again", read),
        fixed=fixed,
        hardware=options.hardware,
        **vars(options.options),
        minimize=tuple(options.minimize),
        where=tuple(options.where),
        name=path.stem,
    )


def _reader(module: ModuleType) -> Callable[[str, str], Scalar]:
    """Return a function that reads the text of a named value as the program's ``build`` does."""
    build = build_of(module)

    def read(name: str, text: str) -> Scalar:
        if name.startswith(AXES_BESIDE_PARAMETERS):
            return scalar(name, text)
        value = parameter_value(build, name, text)
        if isinstance(value, str | int | float | None) and not isinstance(value, Enum):
            return value
        return text

    return read


@contextlib.contextmanager
def _typed(text: str) -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{text}: {error.message}") from None


_RANGE: Final = re.compile(
    rf"(?P<first>{NUMBER})\.\.(?P<last>{NUMBER})(?:(?P<step>[+*])(?P<by>{NUMBER}))?", re.ASCII
)
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "none": None}


def scalar(name: str, text: str) -> Scalar:
    """Parse a value of an axis: a number, true, false, none, or else the text itself."""
    if name.startswith("hop."):
        return str(Hop.parse(text))
    number = number_of(text)
    return _WORDS.get(text.lower(), text) if number is None else number


def space_of(
    texts: Iterable[str], option: str = "--vary", read: Callable[[str, str], Scalar] = scalar
) -> Space:
    """Parse the axes of an option into their product; the last axis varies fastest.

    ``NAME=VALUE,VALUE`` lists values; ``FIRST..LAST`` counts, ``FIRST..LAST+STEP`` in steps,
    ``FIRST..LAST*FACTOR`` geometrically; ``NAME:NAME=VALUE:VALUE,VALUE,...`` varies names together,
    and a name without a value keeps its default.
    """
    space = Space(((),))
    for text in texts:
        names, equals, values = text.partition("=")
        if not equals or not names or not values:
            raise ConfigurationError(f"{option} {text}: expected NAME=VALUE,VALUE")
        with _typed(f"{option} {text}"):
            space *= _axis(names.split(":"), values, read)
    return space


def _axis(names: list[str], values: str, read: Callable[[str, str], Scalar]) -> Space:
    if len(names) == 1:
        (name,) = names
        parts = (_range(part) or [read(name, part)] for part in values.split(","))
        return grid({name: itertools.chain.from_iterable(parts)})
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{':'.join(names)} has a name twice: expected each name once")
    settings = []
    for part in values.split(","):
        row = part.split(":")
        if len(row) > len(names) or not any(row):
            raise ConfigurationError(
                f"{part!r} has {counted(len(row), 'value')}: expected 1 to {len(names)}"
            )
        pairs = zip(names, row, strict=False)
        settings.append({name: read(name, text) for name, text in pairs if text})
    return listed(settings)


def _range(text: str) -> Sequence[Scalar]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return ()
    first, last, by = (number_of(match[part] or "1") for part in ("first", "last", "by"))
    if not (isinstance(first, int) and isinstance(last, int) and isinstance(by, int)):
        raise ConfigurationError(f"{text}: expected a range of integers")
    if match["step"] == "*":
        return geometric(first, last, by)
    if by < 1:
        raise ConfigurationError(f"{text} has the step {by}: expected at least 1")
    if last < first:
        raise ConfigurationError(f"{text} has no values: expected FIRST..LAST with FIRST <= LAST")
    return range(first, last + 1, by)
