"""What is known of a study from elsewhere: published values, and claims about its findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from fabric.explore.study.outcome import Outcome
from fabric.explore.study.space import Setting
from fabric.graph.arguments.described import Described
from fabric.messages.telling.errors import ConfigurationError, FabricError

__all__ = ["Claim", "Findings", "Judgement", "KnownValue", "Verdict"]


class Findings(Protocol):
    """The points of a study and their outcomes."""

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Those that were dealt with, in the order of the space."""

    @property
    def front(self) -> Sequence[int]:
        """Indices of the points that nothing dominates."""

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes whose settings, with what is fixed, have these values."""

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None where it did not complete.

        Raises:
            ConfigurationError: there is no such point, or there are several.
        """


@dataclass(frozen=True)
class KnownValue(Described):
    """A published value of a point.

    Attributes:
        setting: what names the point; of its axes, as many as it takes.
        metric: whose value.
        value: as published.
        source: who says so.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    setting: Setting
    metric: str
    value: float
    source: str


class Verdict(StrEnum):
    """What may come of checking a claim.

    Attributes:
        REPRODUCED: our points give what is claimed.
        UNEQUAL: they give it as the authors compare, but not if both sides have equal resources.
        RECOMPUTED: the published points give it; ours do not decide it.
        INCONSISTENT: other published numbers contradict it, whatever our points say.
        UNPUBLISHED: nothing decides it, because something is not published.
        CONTRADICTED: our points say otherwise.
    """

    REPRODUCED = "reproduced"
    UNEQUAL = "reproduced only on unequal terms"
    RECOMPUTED = "true of the published points"
    INCONSISTENT = "inconsistent with what is published"
    UNPUBLISHED = "not reproducible from what is published"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class Judgement(Described):
    """The result of checking a claim.

    Attributes:
        found: what we find instead of the published value; empty where it cannot be computed.
        verdict: what comes of it.
        note: how it was computed, and why the verdict is what it is.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    found: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Claim(Described):
    """A statement, such as a sentence of a paper, that a study's points decide.

    Attributes:
        text: what is claimed.
        location: where, as in ``section 5.2``.
        published: the value there.
        judge: computes it again.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    text: str
    location: str
    published: str
    judge: Callable[[Findings], Judgement]
