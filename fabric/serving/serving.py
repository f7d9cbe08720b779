"""A question of serving: which requests, which server, what its steps cost, at which loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.arguments.described import Described
from fabric.serving.costs.fabric import FabricDescription
from fabric.serving.costs.tables import TableDescription
from fabric.serving.measures import ServiceLevel
from fabric.serving.requests import Requests, read_requests
from fabric.serving.server import Server
from fabric.telling.errors import ConfigurationError, FabricError

__all__ = ["RequestDescription", "Serving"]

Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]


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
