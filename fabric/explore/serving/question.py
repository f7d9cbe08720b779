"""A question of serving: requests, a server, costs and loads; and the files that ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

from typing_extensions import override

from fabric.explore.serving.measured_costs import TableDescription
from fabric.explore.serving.requests import Requests, read_requests
from fabric.explore.serving.run_costs import FabricDescription
from fabric.explore.serving.served import MakeScheduler, ServiceLevel
from fabric.explore.serving.server import ContinuousBatching, Server
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described, described_section, refuse_key
from fabric.graph.loading.program_file import called, executed
from fabric.messages.errors import ConfigurationError, FabricError, ProgramError
from fabric.messages.files import hardware_file, read_toml
from fabric.messages.text import found_text, one_of

Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]

_EXPECTED: Final = "a description of what is to be served in TOML"

_KINDS: Final[Mapping[str, type[TableDescription | FabricDescription]]] = {
    "tables": TableDescription,
    "fabric": FabricDescription,
}

_SECTIONS: Final = ("requests", "server", "cost", "designs", "level")

_TEXTS: Final = ("question", "scheduler")

_PATHS: Final = (
    *("file", "attention", "dense", "moe", "per_sequence"),
    *("program", "routing", "spread"),
)
"""Keys that name files, relative to the folder of their file."""

Section = TypeVar("Section", bound=Described)


@dataclass(frozen=True, kw_only=True)
class RequestDescription(Described):
    """Requests, and the loads at which they arrive.

    Attributes:
        file: a table of them; see ``read_requests``.
        count: so many, the first ones of the table; all where None.
        rates: requests a second, ascending, one run for each; as the table has it where empty.
        poisson: ``count`` requests come at random, with lengths drawn from the table.
        seed: of what is drawn.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    file: Path
    count: Count | None = None
    rates: tuple[float, ...] = ()
    poisson: bool = False
    seed: Annotated[int, Bounds(0, 2**31 - 1)] = 0

    @override
    def __post_init__(self) -> None:
        """Refuse loads that are none.

        Raises:
            ConfigurationError: a rate is not above 0, they do not ascend, or there is none for a
                Poisson process.
        """
        super().__post_init__()
        before = 0.0
        for rate in self.rates:
            if not before < rate < float("inf"):
                raise ConfigurationError(
                    f"rates is {list(self.rates)}: expected ascending requests a second, above 0"
                )
            before = rate
        if self.poisson and not self.rates:
            raise ConfigurationError("poisson is true and rates is empty: expected rates")

    def read(self) -> Requests:
        """Return the requests of the table.

        Raises:
            ConfigurationError: see ``read_requests``.
        """
        requests = read_requests(self.file)
        return requests if self.poisson or self.count is None else requests.first(self.count)

    def at(self, requests: Requests, rate: float | None) -> Requests:
        """Return the requests of one load.

        Raises:
            ConfigurationError: no rate can be made of them.
        """
        if rate is None:
            return requests
        if self.poisson:
            return requests.poisson(rate, self.count or len(requests), self.seed)
        return requests.at_rate(rate)


@dataclass(frozen=True, kw_only=True)
class Serving(Described):
    """A question of serving. Every design serves the same requests at every load.

    Attributes:
        requests: which, and at which loads.
        designs: what steps cost, by the name of what costs so.
        server: what there is, of each design.
        level: what users were promised.
        scheduler: ``FILE.py:NAME``, called with the server for each replica; the fabric's own where
            None.
        name: of the question.
        question: what it answers.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    requests: RequestDescription
    designs: Mapping[str, TableDescription | FabricDescription]
    server: Server = field(default_factory=Server)
    level: ServiceLevel = field(default_factory=ServiceLevel)
    scheduler: str | None = None
    name: str = ""
    question: str = ""

    @override
    def __post_init__(self) -> None:
        """Refuse a question about nothing.

        Raises:
            ConfigurationError: there is no design.
        """
        super().__post_init__()
        if not self.designs:
            raise ConfigurationError("designs is empty: expected what steps cost")

    @property
    def loads(self) -> tuple[float | None, ...]:
        """Requests a second of each run; None where they come as the table has it."""
        return self.requests.rates or (None,)


def open_servings(path: Path) -> list[Serving]:
    """Return what a file says.

    Args:
        path: of TOML with sections ``requests``, ``server``, ``cost``, ``level`` and
            ``designs.NAME``, each of which changes keys of ``cost``; or of Python that defines
            ``servings() -> list[Serving]``.
    """
    if path.suffix == ".py":
        return _of_python(path)
    file = str(path)
    content = read_toml(path, _EXPECTED)
    for name, value in content.items():
        known = (*_SECTIONS, *_TEXTS)
        if name not in known:
            expected = one_of(list(known), name)
            refuse_key(f"{name} is not known here: expected {expected}", file, name)
        if not isinstance(value, str if name in _TEXTS else dict):
            expected = "a text" if name in _TEXTS else f"a section, [{name}] with keys"
            refuse_key(f"{name} is {found_text(value)}: expected {expected}", file, name)
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
    """Return the factory ``FILE.py:NAME`` of schedulers; the built-in one if None."""
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
            what = f"designs.{name} is {found_text(own)}: expected a section, [designs.{name}]"
            refuse_key(what, str(path), "designs", name)
        merged = {**common, **own}
        for key, value in common.items():
            if isinstance(value, dict) and isinstance(own.get(key), dict):
                merged[key] = {**value, **own[key]}
        found[name] = _cost(f"designs.{name}", merged, path)
    return found


def _cost(name: str, table: Mapping[str, Any], path: Path) -> TableDescription | FabricDescription:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        what = f"kind is {found_text(kind)}: expected {one_of(list(_KINDS), str(kind))}"
        refuse_key(f"[{name}] {what}", str(path), *name.split("."), "kind")
    return _section(_KINDS[kind], name, table, path, ("kind",))


def _section(
    section: type[Section],
    name: str,
    table: Mapping[str, Any],
    path: Path,
    tags: Sequence[str] = (),
) -> Section:
    """Return a section's description; paths are relative to its file."""
    values = dict(table)
    for key in _PATHS:
        if isinstance(values.get(key), str):
            values[key] = path.parent / values[key]
    if isinstance(values.get("hardware"), str):
        try:
            values["hardware"] = hardware_file(values["hardware"], path.parent)
        except ConfigurationError as error:
            refuse_key(error.message, str(path), *name.split("."), "hardware")
    for key in (each.name for each in fields(section)):  # type: ignore[arg-type]
        if isinstance(values.get(key), list):
            values[key] = tuple(values[key])
    return described_section(section, name, values, str(path), tags)
