"""What the paper's text claims, and what comes of computing it again.

A value within one unit of its last printed digit is reproduced. Where the authors compare unequal
resources or count memory in two ways, it has to hold with equal ones, too.

What differs by less than 2 % is not contradicted: our cycles are held to no more than that of
theirs; published cycles of one graph differ by 0.3 %, and a ratio of the text (1.65) from that of
the published cycles (1.669) by 1.2 %, because the runs behind the text were made anew and only
older ones are published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fabric import Claim, ConfigurationError, Findings, Judgement, Verdict
from paper.printed import Printed
from paper.tables import rows

__all__ = ["Found", "claim", "compared", "mean", "number", "published_claim", "published_claims"]

_SLACK: Final = 0.02
"""What our cycles may differ from published ones: ``tests/programs/test_published.py``."""


@dataclass(frozen=True)
class Found:
    """What a claim comes to.

    Attributes:
        values: computed as the authors did; of a range all of them.
        equal: computed with equal resources, by what is equal.
        note: how it was computed.
        unpublished: what would have to be known to decide the claim; empty where all is.
    """

    values: tuple[float, ...]
    equal: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    unpublished: str = ""


def number(findings: Findings, metric: str, /, **setting: object) -> float:
    """Return a metric of the only point with these values.

    Raises:
        ConfigurationError: it did not complete; there is none, or there are several.
    """
    found = findings.value(metric, **setting)
    if found is None:
        told = ", ".join(f"{name}={value}" for name, value in setting.items())
        raise ConfigurationError(f"the point with {told} did not complete")
    return found


def published_claims() -> list[tuple[str, str, str]]:
    """Return what the text claims: the text, where it stands, and the value there.

    A row of the table that has several values is as many claims; one that says how the text
    contradicts itself is one.
    """
    found = []
    for row in rows("paper_claims.csv"):
        values = [row["published_value"]]
        if row["verdict"] != "internally inconsistent":
            values = re.split(r"; | / |, ", row["published_value"])
        texts = row["claim"].split("; ")
        if len(texts) != len(values):
            texts = [row["claim"]] * len(values)
        found += [(text, _location(row), value) for text, value in zip(texts, values, strict=True)]
    return found


def mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(list(values)))))


def published_claim(text: str, value: str = "") -> tuple[str, str, str]:
    """Return the only claim of a text, and, where it has several, of a value.

    Raises:
        LookupError: there is no such claim, or there are several.
    """
    found = [each for each in published_claims() if each[0] == text and value in ("", each[2])]
    if len(found) != 1:
        raise LookupError(f"{len(found)} claims are {text!r} {value}: expected one")
    return found[0]


def claim(
    text: str, compute: Callable[[Findings], Found | Judgement], published: str = ""
) -> Claim:
    """Return a claim of the table.

    Args:
        text: as it stands there.
        compute: computes it again.
        published: the value there; needed where one text has several.

    Raises:
        LookupError: there is no such claim, or there are several.
    """
    text, location, value = published_claim(text, published)

    def judge(findings: Findings) -> Judgement:
        found = compute(findings)
        return found if isinstance(found, Judgement) else compared(found, Printed.parse(value))

    return Claim(text, location, value, judge)


def compared(found: Found, printed: Printed) -> Judgement:
    """Compare what a claim comes to with what is printed."""
    notes = [found.note, found.unpublished]
    notes += [f"With {how}: {printed.told([value])}." for how, value in found.equal.items()]
    off = max((printed.off(each) for each in found.values), key=abs, default=0.0)
    if found.unpublished:
        verdict = Verdict.UNPUBLISHED
    elif printed.holds(found.values):
        equal = [printed.holds([each]) for each in found.equal.values()]
        verdict = Verdict.REPRODUCED if not equal or any(equal) else Verdict.UNEQUAL
    elif abs(off) < _SLACK:
        verdict = Verdict.UNPUBLISHED
        notes.append(f"Differs by {off:+.1%}; our cycles are held to 2 % of the authors'.")
    else:
        verdict = Verdict.CONTRADICTED
    return Judgement(printed.told(found.values), verdict, " ".join(filter(None, notes)))


def _location(row: dict[str, str]) -> str:
    """Return where a claim stands, in words."""
    figure, place = row["figure"], row["location"]
    if place in ("caption", "annotation"):
        told = f"{place} of figure {figure}"
    elif re.fullmatch(r"[A-Z]\.\d+", place):
        told = f"appendix {place}"
    elif re.fullmatch(r"[\d.]+", place):
        told = f"section {place}"
    else:
        told = place
    return told if row["paper_version"] == "v2" else f"{told} of the first version"
