from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.answer import answer, counts_table
from fabric.explore.study.written.page import page_html
from fabric.explore.study.written.pictures import Pictures
from tests.fabric.study.written.made import RESULTS, design, hostile, paper
from tests.fabric.trace.browsing import browsing
from tests.profiles import spread

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Page

NO_PICTURES: Final = Pictures((), ())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


class Shown:
    def __init__(self, browser: Browser, html: str, folder: Path, **settings: Any) -> None:
        file = folder / "index.html"
        file.write_text(html, encoding="utf-8")
        self.troubles: Final[list[str]] = []
        self.page: Final[Page] = browser.new_page(
            **{"viewport": {"width": 1300, "height": 900}, **settings}
        )
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.on("request", lambda request: self._requested(request.url, file.as_uri()))
        self.page.goto(file.as_uri())
        found = re.search(r'id="data">(.*?)</script>', html)
        self.data: Final = json.loads(found[1]) if found else {}
        self.settle()

    def _requested(self, address: str, own: str) -> None:
        if address != own and not address.startswith("data:"):
            self.troubles.append(address)

    def settle(self) -> None:
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def points(self) -> list[int]:
        cells = self.page.locator("#points-table tbody tr td:first-child").all_inner_texts()
        return [int(text.split()[0]) for text in cells]

    def all_points(self) -> list[int]:
        more = self.page.locator("#points-table .more button")
        if more.count():
            more.click()
            self.settle()
        return self.points()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        self.page.mouse.move(*end)
        self.page.mouse.up()
        self.settle()

    def box(self, selector: str) -> FloatRect:
        self.page.locator(selector).scroll_into_view_if_needed()
        found = self.page.locator(selector).bounding_box()
        assert found is not None
        return found


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    shown: list[Shown] = []

    def open_page(result: StudyResult, **settings: Any) -> Shown:
        html = page_html(result, NO_PICTURES, "python -m fabric study x.py")
        shown.append(Shown(browser, html, tmp_path, **settings))
        shown[-1].page.wait_for_selector("body.drawn")
        return shown[-1]

    yield open_page
    for each in shown:
        each.page.close()
        assert not each.troubles


@pytest.mark.parametrize("name", spread(RESULTS, 2))
def test_study_page_has_the_answer_and_all_points(name: str, opened: Any) -> None:
    result = RESULTS[name]()
    shown = opened(result)
    if name != "hostile":  # browsers fold spaces
        assert shown.page.locator("#answer").inner_text() == answer(result)
    rows = shown.page.locator("#counts tbody tr")
    assert rows.count() == len(counts_table(result).rows)
    assert shown.all_points() == [each.index for each in result.outcomes]
    assert shown.page.locator("#failed").is_hidden()


def test_drag_in_the_scatter_selects_points(opened: Any) -> None:
    result = design()
    shown = opened(result)
    box = shown.box("#scatter")
    middle = box["x"] + box["width"] * 0.5
    shown.drag((middle, box["y"] + box["height"] - 3), (box["x"] + 3, box["y"] + 3))
    chosen = shown.all_points()
    cycles = {
        each.index: int({**each.bounds, **each.numbers}["cycles"])
        for each in result.outcomes
        if each.status in ("completed", "pruned", "infeasible")
    }
    most = max(cycles[index] for index in chosen)
    assert 0 < len(chosen) < len(cycles)
    assert chosen == sorted(index for index, value in cycles.items() if value <= most)
    assert shown.page.locator("#selected").inner_text() == f"{len(chosen)} selected"

    shown.page.keyboard.press("Escape")
    shown.settle()
    assert len(shown.all_points()) == len(result.outcomes)


def test_click_on_a_point_selects_it(opened: Any) -> None:
    result = design()
    shown = opened(result)
    shown.page.locator("#points-table tbody tr button").first.click()
    shown.settle()
    assert shown.points() == [0]
    shown.page.locator("#points-table tbody tr button").first.click()
    shown.settle()
    assert len(shown.all_points()) == 24

    shown.page.locator("#scatter").focus()
    shown.page.keyboard.press("ArrowRight")
    shown.settle()
    lines = shown.page.locator("#tip").inner_text().splitlines()
    assert lines[0] == f"point {result.front[-1]}, on the front"
    assert "tile_n = 64" in lines
    assert "cycles: 20,731" in lines
    shown.page.keyboard.press("Enter")
    shown.settle()
    assert shown.points() == [19]


@pytest.mark.parametrize("width", spread([360, 1300], 1))
@pytest.mark.parametrize("scheme", spread(["light", "dark"], 1))
def test_study_page_fits_its_window(width: int, scheme: str, opened: Any) -> None:
    for result in (design(), hostile(), paper()):
        shown = opened(result, viewport={"width": width, "height": 800}, color_scheme=scheme)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        shown.page.emulate_media(media="print")
        shown.settle()
