from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fabric import FabricError, assert_completes
from tests.deadlock.cases import CASES
from tests.fabric import small_program

pytest_plugins = ["pytester"]

_HEAD = """
import pytest
from fabric import assert_completes
from tests.deadlock.cases import CASES
from tests.fabric.small_program import build
"""


def run(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    pytester.makepyfile(_HEAD + body)
    pytester.syspathinsert(Path(__file__).parents[2])
    return pytester.runpytest_inprocess("-p", "fabric.pytest_plugin", "-p", "no:cacheprovider")


def test_passing_program_prints_nothing(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        "def test_it(step_report):\n"
        "    assert assert_completes(build(), mode='functional').verified\n"
        "    assert step_report(build(stop=5)).cycles == 51\n",
    )
    found.assert_outcomes(passed=1)
    found.stdout.no_fnmatch_line("*completed*")


def test_deadlock_in_a_users_test_is_a_short_failure(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        "def test_it():\n"
        "    case = CASES['pack_rows']\n"
        "    assert_completes(case.build(), depths=case.given)\n",
    )
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["E*AssertionError: program * does not complete: deadlock", "E*FAB-D001 cycle 5 loop *"]
    )
    found.stdout.no_fnmatch_line("*completing.py*")


def test_failing_test_shows_its_report(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        "def test_it(step_report):\n"
        "    step_report(build(stop=5))\n"
        "    report = step_report(CASES['pack_rows'].build(), depths=CASES['pack_rows'].given)\n"
        "    assert report.status == 'completed'\n",
    )
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["*Captured report call*", "completed*", "*Captured report call*", "error?FAB-D001?:*"]
    )


def test_program_that_does_not_complete_fails_the_assertion() -> None:
    with pytest.raises(AssertionError, match=r"not complete: error\n.*ValueError: odd"):
        assert_completes(small_program.build(fault="raises"))
    with pytest.raises(AssertionError, match=r"not complete: deadlock\nFAB-D"):
        assert_completes(CASES["ring_of_7"].build())
    with pytest.raises(FabricError, match="no channel has that name"):
        assert_completes(small_program.build(), depths={"x.0": 2})


def test_plugin_imports_no_large_module() -> None:
    code = "import sys, fabric.pytest_plugin; print(*sorted(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    loaded = set(found.stdout.split())
    assert "fabric.pytest_plugin" in loaded
    assert not loaded & {"numpy", "trio", "sympy", "numba", "duckdb", "rich", "fabric.runs"}
