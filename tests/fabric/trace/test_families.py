from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np
import pytest

from fabric import Program, Trace
from fabric.analysis.trace.analysis.accounts import StalledUnit
from operators import Consumer, LinearOffChipLoad, Map, Metadata, SiLU, Tensor
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(program("moe static"), tmp_path_factory.mktemp("run"))[1]


def pattern(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def test_family_row_is_its_median_unit(trace: Trace) -> None:
    expected: dict[tuple[str, str, int], list[StalledUnit]] = defaultdict(list)
    for unit in trace.stalls().units:
        if unit.elements or unit.busy_cycles or unit.hbm_cycles or unit.capacity_cycles:
            expected[pattern(unit.name), unit.file, unit.line].append(unit)
    found = trace.stalls().folded.families

    assert {tuple(sorted(unit.name for unit in each)) for each in expected.values()} == {
        tuple(sorted(unit.name for unit in family.units)) for family in found
    }
    assert any(len(each) > 2 for each in expected.values())
    for family in found:
        stalled = [unit.stalled_cycles for unit in family.units]
        least, median, most = (unit.stalled_cycles for unit in family.spread)
        assert (min(stalled), median_low(stalled), max(stalled)) == (least, median, most)


def test_folded_roots_and_paths_add_up_to_those_of_units(trace: Trace) -> None:
    stalls = trace.stalls()
    roots, folded = Counter[str](), Counter[str]()
    for each in stalls.roots:
        roots[pattern(each.root.name)] += each.cycles
    for each in stalls.folded.roots:
        name = re.sub(r"\.\.\d+| \(.*?\)", "", each.root.name)
        folded[pattern(name).replace("_i", "_#")] += each.cycles

    assert len(stalls.folded.roots) < len(stalls.roots)
    assert roots == folded
    path, shares = stalls.critical_path, stalls.folded.critical_path.shares
    assert path.cycles == sum(share.cycles for share in shares)


def test_families_with_equal_names_have_numbered_titles(tmp_path: Path) -> None:
    with Program("alike") as program:
        x = LinearOffChipLoad(Tensor((16, 16)), (16, 16))()
        alike: list[Any] = [Map(SiLU(), name=name) for name in ("x_0_0", "x_1_1")]
        alike += [Consumer(name=name) for name in ("x_0_1", "x_1_0")]
        for stream in [operator(x) for operator in alike][:2]:
            Consumer()(stream)
    _, trace = record(program, tmp_path)
    rows = trace.rows("SELECT name, family FROM units WHERE name LIKE 'x_%' ORDER BY name")
    ((line,),) = trace.rows("SELECT DISTINCT line FROM units WHERE name LIKE 'x_%'")
    title = f"x_0..1_0..1 (test_families.py:{line})"

    assert [[name, family] for name, family in rows] == [
        ["x_0_0", title],
        ["x_0_1", f"{title} 2"],
        ["x_1_0", f"{title} 2"],
        ["x_1_1", title],
    ]


def test_source_is_not_listed_among_units_without_elements(tmp_path: Path) -> None:
    with Program("source") as program:
        Consumer()(Metadata(np.arange(9))())
    report, trace = record(program, tmp_path)
    assert "never got an element" not in str(report) + str(trace.stalls())
