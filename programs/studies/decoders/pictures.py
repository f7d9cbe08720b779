"""Pictures of whole decoders."""

from __future__ import annotations

from matplotlib.figure import Figure

from decoders.claims import PUBLISHED
from decoders.matching import PAPER, compared
from decoders.points import DECODERS
from fabric import Findings


def draw_points(findings: Findings, figure: Figure) -> None:
    for axes, decoder in zip(figure.subplots(1, len(DECODERS)), DECODERS, strict=True):
        comparison = compared(findings, decoder)
        axes.set_title(decoder.title)
        axes.set_xlabel("on chip, MB")
        axes.set_ylabel("cycles of a layer, thousands")
        if comparison is None:
            continue
        for static in comparison.static:
            place = (static.bytes_[PAPER] / 1e6, static.cycles / 1e3)
            axes.plot(*place, "o", color="0.4")
            axes.annotate(f"  tile {static.setting['tile_n']}", place)
        ours = comparison.ours
        place = (ours.bytes_[PAPER] / 1e6, ours.cycles / 1e3)
        axes.plot(*place, "*", markersize=12)
        axes.annotate("all three", place, (0, -16), textcoords="offset points", ha="center")
        axes.margins(0.25)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)


def draw_ratios(findings: Findings, figure: Figure) -> None:
    axes = figure.subplots()
    names = []
    for row, published in enumerate(reversed(PUBLISHED)):
        comparison = compared(findings, published.decoder)
        names.append(f"{published.decoder.title}, {published.against}-matched:\n{published.what}")
        axes.plot(
            published.value, row, "D", color="0.6", label="the paper's text" if not row else None
        )
        axes.plot(
            published.of_bars,
            row,
            "o",
            color="black",
            markerfacecolor="none",
            markersize=9,
            label="its bars" if not row else None,
        )
        if comparison is not None:
            found = published.found(comparison)
            axes.plot(found, row, "o", color="C0", label="here" if not row else None)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
