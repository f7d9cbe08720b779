"""What a point's numbers depend on, as one digest: with the same one nothing is run again."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from fabric.explore.study.space import Scalar, Setting
from fabric.explore.study.study import Study
from fabric.graph.loading.beside import executes_still
from fabric.messages.telling.plain import JsonObject
from fabric.messages.telling.read_files import open_given
from fabric.runs.options import Options

__all__ = ["Identities", "engine_digest"]

_ENGINE: Final = ("fabric", "operators")


class Identities:
    """Digests of the points of a study.

    A digest is of the program's file, of the hardware file, the options of the runs, the sources of
    the fabric and the operators, and of the whole setting; where a value is the path of a file, of
    what that has when this is made. Where files are does not matter. Which modules a program
    executes is known when it has run: ``executed_still`` looks at those. No digest is of other
    files that it opens.
    """

    def __init__(self, study: Study) -> None:
        """Look at what all points have in common.

        Raises:
            OSError: a file cannot be read.
        """
        self._study: Final = study
        self._still: Final[dict[tuple[tuple[str, str | None], ...], bool]] = {}
        self._common: Final = _digest(
            [_file_digest(study.program), _hardware_of(study), _options_of(study), engine_digest()]
        )
        self._hardware: Final = _hardware_of(study)
        values = itertools.chain(study.fixed.values(), *study.runs.values.values())
        self._content: Final = {
            each: _content(each) for each in values if isinstance(each, str) and each
        }

    def have_changed(self, setting: Setting) -> bool:
        """Say whether files of a point, those of the program apart, are not what they were."""
        values = self._study.whole(setting).values()
        return _hardware_of(self._study) != self._hardware or any(
            _content(each) != self._content[each]
            for each in values
            if isinstance(each, str) and each
        )

    def executed_still(self, executed: Mapping[str, str | None]) -> bool:
        """Say whether the program would execute what it has; False where nobody knows what.

        Files are looked at once for each different set of them.
        """
        key = tuple(executed.items())
        if key not in self._still:
            self._still[key] = bool(key) and executes_still(self._study.program, executed)
        return self._still[key]

    def of(self, setting: Setting) -> str:
        """Return the digest of a point."""
        whole = self._study.whole(setting)
        content = {name: self._known_content(whole[name]) for name in sorted(whole)}
        return _digest([self._common, content])

    def _known_content(self, value: Scalar) -> list[Scalar]:
        known = self._content.get(value) if isinstance(value, str) else None
        return _content(value) if known is None else known


def _hardware_of(study: Study) -> str | None:
    return None if study.hardware is None else _file_digest(study.hardware)


def _options_of(study: Study) -> JsonObject:
    """Return the options of a study's runs, channels in one order, and of a file what is in it."""
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
    """Return what tells a value from all others: 1, 1.0, true and "1" are four."""
    if isinstance(value, str) and value and Path(value).is_file():
        return ["file", _file_digest(Path(value))]
    return [type(value).__name__, value]


def _file_digest(path: Path) -> str:
    with open_given(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Return the digest of the sources of the fabric and the operators."""
    digests: list[list[str]] = []
    for name in _ENGINE:
        found = importlib.util.find_spec(name)
        for folder in (found and found.submodule_search_locations) or ():
            root = Path(folder)
            digests.extend(
                [path.relative_to(root).as_posix(), _file_digest(path)]
                for path in sorted(root.rglob("*.py"))
            )
    return _digest(digests)
