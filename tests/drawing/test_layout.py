from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fabric.analysis.drawing.picture import Arrow, Box, Picture, picture_of
from fabric.analysis.drawing.svg import svg
from fabric.graph.wiring.elaborate import elaborate
from tests.drawing.geometry import clashes, drawn
from tests.profiles import spread
from tests.programs.loading import OF_TORCH
from tests.symbolic.programs import PROGRAMS, wired

SHIPPED = sorted(file.stem for file in PROGRAMS.glob("*.py") if file.stem not in OF_TORCH)


def chain(arrows: list[tuple[int, int]]) -> Picture:
    count = 1 + max(map(max, arrows), default=0)
    boxes = tuple(Box(f"box_{k}", 1, "Map", "compute", "x.py:1", None) for k in range(count))
    return Picture("p", boxes, tuple(Arrow(*ends, "") for ends in arrows))


def test_pictures_drawn_in_threads_are_the_same() -> None:
    pictures = [chain([(k, (k * each) % 30) for k in range(29)]) for each in range(2, 6)]
    alone = [*map(svg, pictures)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(svg, pictures * 2))
    assert alone * 2 == together


@pytest.mark.parametrize("program", spread(SHIPPED, 2))
def test_shipped_program_has_no_overlaps(program: str) -> None:
    picture = picture_of(elaborate(wired(program)))
    found = drawn(svg(picture))

    assert len(picture.boxes) == len(found.boxes)
    assert len(picture.arrows) == found.tips
    assert [] == list(clashes(found))
