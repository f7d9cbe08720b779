"""A study on a terminal: its progress and its result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fabric.display.parts import Rows, Sheet, Style, Title, line
from fabric.explore.study.outcome import PROVED
from fabric.explore.study.search import SearchSession
from fabric.explore.study.study import Verdict
from fabric.explore.study.written.answer import (
    answer,
    beside,
    best_table,
    caveats,
    counts,
    failures,
    held_out_table,
    ratio_text,
    verdict_text,
    verdicts_text,
)
from fabric.explore.study.written.words import number_text
from fabric.messages.text import counted, visible

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.explore.study.result import Filled, Judged, StudyResult
    from fabric.explore.study.session import StudySession

_OVER_SECONDS: Final = 600.0
"""Period of the estimate of the remaining time."""

_EVERY_SECONDS: Final = 0.1

_ROWS: Final = 20

_FAILURES: Final = 5

_STYLES: Final[dict[Verdict, Style]] = {
    Verdict.REPRODUCED: "green",
    Verdict.UNEQUAL: "yellow",
    Verdict.RECOMPUTED: "",
    Verdict.INCONSISTENT: "yellow",
    Verdict.UNPUBLISHED: "",
    Verdict.CONTRADICTED: "red",
}


def progress_line(
    console: Console, state: str, seconds: Callable[[], float], over_seconds: float
) -> Progress:
    """Return a progress line of a terminal, with an estimate of the remaining time."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn(state, markup=False),
        TimeElapsedColumn(),
        TextColumn("remaining", style="dim"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        get_time=seconds,
        speed_estimate_period=over_seconds,
        disable=not console.is_terminal,
    )


class Watch:
    """A progress line at the bottom of a terminal, removed at the end; not shown elsewhere.

    ::

        with Watch(console) as watch:
            conduct(study, workers, kept, watch)
    """

    def __init__(self, console: Console, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Show progress on ``console``, timed by the clock ``seconds``."""
        self._progress: Final = progress_line(
            console, "{task.fields[state]}", seconds, over_seconds=_OVER_SECONDS
        )
        self._seconds: Final = seconds
        self._session: StudySession | None = None
        self._task: TaskID | None = None
        self._shown = 0.0

    def __enter__(self) -> Self:
        """Begin."""
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the line."""
        self._progress.stop()

    def __call__(self, session: StudySession) -> None:
        """Show the progress of ``session``, at most every 0.1 seconds."""
        if self._progress.disable:
            return
        now = self._seconds()
        if session is not self._session or self._task is None:
            self._begin(session)
        elif now - self._shown < _EVERY_SECONDS:
            return
        else:
            done = len(session.runs)
            total = _total(session)
            self._progress.update(self._task, completed=done, total=total, state=_state(session))
        self._shown = now

    def _begin(self, session: StudySession) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._session = session
        self._task = self._progress.add_task(
            visible(session.study.name),
            total=_total(session),
            completed=len(session.runs),
            state=_state(session),
        )


def _total(session: StudySession) -> int | None:
    study = session.study
    if isinstance(session, SearchSession):
        return None  # the number of draws is unknown
    chosen = len(study.space) * len(study.runs_of(0))
    has_front = study.held_out and len(session.outcomes) == len(study.space)
    return chosen + (len(session.front()) * len(study.held_out) if has_front else 0)


def _state(session: StudySession) -> str:
    statuses = Counter(each.status for each in session.runs.values())
    proved = sum(statuses[each] for each in PROVED)
    failed = statuses.total() - proved - statuses["completed"]
    noun = "runs" if session.study.has_inputs else "points"
    return f"{noun}, {proved:,} pruned, {failed:,} failed"


def study_sheet(result: StudyResult) -> Sheet:
    """Yield the lines and tables of a study's result."""
    study = result.study
    question = f"  {visible(study.question)}" if study.question else ""
    yield line((visible(study.name), "bold"), question)
    yield line(answer(result))
    for sentence in caveats(result):
        yield line(sentence)
    yield line(counts(result))
    yield from _failures(result)
    table = best_table(result)
    if table.rows:
        yield Title(table.title)
        yield _table(table.columns, table.rows, _ROWS)
    apart = held_out_table(result)
    if apart.rows:
        yield Title(apart.title)
        yield _table(apart.columns, apart.rows, _ROWS)
    for each in result.filled_tables:
        yield from _own_table(each)
    yield from _beside(result)
    claims = result.judged_claims
    if claims:
        yield Title("Claims", f"  {verdicts_text(claims)}")
    for row in claims:
        yield from _claim(row)


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], shown: int | None = None
) -> Rows:
    cells = [[number_text(each) if isinstance(each, float) else each for each in r] for r in rows]
    return Rows(columns, cells, shown)


def _own_table(filled: Filled) -> Sheet:
    yield Title(visible(filled.table.title))
    if filled.trouble:
        yield line((visible(f"not computed: {filled.trouble}"), "red"))
        return
    columns = list(map(visible, filled.table.columns))
    rows = [[visible(x) if isinstance(x, str) else x for x in row] for row in filled.rows]
    yield _table(columns, rows)
    if filled.table.caption:
        yield line((visible(filled.table.caption), "dim"))


def _failures(result: StudyResult) -> Sheet:
    sentences = failures(result)
    for sentence in sentences[:_FAILURES]:
        yield line(f"  {sentence}", indent=4)
    if len(sentences) > _FAILURES:
        yield line((f"  and {counted(len(sentences) - _FAILURES, 'more reason')}", "dim"))


def _beside(result: StudyResult) -> Sheet:
    published = beside(result)
    if not published:
        return
    yield Title("Published values beside ours")
    rows = [
        (
            row.setting,
            row.metric,
            number_text(row.published),
            row.why if row.ours is None else number_text(row.ours),
            ratio_text(row),
            row.source,
        )
        for row in published
    ]
    columns = ("point", "metric", "published", "ours", "ours/published", "source")
    yield _table(columns, rows, _ROWS)


def _claim(row: Judged) -> Sheet:
    verdict = verdict_text(row)
    style: Style = "red" if row.judgement is None else _STYLES[row.judgement.verdict]
    claim = row.claim
    where = f" ({visible(claim.location)})"
    yield line((f"{verdict}: ", style), visible(claim.text), where)
    parts = [f"published {claim.published}"]
    if row.judgement is None:
        parts.append(row.trouble)
    else:
        parts += [f"found {row.judgement.found}"] if row.judgement.found else []
        parts += [row.judgement.note] if row.judgement.note else []
    yield line((visible(f"  {'; '.join(parts)}"), "dim"), indent=4)
