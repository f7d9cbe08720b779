"""The designs that figures 9, 10 and 12 to 15 compare, and their ratios, by hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from fabric import Findings
from paper.attention import speedups
from paper.claims import number, published_claim
from paper.memories import FLAT, LAYERS, Keys, View
from paper.multiplexing import CLAIMS
from paper.printed import Printed
from paper.tiling import BATCH_64, BATCH_1024, EQUAL_FLOPS, Comparison, designs, speedup
from paper.workloads import MIXTRAL_1024, TRACE_15, Layer, cache_traces

Compute: TypeAlias = Callable[[View], float | Sequence[float]]
Setting: TypeAlias = Mapping[str, object]

_SLACK: Final = 0.02
"""Our ratios on different hardware are called equal if they differ by less."""


@dataclass(frozen=True)
class Ratio:
    """A ratio that the paper compares.

    Attributes:
        published: the number; empty if not published.
        compute: computes the ratio, or all values of a range.
        setting: further parameters of the compared points.
    """

    figure: str
    what: str
    published: str
    compute: Compute
    setting: Mapping[str, object] = field(default_factory=dict)

    def on(self, findings: Findings, keys: Keys) -> tuple[float, ...]:
        values = self.compute(View(findings, keys, self.setting))
        return (values,) if isinstance(values, float) else tuple(values)

    @property
    def printed(self) -> Printed:
        return Printed.parse(self.published or "1.00")


def rows(findings: Findings, hardware: Iterable[Keys]) -> Iterator[tuple[object, ...]]:
    """Yield each ratio: published, on each hardware, and the change from first to last hardware."""
    for each in RATIOS:
        values = [each.on(findings, keys) for keys in hardware]
        result = change(values[0], values[-1], in_percent=each.printed.unit == "%")
        yield each.figure, each.what, each.published, *map(each.printed.told, values), result


def change(before: Sequence[float], after: Sequence[float], *, in_percent: bool) -> str:
    """Return the change of a ratio, or of both ends of a range.

    With ``in_percent``, values are percentages of increase, such as 5 for a ratio of 1.05.
    """
    ends = (min, max) if len(before) > 1 else (max,)
    changes = [_change_of_end(pick(before), pick(after), in_percent) for pick in ends]
    if len(set(changes)) == 1:
        return changes[0]
    return f"least {changes[0]}, largest {changes[1]}"


def _change_of_end(before: float, after: float, in_percent: bool) -> str:
    if in_percent:
        before, after = 1 + before / 100, 1 + after / 100
    change = after / before - 1
    if abs(change) < _SLACK:
        return "holds"
    if (before - 1) * (after - 1) < 0:
        return "turns round"
    return f"{'grows' if change > 0 else 'shrinks'} by {100 * abs(change):.0f} %"


def by_workload(
    findings: Findings, cells: Callable[[Findings, Setting], tuple[object, ...]]
) -> Iterator[tuple[object, ...]]:
    """Yield rows for the paper's workloads. Layers have the fastest static tile and the dynamic."""
    for layer in LAYERS:
        view: dict[str, object] = {"model": layer.model, "batch": layer.batch, "tile_f": 64}
        static: dict[str, object] = {"tiling": "static", "tile_n": _fastest(findings, layer)}
        dynamic: dict[str, object] = {"tiling": "dynamic", "flops_per_cycle": EQUAL_FLOPS}
        yield layer.title, f"static, {static['tile_n']} rows", *cells(findings, view | static)
        yield layer.title, "dynamic", *cells(findings, view | dynamic)
    for tiling in ("static", "dynamic"):
        shared = {"tile_f": 48, "tiling": tiling, "regions": 32}
        yield "Qwen3-30B-A3B, batch 64, 32 regions", tiling, *cells(findings, shared)
    for title, trace, requests, other in (
        ("attention, 64 requests, high variation", cache_traces(64, "high")[-1], 64, "interleaved"),
        ("attention, 16 requests", TRACE_15, 16, "coarse"),
    ):
        for strategy in (other, "dynamic"):
            setting = {"kv": trace.path, "requests": requests, "strategy": strategy}
            yield title, strategy, *cells(findings, setting)


def _fastest(findings: Findings, layer: Layer) -> int:
    """Return the rows of the static tile with the fewest cycles on the flat memory."""
    view = View(findings, FLAT, {"model": layer.model, "batch": layer.batch, "tile_f": 64})
    return min(layer.tiles, key=lambda each: number(view, "cycles", tiling="static", tile_n=each))


def _tiling(figure: str, text: str, published: str, comparison: Comparison) -> Ratio:
    """Return a ratio of figure 9 or 10, over the tiles that run here."""
    layer = next(each for each in LAYERS if each.title == comparison.layer.title)
    compared = replace(comparison, layer=layer)
    return Ratio(figure, text, published, lambda view: compared(view).values, {"tile_f": 64})


def _best(layer: Layer) -> Ratio:
    """Return the cycles of the fastest static tile over the cycles of the dynamic tile."""

    def compute(view: View) -> float:
        counted = "all experts"
        fixed, ours = designs(view, layer, counted, counted, EQUAL_FLOPS)
        return min(each.cycles for each in fixed.values()) / ours.cycles

    figure = "9" if layer.batch == 64 else "10"
    what = f"{layer.title}: dynamic vs the fastest static tile, 4096 FLOPs per cycle on both sides"
    return Ratio(figure, what, "", compute, {"tile_f": 64})


def _claimed(figure: str, text: str, compute: Compute, setting: Mapping[str, object]) -> Ratio:
    return Ratio(figure, text, published_claim(text).value, compute, setting)


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
    *(_claimed("12", text, compute, {"tile_f": 48}) for text, compute in CLAIMS.items()),
    _of_traces("low"),
    _of_traces("high"),
    *map(_over_blocks, (16, 64)),
)
"""The ratios that involve cycles."""
