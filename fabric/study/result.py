"""What a study found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from fabric.study.computed import Filled, Judged, filled, judged
from fabric.study.conditions import METRICS
from fabric.study.front import nondominated
from fabric.study.known import KnownValue
from fabric.study.outcome import ENDED, Outcome
from fabric.study.outcome import metric as value_of
from fabric.study.study import Study
from fabric.telling.errors import ConfigurationError
from fabric.telling.plain import JsonObject

__all__ = ["StudyResult"]


@dataclass(frozen=True)
class StudyResult:
    """The outcomes of a study's points.

    Attributes:
        study: which it is of.
        outcomes: of the points that were dealt with, in the order of the space.
        resumed: how many of them were known from an earlier session.
        wall_seconds: that this session took.
        interrupted: whether points are missing because somebody stopped it.
    """

    study: Study
    outcomes: tuple[Outcome, ...]
    resumed: int = 0
    wall_seconds: float = 0.0
    interrupted: bool = False

    @cached_property
    def front(self) -> tuple[int, ...]:
        """Indices of the points that nothing dominates; empty where nothing is minimised."""
        if not self.study.minimize:
            return ()
        return tuple(sorted(nondominated(self.kept(), self.study.minimize)))

    @cached_property
    def filled_tables(self) -> tuple[Filled, ...]:
        """The study's own tables with their rows, or why they could not be computed."""
        return tuple(filled(each, self) for each in self.study.tables)

    @cached_property
    def judged_claims(self) -> tuple[Judged, ...]:
        """The study's claims with their verdicts, or why they could not be computed."""
        return tuple(judged(each, self) for each in self.study.claims)

    def kept(self) -> list[Outcome]:
        """Return the runs that completed and keep all conditions."""
        conditions = self.study.conditions
        return [
            each
            for each in self.outcomes
            if each.status == "completed" and all(one.holds(each) for one in conditions)
        ]

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes whose settings have these values."""
        return list(self._where(setting))

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None where it did not complete.

        Raises:
            ConfigurationError: there is no such point, or there are several.
        """
        found = self.matching(**setting)
        if len(found) != 1:
            told = ", ".join(f"{name}={value}" for name, value in setting.items())
            raise ConfigurationError(
                f"study {self.study.name}: {len(found)} points have {told}: expected one"
            )
        return value_of(found[0], metric)

    def beside(self) -> list[tuple[KnownValue, Outcome | None]]:
        """Return each known value with the point it is of, where there is one."""
        return [(known, next(self._where(known.setting), None)) for known in self.study.known]

    def _where(self, setting: object) -> Iterator[Outcome]:
        assert isinstance(setting, dict)
        for each in self.outcomes:
            whole = self.study.whole(each.setting)
            if all(name in whole and whole[name] == value for name, value in setting.items()):
                yield each

    def without_metric(self) -> dict[str, int]:
        """Return, for each metric that is minimised or has a condition, how many runs lack it."""
        names = (*self.study.minimize, *(each.metric for each in self.study.conditions))
        runs = [each for each in self.outcomes if each.status == "completed"]
        return {name: sum(value_of(each, name) is None for each in runs) for name in names}

    @property
    def answered(self) -> bool:
        """Whether a point completed, and some have each metric that was asked for."""
        completed = sum(each.status == "completed" for each in self.outcomes)
        return completed > max(self.without_metric().values(), default=0)

    @property
    def counts(self) -> dict[str, int]:
        """How many points there are, ran, were proved away, failed, and were known before."""
        statuses = [each.status for each in self.outcomes]
        proved = sum(status in ("pruned", "infeasible") for status in statuses)
        failed = sum(status not in ("completed", "pruned", "infeasible") for status in statuses)
        return {
            "total": len(self.study.space),
            "run": len(statuses) - proved - self.resumed,
            "pruned": proved,
            "failed": failed,
            "resumed": self.resumed,
        }

    @property
    def ended(self) -> dict[str, int]:
        """How many points ended in which way, in words."""
        found = dict.fromkeys(ENDED, 0)
        for each in self.outcomes:
            found[each.status] += 1
        return {ENDED[status]: count for status, count in found.items() if count}

    def as_json(self) -> JsonObject:
        """Return the object that ``study --json`` prints."""
        return {
            "study": self.study.name,
            "question": self.study.question,
            "minimize": list(self.study.minimize),
            "where": list(self.study.where),
            "points": [dict.fromkeys(METRICS) | each.as_json() for each in self.outcomes],
            "pareto": list(self.front),
            "counts": self.counts,
            "tables": [_as_table(each) for each in self.filled_tables],
            "known": [self._as_known(*each) for each in self.beside()],
            "claims": [_as_claim(each) for each in self.judged_claims],
            "wall_seconds": self.wall_seconds,
            "status": "interrupted" if self.interrupted else "completed",
            "error": None,
        }

    def _as_known(self, known: KnownValue, outcome: Outcome | None) -> JsonObject:
        """Return a published value and ours, None where there is none."""
        ours = None if outcome is None else value_of(outcome, known.metric)
        return {
            "setting": known.setting,
            "metric": known.metric,
            "published": known.value,
            "ours": ours,
            "source": known.source,
        }


def _as_table(filled: Filled) -> JsonObject:
    return {
        "title": filled.table.title,
        "columns": list(filled.table.columns),
        "rows": [list(row) for row in filled.rows],
        "caption": filled.table.caption,
        "trouble": filled.trouble or None,
    }


def _as_claim(judged: Judged) -> JsonObject:
    claim, judgement = judged.claim, judged.judgement
    return {
        "text": claim.text,
        "location": claim.location,
        "published": claim.published,
        "found": None if judgement is None else judgement.found,
        "verdict": None if judgement is None else str(judgement.verdict),
        "note": None if judgement is None else judgement.note,
        "trouble": judged.trouble or None,
    }
