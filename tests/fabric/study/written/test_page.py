from __future__ import annotations

import re

import pytest

from fabric.explore.study.written.page import page_data, page_html
from fabric.explore.study.written.pictures import Drawn
from tests.fabric.study.written.made import design


def body(page: str) -> str:
    found = page[page.index("<body>") :]
    return re.sub(r"(<script>).*?(</script>)", r"\1\2", found, flags=re.DOTALL)


def test_page_begins_with_the_front_then_its_table() -> None:
    front = Drawn("front", "The front", "", "<svg/>", b"")
    page = body(page_html(design(), [front]))
    places = [page.index(each) for each in ('id="answer"', "<figure>", "<table>", 'id="counts"')]

    assert sorted(places) == places
    assert 1 == page.count("<figure>")


def test_page_with_fewer_points_has_the_front_first(monkeypatch: pytest.MonkeyPatch) -> None:
    result = design()
    for most, expected in (
        (24, list(range(24))),
        (23, [*range(22), 23]),
        (6, [0, 1, 2, 7, 13, 19]),
    ):
        monkeypatch.setattr("fabric.explore.study.written.page.POINTS", most)
        data = page_data(result)
        assert data["index"] == expected
        sentence = f"This page has {most} of 24 points, the front among them; points.parquet and"
        assert (sentence in page_html(result, ())) is (most < 24)
    assert [expected[at] for at in data["front"]] == [0, 1, 7, 13, 19]
