"""The claims of figures 9 and 10, decided with equal resources only."""

from __future__ import annotations

from functools import partial

from fabric import Claim, Findings, Judgement, Verdict
from paper.claims import Found, compared, published_claim
from paper.printed import Printed
from paper.tiling import Comparison, improvement
from paper.workloads import Layer

__all__ = ["again", "breaks_front"]


def again(text: str, comparison: Comparison) -> Claim:
    """Return a claim of the table with what comes of it when resources are equal.

    Where two ways to count memory are equal on both sides, one that reproduces it is enough.

    Args:
        text: as it stands in the table.
        comparison: computes it.
    """
    _, location, published = published_claim(text)
    judge = partial(_judged, comparison, Printed.parse(published))
    return Claim(f"With equal resources: {text}", location, published, judge)


def breaks_front(layer: Layer) -> Claim:
    """Return the claim that dynamic tiles of a layer lie beyond the front of all static ones."""
    return Claim(
        f"Dynamic tiling breaks the Pareto-optimal frontier: {layer.title}",
        "abstract",
        "PID above 1",
        partial(_beyond, improvement(layer)),
    )


def _judged(comparison: Comparison, printed: Printed, findings: Findings) -> Judgement:
    found = comparison(findings)
    equal = found.equal or {"what the paper compares, which is equal": found.values[0]}
    each = {how: compared(Found((value,)), printed) for how, value in equal.items()}
    best = min(each.values(), key=lambda judgement: list(Verdict).index(judgement.verdict))
    told = [f"With {how}: {judgement.found}." for how, judgement in each.items()]
    told.append(f"As published: {printed.told(found.values)}.")
    return Judgement(best.found, best.verdict, " ".join(told))


def _beyond(comparison: Comparison, findings: Findings) -> Judgement:
    found = comparison(findings)
    published, equal = found.values[0], found.equal
    told = " ".join(f"With {how}: {value:.4f}." for how, value in equal.items())
    verdict = Verdict.CONTRADICTED
    if published > 1:
        verdict = Verdict.REPRODUCED if min(equal.values()) > 1 else Verdict.UNEQUAL
    return Judgement(f"{published:.4f}", verdict, told)
