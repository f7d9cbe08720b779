from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from fabric import Program
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.messages.causes import SHOWN
from fabric.messages.text import visible
from operators import Consumer, LinearOffChipLoad, Map, SiLU
from tests.fabric.trace.browsing import LANE, Shown, browsing
from tests.fabric.trace.page_data import waits_of
from tests.fabric.trace.recording import program, record
from tests.profiles import spread

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from fabric.analysis.trace.opened import Trace

NAMES: Final = ("simplified_moe", "moe static", "pack_rows")

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: record(program(name), folder)[1] for name in NAMES}


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, browser: Browser, tmp_path: Path, traces: dict[str, Trace]
) -> Iterator[Shown]:
    given: dict[str, Any] = {"name": "moe static"} | getattr(request, "param", {})
    shown = Shown(browser, traces[given.pop("name")], tmp_path, **given)
    yield shown
    shown.page.close()
    assert not shown.troubles


def of(*names: str, **settings: object) -> pytest.MarkDecorator:
    params = spread([{"name": name, **settings} for name in names], 1)
    return pytest.mark.parametrize("opened", params, indirect=True, ids=names)


def unfold(opened: Shown) -> None:
    button = opened.page.locator("#units-table .unfold")
    if button.is_visible():
        button.click()


def test_page_loads_nothing_from_outside(opened: Shown) -> None:
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


@of(*NAMES)
def test_table_of_units_has_the_figures_of_stalls(opened: Shown, traces: dict[str, Trace]) -> None:
    unfold(opened)
    more = opened.page.locator("#units-table .more button")
    while more.is_visible():
        more.click()
    trace = next(t for t in traces.values() if t.meta["name"] == opened.data["run"]["name"])
    accounts = Accounts(trace)

    assert [
        [each.name, *(f"{getattr(each, cause.column):,}" for cause in SHOWN)]
        for each in accounts.ranked()
    ] == [row[:7] for row in opened.rows("#units-table")]


@of("simplified_moe", "pack_rows")
def test_tip_of_a_wait_has_its_cause_and_cycles(opened: Shown) -> None:
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


def test_family_is_one_row_that_opens_to_its_units(opened: Shown) -> None:
    units = opened.data["units"]
    ranked = [unit for unit in units["ranked"] if not units["absent"][unit]]
    families: dict[str, list[str]] = {}
    for unit in ranked:
        families.setdefault(units["family"][unit], []).append(units["name"][unit])
    row, title = next((n, each) for n, each in enumerate(families) if len(families[each]) > 1)
    x = opened.x("#lanes", opened.range[1] / 2)
    top = opened.top("#lanes")

    def name_at(number: int) -> str:
        return opened.hover(x, top + LANE * (number + 0.5))[0]

    folded = [name_at(number) for number in range(len(families))]
    assert folded == [
        f"{each} \N{MULTIPLICATION SIGN} {len(members)}" if len(members) > 1 else members[0]
        for each, members in families.items()
    ]
    opened.page.mouse.click(opened.x("#lanes", 0) - 40, top + LANE * (row + 0.5))
    opened.settle()
    members = families[title]
    assert members == [name_at(row + 1 + number) for number in range(len(members))]

    opened.page.mouse.click(x, top + LANE * (row + 0.5))
    opened.settle()
    assert f"{title} \N{MULTIPLICATION SIGN} {len(members)}" == opened.read("#details-title")
    assert members == opened.page.locator("#details .units .link").all_inner_texts()


def test_page_with_hostile_names_shows_them_as_text(browser: Browser, tmp_path: Path) -> None:
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
