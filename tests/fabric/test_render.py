"""The report in a terminal, of a report made by hand that has every line."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from fabric.analysis.symbolic.area import Area
from fabric.display.terminal import plain_text, print_sheet
from fabric.graph.hardware.latency import Site
from fabric.runs.counters import Compared, Comparison, UnitCounters
from fabric.runs.pricing import Spending
from fabric.runs.report import Report
from fabric.timing.state.resource_use import LinkUse, NetworkUse, RouteUse
from fabric.timing.state.run_state import ChannelState


def channel(name: str, taken: int, peak: int) -> ChannelState:
    counts = (0, taken, taken, 0, None, None, None, peak, 0, 0, 0, 0)
    return ChannelState(0, f"{name}.0 -> z.0", "z.0", 0, 1, "tile", 2, 1, 1, *counts)


def unit(name: str, line: int, elements: int, **cycles: int) -> UnitCounters:
    causes = ("busy", "empty", "full", "credit", "hbm", "capacity")
    spent = {f"{cause}_cycles": cycles.get(cause, 0) for cause in causes}
    return UnitCounters(
        name, name.partition("_")[0], "compute", "programs/small.py", line, elements=elements,
        **spent, idle_cycles=1000 - sum(spent.values()), flops=0, flops_per_cycle=0,
    )  # fmt: skip


def _route(name: str, waited: int, carried: int | None) -> RouteUse:
    return RouteUse(f"{name}.0 -> z.0", (0, 0), (1, 0), 3, carried, waited)


EVERYTHING = Report(
    name="all",
    program="all.py",
    mode="timing",
    exact=True,
    status="completed",
    cycles=1_000,
    off_chip_traffic_bytes=1_234_567,
    compute_utilization=0.54931,
    on_chip_peak_bytes=640,
    on_chip_peak_pages=5,
    on_chip_map_bytes=7,
    on_chip_peak_empty_bytes=96,
    on_chip_wait_cycles=1_234,
    spilled_bytes=4_096,
    fetched_bytes=8_192,
    area_low_mm2=0.5,
    area_high_mm2=2.25,
    seconds=2e-6,
    joules=4e-5,
    spent=(
        Spending("hbm", 2_048.0, "bytes", 3e-5),
        Spending("fifo", 0.0, "bytes", 0.0),
        Spending("bfloat16_flop", 5e6, "FLOPs", 1e-5),
        Spending("static", None, "seconds", None),
    ),
    area=(
        Area("memory", 65_536, "bytes", 0.25, 1.5),
        Area("slot", 0, "bytes", 0.0, 0.0),
        Area("bfloat16_flop", 1_024, "FLOPs/cycle", None, None),
        Area("link", None, "bytes/cycle", None, None),
    ),
    stands_for_runs=3,
    tokens=1_024,
    token_phase="prefill",
    tokens_per_second=1_000.4,
    tokens_per_joule=12.3456,
    time_to_first_token_seconds=1.5,
    signal_to_noise_db={"y": None, "z": 63.26},
    extra={"notes": ["first", "second"], "empty": [], "loss": 1_000.5},
    network=NetworkUse(
        "put.toml",
        1,
        3,
        tuple(map(_route, "abcdef", (5, 50, 0, 1, 7, 3), (640, None, 9, 8, 1_000, 7))),
        (
            LinkUse("0,0 -> 1,0", 640, 8, ("a", "b"), Site(0, 0), Site(1, 0)),
            LinkUse("out of 0,0", 900, None, ("a",), Site(0, 0), Site(0, 0)),
            LinkUse("1,0 -> 2,0", 8_000, 8, ("a", "b", "c", "d"), Site(1, 0), Site(2, 0)),
            LinkUse("2,0 -> 1,0", 80, 8, ("a", "b", "c"), Site(2, 0), Site(1, 0)),
            LinkUse("into 1,0", 1_600, 16, ("a",), Site(1, 0), Site(1, 0)),
            LinkUse("into 2,0", 160, 16, ("b",), Site(2, 0), Site(2, 0)),
        ),
    ),
    units=(
        unit("load_0", 11, 0, hbm=750, full=50),
        unit("load_1", 11, 9, hbm=600, credit=50),
        unit("[bold]", 12, 20_000, busy=900, empty=100),
        unit("an_operator_with_a_long_name", 13, 20_000, busy=450, empty=300, capacity=200),
        unit("store", 14, 0),
    ),
    channels_counters=tuple(
        channel(name, elements, peak)
        for name, elements, peak in (("a_0", 5, 1), ("a_1", 7, 2), ("b", 1_000, 2))
    ),
    comparison=Comparison(
        (
            Compared("FLOPs", 9, 9),
            Compared("on-chip requirement, bytes", 1_000, 90, at_most=True),
            Compared("off-chip stores, bytes", 128, 120),
        ),
        (5, 6, 1_000),
    ),
)


def printed(report: Report, width: int) -> str:
    return plain_text(report.sheet(), width)


@pytest.mark.parametrize("width", [100, 60])
def test_report_with_every_line_equals_its_golden_text(
    width: int, golden: Callable[[str, str], None]
) -> None:
    golden(f"report_{width}.txt", printed(EVERYTHING, width) + "\n")


@pytest.mark.parametrize(("verified", "colour"), [(True, 32), (False, 31)])
def test_verdict_is_coloured_on_terminals_only(verified: bool, colour: int) -> None:
    report = replace(EVERYTHING, verified=verified)
    written = io.StringIO()
    print_sheet(report.sheet(), Console(file=written, width=100, force_terminal=True))

    assert f"\x1b[{colour}mcompleted" in written.getvalue()
    assert "\x1b[" not in printed(report, 100)
