from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fabric import Hardware, Program, simulate
from fabric.analysis.trace import recorder, spool
from fabric.analysis.trace.selection import TraceOptions
from fabric.graph.loading.program_file import load_program
from fabric.timing.compiled import region
from fabric.timing.engine import log

_ROWS: Final = 48
_SECONDS: Final = 0.01


class _Counter:
    def __init__(self, at: int, happens: Callable[[], object]) -> None:
        self.number = -1
        self._at = at
        self._happens = happens

    def __next__(self) -> int:
        self.number += 1
        if self.number == self._at:
            self._happens()
        return self.number


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run(program: Program, folder: Path) -> None:
    # Small limits make a short run write many segments and snapshots, as a long run does.
    for module, name, value in (
        (log, "ROWS", _ROWS), (spool, "_SECONDS", _SECONDS),
        (recorder, "_SNAPSHOT_SECONDS", _SECONDS), (recorder, "_SHARE", 2),
        (region, "_BUDGET", 40),
    ):  # fmt: skip
        setattr(module, name, value)
    simulate(program, log_dir=folder, trace=TraceOptions())


def _forked(run: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(child, 0)[1]


def _counting(steps: _Counter, files: _Counter, *, after: bool) -> None:
    write, replace = log.Log.write, Path.replace

    def written(rows: log.Log, *row: int) -> None:
        next(steps)
        write(rows, *row)

    def counted(path: Path, target: Path) -> Path:
        if not after:
            next(files)
        result = replace(path, target)
        if after:
            next(files)
        return result

    setattr(log.Log, "write", written)  # noqa: B010 - mypy knows better
    setattr(Path, "replace", counted)  # noqa: B010


def _whole(program: Program, folder: Path) -> tuple[int, int, float]:
    reader, writer = os.pipe()

    def run() -> None:
        steps, files = _Counter(-1, _die), _Counter(-1, _die)
        _counting(steps, files, after=True)
        start = time.process_time()
        _run(program, folder)
        counts = f"{steps.number} {files.number} {time.process_time() - start}"
        os.write(writer, counts.encode())

    assert _forked(run) == 0
    operations, files, seconds = os.read(reader, 100).decode().split()
    return int(operations), int(files), float(seconds)


def main(folder: Path, kills: int, seed: int, file: str, parameters: list[str]) -> None:
    drawn = random.Random(f"{seed} {file}")
    program = load_program(file, parameters, Hardware()).program
    operations, files, seconds = _whole(program, folder / "whole")
    for number in range(kills):
        # The numbers of operations and files differ between runs; the drawn numbers must not.
        by = ("operation", "file", "time")[number % 3]
        progress = drawn.random()
        step = int(progress * operations) if by == "operation" else -1
        place = int(progress * files) if by == "file" else -1
        moment = max(0.001, progress * seconds) if by == "time" else 0.0

        def run(
            counters: tuple[_Counter, _Counter] = (_Counter(step, _die), _Counter(place, _die)),
            after: bool = drawn.random() < 0.5,
            moment: float = moment,
            kept: Path = folder / str(number),
        ) -> None:
            _counting(*counters, after=after)
            signal.setitimer(signal.ITIMER_PROF, moment)
            _run(program, kept)

        ended = _forked(run)
        # Because of threads, a run may have fewer files or less time than the whole run had.
        how = "ended" if ended == 0 else signal.Signals(os.WTERMSIG(ended)).name
        assert how in ("SIGKILL", "SIGPROF", "ended"), ended
        print(number, by, how, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
