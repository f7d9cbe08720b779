"""The tables of ``Stalls``, made from the account of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fabric.analysis.trace.analysis.critical import (
    cycles_by_root,
    named_path,
    named_root,
    ranked,
    summed,
)
from fabric.analysis.trace.analysis.roots import Root
from fabric.analysis.trace.analysis.slow_memory import slow_memory_of
from fabric.analysis.trace.analysis.stalled import (
    ChargedRoot,
    FoldedStalls,
    StageFigures,
    StalledFamily,
    Stalls,
)
from fabric.analysis.trace.analysis.stalls import Accounts, StalledUnit
from fabric.analysis.trace.analysis.traffic import traffic_of
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.analysis.trace.reading.wording import Names
from fabric.messages.text import Family, spread


def stalls_of(trace: RecordedRun) -> Stalls:
    """Account for ``trace``."""
    accounts = Accounts(trace)
    names = accounts.names
    units = accounts.ranked()
    return Stalls(
        cycles=accounts.cycles,
        units=tuple(units),
        roots=_charged(names, accounts.by_unit.values()),
        critical_path=named_path(names, accounts.timelines, accounts.path, accounts.status),
        hbm=slow_memory_of(trace.hbm, accounts),
        gains=accounts.gains,
        verdict=accounts.verdict(),
        traffic=traffic_of(trace, accounts),
        folded=_folded(trace, accounts, units),
    )


def _folded(trace: RecordedRun, accounts: Accounts, units: list[StalledUnit]) -> FoldedStalls:
    names, first = accounts.names, accounts.names.first

    def of_family(root: Root) -> Root:
        return root if root.unit < 0 else root._replace(unit=first[root.unit])

    waits = [
        summed((of_family(root), cycles) for root, cycles in charged.items())
        for charged in accounts.by_unit.values()
    ]
    path = [step._replace(root=of_family(step.root)) for step in accounts.path]
    on_path = summed((root.unit, cycles) for root, cycles in cycles_by_root(path).items())
    groups: dict[tuple[bool, int], list[StalledUnit]] = {}
    for unit in units:
        is_active = unit.number in accounts.active
        groups.setdefault((is_active, first[unit.number]), []).append(unit)
    found = [
        (unit, _family(names.folded, members))
        for (is_active, unit), members in groups.items()
        if is_active
    ]
    found.sort(key=lambda each: (-on_path[each[0]], -each[1].spread.most.stalled_cycles, each[0]))
    return FoldedStalls(
        stages=stages_of(trace, accounts),
        families=tuple(family for _, family in found),
        absent=tuple(
            Family(names.folded.units[unit], tuple(each.name for each in members))
            for (is_active, unit), members in sorted(groups.items(), key=lambda each: each[0])
            if not is_active
        ),
        roots=_charged(names.folded, waits),
        critical_path=named_path(names.folded, accounts.timelines, path, accounts.status),
    )


def stages_of(trace: RecordedRun, accounts: Accounts) -> tuple[StageFigures, ...]:
    """Return the stages of the program."""
    names, needs = accounts.names, trace.end.on_chip_bytes
    path = accounts.on_path().items()
    on_path = summed((names.first[root.unit], cycles) for root, cycles in path if root.unit >= 0)
    saved: dict[str, int] = {}
    if accounts.gains is not None:
        saved = {names.family[unit].title: 0 for unit in accounts.tried}
        saved |= {gain.name: accounts.cycles - gain.cycles for gain in accounts.gains}
    found = [
        StageFigures(
            title,
            *names.wired[members[0]],
            len(members),
            on_path[members[0]],
            saved.get(title),
            sum(accounts.moved_bytes[unit] for unit in members),
            sum(needs[unit] for unit in members) if needs else None,
        )
        for title, members in names.families
    ]

    return tuple(sorted(found, key=lambda stage: [each or 0 for each in stage[4:]], reverse=True))


def _family(names: Names, members: list[StalledUnit]) -> StalledFamily:
    members = sorted(members, key=lambda unit: (unit.stalled_cycles, unit.number))
    median = spread(members, lambda unit: unit.stalled_cycles).median
    channel = names.far_end(median.number, median.mostly.number) if median.mostly else ""
    return StalledFamily(
        name=names.units[median.number],
        units=tuple(members),
        mostly=median.memory_wait or channel,
    )


def _charged(names: Names, waits: Iterable[Counter[Root]]) -> tuple[ChargedRoot, ...]:
    cycles: Counter[Root] = Counter()
    stalled: Counter[Root] = Counter()
    for each in waits:
        cycles.update(each)
        stalled.update(each.keys())
    return tuple(
        ChargedRoot(named_root(names, root), count, stalled[root]) for root, count in ranked(cycles)
    )
