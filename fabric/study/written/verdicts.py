"""Published values beside ours and claims with their verdicts, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.study.known import Verdict
from fabric.study.written.markup import table, text
from fabric.study.written.rows import beside, ratio_text, verdict_text, verdicts_text

if TYPE_CHECKING:
    from fabric.study.computed import Judged
    from fabric.study.result import StudyResult

__all__ = ["beside_html", "claims_html"]

_MARKS: Final = {
    Verdict.REPRODUCED: "good",
    Verdict.UNEQUAL: "partly",
    Verdict.RECOMPUTED: "open",
    Verdict.INCONSISTENT: "partly",
    Verdict.UNPUBLISHED: "open",
    Verdict.CONTRADICTED: "bad",
}


def beside_html(result: StudyResult) -> str:
    """Return published values beside ours as a table; empty where nothing is known."""
    rows = [
        (
            row.setting,
            row.metric,
            row.published,
            row.why if row.ours is None else row.ours,
            ratio_text(row),
            row.source,
        )
        for row in beside(result)
    ]
    columns = ("point", "metric", "published", "ours", "ours/published", "source")
    return table(columns, rows) if rows else ""


def claims_html(result: StudyResult) -> str:
    """Return each claim with what was published, what was found and the verdict."""
    rows = result.judged_claims
    return "\n".join([f"<p>{text(verdicts_text(rows))}</p>", *map(_claim, rows)]) if rows else ""


def _claim(row: Judged) -> str:
    mark = "bad" if row.judgement is None else _MARKS[row.judgement.verdict]
    found = row.trouble if row.judgement is None else row.judgement.found
    note = row.judgement.note if row.judgement else ""
    claim = row.claim
    return (
        f'<div class="claim"><span class="mark {mark}">{text(verdict_text(row))}</span>'
        f"<blockquote>{text(claim.text)} "
        f'<span class="quiet">({text(claim.location)})</span></blockquote>'
        f"<dl><dt>published</dt><dd>{text(claim.published)}</dd>"
        + (f"<dt>found</dt><dd>{text(found)}</dd>" if found else "")
        + "</dl>"
        + (f"<p>{text(note)}</p>" if note else "")
        + "</div>"
    )
