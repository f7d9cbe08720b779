"""The ratios of figures 9, 10 and 12 to 15, on one memory and on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from fabric import Findings
from paper.attention import speedups
from paper.claims import published_claim
from paper.memories import BANKED, FLAT, LAYERS, Keys, View
from paper.multiplexing import overhead_percent, ratio
from paper.printed import Printed
from paper.tiling import BATCH_64, BATCH_1024, EQUAL_FLOPS, Comparison, designs, speedup
from paper.workloads import MIXTRAL_1024, TRACE_15, Layer, cache_traces

Compute: TypeAlias = Callable[[View], Sequence[float]]

COLUMNS: Final = ("figure", "what", "published", "flat", "banked", "result")
_SLACK: Final = 0.02
"""Ratios on both memories, all ours, that differ by less are called the same."""


@dataclass(frozen=True)
class Ratio:
    """A ratio that the paper compares.

    Attributes:
        published: the number; empty if not published.
        compute: computes it, for a range all its values.
        setting: further parameters of its points.
    """

    figure: str
    what: str
    published: str
    compute: Compute
    setting: Mapping[str, object] = field(default_factory=dict)

    def on(self, findings: Findings, keys: Keys) -> tuple[float, ...]:
        """Return its values on the memory with these hardware keys."""
        return tuple(self.compute(View(findings, keys, self.setting)))

    @property
    def printed(self) -> Printed:
        return Printed.parse(self.published or "1.00")


def rows(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield each ratio as published and on both memories, and the result of the comparison."""
    for each in RATIOS:
        flat, banked = each.on(findings, FLAT), each.on(findings, BANKED)
        told = each.printed.told
        became_of = became(flat, banked, in_percent=each.printed.unit == "%")
        yield each.figure, each.what, each.published, told(flat), told(banked), became_of


def became(flat: Sequence[float], banked: Sequence[float], *, in_percent: bool) -> str:
    """Return the change of a ratio, for a range at both ends.

    Args:
        flat: its values on the flat memory.
        banked: its values on the memory with banks.
        in_percent: whether it is a percentage of increase: 5 is a ratio of 1.05.
    """
    ends = (min, max) if len(flat) > 1 else (max,)
    told = [_became(pick(flat), pick(banked), in_percent) for pick in ends]
    if len(set(told)) == 1:
        return told[0]
    return f"least {told[0]}, largest {told[1]}"


def _became(flat: float, banked: float, in_percent: bool) -> str:
    before, after = (1 + each / 100 if in_percent else each for each in (flat, banked))
    change = after / before - 1
    if abs(change) < _SLACK:
        return "holds"
    if (before - 1) * (after - 1) < 0:
        return "turns round"
    return f"{'grows' if change > 0 else 'shrinks'} by {100 * abs(change):.0f} %"


def _tiling(figure: str, text: str, published: str, comparison: Comparison) -> Ratio:
    """Return a number of figure 9 or 10, for the tiles that run here."""
    mine = replace(comparison, layer=_run_here(comparison.layer))
    return Ratio(figure, text, published, lambda view: mine(view).values, {"tile_f": 64})


def _claimed(figure: str, text: str, comparison: Comparison) -> Ratio:
    return _tiling(figure, text, published_claim(text).value, comparison)


def _run_here(layer: Layer) -> Layer:
    (found,) = (each for each in LAYERS if (each.title, each.batch) == (layer.title, layer.batch))
    return found


def _best(layer: Layer) -> Ratio:
    """Return the ratio of the fastest static tile's cycles to the dynamic tile's."""

    def compute(view: View) -> Sequence[float]:
        counted = "all experts"
        fixed, ours = designs(view, layer, counted, counted, EQUAL_FLOPS)
        return (min(each.cycles for each in fixed.values()) / ours.cycles,)

    figure = "9" if layer.batch == 64 else "10"
    what = f"{layer.title}: dynamic vs the fastest static tile, 4096 FLOPs per cycle on both sides"
    return Ratio(figure, what, "", compute, {"tile_f": 64})


def _gain(text: str, tiling: str) -> Ratio:
    claimed = published_claim(text)

    def compute(view: View) -> Sequence[float]:
        return (ratio(view, "compute_utilization", tiling),)

    return Ratio("12", claimed.text, claimed.value, compute, {"tile_f": 48})


def _overhead(text: str, tiling: str) -> Ratio:
    claimed = published_claim(text)

    def compute(view: View) -> Sequence[float]:
        return (overhead_percent(view, tiling, 32),)

    return Ratio("12, 13", claimed.text, claimed.value, compute, {"tile_f": 48})


def _of_traces(kv_class: str) -> Ratio:
    claimed = published_claim(f"Dynamic over interleave, {kv_class} variation (range)")
    traces = cache_traces(64, kv_class)

    def compute(view: View) -> Sequence[float]:
        return speedups(view, "interleaved", traces)

    return Ratio("14", claimed.text, claimed.value, compute, {"requests": 64})


def _over_blocks(requests: int) -> Ratio:
    claimed = published_claim(f"Dynamic over coarse, batch {requests}")

    def compute(view: View) -> Sequence[float]:
        return speedups(view, "coarse", (TRACE_15,))

    return Ratio("15", claimed.text, claimed.value, compute, {"requests": requests})


RATIOS: Final = (
    *(_claimed("9", text, each) for text, each in BATCH_64.items() if each.of_cycles),
    *(_claimed("10", text, each) for text, each in BATCH_1024.items() if each.of_cycles),
    _tiling("10", "Mixtral b1024 dynamic vs tile=1024 speedup", "", speedup(MIXTRAL_1024, 1024)),
    *map(_best, LAYERS),
    _gain("Static tiling: compute utilisation gain at 32 regions", "static"),
    _overhead("Static tiling: overhead at 32 regions", "static"),
    _gain("Dynamic tiling: utilisation gain at 32 regions", "dynamic"),
    _overhead("Dynamic tiling: overhead at 32 regions", "dynamic"),
    _of_traces("low"),
    _of_traces("high"),
    *map(_over_blocks, (16, 64)),
)
"""The ratios that involve cycles."""
