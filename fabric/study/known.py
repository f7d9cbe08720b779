"""What is known of a study from elsewhere: published values, and what a text claims of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fabric.study.findings import Findings
from fabric.study.space import Setting

__all__ = ["Claim", "Judgement", "KnownValue", "Verdict"]


@dataclass(frozen=True)
class KnownValue:
    """A published value of a point.

    Attributes:
        setting: what names the point; of its axes, as many as it takes.
        metric: whose value.
        value: as published.
        source: who says so.
    """

    setting: Setting
    metric: str
    value: float
    source: str


class Verdict(StrEnum):
    """What comes of computing a claim again."""

    REPRODUCED = "reproduced"
    UNEQUAL = "reproduced only with unequal accounting"
    UNPUBLISHED = "not reproducible from what is published"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class Judgement:
    """A claim, computed again.

    Attributes:
        found: what we find instead of the published value; empty where it cannot be computed.
        verdict: what comes of it.
        note: how it was computed, and why the verdict is what it is.
    """

    found: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence of a text that a study's points decide.

    Attributes:
        text: what is claimed.
        location: where, as in ``section 5.2``.
        published: the value there.
        judge: computes it again.
    """

    text: str
    location: str
    published: str
    judge: Callable[[Findings], Judgement]
