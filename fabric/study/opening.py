"""Study files, and program files made into studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabric.loading.program_file import called, executed
from fabric.runs.simulation import Mode
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
        hardware, mode, minimize, where: see ``Study``.
    """

    vary: Sequence[str] = ()
    parameters: Sequence[str] = ()
    hardware: Path | None = None
    mode: Mode | None = None
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
            "is a study: expected --vary, -p, --hardware, --mode, --minimize and --where with a "
            "program's file only",
            file=str(path),
        )
    study = called(module, "study")
    if not isinstance(study, Study):
        raise ProgramError(
            f"study() returned {found_text(study)}: expected a Study", file=str(path)
        )
    return replace(study, name=study.name or path.stem)


def _of_program(path: Path, asked: Asked) -> Study:
    if not asked.vary:
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
    return Study(
        program=path,
        space=space_of(asked.vary),
        fixed=fixed,
        hardware=asked.hardware,
        mode=asked.mode,
        minimize=tuple(asked.minimize),
        where=tuple(asked.where),
        name=path.stem,
    )
