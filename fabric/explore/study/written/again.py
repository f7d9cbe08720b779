"""The designs on the front with other values, such as a memory with banks."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fabric.display.parts import Block, Sheet, Title, line
from fabric.explore.study.outcome import Outcome, metric
from fabric.explore.study.written.answer import cells_of, rows_sheet, value_text
from fabric.explore.study.written.words import label, number_text, rounded, setting_text, varying
from fabric.messages.text import counted, visible

if TYPE_CHECKING:
    from fabric.explore.study.result import StudyResult

_MODEL: Final = "hardware.hbm.model"


def again_sheet(result: StudyResult, shown: int) -> Sheet:
    """Yield the front's designs with each change of ``Study.again``, ``shown`` rows at most.

    If nothing ran again and the memory is flat, yield the command that uses a memory with banks.
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
        before = {design: result.by_design[design] for design in outcomes}
        yield from _compared(result, before, outcomes, shown)


def _is_flat(result: StudyResult) -> bool:
    memories = [(result.by_design[each].hardware or {}).get("hbm") for each in result.front]
    names = {*result.study.runs.values, *result.study.fixed}
    return (
        bool(memories)
        and _MODEL not in names
        and all(isinstance(each, dict) and each.get("model") == "flat" for each in memories)
    )


def _compared(
    result: StudyResult, before: Mapping[int, Outcome], after: Mapping[int, Outcome], shown: int
) -> Sheet:
    names = result.study.minimize
    front = result.front_of(after)
    changing = [
        name
        for name in names
        if any(metric(after[n], name) != metric(before[n], name) for n in after)
    ]
    yield line(_answer(result, before, after, front, changing))
    peak, peak_before = (_peak(result, outcomes.values()) for outcomes in (after, before))
    if peak is not None and peak_before is not None and peak != peak_before:
        yield line(
            f"The memory's peak is {number_text(peak)} bytes per cycle, not "
            f"{number_text(peak_before)}."
        )
    columns = ["point", *map(visible, varying(result.study.space.values))]
    for name in names:
        columns += [str(label(name)), *(["before", "ratio"] if name in changing else [])]
    has_left = len(front) < len(after)
    columns += ["on the front"] if has_left else []
    cells = cells_of(result)
    rows: list[list[object]] = []
    for design in sorted(after, key=lambda n: metric(after[n], names[0]) or math.inf):
        row: list[object] = [design, *cells(before[design].setting)]
        for name in names:
            now, was = metric(after[design], name), metric(before[design], name)
            row.append(rounded(now))
            if name in changing:
                row += [rounded(was), None if not now or not was else f"{now / was:.2f}"]
        if has_left:
            ended = after[design].ended
            row.append(design in front if after[design].status == "completed" else ended)
        rows.append(row)
    yield from rows_sheet(columns, rows, shown)


def _peak(result: StudyResult, outcomes: Iterable[Outcome]) -> float | None:
    """Return the peak of the off-chip memory in all ``outcomes``; None if their peaks differ."""
    statistic = "worst:" if result.study.has_inputs else ""
    name = f"{statistic}off_chip_peak_bytes_per_cycle"
    peaks = {metric(each, name) for each in outcomes} - {None}
    return peaks.pop() if len(peaks) == 1 else None


def _answer(
    result: StudyResult,
    before: Mapping[int, Outcome],
    after: Mapping[int, Outcome],
    front: Collection[int],
    changing: Sequence[str],
) -> str:
    if not front:
        return "No design ran to its end and keeps the conditions."
    stay = "stays" if len(front) == 1 else "stay"
    sentences = [f"{len(front):,} of {counted(len(result.front), 'design')} {stay} on the front."]
    for name in changing:
        best = min(front, key=lambda design: metric(after[design], name) or 0)
        first = min(before, key=lambda design: metric(before[design], name) or 0)
        is_first = metric(after[best], name) == metric(after[first], name)
        was = ", as before" if is_first else f"; before, point {first} had"
        least = f"the least {label(name).name}, {value_text(after[best], name)}"
        sentences.append(f"Point {first if is_first else best} has {least}{was}.")
    return " ".join(sentences)
