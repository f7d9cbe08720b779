"""Several inputs of one program: points as a study has them, some of them held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from fabric.study.evaluation import Job, loaded_of
from fabric.study.opening import Asked, open_study
from fabric.study.out.words import axis_values, counted, setting_text
from fabric.study.space import Scalar
from fabric.study.study import Study
from fabric.telling.errors import ConfigurationError
from fabric.wiring.elaborate import elaborate
from fabric.wiring.program import Program

__all__ = ["check_alike", "held_out", "programs_of"]

Each = TypeVar("Each")

_DEPTH: Final = "depth."

_SHOWN: Final = 3
"""Channels that a sentence names."""

_GOLDEN: Final = 0x9E3779B97F4A7C15
_TURN: Final = 1 << 64
"""Steps of the golden section of a turn fall evenly between those before, and repeat no pattern."""


def programs_of(
    file: Path, parameters: Sequence[str], vary: Sequence[str], hardware: Path | None = None
) -> dict[str, Program]:
    """Return the programs of a file, wired, by what varies: ``seed=3, routing=a.npz``.

    Args:
        file: of a program.
        parameters: ``NAME=VALUE``, that do not vary.
        vary: as in a study; see ``study.spec.space_of``.
        hardware: a hardware file; the paper's fabric where None.

    Raises:
        FabricError: the file, or what varies, is wrong; depths vary; a point is refused; or the
            points differ in their channels.
    """
    study = open_study(file, Asked(vary=vary, parameters=parameters, hardware=hardware))
    for name in (*study.fixed, *study.space.values):
        if name.startswith(_DEPTH):
            raise ConfigurationError(
                f"{name} is stated: depths are what is looked for: expected parameters of build() "
                "and hardware keys"
            )
    found = {}
    names = _names(study)
    for index, name in enumerate(names):
        loaded, _ = loaded_of(Job.of(study, study.point(index)))
        found[name] = loaded.program
    check_alike(found)
    return found


def check_alike(programs: Mapping[str, Program]) -> None:
    """Make sure that depths of one program's channels are depths of another's.

    Args:
        programs: by name.

    Raises:
        ConfigurationError: two have different channels.
    """
    options = {
        name: [edge.key for edge in elaborate(program).edges] for name, program in programs.items()
    }
    first, *others = options
    for other in others:
        only = _only(options, first, other) + _only(options, other, first)
        if only:
            raise ConfigurationError(
                f"{first} has {counted(len(options[first]), 'channel')} and {other} has "
                f"{counted(len(options[other]), 'channel')}: {'; '.join(only)}: expected points "
                "that are wired alike, whose data differ"
            )


def held_out(points: Mapping[str, Each], count: int) -> tuple[dict[str, Each], dict[str, Each]]:
    """Return the points to size on, and ``count`` others on which to try what was found.

    Those held out are spread over all points, whatever the order in which these vary; the first
    point never is, and of two counts the larger one holds out what the smaller one does.

    Raises:
        ConfigurationError: that leaves none to size on.
    """
    if not 0 <= count < len(points):
        raise ConfigurationError(
            f"--hold-out {count}: of {len(points):,} points at least one is to be sized on: "
            f"expected at most {len(points) - 1:,}"
        )
    names = list(points)
    order = sorted(range(len(names)), key=lambda index: -(index * _GOLDEN % _TURN))
    apart = {names[index] for index in order[:count]}
    return (
        {name: point for name, point in points.items() if name not in apart},
        {name: point for name, point in points.items() if name in apart},
    )


def _only(options: Mapping[str, Sequence[str]], one: str, other: str) -> list[str]:
    """Say which channels ``one`` has and ``other`` has not, where there are some."""
    others = set(options[other])
    missing = [option for option in options[one] if option not in others]
    if not missing:
        return []
    rest = len(missing) - _SHOWN
    more = f" and {rest:,} more" if rest > 0 else ""
    return [f"{one} alone has {', '.join(missing[:_SHOWN])}{more}"]


def _names(study: Study) -> list[str]:
    """Return what tells the points of ``study`` apart; files without folders where that does."""
    short: dict[str, dict[tuple[type, Scalar], str]] = {}
    for name, values in study.space.values.items():
        keys = [(type(value), value) for value in values]
        short[name] = dict(zip(keys, axis_values(values), strict=True))
    return [
        setting_text(
            {name: short[name][type(value), value] for name, value in setting.items()},
            list(setting),
        )
        for setting in study.space
    ]
