"""Study files, and program files made into studies."""

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

from fabric.explore.study.evaluation import AXES_BESIDE_PARAMETERS, check_values, module_of
from fabric.explore.study.outcome import Condition, check_metric
from fabric.explore.study.space import Scalar, Space, geometric, grid, zipped
from fabric.explore.study.study import Study
from fabric.graph.arguments.numbers import NUMBER, number_of
from fabric.graph.hardware.latency import Hop
from fabric.graph.loading.program_file import build_of, called, parameter_value
from fabric.messages.errors import ConfigurationError, ProgramError
from fabric.messages.text import counted, found_text
from fabric.runs.options import Options


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options of a study of a program file; see ``space_of`` and ``Study``."""

    vary: Sequence[str] = ()
    over: Sequence[str] = ()
    hold_out: int = 0
    parameters: Sequence[str] = ()
    hardware: Path | None = None
    options: Options = field(default_factory=Options)
    minimize: Sequence[str] = ()
    where: Sequence[str] = ()

    @property
    def anything(self) -> bool:
        """Whether anything is stated."""
        return self != Asked()


def open_study(path: Path, asked: Asked) -> Study:
    """Return the study of a file, with values that points can use.

    The file defines ``study() -> Study``, or ``build() -> Program``; ``asked`` is for the latter.
    """
    module = module_of(str(path))
    opened = _of_file if hasattr(module, "study") else _of_program
    study = opened(module, path, asked)
    check_values(study)
    return study


def _of_file(module: ModuleType, path: Path, asked: Asked) -> Study:
    if asked.anything:
        raise ConfigurationError(
            "is a study: expected --vary, --over, --hold-out, -p, --hardware, --minimize, --where "
            "and options of runs with a program's file only",
            file=str(path),
        )
    study = called(module, "study")
    if not isinstance(study, Study):
        raise ProgramError(
            f"study() returned {found_text(study)}: expected a Study", file=str(path)
        )
    return replace(study, name=study.name or path.stem)


def _of_program(module: ModuleType, path: Path, asked: Asked) -> Study:
    if not asked.vary and not asked.over:
        raise ConfigurationError(
            "is not a study: expected study() in it, or --vary NAME=VALUE,VALUE beside it",
            file=str(path),
        )
    build = build_of(module)

    def read(name: str, text: str) -> Scalar:
        if name.startswith(AXES_BESIDE_PARAMETERS):
            return scalar(name, text)
        value = parameter_value(build, name, text)
        if isinstance(value, str | int | float | None) and not isinstance(value, Enum):
            return value
        return text

    fixed = {}
    for text in asked.parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise ProgramError(f"-p {text}: expected NAME=VALUE")
        if name in fixed:
            raise ProgramError(f"-p {text}: {name} is given twice: expected one value")
        fixed[name] = read(name, value)
    for metric in asked.minimize:
        with _typed(f"--minimize {metric}"):
            check_metric(metric)
    for condition in asked.where:
        with _typed(f"--where {condition}"):
            Condition.parse(condition)
    return Study(
        program=path,
        space=space_of(asked.vary, "--vary", read),
        over=space_of(asked.over, "--over", read),
        hold_out=asked.hold_out,
        fixed=fixed,
        hardware=asked.hardware,
        **vars(asked.options),
        minimize=tuple(asked.minimize),
        where=tuple(asked.where),
        name=path.stem,
    )


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
    """Return the value that ``text`` gives to an axis: a number, true, false, none, or the text."""
    if name.startswith("hop."):
        return str(Hop.parse(text))
    number = number_of(text)
    return _WORDS.get(text.lower(), text) if number is None else number


def space_of(
    texts: Iterable[str], option: str = "--vary", read: Callable[[str, str], Scalar] = scalar
) -> Space:
    """Return the product of axes that an option lists as text, the last one fastest.

    ``NAME=VALUE,VALUE`` lists values; ``FIRST..LAST`` counts, ``FIRST..LAST+STEP`` in steps,
    ``FIRST..LAST*FACTOR`` geometrically; ``NAME:NAME=VALUE:VALUE,...`` varies names together.
    """
    space = Space(((),))
    for text in texts:
        names, equals, values = text.partition("=")
        if not equals or not names or not values:
            raise ConfigurationError(f"{option} {text}: expected NAME=VALUE,VALUE")
        try:
            space *= _axis(names.split(":"), values, read)
        except ConfigurationError as error:
            raise ConfigurationError(f"{option} {text}: {error.message}") from None
    return space


def _axis(names: list[str], values: str, read: Callable[[str, str], Scalar]) -> Space:
    if len(names) == 1:
        (name,) = names
        parts = (_counted(part) or [read(name, part)] for part in values.split(","))
        return grid({name: itertools.chain.from_iterable(parts)})
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{':'.join(names)} has a name twice: expected each name once")
    columns: list[list[Scalar]] = [[] for _ in names]
    for part in values.split(","):
        row = part.split(":")
        if len(row) != len(names):
            raise ConfigurationError(
                f"{part} has {counted(len(row), 'value')}: expected {len(names)}"
            )
        for name, column, value in zip(names, columns, row, strict=True):
            column.append(read(name, value))
    return zipped(dict(zip(names, columns, strict=True)))


def _counted(text: str) -> Sequence[Scalar]:
    """Return the integers of a range; empty if ``text`` is another value."""
    found = _RANGE.fullmatch(text)
    if found is None:
        return ()
    first, last, by = (number_of(found[part] or "1") for part in ("first", "last", "by"))
    if not (isinstance(first, int) and isinstance(last, int) and isinstance(by, int)):
        raise ConfigurationError(f"{text}: expected a range of integers")
    if found["step"] == "*":
        return geometric(first, last, by)
    if by < 1:
        raise ConfigurationError(f"{text} does not get on: expected a step of at least 1")
    if last < first:
        raise ConfigurationError(f"{text} has no values: expected FIRST..LAST with FIRST <= LAST")
    return range(first, last + 1, by)
