from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.drawing.picture import Arrow, Box, Picture, picture_of
from fabric.analysis.drawing.svg import svg
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.causes import SHOWN, Cause
from tests.drawing.geometry import clashes, drawn
from tests.profiles import examples, spread
from tests.programs.loading import OF_TORCH
from tests.symbolic.programs import PROGRAMS, wired

SHIPPED = sorted(file.stem for file in PROGRAMS.glob("*.py") if file.stem not in OF_TORCH)

boxes = st.builds(
    Box,
    title=st.text("ab_0", min_size=1, max_size=60),
    count=st.integers(1, 3),
    operator=st.just("Map"),
    kind=st.sampled_from(["compute", "memory", "routing"]),
    place=st.just("x.py:1"),
    shares=st.just({cause: 1 / len(SHOWN) for cause in SHOWN}) | st.none(),
    state=st.just("full, since 3") | st.just(""),
    cause=st.sampled_from([None, Cause.FULL]),
    stuck=st.booleans(),
)


@examples(quick=5, deep=30)
@given(boxes=st.lists(boxes, min_size=1, max_size=12), data=st.data())
def test_layout_of_any_graph_has_no_overlaps(boxes: list[Box], data: st.DataObject) -> None:
    number = st.integers(0, len(boxes) - 1)
    arrow = st.builds(Arrow, number, number, st.sampled_from(["", "[1, 2] of 4x4"]))
    arrows = data.draw(st.lists(arrow, max_size=20))
    found = drawn(svg(Picture("any", tuple(boxes), tuple(arrows))))

    assert len(boxes) == len(found.boxes)
    assert len(arrows) == found.tips
    assert len(arrows) + sum(arrow.label != "" for arrow in arrows) == len(found.lines)
    assert [] == list(clashes(found))


def test_layout_of_a_cycle_points_down() -> None:
    first, second, third = (
        tops[1] for tops in drawn(svg(chain([(0, 1), (1, 2), (2, 0)]))).boxes.values()
    )
    assert first < second < third


def chain(arrows: list[tuple[int, int]]) -> Picture:
    count = 1 + max(map(max, arrows), default=0)
    boxes = tuple(Box(f"box_{k}", 1, "Map", "compute", "x.py:1", None) for k in range(count))
    return Picture("p", boxes, tuple(Arrow(*ends, "") for ends in arrows))


def test_picture_of_nothing_has_its_title() -> None:
    assert "nothing" in svg(Picture("nothing", (), ()))


def test_pictures_drawn_in_threads_are_the_same() -> None:
    pictures = [chain([(k, (k * each) % 30) for k in range(29)]) for each in range(2, 10)]
    alone = [*map(svg, pictures)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(svg, pictures * 4))
    assert alone * 4 == together


@pytest.mark.parametrize("program", spread(SHIPPED, 4))
def test_shipped_program_has_no_overlaps(program: str) -> None:
    picture = picture_of(elaborate(wired(program)))
    found = drawn(svg(picture))

    assert len(picture.boxes) == len(found.boxes)
    assert len(picture.arrows) == found.tips
    assert [] == list(clashes(found))


@pytest.mark.parametrize("program", spread(["attention", "simplified_moe", "top2_moe"], 1))
def test_unfolded_program_has_no_overlaps(program: str) -> None:
    assert [] == list(clashes(drawn(svg(picture_of(elaborate(wired(program)), unfold=True)))))


def test_attention_picture_fits_a_page() -> None:
    width, height = drawn(svg(picture_of(elaborate(wired("attention"))))).size

    assert max(width, height) < 2_300
    assert 0.7 < width / height < 1.4


def test_clashes_finds_overlaps() -> None:
    text = svg(picture_of(elaborate(wired("simplified_moe"))))
    found = drawn(text)
    (name, (left, top, right, bottom)), *_ = found.boxes.items()
    found.texts.append(("moved", (left + 5, top + 5, right, bottom)))
    middle = (left + right) / 2, (top + bottom) / 2
    found.lines.append([(0.0, 0.0), (0.0, 0.0), middle, middle])

    assert {f"{name} on moved", f"a line from (0.0, 0.0) to {middle} through {name}"} <= set(
        clashes(found)
    )
