"""The plugin of pytest: ``step_report`` runs programs, and failing tests show the reports.

pytest loads this module if step-fabric is installed. The first run loads the rest of the fabric.
"""

from __future__ import annotations

from collections.abc import Callable

# Any: the options of ``simulate``.
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program
    from fabric.runs.report import Report


@pytest.fixture
def step_report(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return a function that runs a program like ``fabric.simulate`` and returns the report.

    If the test fails, pytest prints the report of each of its runs, as ``python -m fabric run``
    does. Use ``fabric.assert_completes`` to require that a program completes.
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
