"""The stepping channel itself: each rule is broken by the smallest log that can break it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, get_args

import pytest

from fabric.graph.hardware.dram import DramOrganization, DramTiming
from tests.memories.commands import Command
from tests.memories.stepping import Rule, violations

_ORGANIZATION: Final = DramOrganization(
    pseudo_channels=2, bank_groups=4, banks=2, row_bytes=1024, burst_bytes=32
)

_SHORT: Final = DramTiming(
    burst_cycles=1,
    cl_cycles=1,
    cwl_cycles=1,
    rcd_read_cycles=1,
    rcd_write_cycles=1,
    rp_cycles=1,
    ras_cycles=1,
    rc_cycles=2,
    wr_cycles=0,
    rtp_cycles=0,
    ccd_s_cycles=1,
    ccd_l_cycles=1,
    rrd_s_cycles=1,
    rrd_l_cycles=1,
    wtr_s_cycles=0,
    wtr_l_cycles=0,
    faw_cycles=0,
    rfc_cycles=1,
    refi_cycles=100,
)
"""Nothing takes longer than it has to."""


def _command(
    what: str, cycle: int, group: int = 0, *, bank: int = 0, row: int = 0, pseudo: int = 0
) -> Command:
    return Command(cycle, 0, what, pseudo, group, bank, row)  # type: ignore[arg-type]


_act = partial(_command, "activate")
_pre = partial(_command, "precharge")
_all = partial(_command, "precharge all")
_read = partial(_command, "read")
_write = partial(_command, "write")
_refresh = partial(_command, "refresh")


class _Case(NamedTuple):
    """A log whose last command is as early as it may be.

    Attributes:
        rule: that it breaks a cycle earlier.
        timing: what takes longer than in ``_SHORT``.
        log: all commands.
    """

    rule: Rule
    timing: dict[str, int]
    log: list[Command]


_DATA: Final = {"cl": 7, "cwl": 3, "burst": 2, "ccd_s": 2, "ccd_l": 2}

_EARLIEST: Final[list[_Case]] = [
    _Case("rcd_read", {"rcd_read": 9}, [_act(10), _read(19)]),
    _Case("rcd_write", {"rcd_write": 9}, [_act(10), _write(19)]),
    # The first slot of an activation is the cycle before it.
    _Case("rp", {"rp": 9}, [_act(10), _pre(20), _act(30, row=1)]),
    _Case("ras", {"ras": 9}, [_act(10), _pre(19)]),
    _Case("rc", {"rc": 20}, [_act(10), _pre(12), _act(30)]),
    _Case("rtp", {"rtp": 9}, [_act(10), _read(12), _pre(21)]),
    _Case("wr", {"wr": 9, "cwl": 3, "burst": 2}, [_act(10), _write(12), _pre(26)]),
    _Case("ccd_s", {"ccd_s": 4}, [_act(10), _act(12, 1), _read(20), _read(24, 1)]),
    _Case("ccd_s", {"ccd_s": 4}, [_act(10), _act(12, 1), _write(20), _write(24, 1)]),
    _Case("ccd_l", {"ccd_l": 4}, [_act(10), _act(12, bank=1), _read(20), _read(24, bank=1)]),
    _Case("ccd_l", {"ccd_l": 4}, [_act(10), _write(20), _write(24)]),
    _Case("rrd_s", {"rrd_s": 5}, [_act(10), _act(15, 1)]),
    _Case("rrd_l", {"rrd_l": 5}, [_act(10), _act(15, bank=1)]),
    _Case("faw", {"faw": 20}, [_act(10), _act(12, 1), _act(14, 2), _act(16, 3), _act(30, bank=1)]),
    _Case("wtr_s", {"wtr_s": 5} | _DATA, [_act(10), _act(12, 1), _write(20), _read(30, 1)]),
    _Case("wtr_l", {"wtr_l": 5} | _DATA, [_act(10), _write(20), _read(30)]),
    _Case("rfc", {"rfc": 30}, [_refresh(10), _act(41)]),
    _Case("rfc", {"rfc": 30}, [_refresh(10), _refresh(40)]),
    _Case("rfc", {"rfc": 30}, [_refresh(10), _all(40)]),
    _Case("ras", {"ras": 9}, [_act(10), _all(19)]),
    _Case("rtp", {"rtp": 9}, [_act(10), _read(12), _all(21)]),
    _Case("wr", {"wr": 9, "cwl": 3, "burst": 2}, [_act(10), _write(12), _all(26)]),
    _Case("rp", {"rp": 9}, [_act(10), _all(20), _refresh(29)]),
    _Case("rp", {"rp": 9}, [_act(10), _pre(20), _refresh(29)]),
    _Case("data bus", {"burst": 4}, [_act(10), _act(12, 1), _read(20), _read(24, 1)]),
    _Case("data bus", {"burst": 4}, [_act(10), _write(20), _write(24)]),
    _Case("row slot", {}, [_act(10), _act(12, 1)]),
    _Case("row slot", {}, [_act(10), _act(12, pseudo=1)]),
    _Case("row slot", {}, [_act(10), _act(12, 1), _pre(20), _pre(21, 1)]),
    _Case("row slot", {}, [_act(8), _act(10, 1), _pre(11)]),
    _Case("column slot", {}, [_act(10), _act(12, pseudo=1), _read(20), _write(21, pseudo=1)]),
]

_BROKEN: Final[list[_Case]] = [
    # The data of a write between that of two reads that were asked for before it.
    _Case("rtw", _DATA, [_act(10), _read(20), _write(22)]),
    _Case("row slot", {}, [_act(6, 1), _pre(9, 1), _act(10)]),
    _Case("row open", {}, [_act(10), _act(20, row=1)]),
    _Case("row open", {}, [_act(10), _refresh(20)]),
    _Case("row closed", {}, [_read(10)]),
    _Case("row closed", {}, [_write(10)]),
    _Case("row closed", {}, [_pre(10)]),
    _Case("row closed", {}, [_act(10), _pre(20), _read(30)]),
    _Case("row closed", {}, [_act(10), _read(20, bank=1)]),
    _Case("row closed", {}, [_act(10), _act(12, 1), _all(20), _read(30, 1)]),
    _Case("other row", {}, [_act(10, row=3), _read(20, row=4)]),
    _Case("other row", {}, [_act(10, row=3), _write(20, row=4)]),
    _Case("no such bank", {}, [_act(10, 4)]),
    _Case("no such bank", {}, [_act(10, bank=2)]),
    _Case("no such bank", {}, [_act(10, pseudo=2)]),
]


def _timing(longer: dict[str, int]) -> DramTiming:
    return replace(_SHORT, **{f"{name}_cycles": cycles for name, cycles in longer.items()})


def _rules(case: _Case, log: list[Command]) -> list[str]:
    return [each.rule for each in violations(log, _timing(case.timing), _ORGANIZATION)]


@pytest.mark.parametrize("case", _EARLIEST)
def test_too_early(case: _Case) -> None:
    """The last command may go in its cycle, and not in the one before."""
    last = case.log[-1]
    early = [*case.log[:-1], last._replace(cycle=last.cycle - 1)]

    assert [] == _rules(case, case.log)
    assert [case.rule] == _rules(case, early)
    assert [case.rule] == _rules(case, early[::-1])


@pytest.mark.parametrize("case", _BROKEN)
def test_broken(case: _Case) -> None:
    """What no time mends: the log breaks its rule, and no other."""
    assert [case.rule] == _rules(case, case.log)


def test_turning_to_writes() -> None:
    """The data of a write comes when that of the reads before it is over, in all bank groups."""
    log = [_act(10), _act(12, 1), _read(20), _write(26, 1)]
    assert [] == violations(log, _timing(_DATA), _ORGANIZATION)
    log[-1] = _write(25, 1)
    found = violations(log, _timing(_DATA), _ORGANIZATION)
    assert ["rtw", "data bus"] == [each.rule for each in found]


def test_what_is_apart() -> None:
    """Pseudo channels share slots and nothing else; channels share nothing."""
    timing = _timing(dict.fromkeys(("rrd_s", "rrd_l", "ccd_s", "ccd_l", "wtr_l", "burst"), 9))
    log = [_act(10), _act(12, pseudo=1), _write(20), _read(21, pseudo=1), _pre(40)]
    other = [each._replace(channel=3) for each in log]
    assert [] == violations(log + other, timing, _ORGANIZATION)


def test_refreshes_that_are_due() -> None:
    """One in every 100 cycles, 7 later at most; one that is missing is told once."""
    log = [_refresh(107), _refresh(200), _refresh(300), _act(399)]
    due = partial(violations, timing=_SHORT, organization=_ORGANIZATION)
    assert [] == due(log, drain_cycles=7)
    assert [] == due([_act(399)])
    first = _refresh(100)
    assert [("refi", first)] == due(log, drain_cycles=6)
    missing = [log[0], log[2], log[3]]
    assert [("refi", first._replace(cycle=200))] == due(missing, drain_cycles=7)


def test_every_rule_is_broken_here() -> None:
    """No rule is told that no log of this module has shown to be told."""
    shown = {case.rule for case in [*_EARLIEST, *_BROKEN]} | {"refi"}
    assert set(get_args(Rule)) == shown
