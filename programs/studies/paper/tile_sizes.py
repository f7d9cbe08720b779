"""The studies of figures 9, 10, 19 and 20: static tiles and the dynamic tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fabric import Claim, Picture, Study
from paper import camera_ready
from paper.published import closed_forms, known, tiling
from paper.tables import PROGRAMS
from paper.tradeoff import CAPTION, TRAFFIC, Annotation, tradeoff
from paper.workloads import MIXTRAL_64, MIXTRAL_1024, QWEN_64, QWEN_1024

_LAYERS: Final = {64: (MIXTRAL_64, QWEN_64), 1024: (MIXTRAL_1024, QWEN_1024)}


def cycles_study(figure: int, batch: int, claims: Sequence[Claim]) -> Study:
    layers, printed = _LAYERS[batch], list(camera_ready.tiling(batch))
    title = f"Figure {figure}: cycles and on-chip memory, batch {batch}"
    return Study(
        program=PROGRAMS / "moe.py",
        question="Does a dynamic tile take fewer cycles or less memory than every static one?",
        fixed={"tile_f": 64},
        space=layers[0].space + layers[1].space,
        known=known(printed, tiling(batch)),
        claims=tuple(claims),
        pictures=(Picture(_name(figure), title, tradeoff(layers, printed), CAPTION),),
    )


def traffic_study(figure: int, batch: int, annotations: Sequence[Annotation]) -> Study:
    layers, printed = _LAYERS[batch], list(camera_ready.tiling(batch))
    title = f"Figure {figure}: off-chip traffic and on-chip memory, batch {batch}"
    draw = tradeoff(layers, printed, TRAFFIC, annotations)
    return Study(
        program=PROGRAMS / "moe.py",
        question=f"What do static tiles of batch {batch} cost in traffic and in padding?",
        fixed={"tile_f": 64},
        space=layers[0].published_space + layers[1].published_space,
        known=known(printed, closed_forms(batch)),
        pictures=(Picture(_name(figure), title, draw, CAPTION),),
    )


def _name(figure: int) -> str:
    return f"figure_{figure:02}"
