"""Which tests run which line, and how long each takes: collected once, by the tests themselves."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from coverage import CoverageData

from tests.mutation.mutants import PACKAGES, Mutant
from tests.mutation.plugin import CHILD

__all__ = ["Covering", "environment", "failed_of"]

_UNKNOWN_SECONDS: Final = 1.0

_EVERY_MODULE: Final = re.compile("walk_packages")
"""What a file of tests says that imports every module."""

_EVERY_NAME: Final = re.compile(r"reference import .*\bpages\b|\btable\.txt\b|\.__all__\b")
"""What one says that looks at every public name: its signature, its text, what it refuses."""

_COMPILES: Final = "MachineCode"
"""What a module says that compiles functions, its own and some that it imports."""


class Covering:
    """The tests of every line.

    Attributes:
        known: every test that passes without any mutation.
    """

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        """Read what ``folder`` has, or collect it first where the package has changed since."""
        self._root = root
        stamp = folder / "package.sha256"
        if not stamp.exists() or stamp.read_text() != _digest(root):
            _collect(root, folder, jobs)
            stamp.write_text(_digest(root))
        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        times = _read(folder / "seconds.jsonl")
        self._starting = set(_read(folder / "starting.jsonl"))
        self._seconds: dict[str, float] = {each["test"]: each["seconds"] for each in times}
        failed = {each["test"] for each in times if not each["passed"]}
        # Some do only while they are measured: of how long a start takes, of what it imports.
        self.known = set(_collected(root)) - _failing(root, folder, failed)

    def seconds(self, test: str) -> float:
        """Return how long a test took."""
        return self._seconds.get(test, _UNKNOWN_SECONDS)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that run the mutated line: its own module's first, then the quick ones.

        A line outside of functions runs once a process, whichever test comes first: all tests of
        its module are returned, those of files that import it, and those of all public names. A
        line of a function may run unseen where no test runs it, where it runs while tests are
        collected, or as machine code: then those of files that import of its room are, too, and all
        that enter a room whose code is compiled. Those of files that import every module look at
        all lines, and a test that was written since counts as running everything. Those that
        started processes of which nothing was noted come last: what these run is not known.
        """
        lines = self._lines(mutant.file)
        seen = set(lines.get(mutant.line, ()))
        path = self._root / mutant.file
        module = _module(Path(mutant.file))
        is_inside = mutant.line in _inside(path)
        found = seen | {test for test in self.known if test not in self._seconds}
        near = self._saying(_EVERY_MODULE)  # they look at the text, and take no time
        found |= near
        is_compiled = module in self._compiled
        if not seen or not is_inside or "" in seen or is_compiled:
            name = module.rpartition(".")[0] if is_inside else module
            found |= self._importing(name).union(*lines.values())
        if not is_inside:
            found |= self._saying(_EVERY_NAME)
        elif is_compiled:
            found |= self._entering(path.parent)
        near |= {test for test in seen if Path(mutant.file).stem in test.partition("::")[0]}
        runs = seen | near

        def order(test: str) -> tuple[bool, bool, bool, float]:
            return test not in found, test not in runs, test not in near, self.seconds(test)

        return sorted((found | self._starting_processes) & self.known, key=order)

    @cache  # noqa: B019 - lives as long as the process
    def _lines(self, file: str) -> dict[int, set[str]]:
        for name in self._data.measured_files():
            if name.endswith(f"/{file}"):
                contexts = self._data.contexts_by_lineno(name)
                return {
                    line: {test.partition("|")[0] for test in tests}
                    for line, tests in contexts.items()
                }
        return {}

    def _entering(self, room: Path) -> set[str]:
        """Return the tests that run a line of any function of a folder's modules."""
        return {
            test
            for path in room.glob("*.py")
            for line, tests in self._lines(str(path.relative_to(self._root))).items()
            if line in _inside(path)
            for test in tests
        }

    @cached_property
    def _compiled(self) -> set[str]:
        """The modules that have functions that are compiled, by their names with dots."""
        paths = [path for package in PACKAGES for path in (self._root / package).rglob("*.py")]
        texts = {_module(path.relative_to(self._root)): path.read_text("utf-8") for path in paths}
        compiling = {name for name, text in texts.items() if _COMPILES in text}
        return compiling | {
            name for name in texts if any(_imports(name).search(texts[each]) for each in compiling)
        }

    def _importing(self, name: str) -> set[str]:
        return self._saying(_imports(name))

    def _saying(self, said: re.Pattern[str]) -> set[str]:
        """Return the tests of files whose text has that."""
        files = {file for file, text in self._texts.items() if said.search(text)}
        return {test for test in self.known if test.partition("::")[0] in files}

    @cached_property
    def _texts(self) -> dict[str, str]:
        files = {test.partition("::")[0] for test in self.known}
        return {file: (self._root / file).read_text("utf-8") for file in files}

    @cached_property
    def _starting_processes(self) -> set[str]:
        noted = {
            context.removesuffix(f"|{CHILD}")
            for context in self._data.measured_contexts()
            if context.endswith(f"|{CHILD}")
        }
        return self._starting - noted


def environment(root: Path) -> dict[str, str]:
    """Return the environment in which tests of the tree at ``root`` run."""
    return os.environ | {
        "PYTHONPATH": str(root),
        "PYTHONHASHSEED": "0",
    }


def _collect(root: Path, folder: Path, jobs: int) -> None:
    noted = (folder / "seconds.jsonl", folder / "starting.jsonl")
    for old in (*folder.glob("coverage*"), *noted):
        old.unlink(missing_ok=True)
    packages = ", ".join(PACKAGES)
    own = f"[run]\nsource = {packages}\ndata_file = {folder / 'coverage'}\n"
    (folder / "own.ini").write_text(own, encoding="utf-8")
    children = f"{own}parallel = true\ncontext = ${{MUTATION_CONTEXT}}\n"
    (folder / "children.ini").write_text(children, encoding="utf-8")
    more = {
        "MUTATION_COVERAGE": str(folder / "children.ini"),
        "MUTATION_SECONDS": str(noted[0]),
        "MUTATION_STARTING": str(noted[1]),
    }
    command = ["-q", "-n", str(jobs), "--cov", f"--cov-config={folder / 'own.ini'}"]
    command += ["--cov-context=test", "--cov-report="]
    done = _pytest(root, [*command, "-p", "tests.mutation.plugin"], more)
    if done.returncode not in {0, 1} or not (folder / "coverage").exists():
        raise SystemExit(f"{done.stdout[-4000:]}\nthe tests cannot be run without any mutation")


def _read(path: Path) -> list[Any]:
    """Return what was noted there."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _failing(root: Path, folder: Path, tests: set[str]) -> set[str]:
    """Return those of the tests that fail without being measured, too."""
    if not tests:
        return set()
    (folder / "failed.txt").write_text("\n".join(sorted(tests)), encoding="utf-8")
    done = _pytest(root, ["-q", "--tb=no", "-rfE", f"@{folder / 'failed.txt'}"], {})
    return failed_of(tests, done.stdout)


def failed_of(tests: Iterable[str], said: str) -> set[str]:
    """Return those of the tests that pytest says failed."""
    lines = re.findall(r"^(?:FAILED|ERROR) (.*)$", said, re.MULTILINE)
    return {test for test in tests if any(f"{line} - ".startswith(f"{test} - ") for line in lines)}


def _collected(root: Path) -> list[str]:
    done = _pytest(root, ["--collect-only", "-q"], {})
    return [line for line in done.stdout.splitlines() if line.startswith("tests/")]


def _pytest(
    root: Path, arguments: Sequence[str], more: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=root,
        env=environment(root) | more,
        capture_output=True,
        text=True,
        check=False,
    )


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def _imports(name: str) -> re.Pattern[str]:
    """Return what a text has that imports a module, or something of it."""
    room, _, last = map(re.escape, name.rpartition("."))
    return re.compile(rf"{re.escape(name)}\b|^from {room} import .*\b{last}\b", re.MULTILINE)


@cache
def _inside(path: Path) -> frozenset[int]:
    """Return the lines of a module that are inside of functions' bodies."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return frozenset(lines)
