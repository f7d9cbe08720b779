"""Random programs by the thousand: both engines, all memories, both modes, bounds and warnings.

    python -m tests.campaign [--count 20000] [--seed 1] [--first 0] [--jobs 2]

Program ``n`` of a seed is the same wherever it is tried. Each is run by tasks and compiled, under
drawn hardware, depths and hops, and with data where it has any: the reports have to be equal, no
bound may be beaten, nothing that completed may warn of a fault of the fabric. Prints the numbers of
those that differ, with what differs, and exits with 1 where there are any.
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
from typing import Any, NamedTuple

from fabric import Program, Report, lower_bounds, simulate
from fabric.graph.wiring.program import hardware_scope
from tests.operators.driving import Choices
from tests.operators.random_programs import Random
from tests.operators.test_random_programs import Stated
from tests.operators.test_schedules import counted
from tests.symbolic.bounded import beaten, drawn_hardware, drawn_options

_BYTES = 300


class Outcome(NamedTuple):
    """What became of a program: how it ended on which memory, and what is wrong with that."""

    number: int
    ended: str
    wrong: tuple[str, ...]


def tried(number: int, seed: int) -> Outcome:
    """Run program ``number`` in every way."""
    source = random.Random(f"{seed} {number}")
    data, kind = source.randbytes(_BYTES), (Random, Stated)[number % 2]
    hardware = drawn_hardware(Choices(source.randbytes(20)))

    def built(functional: bool = False) -> Program:
        with hardware_scope(hardware):
            return kind(Choices(data), functional=functional, operators=12 + number % 16).program

    options = drawn_options(built(), source)
    del options["engine"]
    program = built()
    known = lower_bounds(program)
    tasks = _report(program, mode="timing", engine="tasks", **options)
    wrong = list(beaten(known, tasks))
    if tasks != _report(built(), mode="timing", engine="compiled", **options):
        wrong.append("the engines differ")
    if kind is Random:
        with_data = _report(built(functional=True), mode="functional", **options)
        if counted(with_data) != counted(tasks):
            wrong.append("the modes differ")
    wrong += [text for text in tasks.warnings if "fault" in text]
    return Outcome(number, f"{tasks.status}, {hardware.hbm.model}", tuple(wrong))


def _report(program: Program, **options: Any) -> Report:
    return replace(simulate(program, **options), wall_seconds=None, log_dir=None)


def main(arguments: Sequence[str]) -> int:
    """Try programs; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(
        prog="tests.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=20_000, help="how many programs")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args(arguments)
    numbers = range(options.first, options.first + options.count)
    ended: Counter[str] = Counter()
    wrong = 0
    with ProcessPoolExecutor(options.jobs) as workers:
        for outcome in workers.map(partial(tried, seed=options.seed), numbers, chunksize=20):
            ended[outcome.ended] += 1
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
