"""Files that say what is to be served: TOML, or Python that returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from fabric.arguments.described import Described
from fabric.arguments.sections import described_section
from fabric.loading.program_file import called, executed
from fabric.serving.costs.fabric import FabricDescription
from fabric.serving.costs.tables import TableDescription
from fabric.serving.measures import ServiceLevel
from fabric.serving.scheduler import ContinuousBatching
from fabric.serving.served import MakeScheduler
from fabric.serving.server import Server
from fabric.serving.serving import RequestDescription, Serving
from fabric.telling.errors import ConfigurationError, ProgramError
from fabric.telling.read_files import line_in, read_toml
from fabric.telling.wording import found_text, one_of

__all__ = ["open_servings", "scheduler_of"]

_EXPECTED: Final = "a description of what is to be served in TOML"
_KINDS: Final[Mapping[str, type[TableDescription | FabricDescription]]] = {
    "tables": TableDescription,
    "fabric": FabricDescription,
}
_SECTIONS: Final = ("requests", "server", "cost", "designs", "level")
_TEXTS: Final = ("question", "scheduler")
_PATHS: Final = (
    *("file", "attention", "dense", "moe", "per_sequence"),
    *("program", "hardware", "routing", "spread"),
)
"""Keys that name files, beside the file that they stand in."""

Section = TypeVar("Section", bound=Described)


def open_servings(path: Path) -> list[Serving]:
    """Return what a file says.

    Args:
        path: of TOML with sections ``requests``, ``server``, ``cost``, ``level`` and
            ``designs.NAME``, each of which changes keys of ``cost``; or of Python that defines
            ``servings() -> list[Serving]``.

    Raises:
        FabricError: what is wrong with it.
    """
    if path.suffix == ".py":
        return _of_python(path)
    file = str(path)
    content = read_toml(path, _EXPECTED)
    for name, value in content.items():
        known = (*_SECTIONS, *_TEXTS)
        if name not in known:
            raise ConfigurationError(
                f"{name} is not known here: expected {one_of(list(known), name)}",
                file=file,
                line=line_in(file, name),
            )
        if not isinstance(value, str if name in _TEXTS else dict):
            raise ConfigurationError(
                f"{name} is {found_text(value)}: expected "
                f"{'a text' if name in _TEXTS else f'a section, [{name}] with keys'}",
                file=file,
                line=line_in(file, name),
            )
    for name in ("requests", "cost"):
        if name not in content:
            raise ConfigurationError(f"has no [{name}]: expected one", file=file)
    scheduler = content.get("scheduler")
    return [
        Serving(
            requests=_section(RequestDescription, "requests", content["requests"], path),
            server=_section(Server, "server", content.get("server", {}), path),
            level=_section(ServiceLevel, "level", content.get("level", {}), path),
            designs=_designs(content["cost"], content.get("designs", {}), path),
            scheduler=None if scheduler is None else str(path.parent / scheduler),
            name=path.stem,
            question=content.get("question", ""),
        )
    ]


def scheduler_of(spelled: str | None) -> MakeScheduler:
    """Return who makes schedulers.

    Args:
        spelled: ``FILE.py:NAME``; the fabric's own where None.

    Raises:
        FabricError: there is no such file, or no such name in it.
    """
    if spelled is None:
        return ContinuousBatching
    file, _, name = spelled.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ConfigurationError(f"scheduler is {spelled!r}: expected FILE.py:NAME")
    made = getattr(executed(file), name, None)
    if not callable(made):
        raise ProgramError(
            f"{name} is {found_text(made)}: expected a class of schedulers", file=file
        )
    found: MakeScheduler = made
    return found


def _of_python(path: Path) -> list[Serving]:
    found = called(executed(path), "servings")
    if not isinstance(found, list) or not all(isinstance(each, Serving) for each in found):
        raise ProgramError(
            f"servings() returned {found_text(found)}: expected a list of Serving", file=str(path)
        )
    if not found:
        raise ProgramError("servings() returned none: expected at least one", file=str(path))
    named = [replace(each, name=each.name or path.stem) for each in found]
    names = [each.name for each in named]
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise ProgramError(
            f"servings() returned {twice[0]} twice: expected each name once", file=str(path)
        )
    return named


def _designs(
    common: Mapping[str, Any], designs: Mapping[str, Any], path: Path
) -> dict[str, TableDescription | FabricDescription]:
    if not designs:
        return {"": _cost("cost", common, path)}
    found = {}
    for name, own in designs.items():
        if not isinstance(own, dict):
            raise ConfigurationError(
                f"designs.{name} is {found_text(own)}: expected a section, [designs.{name}]",
                file=str(path),
                line=line_in(str(path), "designs", name),
            )
        merged = {**common, **own}
        for key, value in common.items():
            if isinstance(value, dict) and isinstance(own.get(key), dict):
                merged[key] = {**value, **own[key]}
        found[name] = _cost(f"designs.{name}", merged, path)
    return found


def _cost(name: str, table: Mapping[str, Any], path: Path) -> TableDescription | FabricDescription:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigurationError(
            f"[{name}] kind is {found_text(kind)}: expected {one_of(list(_KINDS), str(kind))}",
            file=str(path),
            line=line_in(str(path), *name.split("."), "kind"),
        )
    return _section(_KINDS[kind], name, table, path, ("kind",))


def _section(
    section: type[Section],
    name: str,
    table: Mapping[str, Any],
    path: Path,
    tags: Sequence[str] = (),
) -> Section:
    """Return a section's description; files are named from the folder of this one."""
    values = dict(table)
    for key in _PATHS:
        if isinstance(values.get(key), str):
            values[key] = path.parent / values[key]
    for key in (each.name for each in fields(section)):  # type: ignore[arg-type]
        if isinstance(values.get(key), list):
            values[key] = tuple(values[key])
    return described_section(section, name, values, str(path), tags)
