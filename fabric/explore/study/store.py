"""Store of a study's outcomes in a database that studies and processes share."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, replace

# Any: rows of the database.
from typing import Any, Final

import msgspec
from typing_extensions import override

from fabric.explore.study.evaluation import Identities
from fabric.explore.study.outcome import PROVED, Outcome, Point
from fabric.explore.study.session import BaseStore
from fabric.explore.study.storage import Database
from fabric.explore.study.study import Study
from fabric.messages.addresses import shown_address
from fabric.messages.text import counted, plain


class Store(BaseStore):
    """A store in a database.

    Studies of one database share the runs with the same identity. They share pruned points if they
    also have the same metrics, conditions and axes. A point runs again if it lost its worker, or
    exceeded a timeout that was shorter than the present one.

    Attributes:
        ignored: number of stored outcomes of this study from another program, hardware or fabric.
    """

    def __init__(self, study: Study, url: str, timeout_seconds: float | None = None) -> None:
        """Open the database of ``url``; ``timeout_seconds`` is the present limit of a point."""
        super().__init__()
        self._study: Final = study
        self._url: Final = url
        self._timeout_seconds: Final = timeout_seconds
        self._identities: Final = Identities(study)
        self._form: Final = _form(study)
        self._database: Final = Database(url)
        self._owner: Final = f"{socket.gethostname()}:{os.getpid()}"
        self._seen = 0
        self.ignored = 0

    @override
    def known(self) -> list[Outcome]:
        """Return the outcomes of earlier sessions that are still valid."""
        self._seen = 0
        outcomes: dict[int, Outcome] = {}
        for outcome in self._read(own=True):
            first = outcomes.setdefault(outcome.index, outcome)
            if first.status in PROVED and outcome.status not in PROVED:
                outcomes[outcome.index] = outcome
        if self._study.has_inputs:
            return list(outcomes.values())  # the session proves pruned designs again
        return [
            each
            for each in outcomes.values()
            if not isinstance(each.pruned_by, int) or each.pruned_by in outcomes
        ]

    @override
    def news(self) -> list[Outcome]:
        return list(self._read(own=False))

    @override
    def claim(self, point: Point, *, insist: bool) -> bool:
        """Claim a point for this process; False if a process that may be alive has claimed it."""
        database, claims = self._database, self._database.claims
        identity = self._identities.of(point.setting)
        if database.write(claims.insert().values(identity=identity, owner=self._owner)) == 1:
            return True
        of_point = claims.c.identity == identity
        rows = database.read(claims.select().where(of_point))
        with database.reporting_damage():
            (owner,) = (row.owner for row in rows)
            free = insist or owner == self._owner or not _may_live(owner)
        if not free:
            return False
        change = claims.update().where(of_point, claims.c.owner == owner)
        return database.write(change.values(owner=self._owner)) == 1 or insist

    @override
    def keep(self, outcome: Outcome, *, drawn: bool = False) -> None:
        # Immediately, before the point's files can change.
        if self._identities.have_changed(outcome.setting):
            outcome = replace(outcome, executed={})
        content = asdict(replace(outcome, setting=self._study.whole(outcome.setting)))
        if drawn:
            self.drawn.add(outcome.index)
        self._database.write(
            self._database.runs.insert().values(
                identity=self._identity(outcome),
                study=self._study.name,
                owner=self._owner,
                drawn=drawn,
                outcome=json.dumps(content, default=plain),
            )
        )

    def ignored_note(self) -> str:
        return (
            f"not used: {counted(self.ignored, 'point')} in {shown_address(self._url)}, from "
            "another program, hardware or version of the fabric"
        )

    def _read(self, *, own: bool) -> Iterator[Outcome]:
        runs = self._database.runs
        rows = self._database.read(
            runs.select().where(runs.c.number > self._seen).order_by(runs.c.number)
        )
        for row in rows:
            self._seen = row.number
            if own or row.owner != self._owner:
                with self._database.reporting_damage():
                    outcomes = list(self._outcomes_of(row))
                yield from outcomes

    def _outcomes_of(self, row: Any) -> Iterator[Outcome]:
        stored = msgspec.convert(json.loads(row.outcome), Outcome)
        if stored.status == "lost":
            return
        seconds, limit_seconds = stored.wall_seconds, self._timeout_seconds
        if stored.status == "timeout" and (
            seconds is None or limit_seconds is None or limit_seconds > seconds
        ):
            return
        same = self._identities.executed_still(stored.executed)
        own = row.study == self._study.name
        indices = list(self._study.runs.indices(stored.setting))
        is_used = not indices or not own or stored.status in PROVED
        for index in indices:
            outcome = replace(stored, index=index, setting=self._study.runs[index])
            if same and self._identity(outcome) == row.identity:
                if own and row.drawn:
                    self.drawn.add(index)
                yield outcome
                is_used = True
        # A product with fewer axes has an index for this setting, but the point's identity differs.
        self.ignored += not is_used

    def _identity(self, outcome: Outcome) -> str:
        identity = self._identities.of(outcome.setting)
        if outcome.status not in PROVED:
            return identity
        return hashlib.sha256((identity + self._form).encode()).hexdigest()


def _form(study: Study) -> str:
    axes = [[(axis.names, axis.rows) for axis in axes] for axes in study.runs.products]
    return repr((study.judged_by, study.where, axes, study.hold_out))


def _may_live(owner: str) -> bool:
    host, _, number = owner.rpartition(":")
    if host != socket.gethostname():
        return True  # unknown
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
