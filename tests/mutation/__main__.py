"""Mutate the package one place at a time, and see whether a test fails.

    python -m tests.mutation [--count 150] [--seed 1] [--only GLOB] [--jobs 2] [-o FOLDER]
    python -m tests.mutation --at FILE:LINE ... | --again

Cosmic Ray (``pip install -e ".[dev,mutation]"``) makes the mutations; ``--count`` of them, spread
over the lines of all modules, are tried in copies of the tree, each against the tests that run its
line, until one fails or takes far too long. ``--only`` keeps the modules that match; ``--at`` tries
every mutation of a line instead, ``--again`` those that survived the last time. What no test can
notice is listed in ``equivalents.toml``, with the reason.

Prints a line a mutant and a summary, writes FOLDER/results.jsonl, and exits with 1 where less than
95 % of those that are not equivalent are caught. FOLDER (default ``logs/mutation``) keeps which
tests run which line; it is collected anew, by a run of all tests, when the package changes.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import queue
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from tests.mutation.covering import Covering
from tests.mutation.mutants import Mutant, all_at, made_again, sampled
from tests.mutation.trial import Result, Tree

ROOT: Final = Path(__file__).parents[2]
EQUIVALENTS: Final = Path(__file__).with_name("equivalents.toml")
ENOUGH: Final = 0.95


def main(arguments: Sequence[str]) -> int:
    """Try the mutants; 1 where too few are caught."""
    parser = argparse.ArgumentParser(
        prog="tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=150, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--only", default="*", help="modules, such as 'fabric/analysis/symbolic/*'")
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="all of a line")
    parser.add_argument("--again", action="store_true", help="those that survived the last time")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("-o", dest="folder", type=Path, default=ROOT / "logs" / "mutation")
    options = parser.parse_args(arguments)
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"

    mutants = _chosen(options, results)
    known = _equivalents()
    equivalent = [mutant for mutant in mutants if mutant.key in known]
    outcomes: Counter[str] = Counter(equivalent=len(equivalent))
    covering = Covering(ROOT, folder, options.jobs)
    to_try = [mutant for mutant in mutants if mutant.key not in known]
    with results.open("w", encoding="utf-8") as file:
        for result in _tried(to_try, covering, options.jobs):
            outcomes[result.outcome] += 1
            file.write(json.dumps(_entry(result)) + "\n")
    tried = sum(outcomes.values()) - outcomes["equivalent"]
    caught = outcomes["caught"] + outcomes["hung"]
    share = caught / tried if tried else 1.0
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    _say(f"{len(mutants)} mutants: {counts}; {share:.1%} of those not equivalent are caught")
    return int(share < ENOUGH)


def _chosen(options: argparse.Namespace, results: Path) -> list[Mutant]:
    if options.at:
        lines = [place.rpartition(":") for place in options.at]
        return [mutant for file, _, line in lines for mutant in all_at(ROOT, file, int(line))]
    if options.again:
        return _survivors(results)
    mutants = sampled(ROOT, options.count, options.seed)
    return [mutant for mutant in mutants if fnmatch.fnmatch(mutant.file, options.only)]


def _tried(mutants: Sequence[Mutant], covering: Covering, jobs: int) -> list[Result]:
    """Try mutants, several at a time, each in a tree of its own.

    A test that caught one and then fails without any mutation, too, is left out: what it caught is
    tried again.
    """
    with tempfile.TemporaryDirectory() as copies, ThreadPoolExecutor(jobs) as threads:
        trees: queue.Queue[Tree] = queue.Queue()
        for number in range(jobs):
            trees.put(Tree(ROOT, Path(copies) / str(number)))

        def attempt(mutant: Mutant) -> Result:
            tree = trees.get()
            try:
                return tree.attempt(mutant, covering)
            finally:
                trees.put(tree)

        sure: list[Result] = []
        while mutants:
            results = []
            for done in as_completed([threads.submit(attempt, mutant) for mutant in mutants]):
                results.append(done.result())
                _say(_line(results[-1]))
            tree = trees.get()
            failing = tree.failing(sorted({each.test for each in results} - {""}), covering)
            trees.put(tree)
            for test in sorted(failing):
                _say(f"{test} fails without any mutation: left out")
            covering.known -= failing
            sure += [each for each in results if each.test not in failing]
            mutants = [each.mutant for each in results if each.test in failing]
    return sure


def _equivalents() -> dict[tuple[str, str, str], str]:
    """Return why nothing can notice a mutant, by its key."""
    listed = tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8")).get("mutant", [])
    return {(each["file"], each["before"], each["after"]): each["reason"] for each in listed}


def _survivors(results: Path) -> list[Mutant]:
    """Make the mutants anew that were not caught; those of lines that have changed are left out."""
    mutants = []
    for each in map(json.loads, results.read_text(encoding="utf-8").splitlines()):
        if each["outcome"] in {"survived", "unsure", "not run"}:
            mutant = made_again(ROOT, each["file"], each["operator"], each["occurrence"])
            if mutant is not None and mutant.key == (each["file"], each["before"], each["after"]):
                mutants.append(mutant)
    return mutants


def _entry(result: Result) -> dict[str, object]:
    mutant = result.mutant
    return {
        "file": mutant.file,
        "line": mutant.line,
        "operator": mutant.operator,
        "occurrence": mutant.occurrence,
        "before": mutant.before,
        "after": mutant.after,
        "outcome": result.outcome,
        "test": result.test,
        "tests": result.tests,
        "seconds": round(result.seconds, 1),
    }


def _line(result: Result) -> str:
    mutant = result.mutant
    if result.outcome in ("survived", "unsure", "not run"):
        what = f"\n    - {mutant.before}\n    + {mutant.after}\n    {result.tests} tests ran"
    else:
        what = f" {mutant.operator.removeprefix('core/')}, {result.test or 'all tests of a module'}"
    return f"{result.outcome:8} {result.seconds:5.0f} s  {mutant.file}:{mutant.line}{what}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
