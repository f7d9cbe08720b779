"""Random programs by the thousand: both engines, all memories, both modes, bounds and warnings.

    python -m tests.campaign [--count 20000] [--seed 1] [--first 0] [--jobs 2]

Program ``n`` of a seed is the same wherever it is tried. Programs with loads and stores run on each
memory model, with drawn hardware, depths and hops: whole, repeated under another schedule, held,
traced, and with a capacity that nothing fills; by tasks and compiled; with data if they have any.
The reports have to be equal, no bound may be beaten, and a program that completes may not warn of a
fault of the fabric. Prints the numbers of programs that differ, with the difference, and exits with
1 if there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from fabric import Hardware, Program, Report, lower_bounds, open_run, simulate
from fabric.graph.wiring.program import hardware_scope
from tests.operators.driving import Choices
from tests.operators.random_programs import Random
from tests.operators.test_random_programs import Stated
from tests.operators.test_schedules import counted
from tests.outcomes import without_host
from tests.schedules import schedule
from tests.symbolic.bounded import MEMORIES, beaten, drawn_hardware, drawn_options

_BYTES = 300


class Outcome(NamedTuple):
    number: int
    ended: tuple[str, ...]
    wrong: tuple[str, ...]


def tried(number: int, seed: int) -> Outcome:
    kind = (Random, Stated)[number % 2]
    memories = MEMORIES if kind is Stated else MEMORIES[number // 2 % len(MEMORIES) :][:1]
    ended, wrong = [], []
    for memory in memories:
        source = random.Random(f"{seed} {number}")
        data = source.randbytes(_BYTES)
        hardware = drawn_hardware(Choices(source.randbytes(20)), memory)
        status, faults = _on(hardware, kind, data, number, source)
        ended.append(f"{status}, {hardware.hbm.model}")
        wrong += [f"{hardware.hbm.model}: {fault}" for fault in faults]
    return Outcome(number, tuple(ended), tuple(wrong))


def _on(
    hardware: Hardware, kind: type[Random], data: bytes, number: int, source: random.Random
) -> tuple[str, list[str]]:
    def built(hardware: Hardware = hardware, *, functional: bool = False) -> Program:
        with hardware_scope(hardware):
            return kind(Choices(data), functional=functional, operators=12 + number % 16).program

    options = drawn_options(built(), source)
    del options["engine"]
    program = built()

    def run(program: Program, **changes: Any) -> Report:
        return _report(program, **{"mode": "timing", "engine": "tasks", **options, **changes})

    bounds = lower_bounds(program)
    tasks = run(program)
    wrong = list(beaten(bounds, tasks))
    # A flat memory may be busy with its last requests after the last answer.
    if (tasks.off_chip_bandwidth_utilization or 0) > 1 and hardware.hbm.model != "flat":
        wrong.append("more bandwidth than the peak")
    with schedule(number):
        reports = {"repeated": run(built())}
    cycles = sorted(source.sample(range(tasks.cycles or 0), min(3, tasks.cycles or 0)))
    with open_run(built(), mode="timing", **options) as held:
        for cycle in cycles:
            held.until(cycle=cycle)
        reports["held"] = without_host(held.finish())
    reports["compiled"] = run(built(), engine="compiled")
    with TemporaryDirectory() as folder:
        for engine in ("tasks", "compiled"):
            traced = run(built(), engine=engine, trace="events", log_dir=Path(folder, engine))
            reports[f"traced, {engine}"] = traced
    if kind is Random:
        with_data = run(built(functional=True), mode="functional", engine="compiled")
        if counted(with_data) != counted(tasks):
            wrong.append("the modes differ")
    wrong += [f"{how} it differs" for how, report in reports.items() if report != tasks]
    roomy = replace(hardware, on_chip=replace(hardware.on_chip, capacity_bytes=2**40))
    with_room = run(built(roomy))
    if (with_room.cycles, with_room.units) != (tasks.cycles, tasks.units):
        wrong.append("a capacity that nothing fills changes the report")
    wrong += [text for text in tasks.warnings if "fault" in text]
    return tasks.status, wrong


def _report(program: Program, **options: Any) -> Report:
    return without_host(simulate(program, **options))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tests.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=20_000, help="how many programs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    options = parser.parse_args(arguments)
    numbers = range(options.first, options.first + options.count)
    ended: Counter[str] = Counter()
    wrong = 0
    with ProcessPoolExecutor(options.jobs) as workers:
        for outcome in workers.map(partial(tried, seed=options.seed), numbers, chunksize=20):
            ended.update(outcome.ended)
            wrong += bool(outcome.wrong)
            for text in outcome.wrong:
                _say(f"{outcome.number}: {text}")
    for how, count in sorted(ended.items()):
        _say(f"{count:7,} {how}")
    _say(f"{options.count:,} programs of seed {options.seed}, something wrong with {wrong:,}")
    return int(wrong > 0)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
