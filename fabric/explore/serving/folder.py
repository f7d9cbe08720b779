"""Write the folder of a question of serving: numbers, pictures and page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.trace.pages.parts import filled, head, part
from fabric.display.html import fragment, section, sections, text
from fabric.display.parts import Rows
from fabric.explore.serving.result import answer, load_text, notes, prefixed, time_unit
from fabric.explore.study.written.folder import write_files, write_pictures
from fabric.explore.study.written.markup import style, titled
from fabric.explore.study.written.painting import is_wide, render, scale, shared_legend
from fabric.explore.study.written.pictures import Drawn
from fabric.messages.files import write_whole
from fabric.messages.text import json_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fabric.explore.serving.result import Run, ServingResult
    from fabric.graph.arguments.described import Described


def write_folder(result: ServingResult, folder: Path, *, command: str = "") -> list[str]:
    """Write ``serving.json``, pictures and ``index.html``; return a sentence for each failure."""
    pictures = drawn(result)
    page = page_html(result, pictures, command)
    numbers = json_text(result.as_json())
    return write_files(
        folder,
        {
            "serving.json": lambda: write_whole(folder / "serving.json", numbers),
            "pictures": lambda: write_pictures(folder / "pictures", pictures),
            "index.html": lambda: write_whole(folder / "index.html", page),
        },
    )


def page_html(result: ServingResult, pictures: Sequence[Drawn], command: str = "") -> str:
    serving = result.serving
    return filled(
        part("page.html", Path(__file__).parent),
        {
            "head": head(text(serving.name), style(), "style-src 'unsafe-inline'; img-src data:"),
            "title": text(serving.name),
            "question": f"<p>{text(serving.question)}</p>" if serving.question else "",
            "answer": text(answer(result)),
            "notes": "".join(f"<p>{text(each)}</p>" for each in notes(result)),
            "runs": sections(result.runs_sheet()),
            "pictures": section("Pictures", "\n".join(map(titled, pictures))),
            "costs": section("What was served, and what steps cost", _description(result)),
            "again": section("How to run it again", f"<pre>{text(command)}</pre>" * bool(command)),
        },
    )


def _description(result: ServingResult) -> str:
    serving = result.serving
    rows = [
        *_rows("requests", serving.requests),
        *_rows("server", serving.server),
        *_rows("level", serving.level),
    ]
    for design, described in serving.designs.items():
        rows += _rows(design or "cost", described)
    return fragment([Rows(("of", "what", "value"), rows)])


def _rows(of: str, described: Described) -> list[tuple[str, str, str]]:
    return [
        (of, name, _value(value))
        for name, value in vars(described).items()
        if value is not None and value != ()
    ]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_value(each)}" for name, each in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    return str(value)


class _Panel(NamedTuple):
    """A mean at each load, in ``unit`` (s, J or none), and its 99th percentile ``high``."""

    label: str
    value: Callable[[Run], float | None]
    unit: str = ""
    high: Callable[[Run], float | None] | None = None


def _times(label: str, name: str) -> _Panel:
    mean, p99 = attrgetter(f"measures.{name}.mean"), attrgetter(f"measures.{name}.p99")
    return _Panel(label, mean, "s", p99)


_PANELS: Final = (
    _times("time to first token", "time_to_first_token"),
    _times("time per token", "time_per_token"),
    _times("latency", "latency"),
    _Panel("output tokens a second", lambda run: run.measures.output_tokens_per_second),
)

_GOODPUT: Final = _Panel("goodput, requests a second", lambda run: run.measures.goodput_per_second)
_JOULES: Final = _Panel("energy per token", lambda run: run.measures.joules_per_token, "J")

_KNEE: Final = (
    " A ring is the knee: the last load at which the mean time to first token is at most twice "
    "that at the least load. A line without a ring has no knee among these loads."
)


def drawn(result: ServingResult) -> list[Drawn]:
    drawings: list[tuple[str, str, str, Callable[[Figure], None]]] = []
    designs = result.serving.designs
    if any(len(result.of(design)) > 1 for design in designs):
        caption = "Lines are means, dashed ones 99th percentiles."
        if any(result.knee(design) is not None for design in designs):
            caption += _KNEE
        title = "How long users wait, over the load"
        drawings.append(("load", title, caption, partial(_draw_load, result)))
    last = [result.of(design)[-1] for design in designs if result.of(design)]
    if last:
        load = load_text(last[0], " requests/s")
        states = "running requests, waiting requests, and allocated cache blocks"
        caption = f"At the greatest load, {load}: {states}."
        title = "What the server does over time"
        drawings.append(("time", title, caption, partial(_draw_time, last)))
    return [
        Drawn(name, title, caption, *render(draw, formulas=False))
        for name, title, caption, draw in drawings
    ]


def _draw_load(result: ServingResult, figure: Figure) -> None:
    panels = list(_PANELS)
    panels += [
        more
        for more in (_GOODPUT, _JOULES)
        if any(more.value(run) is not None for run in result.runs)
    ]
    rows = -(-len(panels) // 2)
    figure.set_size_inches(9, 3.2 * rows)
    axes = [each for row in figure.subplots(rows, 2, squeeze=False) for each in row]
    for panel, each in zip(panels, axes, strict=False):
        _draw_panel(result, panel, each)
    for each in axes[len(panels) :]:
        each.set_axis_off()
    if len(result.serving.designs) > 1:
        shared_legend(figure, axes[0], 3)


def _draw_panel(result: ServingResult, panel: _Panel, axes: Axes) -> None:
    unit, label = _unit(panel, result.runs)
    heights: list[float] = []
    for number, design in enumerate(result.serving.designs):
        runs = [each for each in result.of(design) if each.rate is not None]
        rates = [each.rate or 0.0 for each in runs]
        colour = f"C{number}"
        values = _numbers(map(panel.value, runs), unit)
        heights += values
        axes.plot(rates, values, color=colour, marker=".", label=design or "ours")
        if panel.high is not None:
            high = _numbers(map(panel.high, runs), unit)
            heights += high
            axes.plot(rates, high, color=colour, linestyle="--", linewidth=1)
        knee = result.knee(design)
        if knee is not None and panel is _PANELS[0]:
            at = values[rates.index(knee)]
            axes.plot([knee], [at], "o", color=colour, fillstyle="none", markersize=10)
    heights = [each for each in heights if math.isfinite(each)]
    if is_wide(heights):
        scale(axes.yaxis, heights)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("requests a second")
    axes.set_ylabel(label)


def _draw_time(runs: Sequence[Run], figure: Figure) -> None:
    figure.set_size_inches(9, 6)
    panels = figure.subplots(3, 1, sharex=True)
    names = ("running", "waiting", "blocks")
    labels = ("running", "waiting", "cache blocks")
    for axes, name, label in zip(panels, names, labels, strict=True):
        for run in runs:
            axes.plot(run.timeline.seconds, getattr(run.timeline, name), label=run.design or "ours")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("seconds")
    if len(runs) > 1:
        shared_legend(figure, panels[0], 3)


def _unit(panel: _Panel, runs: Sequence[Run]) -> tuple[float, str]:
    """Return the factor of a panel's unit, and the label with the unit."""
    if not panel.unit:
        return 1.0, panel.label
    functions = [panel.value] if panel.high is None else [panel.value, panel.high]
    values = [each(run) for each in functions for run in runs]
    if panel.unit == "s":
        unit, name = time_unit(values)
    else:
        unit, prefix = prefixed(values)
        name = prefix + panel.unit
    return unit, f"{panel.label} ({name})"


def _numbers(values: Iterable[float | None], unit: float) -> list[float]:
    return [math.nan if each is None else each / unit for each in values]
