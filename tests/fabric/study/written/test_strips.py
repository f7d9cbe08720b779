from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from fabric.explore.study.outcome import metric
from fabric.explore.study.written.sheet import strips
from tests.fabric.study.written.made import over_inputs


def test_strip_has_a_mark_for_each_input() -> None:
    result = over_inputs()
    study = result.study
    ((title, cells), *_) = strips(result, [8, 0])

    assert title == "cycles with each input, 70,312 to 1,290,000 by their logarithms"
    places: dict[int, float] = {}
    for index, cell in zip((8, 0), cells, strict=True):
        svg = ET.fromstring(cell)
        marks = svg.findall("path")
        runs = [each for each in result.runs if study.design_of(each.index) == index]
        assert len(marks) == len(runs) == 6
        for mark, run in zip(marks, runs, strict=True):
            told = mark.findtext("title") or ""
            cycles = metric(run, "cycles")
            assert told.startswith(study.input_name(run.index))
            assert told.endswith(f": {cycles:,}")
            assert ("held out" in told) is study.is_held_out(run.index)
            found = re.match(r"M([\d.]+) ", mark.get("d") or "")
            assert found is not None
            places[int(cycles or 0)] = float(found[1])
    assert list(places) != sorted(places)
    assert [places[each] for each in sorted(places)] == sorted(places.values())
    assert min(places.values()) >= 0
    assert max(places.values()) <= 160
