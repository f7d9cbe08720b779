"""Variants of the assumptions behind figure 17."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure
from paper.tables import cache_lengths

from decoders.claims import PUBLISHED
from decoders.matching import compared
from decoders.points import ASSUMED, DECODERS, Parameters
from fabric import Findings, Space

VARIANTS: Final[dict[str, Parameters]] = {
    "as assumed": {},
    "4 attention regions a head of Qwen": {"attention_regions": 16},
    "4,096 FLOPs a cycle": {"flops_per_cycle": 4096},
    "projection tiles of 64 columns": {"tile_p": 64},
    "another median trace": {"kv": cache_lengths("b64/conv_stdev0996_4007_4070.npy")},
    "caches that vary most": {"kv": cache_lengths("b64/conv_stdev1457_0961_1024.npy")},
    "routing by Zipf's law": {"routing": None},
}


def space() -> Space:
    assumed = [ASSUMED | each for each in VARIANTS.values()]
    return sum((decoder.space(each) for decoder in DECODERS for each in assumed), Space(()))


def draw_variants(findings: Findings, figure: Figure) -> None:
    """Draw a panel for each published ratio, with our ratio under every variant."""
    panels = figure.subplots(2, len(PUBLISHED) // 2, sharey=True).flat
    names = list(VARIANTS)
    for axes, published in zip(panels, PUBLISHED, strict=True):
        axes.set_title(
            f"{published.decoder.title}\n{published.against}-matched\n{published.what}",
            fontsize="medium",
        )
        axes.axvline(published.of_bars, color="0.6", label="paper")
        for place, variant in enumerate(VARIANTS.values()):
            comparison = compared(findings, published.decoder, assumed=ASSUMED | variant)
            if comparison is not None:
                axes.plot(published.found(comparison), -place, "o", color="C0")
        axes.set_yticks([-each for each in range(len(names))], names)
        axes.margins(0.2)
    figure.legend(["paper", "here"], loc="outside lower center", ncols=2)
