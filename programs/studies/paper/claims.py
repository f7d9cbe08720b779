"""The claims of the paper's text, and their verdicts after computing them again.

One rule decides all claims, in this order (``compared``):

1. A claim that the published points contradict is *inconsistent*, whatever our points say. Printed
   points are used if available, and earlier runs otherwise. The first version has its own points.
2. If the text leaves the comparison open, or the graph is not public, our points decide nothing.
   The claim is *true of the published points*, or not reproducible without such points. A guessed
   comparison that gives the number does not reproduce the claim.
3. A claim that our points miss by more than 1.2 % is *contradicted*: a ratio compares two runs, and
   our cycles of each are within 0.6 % of the authors' (``tests/programs/test_published.py``).
4. If the authors give one side more resources than the other, or count them in another way, the
   number has to hold for each way of equal resources. Otherwise the claim is reproduced *only on
   unequal terms*.
5. A claim is *reproduced* if all these numbers match the printed number (``printed.py``). If a
   number is within 1.2 % but does not match, the published points decide as in 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fabric import Claim, ConfigurationError, Findings, Judgement, Verdict
from paper.printed import Printed
from paper.tables import rows

_SLACK: Final = 0.012
"""The tolerance of a ratio of two cycles."""


@dataclass(frozen=True)
class Found:
    """The computed values of a claim.

    Attributes:
        values: the value, computed as by the authors; for a range, the values of all its points.
        equal: if the authors compare unequal resources, the value with equal resources, by the way
            in which they are equal.
        note: describes the computation.
        unpublished: describes missing information; empty if the information is complete.
    """

    values: tuple[float, ...]
    equal: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    unpublished: str = ""


@dataclass(frozen=True)
class PublishedClaim:
    """A row of the table of claims.

    Attributes:
        value: the number as printed.
        of_points: the value from the published points, both ends for a range; empty without such
            points.
    """

    text: str
    location: str
    value: str
    of_points: tuple[float, ...]


def number(findings: Findings, metric: str, /, **setting: object) -> float:
    """Return a metric of the only point with these settings, which must have completed."""
    value = findings.value(metric, **setting)
    if value is None:
        settings = ", ".join(f"{name}={value}" for name, value in setting.items())
        raise ConfigurationError(f"the point with {settings} did not complete")
    return value


def published_claims() -> list[PublishedClaim]:
    return [
        PublishedClaim(
            row["claim"],
            _location(row),
            row["published_value"],
            tuple(map(float, filter(None, row["value_of_published_points"].split("-")))),
        )
        for row in rows("paper_claims.csv")
    ]


def mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def published_claim(text: str, value: str = "") -> PublishedClaim:
    """Return the only claim with ``text``, and with ``value`` if several share the text."""
    claims = [
        each for each in published_claims() if each.text == text and value in ("", each.value)
    ]
    if len(claims) != 1:
        raise LookupError(f"{len(claims)} claims are {text!r} {value}: expected 1 claim")
    return claims[0]


def claim(
    text: str, compute: Callable[[Findings], float | Found | Judgement], published: str = ""
) -> Claim:
    """Return a claim of the table, computed again by ``compute``.

    ``published`` is the claim's value in the table, needed if several claims share the text.
    """
    of_text = published_claim(text, published)

    def judge(findings: Findings) -> Judgement:
        found = compute(findings)
        if isinstance(found, Judgement):
            return found
        if not isinstance(found, Found):
            found = Found((found,))
        return compared(found, Printed.parse(of_text.value), of_text.of_points)

    return Claim(of_text.text, of_text.location, of_text.value, judge)


def compared(found: Found, printed: Printed, of_points: Sequence[float] = ()) -> Judgement:
    """Judge a claim by this module's rule. ``of_points`` has values from the published points."""
    notes = [found.note, found.unpublished]
    notes += [f"With {how}: {printed.told([value])}." for how, value in found.equal.items()]
    notes += [f"The published points give {printed.told(of_points)}."] if of_points else []
    every = [found.values, *([each] for each in found.equal.values())]
    offs = list(map(printed.off, every))
    verdict = Verdict.RECOMPUTED if of_points else Verdict.UNPUBLISHED
    if of_points and not printed.holds(of_points):
        verdict = Verdict.INCONSISTENT
    elif found.unpublished:
        pass
    elif offs[0] > _SLACK:
        verdict = Verdict.CONTRADICTED
    elif max(offs) > _SLACK:
        verdict = Verdict.UNEQUAL
    elif not any(offs):
        verdict = Verdict.REPRODUCED
    else:
        notes.append("Our value misses it by no more than the error of our cycles.")
    return Judgement(printed.told(found.values), verdict, " ".join(filter(None, notes)))


def _location(row: dict[str, str]) -> str:
    places = " and ".join(_place(row["figure"], each) for each in row["location"].split("; "))
    return places if row["paper_version"] == "v2" else f"{places} of the first version"


def _place(figure: str, place: str) -> str:
    if place in ("caption", "annotation"):
        return f"{place} of figure {figure}"
    if re.fullmatch(r"[A-Z]\.\d+", place):
        return f"appendix {place}"
    if re.fullmatch(r"[\d.]+", place):
        return f"section {place}"
    return place
