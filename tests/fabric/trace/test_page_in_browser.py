"""The page of a run in a browser: what is there, what a click does, what is read then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pytest

from fabric import Program
from fabric.analysis.trace.analysis.stalls import Accounts
from fabric.analysis.trace.pages import page
from fabric.analysis.trace.pages.page import write_page
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.telling.causes import SHOWN
from fabric.messages.telling.wording import visible
from operators import Consumer, LinearOffChipLoad, Map, SiLU
from tests.fabric.trace.browsing import Shown, browsing
from tests.fabric.trace.page_data import transfers_of, waits_of
from tests.fabric.trace.recording import program, record

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from fabric.analysis.trace.opened import Trace

NAMES: Final = ("simplified_moe", "moe static", "pack_rows")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one browser to all tests."""
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Return a trace of each program; the last one deadlocks."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: record(program(name), folder)[1] for name in NAMES}


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, browser: Browser, tmp_path: Path, traces: dict[str, Trace]
) -> Iterator[Shown]:
    """Open the page of a run; in the end there were no errors, and nothing was asked for."""
    given: dict[str, Any] = {"name": "moe static"} | getattr(request, "param", {})
    shown = Shown(browser, traces[given.pop("name")], tmp_path, **given)
    yield shown
    shown.page.close()
    assert not shown.troubles


def of(*names: str, **settings: object) -> pytest.MarkDecorator:
    """Open the pages of other runs, or with other settings of the browser."""
    params = [{"name": name, **settings} for name in names]
    return pytest.mark.parametrize("opened", params, indirect=True, ids=names)


def _contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as the guidelines for accessible pages define it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [
            each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def unfold(opened: Shown) -> None:
    """Show every unit in a row of its own, where families are rows."""
    button = opened.page.locator("#units-table .unfold")
    if button.is_visible():
        button.click()


class TestWhole:
    @of(*NAMES)
    def test_says(self, opened: Shown) -> None:
        """Every section is there, and the head says what the run came to."""
        run = opened.data["run"]
        titles = opened.page.locator("h2:visible").all_inner_texts()

        assert run["verdict"] == opened.read("#verdict")
        assert [run["name"], run["ran"]] == [opened.read("#name"), opened.read("#ran")]
        assert ("Why it does not move" in titles) == run["failed"]
        assert {"The program", "Units over time", "Where the cycles went", "Critical path"} <= {
            *titles
        }
        assert [cause.label for cause in SHOWN] == opened.page.locator(
            "#legend span"
        ).all_inner_texts()
        assert not opened.page.locator("#failed").is_visible()

    def test_loads_nothing(self, opened: Shown) -> None:
        """Nothing in the page is to be loaded, and the browser is told to refuse it."""
        before, script = opened.text.split("<script>")[0], opened.text.split("<script>")[1]

        assert not any(word in before for word in ("http:", "https:", "src=", "@import", "url("))
        assert "default-src 'none'" in before
        assert 1 == script.count("http")  # the address in uPlot's licence
        blocked = opened.page.evaluate(
            "() => fetch('http://127.0.0.1:9/').then(() => false, () => true)"
        )
        assert blocked
        assert any("Content Security Policy" in trouble for trouble in opened.troubles)
        opened.troubles.clear()

    @of("moe static", viewport={"width": 420, "height": 800})
    def test_narrow(self, opened: Shown) -> None:
        """At 420 pixels nothing is cut off to the right, with and without the details."""
        widest = "Math.max(...[...document.querySelectorAll('body *')].filter((it) => "
        widest += "!it.closest('.scroll, svg, #details')).map("
        widest += "(it) => it.getBoundingClientRect().right))"

        assert opened.page.evaluate(widest) <= 420
        opened.choose(opened.units[0])
        assert opened.page.locator("#details").is_visible()
        assert opened.page.evaluate(widest) <= 420

    @of("moe static", color_scheme="dark")
    def test_themes(self, opened: Shown) -> None:
        """It is dark where the system is, light by a click, and light on paper."""
        ground = "getComputedStyle(document.body).backgroundColor"
        swatch = "getComputedStyle(document.querySelector('#legend span:nth-child(4) i')).color"
        dark = opened.page.evaluate(ground), opened.page.evaluate(swatch)

        opened.page.emulate_media(media="print")
        opened.settle()
        paper = opened.page.evaluate(ground)
        assert not opened.page.locator("#search").is_visible()
        opened.page.emulate_media(media="screen")
        opened.page.click("#theme")

        assert "rgb(255, 255, 255)" == paper == opened.page.evaluate(ground)
        assert dark[0] != paper

    def test_prints(self, opened: Shown) -> None:
        """It can be printed."""
        assert len(opened.page.pdf()) > 20_000


class TestTables:
    @of(*NAMES)
    def test_figures(self, opened: Shown, traces: dict[str, Trace]) -> None:
        """The table has the figures of ``trace stalls``, row by row."""
        unfold(opened)
        more = opened.page.locator("#units-table .more button")
        while more.is_visible():
            more.click()
        trace = next(t for t in traces.values() if t.meta["name"] == opened.data["run"]["name"])
        accounts = Accounts(trace)

        assert [
            [accounts.names.units[each.unit], *(f"{getattr(each, cause):,}" for cause in SHOWN)]
            for each in accounts.ranked()
        ] == [row[:7] for row in opened.rows("#units-table")]

    def test_sorted(self, opened: Shown) -> None:
        """A click on a column sorts by it, the largest first; another one turns that round."""
        unfold(opened)
        head = opened.page.locator("#units-table th", has_text="busy")
        busy = opened.data["units"]["busy"]
        for order in ("descending", "ascending"):
            head.locator("button").click()
            shown = [int(row[1].replace(",", "")) for row in opened.rows("#units-table")]
            assert sorted(busy, reverse=order == "descending")[: len(shown)] == shown
            assert order == head.get_attribute("aria-sort")

    def test_families(self, opened: Shown) -> None:
        """A family is a row of medians and their range, until a click shows its units."""
        units = opened.data["units"]
        of_family: dict[str, list[int]] = {}
        for unit, family in enumerate(units["family"]):
            if not units["absent"][unit]:
                of_family.setdefault(family, []).append(unit)
        title, members = next(each for each in of_family.items() if len(each[1]) > 2)
        more = opened.page.locator("#units-table .more button")
        if more.is_visible():
            more.click()
        button = opened.page.locator("#units-table tr.family button", has_text=title)
        (cells,) = (row for row in opened.rows("#units-table") if title in row[0])
        busy = sorted(units["busy"][unit] for unit in members)
        median = f"{busy[(len(busy) - 1) // 2]:,}"
        spread = f"{busy[0]:,} to {busy[-1]:,}"

        assert cells[0].endswith(f" {title} \N{MULTIPLICATION SIGN} {len(members)}")
        assert cells[1] == (median if busy[0] == busy[-1] else f"{median}\n{spread}")
        before = len(opened.rows("#units-table"))
        button.click()
        names = [row[0] for row in opened.rows("#units-table")]
        assert before + len(members) == len(names)
        assert {units["name"][unit] for unit in members} <= {*names}
        button.click()
        assert before == len(opened.rows("#units-table"))

    def test_search(self, opened: Shown) -> None:
        """What is searched for is left in tables and timeline, and stands out in the graph."""
        opened.page.fill("#search", "LOAD_UP experts")
        opened.settle()
        found = [name for name in opened.data["units"]["name"] if "load_up" in name]
        rows = opened.rows("#units-table")

        assert found
        assert set(found) == {row[0] for row in rows}
        assert opened.read("#rows").startswith(f"{len(found)} of ")
        faint = opened.page.locator(".box.faint").count()
        boxes = opened.page.locator(".box").count()
        assert 0 < faint < boxes
        opened.page.click("#rows-all")
        opened.settle()
        assert not opened.page.locator(".box.faint").count()


class TestTimeline:
    def test_zoom(self, opened: Shown) -> None:
        """Buttons, keys, the wheel and the mouse change the cycles that all charts show."""
        whole = opened.range
        opened.page.click("#zoom-in")
        opened.settle()
        first, last = opened.range
        assert (whole[1] - whole[0]) // 2 == pytest.approx(last - first, abs=2)
        opened.press("ArrowRight")
        assert opened.range[0] > first
        opened.press("0")
        assert whole == opened.range

        x, y = opened.point(opened.units[0], whole[1] // 2)
        opened.page.mouse.move(x, y)
        opened.page.keyboard.down("Control")
        opened.page.mouse.wheel(0, -400)
        opened.page.keyboard.up("Control")
        opened.settle()
        assert opened.range[0] > whole[0]
        # As slowly as a hand: between the clicks the details have opened and moved the timeline.
        opened.page.mouse.dblclick(x, y, delay=200)
        opened.settle()
        assert whole == opened.range

        x, y = opened.point(opened.units[0], whole[1] // 2)  # a click has opened the details
        opened.page.mouse.move(x, y)
        opened.page.mouse.down()
        opened.page.mouse.move(x + 100, y, steps=3)
        opened.page.mouse.up()
        opened.settle()
        first, last = opened.range
        assert whole[1] // 2 == pytest.approx(first, abs=2 + whole[1] / 500)
        opened.press(*["+"] * 20)
        assert 8 == opened.range[1] - opened.range[0]

    @of("simplified_moe", "pack_rows")
    def test_single_waits(self, opened: Shown) -> None:
        """The tip over a wait has its cause, its cycles and who is at the other end."""
        data = opened.data
        seen = 0
        for unit in data["units"]["ranked"][:12]:
            name = data["units"]["name"][unit]
            for start, end, _, cause, channel in (waits_of(data, unit) or [])[:3]:
                if (end - start) * 20 < data["run"]["cycles"]:
                    continue
                tip = opened.hover(*opened.point(name, (start + end) / 2))
                label = next(each["label"] for each in data["causes"] if each["id"] == cause)
                assert name == tip[0]
                assert tip[2].startswith(label)
                assert f"cycles {start:,} to {end:,}: {end - start:,}" == tip[3]
                if channel is not None:
                    ends = {data["channels"][end][channel] for end in ("producer", "consumer")}
                    (peer,) = ends - {unit}
                    assert tip[2].endswith(data["units"]["name"][peer])
                seen += 1
        assert seen > 5

    def test_single_transfers(self, opened: Shown) -> None:
        """The tip over a transfer has the cycles in which it was sent and taken."""
        data = opened.data
        unit = max(range(len(data["units"]["busy"])), key=lambda each: data["units"]["busy"][each])
        channel = data["channels"]["consumer"].index(unit)
        opened.choose(data["units"]["name"][unit])
        assert data["units"]["name"][unit] in opened.read("#bands-title")
        transfers = transfers_of(data, channel)
        assert transfers is not None
        number = next(n for n, (sent, taken, *_) in enumerate(transfers) if (taken or 0) > sent + 4)
        sent, taken, *_ = transfers[number]
        assert taken is not None
        depth = data["channels"]["depth"][channel]
        x = opened.x("#bands", (sent + taken) / 2)
        y = opened.top("#bands") + 4 + 32 * (number % depth + 0.5) / depth
        tip = opened.hover(x, y)

        assert data["channels"]["name"][channel] == tip[0]
        assert tip[2].startswith(f"element {number}")
        assert tip[3].startswith(f"sent in cycle {sent:,}")
        assert tip[4].startswith(f"taken in cycle {taken:,}")

    def test_one_cursor(self, opened: Shown) -> None:
        """The mouse over one chart is in the same cycle of all others."""
        last = opened.range[1]
        opened.hover(*opened.point(opened.units[0], last / 3))
        shown = opened.page.locator(".u-legend tr:first-child .u-value").all_inner_texts()
        cursor = int(opened.read("#range").rpartition("at ")[2].replace(",", ""))
        opened.x("#memory", 0)
        bounds = opened.page.locator("#memory .u-over").bounding_box()

        assert last / 3 == pytest.approx(cursor, abs=2 + last / 500)
        assert len(shown) >= 2
        assert all(shown)
        assert bounds is not None
        opened.page.mouse.move(bounds["x"] + bounds["width"] / 2, bounds["y"] + 40)
        opened.settle()
        cursor = int(opened.read("#range").rpartition("at ")[2].replace(",", ""))
        assert last / 2 == pytest.approx(cursor, abs=2 + last / 500)


class TestUnits:
    def test_from_the_graph(self, opened: Shown) -> None:
        """A click on a box opens its unit: cycles, roots, channels; a click there the next."""
        data = opened.data
        (graph,) = [each for each in data["graphs"] if each["title"] == "all units"]
        opened.page.select_option("#graph-of", str(data["graphs"].index(graph)))
        opened.page.click("#graph-whole")
        unit = data["units"]["ranked"][0]
        box = next(n for n, each in enumerate(graph["boxes"]) if each["units"] == [unit])
        opened.page.locator(".box").nth(box).click()
        opened.settle()

        assert data["units"]["name"][unit] == opened.read("#details-title")
        assert 1 == opened.page.locator(".box.chosen").count()
        cycles = [row[1] for row in opened.rows("#details .cycles")]
        figures = [data["units"][cause["id"]][unit] for cause in data["causes"]]
        assert [f"{each:,}" for each in figures if each] == cycles
        ends = [data["channels"][end] for end in ("consumer", "producer")]
        channels = [each for end in ends for each, one in enumerate(end) if one == unit]
        shown = opened.rows("#details .channels")
        assert [f"{data['channels']['elements'][each]:,}" for each in channels] == [
            row[2] for row in shown
        ]
        opened.page.locator("#details .channels .link").first.click()
        opened.settle()
        assert shown[0][0].split()[1] == opened.read("#details-title")
        opened.press("Escape")
        assert not opened.page.locator("#details").is_visible()

    def test_neighbours(self, opened: Shown) -> None:
        """A click on a box sets it and its neighbours off, and undoes what a search had."""
        graph = opened.data["graphs"][0]
        opened.page.fill("#search", "store_y")
        opened.settle()
        opened.page.click("#graph-whole")
        number = next(n for n, box in enumerate(graph["boxes"]) if len(box["units"]) > 2)
        opened.page.locator(".box").nth(number).click()
        opened.settle()
        near = {
            one if two == number else two
            for one, two in (arrow["ends"] for arrow in graph["arrows"])
            if number in {one, two}
        }
        classes = [
            element.get_attribute("class") or "" for element in opened.page.locator(".box").all()
        ]

        assert "" == opened.page.input_value("#search")
        assert {number} == {n for n, each in enumerate(classes) if "chosen" in each}
        assert near == {n for n, each in enumerate(classes) if "near" in each}
        others = {*range(len(classes))} - near - {number}
        assert others
        assert others == {n for n, each in enumerate(classes) if "faint" in each}

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_contrast(self, opened: Shown, theme: Literal["light", "dark"]) -> None:
        """Text that stands back can be read: its contrast is 4.5 to 1 at least."""
        opened.page.emulate_media(color_scheme=theme)
        opened.page.fill("#search", "store_y")
        opened.settle()
        found = opened.page.evaluate(
            """() => [...document.querySelectorAll('.box.faint')].map((box) => [
                getComputedStyle(box.querySelector('text')).fill,
                getComputedStyle(box.querySelector('.front')).fill,
                getComputedStyle(box).opacity])"""
        )

        assert found
        for text, ground, opacity in found:
            assert "1" == opacity
            assert _contrast(text, ground) >= 4.5

    def test_what_the_picture_says(self, opened: Shown) -> None:
        """A box says what its operator applies and where it was wired, an arrow what it carries."""
        texts = opened.page.locator("#graph text").all_text_contents()
        assert any("Map(Matmul" in each for each in texts)
        assert any("experts.py:" in each for each in texts)
        assert any(" of " in each.replace("\N{NO-BREAK SPACE}", " ") for each in texts)

    def test_chain(self, opened: Shown) -> None:
        """The chain of waits ends at who works or at a memory, and each waits for the next."""
        data = opened.data
        for name in opened.units[:6]:
            opened.choose(name)
            chain = opened.page.locator("#details .chain li").all_inner_texts()
            for link, after in pairwise(chain):
                assert f" {after.split()[0]}, since" in link
            assert ":" in chain[-1]
            assert not any(":" in link for link in chain[:-1])
        assert data["units"]["ranked"]

    @of("pack_rows")
    def test_chain_of_a_deadlock(self, opened: Shown) -> None:
        """In the last cycle of a deadlock the chain comes back to itself."""
        assert opened.page.locator(".box.stuck").count()
        (stuck, *_) = opened.data["in_loop"]
        opened.choose(opened.data["units"]["name"][stuck])

        assert "comes back to itself" in opened.read("#details .chain li:last-child")
        assert f"in cycle {opened.data['run']['last']} (the last)" in opened.read("#details")

    def test_folded(self, opened: Shown) -> None:
        """Alike units are one box, all boxes are seen at once, and a click lists the units."""
        data = opened.data
        graph = data["graphs"][0]
        assert "alike units folded" == graph["title"]
        number = max(range(len(graph["boxes"])), key=lambda n: len(graph["boxes"][n]["units"]))
        frame = opened.page.locator("#graph").bounding_box()
        assert frame is not None
        opened.page.click("#graph-whole")
        for box in opened.page.locator(".box").all():
            bounds = box.bounding_box()
            assert bounds is not None
            assert frame["x"] <= bounds["x"]
            assert bounds["x"] + bounds["width"] <= frame["x"] + frame["width"]
            assert bounds["y"] + bounds["height"] <= frame["y"] + frame["height"]
        opened.page.locator(".box").nth(number).click()
        opened.settle()
        units = graph["boxes"][number]["units"]

        assert [data["units"]["name"][each] for each in units] == opened.page.locator(
            "#details .units .link"
        ).all_inner_texts()
        assert opened.read("#rows") == f"{len(units)} of {len(data['units']['name'])} units"


def test_names_are_names(browser: Browser, tmp_path: Path) -> None:
    """No name is taken for a part of the page, whatever letters it has."""
    names = (
        "</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", 'a"b\'c',
        "\N{RIGHT-TO-LEFT OVERRIDE}abc", "{{data}}", "a&amp;b \N{SNOWMAN}", "$& `${1}`",
    )  # fmt: skip
    with Program("</title><script>alert(3)</script>") as wired:
        stream = LinearOffChipLoad(np.ones((2, 16), np.float32), (1, 16))()
        for name in names:
            stream = Map(SiLU(), name=name)(stream)
        Consumer()(stream)
    shown = Shown(browser, record(wired, tmp_path)[1], tmp_path)

    assert wired.name == shown.page.title() == shown.read("#name")
    for name in map(visible, names):
        shown.choose(name)
        assert name == shown.read("#details-title")
        tip = shown.hover(shown.x("#lanes", 1), shown.top("#lanes") + 8)
        assert name == tip[0]
    assert not shown.troubles


def test_what_was_not_traced_is_said(browser: Browser, tmp_path: Path) -> None:
    """Of a part of the units the page has these; of a part of the cycles it has those."""
    _, trace = record(program("moe static"), tmp_path, TraceOptions(nodes="up_*", window=(50, 900)))
    shown = Shown(browser, trace, tmp_path)
    names = shown.data["units"]["name"]

    assert shown.read("#notes") == "Traced: cycles 50 to 901, units up_*."
    assert (50, 901) == shown.range
    assert all(name.startswith("up_") for name in shown.units)
    assert shown.read("#rows") == f"{len(shown.units)} of {len(names)} units"
    shown.choose(shown.units[0])
    assert "it was not traced" in shown.read("#details .chain")
    assert not shown.troubles


def test_what_is_left_out_is_said(
    browser: Browser, tmp_path: Path, traces: dict[str, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not all fits, the page says so: above, in tips and in the chain of waits."""
    write_page(traces["moe static"], tmp_path / "whole.html")
    size = (tmp_path / "whole.html").stat().st_size
    monkeypatch.setattr(page, "_LETTERS", size - 3_000)
    shown = Shown(browser, traces["moe static"], tmp_path)
    counts = shown.data["detail"]["waits"]
    kept = sum(count or 0 for count in counts)
    without = [unit for unit in shown.data["units"]["ranked"] if counts[unit] is None]
    name = shown.data["units"]["name"][without[0]]

    assert kept
    assert f"This page has {kept:,} of " in shown.read("#notes")
    tip = shown.hover(*shown.point(name, shown.range[1] / 2))
    assert "its single waits are not in this page" == tip[-1]
    assert "mostly " in tip[2]
    shown.choose(name)
    shown.page.mouse.click(shown.x("#lanes", 5), shown.top("#lanes") + 8)
    shown.settle()
    assert "its single waits are not in this page" in shown.read("#details .chain")
    assert not shown.troubles
