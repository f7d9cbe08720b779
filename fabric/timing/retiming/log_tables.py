"""The log of compiled operators as tables of integers, written from a journal and read back.

``ports`` has their channels; ``templates`` first stretches, ends and transitions, as they are
found; ``taken`` the template that each operator takes, in the order of the loop; and ``stages``
their progress at a moment. Rows beyond the last ``stages`` are incomplete and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fabric.timing.compiled import world as c
from fabric.timing.retiming import events as e
from fabric.timing.retiming.unrolling import (
    NOTHING,
    OUTPUT_KINDS,
    Log,
    Templates,
    ports_of,
    ranges,
    sequenced,
    templates_in,
    templates_of,
)

if TYPE_CHECKING:
    from fabric.timing.compiled.arrays import Journal
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.tables import Counters

Table = Mapping[str, "Counters"]

COLUMNS: Final = {
    "ports": ("unit", "output", "port", "channel"),
    "templates": ("template", "kind", "port", "amount", "work", "code", "stamp"),
    "taken": ("stage", "template"),
    "stages": ("taken", "done", "work", "status", "chose"),
}

_RUNS, _DRAINS, _FINISHED = range(3)

_ALL: Final = -1
"""All operations of the last template."""

_COUNTED: Final = {
    c.TAKE: e.TAKE,
    c.SEND: e.SEND,
    c.SEND_AT: e.SEND,
    c.RESERVE: e.RESERVE,
    c.PUT: e.PUT,
    c.UNTIL: e.UNTIL,
    c.BURST: e.WAIT,
}
"""Operations that have a row each in the template."""

_HEADS: Final = (e.SEE, e.END, e.ARRIVAL)
_INPUT_KINDS: Final = (*_HEADS, e.TAKE)
_ON_CHANNEL: Final = (*_INPUT_KINDS, *OUTPUT_KINDS)

_MOST_CYCLES: Final = 1 << 53


class LogWriter:
    """Makes tables of the new rows of a journal."""

    def __init__(self, journal: Journal, number: Mapping[Channel, int]) -> None:
        self._journal: Final = journal
        self._number: Final = number
        stages = journal.stages
        self._inputs: Final = np.array([len(stage.inputs) for stage in stages], np.int64)
        self._taken: Counters = np.zeros(len(stages), np.int64)
        self._told, self._is_first = 0, True
        self._fixed: Final = len(stages) + int(self._inputs.max()) + 1

    def ports(self) -> Table:
        """Return the channel of each port, stage by stage."""
        stages = self._journal.stages
        _, channels = ports_of(stages, self._number)
        counts = np.array([[len(s.inputs), len(s.outputs)] for s in stages], np.int64).reshape(-1)
        unit = np.repeat([stage.unit.index for stage in stages for _ in range(2)], counts)
        output = np.repeat(np.tile([0, 1], len(stages)), counts)
        return _columns("ports", unit, output, ranges(np.zeros_like(counts), counts), channels[:-1])

    def new(self) -> tuple[tuple[str, Table], ...]:
        """Return the rows that are new since the last call, and the stages' progress, by table."""
        return (
            ("templates", self._templates()),
            ("taken", self._new_taken()),
            ("stages", self._stages()),
        )

    def _templates(self) -> Table:
        tables, stages = self._journal.tables, self._journal.stages
        begin, count = self._told, tables.transitions.count
        most = int(self._inputs.max())
        used = np.zeros(count + self._fixed, np.bool_)
        used[begin:count] = True
        used[count:] = self._is_first
        self._told, self._is_first = count, False
        stretches = [stage.automaton.first_stretch for stage in stages]
        found = templates_of(tables, stretches, most, used)
        owner = np.repeat(np.arange(len(used)), np.diff(found.first))
        # First stretches and ends precede transitions, which grow in number during the run.
        template = np.where(owner < count, owner + self._fixed, owner - count)
        order = np.argsort(template, kind="stable")
        order = order[used[owner[order]]]
        rows = (template, found.kind, found.port, found.amount, found.work, found.code, found.stamp)
        return _columns("templates", *(each[order] for each in rows))

    def _new_taken(self) -> Table:
        stages, taken = self._journal.rows()
        self._journal.forget()
        self._taken += np.bincount(stages, minlength=len(self._taken))
        return _columns("taken", stages.astype(np.int64), taken.astype(np.int64) + self._fixed)

    def _stages(self) -> Table:
        standing = self._journal.standing
        count = len(standing)
        done, work = np.full(count, _ALL), np.zeros(count, np.int64)
        operations = self._journal.tables.operations.table.rows
        for stage in np.flatnonzero(standing["pc"] < standing["end"]).tolist():
            done[stage], work[stage] = done_since(operations, standing[stage])
        status = np.full(count, _RUNS)
        status[standing["status"] == c.DRAINING] = _DRAINS
        status[standing["status"] == c.FINISHED] = _FINISHED
        return _columns("stages", self._taken.copy(), done, work, status, standing["chose"])


def _columns(table: str, *columns: Counters) -> Table:
    return dict(zip(COLUMNS[table], columns, strict=True))


def done_since(operations: NDArray[Any], stage: Mapping[str, int]) -> tuple[int, int]:
    """Return how many counted operations of its stretch a stage has done, and its work since."""
    began, pc, rounds = (int(stage[name]) for name in ("began", "pc", "times"))
    places = np.arange(began, pc)
    if rounds:
        repeat = pc + int(np.argmax(operations["what"][pc:] == c.REPEAT))
        body = np.arange(repeat - operations["port"][repeat], repeat)
        places = np.concatenate([places[places < body[0]], np.tile(body, rounds), body[body < pc]])
    done = work = 0
    for at in places.tolist():
        what, back, amount = operations[at][["what", "port", "amount"]].tolist()
        if what == c.REPEAT:
            again = operations[at - back : at]
            counted = np.isin(again["what"], list(_COUNTED))
            done += int(counted.sum()) * (amount - 1)
            charged = np.where(again["what"] == c.CHARGE, again["amount"], 0)
            # Work since the last counted operation, or of all rounds if the body counts none.
            work = (
                int(charged[len(counted) - int(np.argmax(counted[::-1])) :].sum())
                if counted.any()
                else work + int(charged.sum()) * (amount - 1)
            )
        elif what in _COUNTED:
            done, work = done + 1, 0
        elif what == c.CHARGE:
            work += amount
    return done, work


def log_in(tables: Mapping[str, Table], bursts: Counters, channels: int) -> Log:
    """Return the events up to the moment of ``stages``.

    ``tables`` are untrusted; ``bursts`` counts answered bursts by unit.

    Raises:
        ValueError: the tables do not fit together, or do not describe a run.
    """
    ports, stages = tables["ports"], tables["stages"]
    units, sides, joined = _ports(ports, len(stages["taken"]), len(bursts), channels)
    count = len(units)
    inputs = np.diff(sides)[::2][:count]
    fixed = count + int(inputs.max(initial=0)) + 1
    templates = _checked(tables["templates"], fixed)
    stage, template = tables["taken"]["stage"], tables["taken"]["template"]
    _within(stage, 0, count)
    _within(template, fixed, len(templates.first) - 1)
    # Rows beyond the moment are those that come too late in their stage.
    before = np.zeros(len(stage), np.int64)
    order = np.argsort(stage, kind="stable")
    counts = np.bincount(stage, minlength=count)
    before[order] = ranges(np.zeros(count, np.int64), counts)
    kept = before < stages["taken"][stage]
    stage, template = stage[kept], template[kept]
    if (np.bincount(stage, minlength=count) != stages["taken"]).any():
        raise ValueError("rows of it are missing")
    status = stages["status"]
    _within(status, _RUNS, _FINISHED + 1)
    over = np.flatnonzero(status != _RUNS)
    numbers = np.arange(count)
    ends, taken = sequenced(
        np.concatenate([numbers, stage, over]),
        np.concatenate([numbers, template, count + inputs[over]]),
        count,
    )
    taken, templates = _cut(ends, taken, templates, stages, bursts[units])
    waits = np.diff(np.concatenate([[0], np.cumsum(templates.kind == e.WAIT)])[templates.first])
    waited = np.diff(np.concatenate([[0], np.cumsum(waits[taken])])[ends], prepend=0)
    if (waited != bursts[units]).any():
        raise ValueError("bursts of it are missing")
    _fit(ends, taken, templates, np.diff(sides, append=len(joined) - 1).reshape(-1, 2))
    return Log(units, sides, joined, ends, taken, templates, units[stages["chose"] != 0])


def _within(numbers: Counters, least: int, end: int) -> None:
    if len(numbers) and not least <= numbers.min() <= numbers.max() < end:
        raise ValueError("a number in it is none of a run")


def _ports(
    ports: Table, stages: int, units: int, channels: int
) -> tuple[Counters, Counters, Counters]:
    unit, output, port, channel = (ports[name] for name in COLUMNS["ports"])
    _within(unit, 0, units)
    _within(output, 0, 2)
    _within(channel, -1, channels)
    side = unit * 2 + output
    begins = np.diff(side, prepend=-1) != 0
    numbers = unit[np.diff(unit, prepend=-1) != 0]
    counts = np.bincount(side, minlength=2 * units).reshape(-1, 2)[numbers].reshape(-1)
    whole = ranges(np.zeros_like(counts), counts)
    if len(numbers) != stages or (np.diff(side) < 0).any() or (port != whole).any():
        raise ValueError("its ports are none of a run")
    if (channel[output == 0] < 0).any() or begins.sum() > len(counts):
        raise ValueError("its ports are none of a run")
    sides = np.cumsum(counts) - counts
    return numbers, sides, np.append(channel, -1)


def _checked(table: Table, fixed: int) -> Templates:
    template, kind, port, amount, work, code, stamp = (table[name] for name in COLUMNS["templates"])
    _within(template, 0, _MOST_CYCLES)
    _within(kind, NOTHING, e.IDLE)
    port = np.where(np.isin(kind, _ON_CHANNEL), port, 0)
    _within(port, 0, _MOST_CYCLES)
    _within(amount, -_MOST_CYCLES, _MOST_CYCLES)
    _within(work, 0, _MOST_CYCLES)
    _within(code, -1, 1 << 62)
    _within(stamp, -1, c.STAMPS + 1)
    if (np.diff(template) < 0).any() or (kind == e.AT).any():
        raise ValueError("its templates are none of a run")
    count = max(fixed, int(template.max(initial=-1)) + 1)
    if count > fixed + len(template):
        raise ValueError("its templates are none of a run")
    return templates_in(count, template, kind, port, amount, work, code, stamp)


def _cut(
    ends: Counters, taken: Counters, templates: Templates, stages: Table, bursts: Counters
) -> tuple[Counters, Templates]:
    """Truncate the last template of each stage to its progress, and list the taken templates."""
    first, kind, work = templates.first, templates.kind, templates.work
    columns = (kind, templates.port, templates.amount, work, templates.code, templates.stamp)
    waits = np.diff(np.concatenate([[0], np.cumsum(kind == e.WAIT)])[first])[taken]
    asked = np.diff(np.concatenate([[0], np.cumsum(waits)])[ends], prepend=0)
    counted = np.isin(kind, list(set(_COUNTED.values())))
    count, taken, pieces = len(first) - 1, taken.copy(), []
    for stage in np.flatnonzero(stages["status"] != _FINISHED).tolist():
        last = int(taken[ends[stage] - 1])
        begin, end = int(first[last]), int(first[last + 1])
        done, since = int(stages["done"][stage]), int(stages["work"][stage])
        its = begin + np.flatnonzero(counted[begin:end])
        if stages["status"][stage] == _DRAINS:
            end = min(end, begin + 1)
        elif done != _ALL or asked[stage] > bursts[stage]:
            keeps = len(its) if done == _ALL else done
            if not 0 <= keeps <= len(its):
                raise ValueError("its stages are none of a run")
            unasked = int((kind[its[keeps:]] == e.WAIT).sum())
            if asked[stage] - unasked > bursts[stage] and keeps:
                # It waits for its last burst, before which it has worked.
                keeps -= 1
                since = int(work[its[keeps - 1] + 1 if keeps else begin : its[keeps] + 1].sum())
            heads = np.isin(kind[begin:end], _HEADS)
            end = int(its[keeps - 1]) + 1 if keeps else begin + int(np.argmin([*heads, False]))
        pieces.append([np.append(each[begin:end], 0) for each in columns])
        pieces[-1][0][-1], pieces[-1][3][-1] = e.WORK, since
        taken[ends[stage] - 1] = count + len(pieces) - 1
    sizes = np.concatenate([np.diff(first), [len(piece[0]) for piece in pieces]])
    owner = np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))
    joined = [np.concatenate(each) for each in zip(columns, *pieces, strict=True)]
    return taken, templates_in(len(sizes), owner, *joined)


def _fit(ends: Counters, taken: Counters, templates: Templates, ports: Counters) -> None:
    """Refuse templates with ports that their operators do not have."""
    count = np.diff(templates.first)
    is_output = np.isin(templates.kind, OUTPUT_KINDS)
    is_input = np.isin(templates.kind, _INPUT_KINDS)
    stage = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    for side, which in ((0, is_input), (1, is_output)):
        most = np.zeros(len(count), np.int64)
        its = np.flatnonzero(which)
        np.maximum.at(most, np.repeat(np.arange(len(count)), count)[its], templates.port[its] + 1)
        if (most[taken] > ports[stage, side]).any():
            raise ValueError("its templates are about ports that are not there")
    work = np.concatenate([[0.0], np.cumsum(templates.work.astype(np.float64))])
    amount = np.concatenate([[0.0], np.cumsum(np.abs(templates.amount).astype(np.float64))])
    total = sum(np.diff(each[templates.first])[taken].sum() for each in (work, amount))
    if total > _MOST_CYCLES:
        raise ValueError("a number in it is none of a run")
