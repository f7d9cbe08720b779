from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.drawing.lines import Layout, Size, layered
from fabric.analysis.drawing.picture import picture_of
from fabric.analysis.drawing.svg import svg
from fabric.graph.wiring.elaborate import elaborate
from tests.drawing.geometry import clashes, drawn, sampled
from tests.profiles import examples, spread
from tests.programs.loading import OF_TORCH
from tests.symbolic.programs import PROGRAMS, wired

SHIPPED = sorted(file.stem for file in PROGRAMS.glob("*.py") if file.stem not in OF_TORCH)


def inside(layout: Layout, sizes: list[Size]) -> bool:
    return all(
        -0.01 <= x - w / 2
        and x + w / 2 <= layout.size[0] + 0.01
        and -0.01 <= y - h / 2
        and y + h / 2 <= layout.size[1] + 0.01
        for (x, y), (w, h) in zip(layout.nodes, sizes, strict=True)
    )


@examples(quick=5, deep=30)
@given(
    sizes=st.lists(st.tuples(st.floats(10, 200), st.floats(10, 60)), min_size=1, max_size=12),
    data=st.data(),
)
def test_layout_of_any_graph_has_no_overlaps(sizes: list[Size], data: st.DataObject) -> None:
    number = st.integers(0, len(sizes) - 1)
    arrows = data.draw(st.lists(st.tuples(number, number), max_size=20))
    label = st.none() | st.just((50.0, 14.0))
    labels: list[Size | None] = [data.draw(label) for _ in arrows]
    found = layered(sizes, arrows, labels)
    named = [
        (place, size)
        for place, size in zip(found.labels, labels, strict=True)
        if place is not None and size is not None
    ]
    boxes = [*zip(found.nodes, sizes, strict=True), *named]

    assert [label is None for label in labels] == [place is None for place in found.labels]
    assert inside(found, sizes)
    for ((x0, y0), (w0, h0)), ((x1, y1), (w1, h1)) in combinations(boxes, 2):
        assert abs(x0 - x1) > (w0 + w1) / 2 - 0.1 or abs(y0 - y1) > (h0 + h1) / 2 - 0.1
    for (source, target), place, size, route in zip(
        arrows, found.labels, labels, found.routes, strict=True
    ):
        stops = [(found.nodes[source], sizes[source]), (found.nodes[target], sizes[target])]
        if place is not None and size is not None:
            stops.insert(1, (place, size))
        assert len(stops) - 1 == len(route)
        for curve, (start, end) in zip(route, pairwise(stops), strict=True):
            assert meets(curve[0], *start)
            assert meets(curve[-1], *end)
            assert len(sampled(curve)) > 1


def meets(point: tuple[float, float], centre: tuple[float, float], size: Size) -> bool:
    across = abs(point[0] - centre[0]) - size[0] / 2
    down = abs(point[1] - centre[1]) - size[1] / 2
    return -1.5 < max(across, down) < 1.5


def test_layout_of_a_cycle_points_down() -> None:
    layout = layered([(10, 10)] * 3, [(0, 1), (1, 2), (2, 0)], [(5, 5)] * 3)

    first, second, third = (y for _, y in layout.nodes)
    assert first < second < third


def test_layout_of_nothing_is_empty() -> None:
    assert Layout((0.0, 0.0), (), (), ()) == layered([], [], [])


def test_wide_layout_keeps_gaps() -> None:
    count = 1_500
    layout = layered([(100.0, 20.0)] * count, [(0, k) for k in range(1, count)], [None] * 1_499)

    across = sorted(x for x, _ in layout.nodes[1:])
    assert across[-1] > 100_000
    gaps = [after - before for before, after in pairwise(across)]
    assert 113 < min(gaps)


def test_layout_in_threads_is_the_same() -> None:
    graphs = [
        ([(20.0 + each, 10.0)] * 30, [(k, (k * each) % 30) for k in range(29)], [None] * 29)
        for each in range(2, 10)
    ]
    alone = [layered(*graph) for graph in graphs]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda graph: layered(*graph), graphs * 4))
    assert alone * 4 == together


@pytest.mark.parametrize("program", spread(SHIPPED, 4))
def test_shipped_program_has_no_overlaps(program: str) -> None:
    picture = picture_of(elaborate(wired(program)))
    found = drawn(svg(picture))

    assert len(picture.boxes) == len(found.boxes)
    assert len(picture.arrows) == len(found.lines)
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
    found.lines.append([[(0.0, 0.0), (0.0, 0.0), middle, middle]])

    assert {f"{name} on moved", f"a line from (0.0, 0.0) to {middle} through {name}"} <= set(
        clashes(found)
    )
