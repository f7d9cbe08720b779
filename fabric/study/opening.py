"""Study files, and program files made into studies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabric.loading.program_file import called, executed
from fabric.runs.options import Options
from fabric.study.conditions import Condition, check_metric
from fabric.study.spec import scalar, space_of
from fabric.study.study import Study
from fabric.telling.errors import ConfigurationError, ProgramError
from fabric.telling.wording import found_text

__all__ = ["Asked", "open_study"]


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
