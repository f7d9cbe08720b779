"""A user's form of a trace: folded stacks, from which flame graphs are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric import ConfigurationError, Trace, export_trace, open_trace, simulate
from fabric.extend import export_form
from tests.fabric.trace.chains import chain


@export_form("folded")
def folded(trace: Trace, output: Path) -> int:
    rows = trace.rows(
        "SELECT u.name, cause, coalesce(c.name, 'memory'), sum(w.cycles)::BIGINT FROM waits w "
        "JOIN units u USING (unit) LEFT JOIN channels c USING (channel) GROUP BY ALL ORDER BY ALL"
    )
    output.write_text(
        "".join(f"{unit};{cause};{on} {cycles}\n" for unit, cause, on, cycles in rows)
    )
    return len(rows)


def test_users_export_form_has_every_waited_cycle(tmp_path: Path) -> None:
    wired = chain(("s0",), ("r0", "s0"), ("r0", "c10"), elements=5)
    report = simulate(wired, trace="events", log_dir=tmp_path)
    assert report.log_dir is not None
    output = tmp_path / "run.folded"
    count = export_trace(open_trace(report.log_dir), "folded", output)

    lines = output.read_text().splitlines()
    assert len(lines) == count
    assert "unit_1;full;unit_1.0 -> unit_2.0 20" in lines
    waited = {unit.name: 0 for unit in report.units}
    for line in lines:
        waited[line.partition(";")[0]] += int(line.rpartition(" ")[2])
    assert waited == {
        unit.name: unit.empty_cycles + unit.full_cycles + unit.credit_cycles
        for unit in report.units
    }


def test_unknown_export_form_names_a_similar_one(tmp_path: Path) -> None:
    wired = chain(("s0",), ("r0",), elements=1)
    report = simulate(wired, trace="events")
    with pytest.raises(ConfigurationError, match=r"form 'foldd': expected .*mean folded\?"):
        export_trace(report.trace(), "foldd", tmp_path / "x")
