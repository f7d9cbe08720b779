"""Comparisons of ways to assign requests to regions: figures 14, 15 and 21."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fabric import Findings
from paper.claims import number
from paper.published import Published, attention
from paper.workloads import CacheTrace


def speedups(
    findings: Findings,
    strategy: str,
    traces: Sequence[CacheTrace],
    read: Callable[..., float] = number,
) -> list[float]:
    """Return the speed-up of dynamic parallelisation over ``strategy``, for each trace.

    If a run is missing, ``read=number`` raises an error and ``read=found`` returns NaN.
    """
    return [
        read(findings, "cycles", kv=each.path, strategy=strategy)
        / read(findings, "cycles", kv=each.path, strategy="dynamic")
        for each in traces
    ]


def published_attention(
    traces: Sequence[CacheTrace], strategies: Sequence[str]
) -> Iterator[Published]:
    paths = {each.path for each in traces}
    for each in attention():
        if each.setting["kv"] in paths and each.setting["strategy"] in strategies:
            yield each
