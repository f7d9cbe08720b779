from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.answer import answer, counts_table
from fabric.explore.study.written.page import page_html
from tests.fabric.study.written.made import RESULTS, design
from tests.fabric.trace.browsing import Opened, browsing
from tests.profiles import spread

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


class Shown(Opened):
    def __init__(self, browser: Browser, html: str, folder: Path, **settings: Any) -> None:
        file = folder / "index.html"
        file.write_text(html, encoding="utf-8")
        found = re.search(r'id="data">(.*?)</script>', html)
        self.data: Final = json.loads(found[1]) if found else {}
        super().__init__(browser, file, **settings)

    def points(self) -> list[int]:
        cells = self.page.locator("#points-table tbody tr td:first-child").all_inner_texts()
        return [int(text.split()[0]) for text in cells]

    def all_points(self) -> list[int]:
        more = self.page.locator("#points-table .more button")
        if more.count():
            more.click()
            self.settle()
        return self.points()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    shown: list[Shown] = []

    def open_page(result: StudyResult, **settings: Any) -> Shown:
        html = page_html(replace(result, command="python -m fabric study x.py"), ())
        shown.append(Shown(browser, html, tmp_path, **settings))
        return shown[-1]

    yield open_page
    for each in shown:
        each.page.close()
        assert not each.troubles


@pytest.mark.parametrize("name", spread(RESULTS, 2))
def test_study_page_has_the_answer_and_all_points(name: str, opened: Any) -> None:
    result = RESULTS[name]()
    shown = opened(result)
    if name != "hostile":  # browsers collapse spaces
        assert shown.page.locator("#answer").inner_text() == answer(result)
    rows = shown.page.locator("#counts tbody tr")
    assert rows.count() == len(counts_table(result).rows)
    assert shown.all_points() == [each.index for each in result.outcomes]
    assert shown.page.locator("#failed").is_hidden()


def test_table_that_scrolls_sideways_says_so(opened: Any) -> None:
    shown = opened(design(), viewport={"width": 420, "height": 800})
    found = shown.page.eval_on_selector_all(
        ".scroll",
        "(all) => all.map((it) => [it.scrollWidth > it.clientWidth, "
        "getComputedStyle(it, '::before').display === 'block'])",
    )

    assert [True, True] in found
    assert [False, False] in found
    assert all(scrolls == says for scrolls, says in found)


def test_filter_and_click_on_a_column_choose_and_sort_points(opened: Any) -> None:
    result = design()
    shown = opened(result)
    shown.page.locator("#filter").fill("tile_n=64 completed")
    shown.settle()
    expected = [
        each.index
        for each in result.outcomes
        if each.setting["tile_n"] == 64 and each.status == "completed"
    ]
    assert shown.all_points() == expected
    shown.page.locator("#points-table th button", has_text="point").click()
    shown.settle()
    assert shown.points() == sorted(expected, reverse=True)
    shown.page.locator("#filter").fill("front")
    shown.settle()
    assert sorted(shown.points()) == sorted(result.front)
