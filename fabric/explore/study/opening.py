"""Study files, and program files made into studies."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from fabric.explore.study.outcome import Condition, check_metric
from fabric.explore.study.space import Scalar, Space, geometric, grid, zipped
from fabric.explore.study.study import Study
from fabric.graph.loading.program_file import called, executed
from fabric.messages.telling.errors import ConfigurationError, ProgramError
from fabric.messages.telling.wording import counted, found_text
from fabric.runs.options import Options

__all__ = ["Asked", "open_study", "scalar", "space_of"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a study of a program file is told beside the file.

    Attributes:
        vary: see ``space_of``.
        parameters: ``NAME=VALUE``, that do not vary.
        over: inputs; see ``space_of``.
        hold_out, hardware, minimize, where: see ``Study``.
        options: of the runs.
    """

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
    """Return the study of a file.

    Args:
        path: of a file that defines ``study() -> Study``, or ``build() -> Program``.
        asked: with the latter only.

    Raises:
        FabricError: what is wrong with the file, or with what was asked.
    """
    module = executed(path)
    if not hasattr(module, "study"):
        return _of_program(path, asked)
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


def _of_program(path: Path, asked: Asked) -> Study:
    if not asked.vary and not asked.over:
        raise ConfigurationError(
            "is not a study: expected study() in it, or --vary NAME=VALUE,VALUE beside it",
            file=str(path),
        )
    fixed = {}
    for text in asked.parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise ProgramError(f"-p {text}: expected NAME=VALUE")
        if name in fixed:
            raise ProgramError(f"-p {text}: {name} is given twice: expected one value")
        fixed[name] = scalar(value)
    for metric in asked.minimize:
        with _typed(f"--minimize {metric}"):
            check_metric(metric)
    for condition in asked.where:
        with _typed(f"--where {condition}"):
            Condition.parse(condition)
    return Study(
        program=path,
        space=space_of(asked.vary),
        over=space_of(asked.over, "--over"),
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
    """Say what was typed where that is refused: it stands in no file."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{text}: {error.message}") from None


_RANGE: Final = re.compile(r"(?P<first>-?\d+)\.\.(?P<last>-?\d+)(?:(?P<step>[+*])(?P<by>\d+))?")
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "none": None}


def space_of(texts: Iterable[str], option: str = "--vary") -> Space:
    """Return the product of axes that are given as text to an option, the last one fastest.

    ``NAME=VALUE,VALUE`` lists values; ``FIRST..LAST`` counts, ``FIRST..LAST+STEP`` in steps,
    ``FIRST..LAST*FACTOR`` geometrically; ``NAME:NAME=VALUE:VALUE,...`` varies names together.

    Raises:
        ConfigurationError: a text is none of that; a name is given twice.
    """
    space = Space(((),))
    for text in texts:
        names, equals, values = text.partition("=")
        if not equals or not names or not values:
            raise ConfigurationError(f"{option} {text}: expected NAME=VALUE,VALUE")
        try:
            space *= _axis(names.split(":"), values)
        except ConfigurationError as error:
            raise ConfigurationError(f"{option} {text}: {error.message}") from None
    return space


def scalar(text: str) -> Scalar:
    """Return a value as it is meant: a number in its usual form, true, false, none, or text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            value = number(text)
            if str(value) == text:
                return value
    return text


def _axis(names: list[str], values: str) -> Space:
    if len(names) == 1:
        return grid({names[0]: [each for part in values.split(",") for each in _listed(part)]})
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{':'.join(names)} has a name twice: expected each name once")
    columns: list[list[Scalar]] = [[] for _ in names]
    for part in values.split(","):
        row = part.split(":")
        if len(row) != len(names):
            raise ConfigurationError(
                f"{part} has {counted(len(row), 'value')}: expected {len(names)}"
            )
        for column, value in zip(columns, row, strict=True):
            column.append(scalar(value))
    return zipped(dict(zip(names, columns, strict=True)))


def _listed(text: str) -> Iterable[Scalar]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return [scalar(text)]
    first, last, by = int(found["first"]), int(found["last"]), int(found["by"] or 1)
    if found["step"] == "*":
        return geometric(first, last, by)
    if by < 1:
        raise ConfigurationError(f"{text} does not get on: expected a step of at least 1")
    if last < first:
        raise ConfigurationError(f"{text} has no values: expected FIRST..LAST with FIRST <= LAST")
    return range(first, last + 1, by)
