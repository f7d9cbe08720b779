"""What is known of a study from elsewhere: published values, and what a text claims of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from fabric.arguments.described import Described
from fabric.study.findings import Findings
from fabric.study.space import Setting
from fabric.telling.errors import ConfigurationError, FabricError

__all__ = ["Claim", "Judgement", "KnownValue", "Verdict"]


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
