"""The page of several studies: what each answers, and what comes of its claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fabric.study.written.markup import Markup, image, own_part, section, style, table, text
from fabric.study.written.rows import verdict_counts, verdicts_text
from fabric.study.written.sentences import answer, caveats, counts, failures
from fabric.study.written.verdicts import beside_html, claims_html
from fabric.telling.wording import counted
from fabric.trace.pages.parts import filled, head

if TYPE_CHECKING:
    from fabric.study.computed import Judged
    from fabric.study.result import StudyResult
    from fabric.study.written.pictures import Shown

__all__ = ["overview_html"]

_FAILURES: Final = 5


def overview_html(
    results: Sequence[StudyResult], folders: Sequence[str], pictures: Sequence[Sequence[Shown]]
) -> str:
    """Return the page.

    Args:
        results: of the studies, in the order in which they are shown.
        folders: where the page of each study is, beside this one.
        pictures: of each study.
    """
    claims = [each.judged_claims for each in results]
    verdicts = verdict_counts(row for rows in claims for row in rows)
    points = sum(len(each.study.space) for each in results)
    several = "study" if len(results) == 1 else "studies"
    told = f"{len(results):,} {several}, {counted(points, 'point')}"
    if verdicts:
        every = [row for rows in claims for row in rows]
        told += f". Of {counted(len(every), 'claim')}: {verdicts_text(every)}"
    studies = [
        _study(result, number, folder, shown)
        for number, (result, folder, shown) in enumerate(
            zip(results, folders, pictures, strict=True), 1
        )
    ]
    return filled(
        own_part("overview.html"),
        {
            "head": head("Studies", style(), "style-src 'unsafe-inline'; img-src data:"),
            "title": "Studies",
            "answer": text(f"{told}."),
            "summary": section("All studies", _summary(results, claims, list(verdicts)), "summary"),
            "studies": "\n".join(studies),
        },
    )


def _summary(
    results: Sequence[StudyResult], claims: Sequence[Sequence[Judged]], verdicts: Sequence[str]
) -> str:
    columns = ("study", "question", "points", "ran", "proved away", "failed", *verdicts)
    rows: list[Sequence[object]] = []
    for number, (result, judgements) in enumerate(zip(results, claims, strict=True), 1):
        of = verdict_counts(judgements)
        here = result.counts
        completed = sum(each.status == "completed" for each in result.outcomes)
        rows.append(
            (
                Markup(f'<a href="#study-{number}">{text(result.study.name)}</a>'),
                result.study.question,
                here["total"],
                completed,
                here["pruned"],
                here["failed"],
                *(of.get(name) for name in verdicts),
            )
        )
    sums = [sum(int(row[n] or 0) for row in rows) for n in range(2, len(columns))]  # type: ignore[call-overload]
    rows.append(("all", "", *sums))
    return table(columns, rows, [*[""] * len(results), "total"])


def _study(result: StudyResult, number: int, folder: str, pictures: Sequence[Shown]) -> str:
    study = result.study
    link = f'<a href="{text(folder)}/index.html">all points, front and pictures</a>'
    question = f"<p><b>{text(study.question)}</b></p>" if study.question else ""
    notes = [*caveats(result), *failures(result)[:_FAILURES]]
    images = "\n".join(f"<h3>{text(each.title)}</h3>{image(each)}" for each in pictures)
    published = beside_html(result)
    parts = (
        question,
        f"<p>{text(answer(result))}</p>",
        f'<p class="quiet">{text(counts(result))} {link}</p>',
        "".join(f'<p class="quiet">{text(each)}</p>' for each in notes),
        images,
        f"<details><summary>{counted(len(study.known), 'published value')} beside ours</summary>"
        f"{published}</details>"
        if published
        else "",
        f"<h3>Claims</h3>{claims_html(result)}" if study.claims else "",
    )
    return section(study.name, "\n".join(filter(None, parts)), f"study-{number}")
