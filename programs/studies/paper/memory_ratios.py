"""The ratios of figures 9, 10 and 12 to 15, on one memory and on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
        result = change(flat, banked, in_percent=each.printed.unit == "%")
        yield each.figure, each.what, each.published, told(flat), told(banked), result


def change(flat: Sequence[float], banked: Sequence[float], *, in_percent: bool) -> str:
    """Return the change of a ratio, for a range at both ends.

    Args:
        flat: its values on the flat memory.
        banked: its values on the memory with banks.
        in_percent: whether it is a percentage of increase: 5 is a ratio of 1.05.
    """
    ends = (min, max) if len(flat) > 1 else (max,)
    told = [_change_of_end(pick(flat), pick(banked), in_percent) for pick in ends]
    if len(set(told)) == 1:
        return told[0]
    return f"least {told[0]}, largest {told[1]}"


def _change_of_end(flat: float, banked: float, in_percent: bool) -> str:
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


def _claimed(figure: str, text: str, compute: Compute, setting: Mapping[str, object]) -> Ratio:
    return Ratio(figure, text, published_claim(text).value, compute, setting)


def _gain(tiling: str, view: View) -> Sequence[float]:
    return (ratio(view, "compute_utilization", tiling),)


def _overhead(tiling: str, view: View) -> Sequence[float]:
    return (overhead_percent(view, tiling, 32),)


def _of_traces(kv_class: str) -> Ratio:
    text = f"Dynamic over interleave, {kv_class} variation (range)"
    compute = partial(speedups, strategy="interleaved", traces=cache_traces(64, kv_class))
    return _claimed("14", text, compute, {"requests": 64})


def _over_blocks(requests: int) -> Ratio:
    text = f"Dynamic over coarse, batch {requests}"
    compute = partial(speedups, strategy="coarse", traces=(TRACE_15,))
    return _claimed("15", text, compute, {"requests": requests})


RATIOS: Final = (
    *(
        _tiling(figure, text, published_claim(text).value, each)
        for figure, batch in (("9", BATCH_64), ("10", BATCH_1024))
        for text, each in batch.items()
        if each.of_cycles
    ),
    _tiling("10", "Mixtral b1024 dynamic vs tile=1024 speedup", "", speedup(MIXTRAL_1024, 1024)),
    *map(_best, LAYERS),
    *(
        _claimed(figure, f"{text} at 32 regions", compute, {"tile_f": 48})
        for figure, text, compute in (
            ("12", "Static tiling: compute utilisation gain", partial(_gain, "static")),
            ("12, 13", "Static tiling: overhead", partial(_overhead, "static")),
            ("12", "Dynamic tiling: utilisation gain", partial(_gain, "dynamic")),
            ("12, 13", "Dynamic tiling: overhead", partial(_overhead, "dynamic")),
        )
    ),
    _of_traces("low"),
    _of_traces("high"),
    *map(_over_blocks, (16, 64)),
)
"""The ratios that involve cycles."""
