"""All layers of the decoders, in the layouts that figure 17 compares."""

from __future__ import annotations

from matplotlib.figure import Figure
from paper.workloads import listed

from decoders.matching import compared
from decoders.points import ASSUMED, DECODERS, Decoder, Parameters
from fabric import Findings, Space, grid


def space() -> Space:
    """Return all layers in the compared layouts, and the first layer in every other layout."""
    parts = []
    for decoder in DECODERS:
        matched = list(_layouts(decoder).values())
        for layout in decoder.layouts:
            layers = range(decoder.layers if layout in matched else 1)
            parts.append(listed([decoder.named | ASSUMED | layout]) * grid(first_layer=layers))
    return sum(parts, Space(()))


def draw_layers(findings: Findings, figure: Figure) -> None:
    for axes, decoder in zip(figure.subplots(1, len(DECODERS)), DECODERS, strict=True):
        for title, layout in _layouts(decoder).items():
            outcomes = findings.matching(**decoder.named, **layout)
            cycles = [each.numbers.get("cycles") for each in outcomes]
            axes.plot(
                [each.setting["first_layer"] for each in outcomes],
                [each / 1e3 if isinstance(each, int) else None for each in cycles],
                label=title,
            )
        comparison = compared(findings, decoder)
        if comparison is not None:
            total = comparison.ours.cycles * decoder.layers
            axes.set_title(f"{decoder.title}: {total / 1e6:.1f} million cycles in all layers")
        axes.set_xlabel("layer")
        axes.set_ylabel("cycles, thousands")
        axes.set_ylim(bottom=0)
        axes.legend()


def _layouts(decoder: Decoder) -> dict[str, Parameters]:
    matched = (decoder.memory_matched, decoder.performance_matched)
    return {f"tile {tile}": decoder.static(tile) for tile in matched} | {"all three": decoder.ours}
