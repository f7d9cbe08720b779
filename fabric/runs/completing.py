"""What tests of programs ask: that a program completes, with the right outputs."""

from __future__ import annotations

# Any: whatever ``simulate`` takes.
from typing import TYPE_CHECKING, Any

from fabric.runs.simulation import simulate
from fabric.telling.errors import FabricError

if TYPE_CHECKING:
    from fabric.runs.report import Report
    from fabric.wiring.program import Program

__all__ = ["assert_completes"]


def assert_completes(program: Program, **options: Any) -> Report:
    """Run ``program``, see that it completes with the outputs it expects, and return its report.

    Args:
        program: wired.
        options: as ``simulate`` takes them.

    Raises:
        AssertionError: it did not complete, or an output is wrong: with the one line of a deadlock,
            the places of wrong data, or the operator's error.
        FabricError: it cannot be run at all.
    """
    __tracebackhide__ = True
    report = simulate(program, **options)
    try:
        report.raise_for_status()
    except FabricError as error:
        wrong = f"program {report.name!r} does not complete: {report.status}\n{error}"
        if report.status == "completed":
            wrong = str(error)
        raise AssertionError(wrong) from None
    return report
