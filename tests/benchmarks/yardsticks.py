"""Times of parts of a command, each printed by its own process: ``python -m ... NAME``."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Final, Literal

from fabric import Hardware, Program, simulate
from fabric.graph.loading.program_file import executed, load_program
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from tests.benchmarks.pipelines import on_the_fabric, on_trio
from tests.benchmarks.processes import QWEN, ROOT
from tests.resident import peak_bytes

MOE: Final = ROOT / "programs/moe.py"


@dataclass(frozen=True)
class Eight:
    a: int
    b: int
    c: int
    d: int
    e: str
    f: str
    g: tuple[int, ...]
    h: tuple[str, ...]

    def __post_init__(self) -> None:
        for value, kind in (
            (self.a, int),
            (self.b, int),
            (self.c, int),
            (self.d, int),
            (self.e, str),
            (self.f, str),
            (self.g, tuple),
            (self.h, tuple),
        ):
            if not isinstance(value, kind):
                raise TypeError(value)


def seconds_each_dataclass() -> float:
    count = 20_000
    times = []
    for _ in range(5):
        start = time.process_time()
        for number in range(count):
            Eight(number, 1, 2, 3, "e", "f", (number,), ("h",))
        times.append(time.process_time() - start)
    return min(times) / count


def wiring() -> None:
    yardstick = seconds_each_dataclass()
    executed(MOE)
    start = time.process_time()
    program = load_program(MOE, QWEN, Hardware()).program
    seconds = time.process_time() - start
    print(seconds / len(elaborate(program).nodes) / yardstick)


def seconds_alone(program: Program, engine: Literal["compiled", "tasks"]) -> float:
    execution = Execution(program, Settings(mode="timing", engine=engine))
    # The view of tasks is created at its first use, and counts as a part of the machine.
    [execution.machine.ports[node.index] for node in execution.machine.plan.nodes]
    with only_young_garbage():
        start = time.process_time()
        assert execution.execute() == "completed"
        return time.process_time() - start


def run_alone() -> None:
    """Print the seconds of Qwen's layer by tasks, compiled, and of ``simulate()``.

    The first two exclude building the machine and the report.
    """
    program = load_program(MOE, QWEN, Hardware()).program
    print(seconds_alone(program, "tasks"))
    print(seconds_alone(program, "compiled"))
    start = time.process_time()
    assert simulate(program).status == "completed"
    print(time.process_time() - start)


def line(operators: int) -> None:
    """Print the seconds of a line of operators and of trio's own tasks, and the peak of memory.

    The seconds include wiring and the report. Trio runs a hundredth of the tasks, each of which
    forwards the same number of elements.
    """
    trio = on_trio(operators // 100, 16, 100) * 100
    print(on_the_fabric(operators, 16, 100) / trio, peak_bytes())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["wiring"]:
            wiring()
        case ["run_alone"]:
            run_alone()
        case ["line", operators]:
            line(int(operators))
