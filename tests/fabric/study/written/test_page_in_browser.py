"""The page of a study in a browser: what is there, what a click selects, what is read then."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.answer import answer, counts
from fabric.explore.study.written.folder import overview_html
from fabric.explore.study.written.page import page_html
from fabric.explore.study.written.pictures import Pictures
from tests.fabric.study.written.made import RESULTS, design, hostile, paper
from tests.fabric.trace.browsing import browsing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Page

NO_PICTURES: Final = Pictures((), ())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one browser to all tests."""
    with browsing() as found:
        yield found


class Shown:
    """A page as a browser shows it.

    Attributes:
        page: of the browser.
        data: what it draws from.
        troubles: errors, dialogs and requests: none are expected.
    """

    def __init__(self, browser: Browser, html: str, folder: Path, **settings: Any) -> None:
        """Open a page from a file."""
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
        """Wait until what was asked for is drawn."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def points(self) -> list[int]:
        """Return the points that the table shows."""
        cells = self.page.locator("#points-table tbody tr td:first-child").all_inner_texts()
        return [int(text.split()[0]) for text in cells]

    def all_points(self) -> list[int]:
        """Return all points that the table has, those that are not shown at first, too."""
        more = self.page.locator("#points-table .more button")
        if more.count():
            more.click()
            self.settle()
        return self.points()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag the mouse from one place to another."""
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        self.page.mouse.move(*end)
        self.page.mouse.up()
        self.settle()

    def box(self, selector: str) -> FloatRect:
        """Scroll to an element and return where it is."""
        self.page.locator(selector).scroll_into_view_if_needed()
        found = self.page.locator(selector).bounding_box()
        assert found is not None
        return found


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Return what opens the page of a study; in the end nothing went wrong."""
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


@pytest.mark.parametrize("name", RESULTS)
def test_says(name: str, opened: Any) -> None:
    """The head says what the study came to; the table has every point."""
    result = RESULTS[name]()
    shown = opened(result)
    if name != "hostile":  # browsers fold spaces
        assert shown.page.locator("#answer").inner_text() == answer(result)
    assert shown.page.locator("#counts").inner_text() == counts(result)
    assert shown.all_points() == [each.index for each in result.outcomes]
    assert shown.page.locator("#failed").is_hidden()


def test_selects_in_the_scatter(opened: Any) -> None:
    """Dragging over everything to the left selects the points with the fewest cycles."""
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
    # Left of the middle are those below some number of cycles, and no others.
    most = max(cycles[index] for index in chosen)
    assert 0 < len(chosen) < len(cycles)
    assert chosen == sorted(index for index, value in cycles.items() if value <= most)
    assert shown.page.locator("#selected").inner_text() == f"{len(chosen)} selected"

    shown.page.keyboard.press("Escape")
    shown.settle()
    assert len(shown.all_points()) == len(result.outcomes)


def test_selects_along_an_axis(opened: Any) -> None:
    """Dragging along the first axis selects the runs with those values, along two those of both."""
    result = design()
    shown = opened(result)
    box = shown.box("#parallel")
    top, bottom = box["y"] + 44, box["y"] + box["height"] - 14
    shown.drag((box["x"] + 24, top - 3), (box["x"] + 24, (top + bottom) / 2))
    runs = [each for each in result.outcomes if each.status == "completed"]
    large = [each.index for each in runs if each.setting["tile_n"] in (32, 64)]
    assert shown.points() == large

    across = shown.page.evaluate("document.querySelector('#parallel').clientWidth")
    second = box["x"] + 24 + (across - 24 - min(150, across / 6.5)) / 5
    shown.drag((second, bottom - 8), (second, bottom + 3))
    assert shown.points() == [
        each.index for each in runs if each.index in large and each.setting["regions"] == 4
    ]


def test_hover_and_click(opened: Any) -> None:
    """A point that is pointed at says what it is; a click selects it, another one takes it back."""
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


def test_proved_points(opened: Any) -> None:
    """What did not run says why, and what is known of it."""
    shown = opened(design())
    row = shown.page.locator("#points-table tbody tr").nth(8)
    assert "dominated by point 9" in row.inner_text()
    assert shown.page.locator("#proved tbody tr").first.inner_text().split("\t") == [
        "dominated by point 9",
        "tile_n=16, regions=8, hardware.hbm.channels=32",
        "2",
    ]


def test_sorts(opened: Any) -> None:
    """A click on a column sorts by it, another one the other way round."""
    result = design()
    shown = opened(result)
    head = shown.page.locator("#points-table th button", has_text="cycles").first
    head.click()
    head.click()
    cycles = {each.index: each.numbers.get("cycles", -1) for each in result.outcomes}
    shown.settle()
    assert [cycles[index] for index in shown.all_points()] == sorted(cycles.values())


def test_other_fields(opened: Any) -> None:
    """Any parameter or metric can be shown across and up, and colour the points."""
    shown = opened(RESULTS["three_metrics"]())
    before = shown.page.evaluate("document.querySelector('#scatter canvas').toDataURL()")
    shown.page.select_option("#across", label="routing")
    shown.page.select_option("#up", label="energy")
    shown.page.select_option("#colour", label="tiling")
    shown.settle()
    assert shown.page.evaluate("document.querySelector('#scatter canvas').toDataURL()") != before
    assert shown.page.locator("#colours span").all_inner_texts() == ["static", "dynamic", "none"]


@pytest.mark.parametrize("width", [360, 1300])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits(width: int, scheme: str, opened: Any) -> None:
    """Nothing is wider than the window, light or dark, also where names are long."""
    for result in (design(), hostile(), paper()):
        shown = opened(result, viewport={"width": width, "height": 800}, color_scheme=scheme)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        shown.page.emulate_media(media="print")
        shown.settle()


def test_overview(browser: Browser, tmp_path: Path) -> None:
    """The page of several studies asks for nothing, and fits into a narrow window."""
    results = [design(), paper(), hostile()]
    html = overview_html(results, ["a", "b", "c"], [[], [], []])
    shown = Shown(browser, html, tmp_path, viewport={"width": 360, "height": 800})
    assert shown.page.locator("#summary tbody tr").count() == 4
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    shown.page.close()
    assert not shown.troubles
