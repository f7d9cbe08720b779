"""Runs every published design point in its own process, and prints a row of CSV for each.

The processes are forks of one that has imported everything.

    python -m tests.benchmarks.published [--only TEXT] [--closed-forms] [--jobs N]

``--only`` runs the points with TEXT in their labels, ``--closed-forms`` adds the rows that have
published bytes and operations but no cycles, and ``--jobs`` processes run at a time.
"""

from __future__ import annotations

import argparse
import csv
import gc
import importlib
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric import Hardware, simulate
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.collector import imports_stay
from fabric.shell.cli import main as fabric
from tests.benchmarks.points import (
    Bound,
    Point,
    attention_points,
    closed_form_points,
    moe_points,
    swiglu_points,
)

ROOT = Path(__file__).parents[2]
HEAD = (
    *("point", "cycles", "published_cycles", "source", "error_percent", "off_chip_bytes"),
    *("seconds", "original_seconds", "times_faster", "peak_megabytes", "verdict"),
)


@dataclass(frozen=True)
class Outcome:
    report: dict[str, Any]
    peak_bytes: int

    def field(self, name: str) -> Any:
        return self.report.get(name, self.report["extra"].get(name))

    def keeps(self, bound: Bound) -> bool:
        value = self.field(bound.field)
        return value is not None and abs(value - bound.value) <= bound.slack


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.published", description=__doc__)
    parser.add_argument("--only", default="", help="run points with this in their label")
    parser.add_argument("--closed-forms", action="store_true", help="add rows without cycles")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    options = parser.parse_args(arguments)
    points = [
        point
        for point in itertools.chain(
            moe_points(),
            closed_form_points() if options.closed_forms else (),
            attention_points(),
            swiglu_points(),
        )
        if options.only in point.label
    ]
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(HEAD)
    started = time.perf_counter()
    outcomes = []
    for point, outcome in zip(points, outcomes_of(points, options.jobs), strict=True):
        outcomes.append(outcome)
        table.writerows(rows_of(point, outcome))
        sys.stdout.flush()
    seconds = time.perf_counter() - started
    wrong = sum(
        not outcome.keeps(bound)
        for point, outcome in zip(points, outcomes, strict=True)
        for bound in point.bounds
    )
    inside = "all inside their bounds" if not wrong else f"{wrong} bounds missed"
    sys.stderr.write(
        f"{len(points)} points in {seconds:.0f} s with start-up and wiring, "
        f"{sum(each.report['wall_seconds'] for each in outcomes):.0f} s of runs; {inside}; "
        f"{options.jobs} at a time, Python {platform.python_version()} on {os.cpu_count()} cores\n"
    )
    return int(wrong > 0)


def outcomes_of(points: Sequence[Point], jobs: int) -> Iterator[Outcome]:
    """Run ``points`` in forks, ``jobs`` at a time, and yield outcomes in their order."""
    prepare()
    waiting = deque(enumerate(points))
    running: dict[int, _Running] = {}
    done: dict[int, Outcome] = {}
    for number in range(len(points)):
        while number not in done:
            while waiting and len(running) < jobs:
                started = _Running(*waiting.popleft())
                running[started.process] = started
            process, _, usage = os.wait4(-1, 0)
            ended = running.pop(process)
            done[ended.number] = ended.outcome(usage.ru_maxrss * 1024)
        yield done.pop(number)


def prepare() -> None:
    importlib.import_module("fabric.shell.commands.run")
    importlib.import_module("operators")
    simulate(load_program(ROOT / "programs/simplified_moe.py", (), Hardware()).program)
    gc.collect()
    imports_stay()


class _Running:
    def __init__(self, number: int, point: Point) -> None:
        self.number = number
        self._point = point
        self._folder = tempfile.TemporaryDirectory()
        printed = Path(self._folder.name) / "printed.json"
        command = ["run", f"programs/{point.program}", "--json", "--log-dir", self._folder.name]
        command += ["--hardware", f"programs/hardware/{point.hardware}"]
        for parameter in point.parameters:
            command += ["-p", parameter]
        self.process = os.fork()
        if self.process == 0:
            status = 1
            try:
                os.chdir(ROOT)
                os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT), 1)
                status = fabric(command)
            finally:
                # The child does not close the files that its parent opened.
                os._exit(status)

    def outcome(self, peak_bytes: int) -> Outcome:
        with self._folder as folder:
            report = json.loads((Path(folder) / "printed.json").read_text())
        if report["status"] != "completed":
            raise SystemExit(f"{self._point.label}: {report['status']}: {report['error']}")
        return Outcome(report, peak_bytes)


def rows_of(point: Point, outcome: Outcome) -> list[tuple[Any, ...]]:
    report, seconds = outcome.report, outcome.report["wall_seconds"]
    rows = []
    about_cycles = [bound for bound in point.bounds if bound.field == "cycles"]
    for bound in about_cycles or [Bound("", "cycles", 0)]:
        missed = [
            f"{each.field} {outcome.field(each.field):,} is not {each.value:,}"
            for each in point.bounds
            if each.source == bound.source or not about_cycles
            if not outcome.keeps(each)
            if each.field != "cycles" or each is bound
        ]
        is_published = bool(bound.value)
        error = (report["cycles"] - bound.value) / bound.value if is_published else 0.0
        rows.append(
            (
                point.label,
                report["cycles"],
                bound.value if is_published else "",
                bound.source.removesuffix(".csv"),
                f"{100 * error:+.2f}" if is_published else "",
                report["off_chip_traffic_artifact_bytes"],
                f"{seconds:.2f}",
                "" if bound.seconds is None else bound.seconds,
                "" if bound.seconds is None else round(bound.seconds / seconds),
                round(outcome.peak_bytes / 1e6),
                "; ".join(missed) or "ok",
            )
        )
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
