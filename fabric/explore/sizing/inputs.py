"""Several inputs of one program: points as a study has them, some of them held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from fabric.explore.study.evaluation import Job, loaded_of
from fabric.explore.study.opening import Asked, open_study
from fabric.explore.study.study import places_apart
from fabric.explore.study.written.words import setting_names
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import Program
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted

__all__ = ["check_alike", "held_out", "programs_of"]

Each = TypeVar("Each")

_OF_CHANNELS: Final = {"depth.": "depths are what is looked for", "hop.": "all inputs have one"}

_SHOWN: Final = 3
"""Channels that a sentence names."""


def programs_of(
    file: Path, parameters: Sequence[str], over: Sequence[str], hardware: Path | None = None
) -> dict[str, Program]:
    """Return the programs of a file, wired, by their inputs: ``seed=3, routing=a.npz``.

    Args:
        file: of a program.
        parameters: ``NAME=VALUE``, that do not vary.
        over: inputs, as in a study; see ``study.spec.space_of``.
        hardware: a hardware file; the paper's fabric where None.

    Raises:
        FabricError: the file, or an input, is wrong; depths are inputs; a point is refused; or the
            points differ in their channels.
    """
    study = open_study(file, Asked(over=over, parameters=parameters, hardware=hardware))
    for name in (*study.fixed, *study.over.values):
        for beginning, why in _OF_CHANNELS.items():
            if name.startswith(beginning):
                raise ConfigurationError(
                    f"{name} is stated: {why}: expected parameters of build() and hardware keys"
                )
    found = {}
    names = setting_names(study.over)
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

    Raises:
        ConfigurationError: that leaves none to size on; see ``study.study``.
    """
    names = list(points)
    places = places_apart(
        len(names), count, said=f"--hold-out {count}", what="point", use="sized on"
    )
    apart = {names[index] for index in places}
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
