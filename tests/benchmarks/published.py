"""Run every published design point in a process of its own, and print how it compares.

    python -m tests.benchmarks.published [--only TEXT] [--closed-forms] [--jobs N] [--profile]

``--only`` runs the points whose label contains TEXT; ``--closed-forms`` adds the rows of which only
bytes and operations are published; ``--jobs`` runs so many at a time, by default one a core;
``--profile`` prints where the host's time goes instead.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.host_profile import profile
from tests.benchmarks.points import (
    Bound,
    Point,
    attention_points,
    closed_form_points,
    moe_points,
    swiglu_points,
)

ROOT = Path(__file__).parents[2]
DATA = ROOT / "programs" / "data"
HEAD = (
    "| point | cycles | published | by | error | traffic MB | seconds "
    "| original | ratio | peak MB | |\n"
    "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---|"
)


@dataclass(frozen=True)
class Outcome:
    """What one run gave.

    Attributes:
        report: as ``run --json`` prints it.
        peak_bytes: the largest resident size of the process.
    """

    report: dict[str, Any]
    peak_bytes: int

    def field(self, name: str) -> Any:
        """Return a field of the report, or of its ``extra``."""
        return self.report.get(name, self.report["extra"].get(name))

    def keeps(self, bound: Bound) -> bool:
        """Whether the report is inside ``bound``."""
        found = self.field(bound.field)
        return found is not None and abs(found - bound.value) <= bound.slack


def main(arguments: Sequence[str]) -> int:
    """Run the points and print the table; 1 if one is outside its bounds."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.published", description=__doc__)
    parser.add_argument("--only", default="", help="run points whose label contains this")
    parser.add_argument("--closed-forms", action="store_true", help="add rows without cycles")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    parser.add_argument("--profile", action="store_true", help="print where the host's time goes")
    options = parser.parse_args(arguments)
    points = [
        point
        for point in itertools.chain(
            moe_points(DATA),
            closed_form_points(DATA) if options.closed_forms else (),
            attention_points(DATA),
            swiglu_points(DATA),
        )
        if options.only in point.label
    ]
    if options.profile:
        for point in points:
            say(profile(point, ROOT))
        return 0
    say(HEAD)
    started = time.perf_counter()
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as jobs:
        for point, outcome in zip(points, jobs.map(run, points), strict=True):
            outcomes.append(outcome)
            for line in lines(point, outcome):
                say(line)
    seconds = time.perf_counter() - started
    wrong = sum(
        not outcome.keeps(bound)
        for point, outcome in zip(points, outcomes, strict=True)
        for bound in point.bounds
    )
    inside = "all inside their bounds" if not wrong else f"{wrong} bounds missed"
    say(
        f"\n{len(points)} points in {seconds:.0f} s with start-up and wiring, "
        f"{sum(each.report['wall_seconds'] for each in outcomes):.0f} s of runs; {inside}; "
        f"{options.jobs} at a time, Python {platform.python_version()} on {os.cpu_count()} cores"
    )
    return int(wrong > 0)


def say(text: str) -> None:
    """Print ``text`` at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(point: Point) -> Outcome:
    """Run ``point`` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as printed:
        command = [sys.executable, "-m", "fabric", "run", f"programs/{point.program}", "--json"]
        command += ["--hardware", f"programs/hardware/{point.hardware}", "--log-dir", folder]
        for parameter in point.parameters:
            command += ["-p", parameter]
        process = subprocess.Popen(command, cwd=ROOT, stdout=printed)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        report = json.loads(printed.read())
    if report["status"] != "completed":
        raise SystemExit(f"{point.label}: {report['status']}: {report['error']}")
    return Outcome(report, usage.ru_maxrss * 1024)


def lines(point: Point, outcome: Outcome) -> list[str]:
    """Return a row of the table for every number of cycles that is published for ``point``."""
    report = outcome.report
    rows = []
    about_cycles = [bound for bound in point.bounds if bound.field == "cycles"]
    for bound in about_cycles or [Bound("", "cycles", 0)]:
        error = (report["cycles"] - bound.value) / bound.value if bound.value else 0.0
        missed = [
            f"{each.field} {outcome.field(each.field):,} is not {each.value:,}"
            for each in point.bounds
            if each.source == bound.source or not about_cycles
            if not outcome.keeps(each)
            if each.field != "cycles" or each is bound
        ]
        seconds = report["wall_seconds"]
        original = "" if bound.seconds is None else f"{bound.seconds:,} s"
        ratio = "" if bound.seconds is None else f"{bound.seconds / seconds:,.0f}x"
        cells = (
            point.label,
            f"{report['cycles']:,}",
            f"{bound.value:,}" if bound.value else "",
            bound.source.removesuffix(".csv"),
            f"{error:+.2%}" if bound.value else "",
            f"{report['off_chip_traffic_artifact_bytes'] / 1e6:,.1f}",
            f"{seconds:.2f}",
            original,
            ratio,
            f"{outcome.peak_bytes / 1e6:,.0f}",
            "; ".join(missed) or "ok",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
