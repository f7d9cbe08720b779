"""What tests of programs ask: that a program completes, with the right outputs."""

from __future__ import annotations

from fabric.arguments.keywords import taking
from fabric.runs.options import Settings
from fabric.runs.report import Report
from fabric.runs.simulation import simulated
from fabric.telling.errors import FabricError
from fabric.wiring.program import Program

__all__ = ["assert_completes"]


@taking(Settings)
def assert_completes(program: Program, settings: Settings) -> Report:
    """Run ``program``, fail unless it completes with the expected outputs, and return its report.

    Args:
        program: a wired program.
        settings: the settings of the run, as keywords.

    Raises:
        AssertionError: it did not complete, or an output is wrong. The message has the one line of
            a deadlock, the places of wrong data, or the operator's error.
        FabricError: it cannot be run at all.
    """
    __tracebackhide__ = True
    report = simulated(program, settings)
    try:
        report.raise_for_status()
    except FabricError as error:
        wrong = f"program {report.name!r} does not complete: {report.status}\n{error}"
        if report.status == "completed":
            wrong = str(error)
        raise AssertionError(wrong) from None
    return report
