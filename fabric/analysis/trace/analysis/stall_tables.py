"""The tables of ``Stalls``, made from the account of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fabric.analysis.trace.analysis.critical import cycles_by_root, named_path, named_root
from fabric.analysis.trace.analysis.slow_memory import slow_memory_of
from fabric.analysis.trace.analysis.stalled import (
    ChannelWait,
    ChargedRoot,
    FoldedStalls,
    StageFigures,
    StalledFamily,
    StalledUnit,
    Stalls,
)
from fabric.analysis.trace.analysis.stalls import Accounts, Key
from fabric.messages.causes import SHOWN
from fabric.messages.text import Family, spread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.analysis.trace.analysis.roots import Root
    from fabric.analysis.trace.analysis.timeline import UnitStalls
    from fabric.analysis.trace.reading.reader import RecordedRun
    from fabric.analysis.trace.reading.wording import Names


def stalls_of(trace: RecordedRun) -> Stalls:
    """Account for ``trace``."""
    accounts = Accounts(trace)
    names = accounts.names
    units = {each.unit: _named(accounts, each) for each in accounts.ranked()}
    return Stalls(
        cycles=accounts.cycles,
        units=tuple(units.values()),
        roots=_charged(names, accounts.by_unit.values()),
        critical_path=named_path(names, accounts.timelines, accounts.path, accounts.status),
        hbm=slow_memory_of(trace.hbm, accounts),
        gains=accounts.gains,
        verdict=accounts.verdict(),
        folded=_folded(trace, accounts, units),
    )


def _folded(trace: RecordedRun, accounts: Accounts, units: dict[int, StalledUnit]) -> FoldedStalls:
    names, first = accounts.names, accounts.names.first

    def of_family(root: Root) -> Root:
        return root if root.unit < 0 else root._replace(unit=first[root.unit])

    waits = [
        _sums((of_family(root), cycles) for root, cycles in charged.items())
        for charged in accounts.by_unit.values()
    ]
    path = [step._replace(root=of_family(step.root)) for step in accounts.path]
    on_path = _sums((root.unit, cycles) for root, cycles in cycles_by_root(path).items())
    groups: dict[tuple[bool, int], list[int]] = {}
    for unit, stalled in units.items():
        groups.setdefault((stalled.took_part, first[unit]), []).append(unit)
    found = [
        (unit, _family(accounts, [(each, units[each]) for each in members]))
        for (took_part, unit), members in groups.items()
        if took_part
    ]
    found.sort(key=lambda each: (-on_path[each[0]], -each[1].spread.most.stalled_cycles, each[0]))
    return FoldedStalls(
        stages=stages_of(trace, accounts),
        families=tuple(family for _, family in found),
        absent=tuple(
            Family(names.folded.units[unit], tuple(units[each].name for each in members))
            for (took_part, unit), members in sorted(groups.items())
            if not took_part
        ),
        roots=_charged(names.folded, waits),
        critical_path=named_path(names.folded, accounts.timelines, path, accounts.status),
    )


def stages_of(trace: RecordedRun, accounts: Accounts) -> tuple[StageFigures, ...]:
    """Return the stages of the program."""
    names, needs = accounts.names, trace.on_chip_bytes
    path = accounts.on_path().items()
    on_path = _sums((names.first[root.unit], cycles) for root, cycles in path if root.unit >= 0)
    moved = Counter(dict(trace.rows("SELECT unit, sum(bytes)::BIGINT FROM bursts GROUP BY unit")))
    saved: dict[str, int] = {}
    if accounts.gains is not None:
        saved = {names.family_of(unit).title: 0 for unit in accounts.tried}
        saved |= {gain.name: accounts.cycles - gain.cycles for gain in accounts.gains}
    found = [
        StageFigures(
            title,
            *names.wired[members[0]],
            len(members),
            on_path[members[0]],
            saved.get(title),
            sum(moved[unit] for unit in members),
            sum(needs[unit] for unit in members) if needs else None,
        )
        for title, members in names.families
    ]

    return tuple(sorted(found, key=lambda stage: [each or 0 for each in stage[4:]], reverse=True))


def _sums(counts: Iterable[tuple[Key, int]]) -> Counter[Key]:
    sums: Counter[Key] = Counter()
    for key, count in counts:
        sums[key] += count
    return sums


def _family(accounts: Accounts, members: list[tuple[int, StalledUnit]]) -> StalledFamily:
    names = accounts.names.folded
    members = sorted(members, key=lambda member: (member[1].stalled_cycles, member[0]))
    median = spread(members, lambda member: member[1].stalled_cycles).median[0]
    worst = accounts.by_number[median].worst
    return StalledFamily(
        name=names.units[median],
        units=tuple(unit for _, unit in members),
        mostly="" if worst is None else names.far_end(median, worst[0]),
    )


def _charged(names: Names, waits: Iterable[Counter[Root]]) -> tuple[ChargedRoot, ...]:
    cycles: Counter[Root] = Counter()
    stalled: Counter[Root] = Counter()
    for each in waits:
        cycles.update(each)
        stalled.update(each.keys())
    ranked = sorted(cycles.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        ChargedRoot(named_root(names, root), count, stalled[root]) for root, count in ranked
    )


def _named(accounts: Accounts, stalls: UnitStalls) -> StalledUnit:
    names, unit, mostly = accounts.names, stalls.unit, None
    if stalls.worst is not None:
        channel, cycles = stalls.worst
        producer, consumer = names.ends[channel]
        peer = producer if consumer == unit else consumer
        mostly = ChannelWait(names.channels[channel], names.units[peer], consumer == unit, cycles)
    return StalledUnit(
        name=names.units[unit],
        operator=names.operators[unit],
        file=names.wired[unit].file,
        line=names.wired[unit].line,
        links_cycles=stalls.links,
        **{cause.column: getattr(stalls, cause) for cause in SHOWN},
        elements=accounts.elements[unit],
        mostly=mostly,
    )
