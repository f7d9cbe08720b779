"""The plugin of pytest: ``step_report`` runs programs, and failing tests show what came of them.

pytest loads it where step-fabric is installed; the fabric itself is loaded by its first use.
"""

from __future__ import annotations

from collections.abc import Callable

# Any: whatever ``simulate`` takes.
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program
    from fabric.runs.report import Report


@pytest.fixture
def step_report(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return ``run(program, **options)``: like ``fabric.simulate``, it returns the report.

    Where the test fails, pytest prints beside the failure what ``python -m fabric run`` prints of
    each of its runs: the loop of a deadlock with its remedy, wrong data with their places, where
    the cycles went. Whether a program completes is for ``fabric.assert_completes``.
    """

    def run(program: Program, **options: Any) -> Report:
        from fabric.runs.simulation import simulate

        report = simulate(program, **options)
        request.node.add_report_section("call", "report", _text(report))
        return report

    return run


def _text(report: Report) -> str:
    from fabric.display.terminal import plain_text

    return plain_text(report.sheet(), columns=100)
