"""A question of serving: requests, server, costs and loads, and the files that describe it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from typing_extensions import override

from fabric.explore.serving.measured_costs import TableDescription
from fabric.explore.serving.requests import Requests, read_requests
from fabric.explore.serving.run_costs import FabricDescription
from fabric.explore.serving.served import MakeScheduler, ServiceLevel
from fabric.explore.serving.server import ContinuousBatching, Count, Server
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section, described_section, refuse_key
from fabric.graph.loading.program_file import call_function, executed
from fabric.messages.errors import ConfigurationError, ProgramError
from fabric.messages.files import hardware_file, read_toml
from fabric.messages.text import found_text, one_of

_KINDS: Final[Mapping[str, type[TableDescription | FabricDescription]]] = {
    "tables": TableDescription,
    "fabric": FabricDescription,
}

_SECTIONS: Final = ("requests", "server", "cost", "designs", "level")
_TEXTS: Final = ("question", "scheduler")
Read = TypeVar("Read", bound=Section)


@dataclass(frozen=True, kw_only=True)
class RequestDescription(Section):
    """Requests, and the loads at which they arrive.

    Attributes:
        file: a table of requests; see ``read_requests``.
        count: number of requests, from the start of the table; by default all.
        rates: loads in requests per second, ascending; by default one load, the table's times.
        poisson: draw ``count`` random arrivals, with lengths from the table.
    """

    file: Path
    count: Count | None = None
    rates: tuple[float, ...] = ()
    poisson: bool = False
    seed: Annotated[int, Bounds(0, 2**31 - 1)] = 0

    @override
    def _faults(self) -> Iterator[str]:
        if not all(x < y for x, y in itertools.pairwise((0, *self.rates, math.inf))):
            yield f"rates is {list(self.rates)}: expected ascending requests a second, above 0"
        if self.poisson and not self.rates:
            yield "poisson is true and rates is empty: expected rates"

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
            ConfigurationError: all requests arrive at one time.
        """
        if rate is None:
            return requests
        if self.poisson:
            return requests.poisson(rate, self.count or len(requests), self.seed)
        return requests.at_rate(rate)


@dataclass(frozen=True, kw_only=True)
class Serving(Section):
    """A question of serving. At every load, every design serves the same requests.

    Attributes:
        designs: descriptions of step costs by design.
        scheduler: ``FILE.py:NAME``, called for each replica with the server; by default the
            fabric's own scheduler.
        question: a sentence for reports.
    """

    requests: RequestDescription
    designs: Mapping[str, TableDescription | FabricDescription]
    server: Server = field(default_factory=Server)
    level: ServiceLevel = field(default_factory=ServiceLevel)
    scheduler: str | None = None
    name: str = ""
    question: str = ""

    @override
    def _faults(self) -> Iterator[str]:
        if not self.designs:
            yield "designs is empty: expected a description of step costs"

    @property
    def loads(self) -> tuple[float | None, ...]:
        """Requests a second of each run; None for the arrival times of the table."""
        return self.requests.rates or (None,)


def open_servings(path: Path) -> list[Serving]:
    """Return the questions of a file.

    Args:
        path: a TOML file with sections ``requests``, ``server``, ``cost``, ``level`` and
            ``designs.NAME``, which override keys of ``cost``; or a Python file that defines
            ``servings() -> list[Serving]``.
    """
    if path.suffix == ".py":
        return _of_python(path)
    file = str(path)
    content = read_toml(path, "a description of a serving question in TOML")
    for name, value in content.items():
        names = [*_SECTIONS, *_TEXTS]
        if name not in names:
            refuse_key(f"{name} is unknown: expected {one_of(names, name)}", file, name)
        if not isinstance(value, str if name in _TEXTS else dict):
            expected = "a text" if name in _TEXTS else f"a section, [{name}] with keys"
            refuse_key(f"{name} is {found_text(value)}: expected {expected}", file, name)
    missing = [f"[{name}]" for name in ("requests", "cost") if name not in content]
    if missing:
        sections = " and ".join(missing)
        raise ConfigurationError(f"has no {sections}: expected [requests] and [cost]", file=file)
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


def scheduler_of(reference: str | None) -> MakeScheduler:
    """Return the scheduler class ``FILE.py:NAME``; by default the built-in one."""
    if reference is None:
        return ContinuousBatching
    file, _, name = reference.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ConfigurationError(f"scheduler is {reference!r}: expected FILE.py:NAME")
    value = getattr(executed(file), name, None)
    if not callable(value):
        raise ProgramError(
            f"{name} is {found_text(value)}: expected a class of schedulers", file=file
        )
    scheduler: MakeScheduler = value
    return scheduler


def _of_python(path: Path) -> list[Serving]:
    servings = call_function(executed(path), "servings")
    if not isinstance(servings, list) or not all(isinstance(each, Serving) for each in servings):
        raise ProgramError(
            f"servings() returned {found_text(servings)}: expected a list of Serving",
            file=str(path),
        )
    if not servings:
        raise ProgramError(
            "servings() returned an empty list: expected at least one Serving", file=str(path)
        )
    named = [replace(each, name=each.name or path.stem) for each in servings]
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
    costs = {}
    for name, own in designs.items():
        if not isinstance(own, dict):
            fault = f"designs.{name} is {found_text(own)}: expected a section, [designs.{name}]"
            refuse_key(fault, str(path), "designs", name)
        merged = {**common, **own}
        for key, value in common.items():
            if isinstance(value, dict) and isinstance(own.get(key), dict):
                merged[key] = {**value, **own[key]}
        costs[name] = _cost(f"designs.{name}", merged, path)
    return costs


def _cost(name: str, table: Mapping[str, Any], path: Path) -> TableDescription | FabricDescription:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        fault = "has no kind" if kind is None else f"kind is {found_text(kind)}"
        fault += f": expected {one_of(list(_KINDS), str(kind))}"
        refuse_key(f"[{name}] {fault}", str(path), *name.split("."), "kind")
    return _section(_KINDS[kind], name, table, path, ("kind",))


def _section(
    section: type[Read],
    name: str,
    table: Mapping[str, Any],
    path: Path,
    tags: Sequence[str] = (),
) -> Read:
    values = dict(table)
    if isinstance(values.get("hardware"), str):
        try:
            values["hardware"] = hardware_file(values["hardware"], path.parent)
        except ConfigurationError as error:
            refuse_key(error.message, str(path), *name.split("."), "hardware")
    for key, kind in ((each.name, str(each.type)) for each in fields(section)):  # type: ignore[arg-type]
        value = values.get(key)
        if isinstance(value, list):
            values[key] = tuple(value)
        elif isinstance(value, str) and kind.startswith("Path"):  # relative to the description
            values[key] = path.parent / value
    return described_section(section, name, values, str(path), tags)
