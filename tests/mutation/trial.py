"""One mutant against the tests of its line, in a copy of the tree."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutation.covering import Covering, environment, failed_of
from tests.mutation.mutants import Mutant

__all__ = ["Result", "Tree"]

_CHUNK_SECONDS: Final = (4.0, 30.0, 120.0)
"""Tests come in chunks of about so long: most mutants are caught by the first."""

_LEAST_SECONDS: Final = 90.0
_SLOWER: Final = 15.0
"""How much longer than when they were collected tests may take: the machine is shared."""

_MEMORY_BYTES: Final = 8 << 30


@dataclass(frozen=True)
class Result:
    """What became of a mutant.

    Attributes:
        outcome: ``caught``, ``hung`` (caught by the time it took), ``unsure`` (its tests hang
            without it, too, or are not found by their names), ``survived`` or ``not run``.
        test: the one that caught it.
        tests: how many were to run.
        seconds: all of them took.
    """

    mutant: Mutant
    outcome: str
    test: str
    tests: int
    seconds: float


class Tree:
    """A copy of the tree in which mutants are tried, one after the other."""

    def __init__(self, root: Path, copy: Path) -> None:
        """Copy what git knows, and what it would."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, check=True).stdout
        for name in filter(None, names.decode().split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        self._root = copy
        self._made = 0

    def attempt(self, mutant: Mutant, covering: Covering) -> Result:
        """Run the tests of the mutant's line until one fails."""
        start = time.monotonic()
        tests = covering.tests(mutant)
        outcome, failed = "survived" if tests else "not run", ""
        unsure = False
        for chunk in _chunks(tests, covering):
            seconds = [covering.seconds(test) for test in chunk]
            self._made += 1
            with _Mutated(self._root / mutant.file, mutant.source, self._made):
                outcome, failed = self._run(chunk, sum(seconds), max(seconds))
            # The machine may have been slow, or a test hang by itself.
            if outcome == "hung" and self._run(chunk, sum(seconds), max(seconds))[0] == "hung":
                outcome, unsure = "survived", True
            if outcome != "survived":
                break
        if unsure and outcome == "survived":
            outcome = "unsure"
        return Result(mutant, outcome, failed, len(tests), time.monotonic() - start)

    def failing(self, tests: Sequence[str], covering: Covering) -> set[str]:
        """Return those of ``tests`` that fail without any mutation."""
        rest, found = list(tests), set[str]()
        while rest:
            seconds = [covering.seconds(test) for test in rest]
            outcome, failed = self._run(rest, sum(seconds), max(seconds))
            if outcome == "survived":
                break
            if not failed:
                raise SystemExit("the tests that caught mutants fail without any mutation, too")
            found.add(failed)
            rest.remove(failed)
        return found

    def _run(self, tests: Sequence[str], seconds: float, longest: float) -> tuple[str, str]:
        arguments = self._root / "tests.txt"
        arguments.write_text("\n".join(tests), encoding="utf-8")
        limit = int(_LEAST_SECONDS + _SLOWER * longest)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "--hypothesis-seed=0"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", f"--timeout={limit}"]
        process = subprocess.Popen(
            [*command, f"@{arguments}"],
            cwd=self._root,
            env=environment(self._root),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_limit_memory,  # noqa: PLW1509 - before any thread
        )
        try:
            said, _ = process.communicate(timeout=_LEAST_SECONDS + _SLOWER * seconds)
        except subprocess.TimeoutExpired:
            return "hung", ""
        finally:
            _end(process)
        if process.returncode == 0:
            return "survived", ""
        if "(no match in any of" in said:
            return "unsure", ""  # a test has another name in this tree
        outcome = "hung" if "+ Timeout +" in said else "caught"
        return outcome, max(failed_of(tests, said), key=len, default="")


class _Mutated:
    """While it is entered a module says something else.

    Compiled files are known by their source's time in seconds: no two mutants share one.
    """

    def __init__(self, path: Path, source: str, number: int) -> None:
        self._path = path
        self._source = source
        self._number = number

    def __enter__(self) -> None:
        self._before = self._path.read_bytes()
        self._stat = self._path.stat()
        self._path.write_text(self._source, encoding="utf-8")
        os.utime(self._path, (self._stat.st_atime, self._stat.st_mtime + 2 * self._number))

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._before)
        os.utime(self._path, ns=(self._stat.st_atime_ns, self._stat.st_mtime_ns))


def _chunks(tests: Sequence[str], covering: Covering) -> Iterator[list[str]]:
    limits = [*_CHUNK_SECONDS]
    chunk: list[str] = []
    seconds = 0.0
    for test in tests:
        took = covering.seconds(test)
        if chunk and seconds + took > limits[0]:
            yield chunk
            chunk, seconds = [], 0.0
            limits = limits[1:] or limits
        chunk.append(test)
        seconds += took
    if chunk:
        yield chunk


def _limit_memory() -> None:
    # What is only reserved does not count: a browser reserves more than there is.
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
