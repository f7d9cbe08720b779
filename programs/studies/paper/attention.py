"""Ways to hand requests to regions, beside each other: figures 14, 15 and 21."""

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
    """Return how many times faster dynamic parallelisation is than another, for each trace.

    Args:
        findings: have the runs.
        strategy: the other.
        traces: of which batches.
        read: ``number``, which raises where a run is missing, or ``found``, which does not.

    Raises:
        ConfigurationError: one of them did not complete.
    """
    return [
        read(findings, "cycles", kv=each.path, strategy=strategy)
        / read(findings, "cycles", kv=each.path, strategy="dynamic")
        for each in traces
    ]


def published_attention(
    traces: Sequence[CacheTrace], strategies: Sequence[str]
) -> Iterator[Published]:
    """Yield what is published of some traces."""
    paths = {each.path for each in traces}
    for each in attention():
        if each.setting["kv"] in paths and each.setting["strategy"] in strategies:
            yield each
