"""The designs on the front with other values, such as a memory with banks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fabric.display.parts import Block, Sheet, Title, line
from fabric.explore.study.outcome import Outcome, metric
from fabric.explore.study.written.answer import cells_of, rows_sheet, value_text
from fabric.explore.study.written.words import label, number_text, rounded, setting_text, varying
from fabric.graph.hardware.file import varied_hardware
from fabric.messages.text import counted, visible

if TYPE_CHECKING:
    from fabric.explore.study.result import StudyResult

_MODEL: Final = "hardware.hbm.model"


def again_sheet(result: StudyResult, shown: int) -> Sheet:
    """Yield the front's designs with each change of ``Study.again``, ``shown`` rows at most.

    Without changes, yield the command that runs a front of the flat memory on a memory with banks.
    """
    if result.again is None and _is_flat(result):
        yield Title("The front on another memory")
        yield line(
            "These designs were chosen on the flat memory, which always delivers its peak. To run "
            "them again on a memory with banks:"
        )
        again = f"{result.command} --again {_MODEL}=banked"
        in_python = f'Study(..., again=grid({{"{_MODEL}": ["banked"]}}))'
        yield Block(lambda _: [f"  {again if result.command else in_python}"])
    for change, outcomes in result.changed():
        yield Title(f"The front again, with {setting_text(change, list(change))}")
        yield line(_answer(result, outcomes))
        now = {_peak(each) for each in outcomes.values()}
        before = {_peak(result.by_design[design]) for design in outcomes}
        if len(now) == len(before) == 1 and now != before:
            yield line(f"The memory's peak is {now.pop()} bytes per cycle, not {before.pop()}.")
        yield from _rows(result, outcomes, shown)


def _is_flat(result: StudyResult) -> bool:
    memories = [(result.by_design[each].hardware or {}).get("hbm") for each in result.front]
    names = {*result.study.runs.values, *result.study.fixed}
    return (
        bool(memories)
        and _MODEL not in names
        and all(isinstance(each, dict) and each.get("model") == "flat" for each in memories)
    )


def _peak(outcome: Outcome) -> str:
    hbm = (outcome.hardware or {}).get("hbm")
    if not isinstance(hbm, dict):
        return ""
    memory = varied_hardware(None, {f"hbm.{key}": value for key, value in hbm.items()}).hbm
    return number_text(float(memory.peak_bytes_per_cycle))


def _answer(result: StudyResult, outcomes: Mapping[int, Outcome]) -> str:
    front = result.front_of(outcomes)
    if not front:
        return "No design ran to its end and keeps the conditions."
    stay = "stays" if len(front) == 1 else "stay"
    sentences = [f"{len(front):,} of {counted(len(result.front), 'design')} {stay} on the front."]
    before = result.by_design
    for name in _changing(result, outcomes):
        best = min(front, key=lambda design: metric(outcomes[design], name) or 0)
        first = min(result.front, key=lambda design: metric(before[design], name) or 0)
        is_first = metric(outcomes[best], name) == metric(outcomes[first], name)
        was = ", as before" if is_first else f"; before, point {first} had"
        least = f"the least {label(name).name}, {value_text(outcomes[best], name)}"
        sentences.append(f"Point {first if is_first else best} has {least}{was}.")
    return " ".join(sentences)


def _changing(result: StudyResult, outcomes: Mapping[int, Outcome]) -> list[str]:
    before = result.by_design
    return [
        name
        for name in result.study.minimize
        if any(metric(each, name) != metric(before[n], name) for n, each in outcomes.items())
    ]


def _rows(result: StudyResult, outcomes: Mapping[int, Outcome], shown: int) -> Sheet:
    names = result.study.minimize
    changing, before = _changing(result, outcomes), result.by_design
    front, cells = result.front_of(outcomes), cells_of(result)
    columns = ["point", *map(visible, varying(result.study.space.values))]
    for name in names:
        columns += [str(label(name)), *(["before", "ratio"] if name in changing else [])]
    rows: list[list[object]] = []
    for design in sorted(outcomes, key=lambda n: metric(outcomes[n], names[0]) or math.inf):
        row: list[object] = [design, *cells(before[design].setting)]
        for name in names:
            now, was = metric(outcomes[design], name), metric(before[design], name)
            row.append(rounded(now))
            if name in changing:
                row += [rounded(was), None if not now or not was else f"{now / was:.2f}"]
        if len(front) < len(outcomes):
            ended = outcomes[design].ended
            row.append(design in front if outcomes[design].status == "completed" else ended)
        rows.append(row)
    columns += ["on the front"] if len(front) < len(outcomes) else []
    return rows_sheet(columns, rows, shown)
