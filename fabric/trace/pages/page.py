"""``trace report``: the page that holds all of it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.deadlock.picture import svg
from fabric.deadlock.text import report_lines
from fabric.telling.causes import SHOWN, STUCK
from fabric.telling.whole_file import output_file
from fabric.telling.wording import visible
from fabric.trace.analysis.critical import phases
from fabric.trace.analysis.stalls import Accounts
from fabric.trace.analysis.stuck import analysed
from fabric.trace.pages.charts import bandwidth_chart, legend, occupancy_charts, timeline_chart
from fabric.trace.pages.graph import graph
from fabric.trace.pages.svg import element, table

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["write_page"]

_ROWS: Final = 200
_STYLE: Final = """
body{font:14px/1.45 system-ui,"DejaVu Sans",sans-serif;color:#1c2733;background:#fff;
  margin:24px auto;max-width:1240px;padding:0 20px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:34px 0 8px;
  border-bottom:1px solid #d8e0e8;padding-bottom:4px}
svg text{font-family:system-ui,"DejaVu Sans",sans-serif}
.verdict{font-size:16px;font-weight:600;background:#eef3f8;border-left:4px solid #2f6fb2;
  padding:10px 14px;margin:16px 0}
.bad{background:#fdecee;border-color:STUCK}
.scroll{overflow:auto;max-width:100%}.graph{max-height:640px;border:1px solid #d8e0e8;
  border-radius:6px}
table{border-collapse:collapse;font-size:13px}td,th{padding:3px 14px 3px 0;text-align:left;
  vertical-align:top}th{color:#5b6875;font-weight:600;border-bottom:1px solid #d8e0e8}
tr:hover td{background:#f6f8fa}.n{text-align:right;font-variant-numeric:tabular-nums}
.legend span{margin-right:18px;white-space:nowrap}.legend i{display:inline-block;width:12px;
  height:12px;border-radius:2px;margin-right:6px;vertical-align:-1px}
.quiet{color:#5b6875}
""".replace("STUCK", STUCK)


def write_page(trace: RecordedRun, output: Path) -> None:
    """Write the report of ``trace`` into ``output``.

    Raises:
        OSError: it cannot be written.
    """
    accounts = Accounts(trace)
    report = analysed(trace)
    in_loop = {unit.unit for loop in report.loops for unit in loop.units} if report else set()
    stuck = {unit for unit, name in enumerate(accounts.names.units) if name in in_loop}
    sections = [
        _head(trace, accounts),
        *(_section("Why it does not move", _deadlock(report)) if report else ()),
        *_section(
            "The program",
            element("p", "Darker units are busier; the bar below a name is its whole run.")
            + legend()
            + graph(accounts, stuck),
        ),
        *_section("Units over time", legend() + timeline_chart(accounts)),
        *_section("Bytes the HBM moved a cycle", bandwidth_chart(trace, accounts)),
        *_section("Elements held, where units wait longest", occupancy_charts(trace, accounts)),
        *_section("Where the cycles went", _units(accounts)),
        *_section("Whom they were waiting for", _roots(accounts)),
        *_section("Critical path", element("p", accounts.path_note) + _path(accounts)),
    ]
    title = escape(str(trace.meta.get("name")))
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(sections)}</body></html>\n"
    )
    with output_file(output, encoding="utf-8") as file:
        file.write(page)


def _section(title: str, content: str) -> tuple[str, str]:
    return element("h2", escape(title)), content


def _head(trace: RecordedRun, accounts: Accounts) -> str:
    meta = trace.meta
    given = ", ".join(f"{name}={value}" for name, value in meta.get("parameters", {}).items())
    ran = f"{trace.outcome} in {meta.get('mode')} mode, {trace.cycles:,} cycles"
    program = " ".join(str(each) for each in (meta.get("program"), given) if each)
    verdict = accounts.verdict()
    notes = "".join(element("p", escape(problem), class_="quiet") for problem in trace.problems)
    if meta.get("window") is not None or meta.get("nodes") is not None:
        first, last = trace.window
        kept = f"Traced: cycles {first:,} to {last:,}, units {meta.get('nodes') or 'all'}."
        notes += element("p", escape(kept), class_="quiet")
    return (
        element("h1", escape(str(meta.get("name"))))
        + element("div", escape(visible(program)), class_="quiet")
        + element("div", escape(ran))
        + element("div", escape(verdict), class_="verdict bad" if trace.failed else "verdict")
        + notes
    )


def _deadlock(report: DeadlockReport) -> str:
    text = element("pre", escape("\n".join(report_lines(report))))
    return element("div", svg(report) + text, class_="scroll")


def _units(accounts: Accounts) -> str:
    ranked = accounts.ranked()
    names = accounts.names
    rows: list[tuple[object, ...]] = [
        (
            names.units[unit.unit],
            *(getattr(unit, cause) for cause in SHOWN),
            "" if unit.worst is None else names.far_end(unit.unit, unit.worst[0]),
            names.places[unit.unit],
        )
        for unit in ranked
    ]
    note = f"Each row sums to {accounts.cycles:,} cycles."
    if len(rows) > _ROWS:
        note += f" {_ROWS} of {len(rows):,} units, the critical path's and the most stalled."
    titles = ["unit", *(cause.label for cause in SHOWN), "mostly", "wired at"]
    return element("p", note) + table(titles, rows[:_ROWS])


def _roots(accounts: Accounts) -> str:
    stalled = sum(accounts.charged.values())
    rows: list[tuple[object, ...]] = [
        (accounts.names.root(root), cycles, 100 * cycles / stalled)
        for root, cycles in sorted(accounts.charged.items(), key=lambda item: (-item[1], item[0]))
    ]
    note = f"{stalled:,} stalled cycles of all units, each charged to the end of its chain."
    return element("p", note) + table(["root", "cycles", "%"], rows[:_ROWS])


def _path(accounts: Accounts) -> str:
    rows: list[tuple[object, ...]] = [
        (accounts.names.root(root), cycles, 100 * cycles / max(1, accounts.cycles))
        for root, cycles in sorted(accounts.on_path().items(), key=lambda item: (-item[1], item[0]))
    ]
    stretches: list[tuple[object, ...]] = [
        (start, end, 100 * share, accounts.names.root(root))
        for start, end, root, share in phases(accounts.timelines, accounts.path)
    ]
    return table(["through", "cycles", "%"], rows[:_ROWS]) + table(
        ["from", "to", "% of it", "mostly through"], stretches
    )
