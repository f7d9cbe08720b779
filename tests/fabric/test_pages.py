"""Pages of on-chip memory: pages of allocations, waits for pages, and bytes of the page map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import map_bytes

import fabric as fab
from fabric.analysis.trace.analysis.moment import state_in
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.extend import OnChipDescription
from fabric.graph.loading.program_file import load_program
from operators import Bufferize, Streamify
from tests import definitions
from tests.fabric.trace.recording import record
from tests.operators.driving import FLOAT, Collect, Emit, encode, tile
from tests.programs.loading import PROGRAMS

MOE = ["model=tiny", "batch=8", "tiling=dynamic"]


def report_of(page_bytes: int | None, **given: Any) -> fab.Report:
    hardware = fab.Hardware(on_chip=OnChipDescription(page_bytes=page_bytes, **given))
    return fab.simulate(load_program(PROGRAMS / "moe.py", MOE, hardware).program, mode="timing")


def test_pages_change_nothing_else() -> None:
    plain, paged = report_of(None), report_of(64)
    assert plain.on_chip_peak_pages is plain.on_chip_map_bytes is None
    assert paged.on_chip_wait_cycles == 0
    same = replace(
        paged,
        on_chip_peak_pages=None,
        on_chip_map_bytes=None,
        on_chip_peak_empty_bytes=None,
        on_chip_wait_cycles=None,
        hardware=plain.hardware,
    )
    assert same == plain


TILE_BYTES = 4


def buffers_on(hardware: fab.Hardware, buffers: int, tiles: int) -> fab.Program:
    tensor = definitions.map_values(tile, 2, np.ones((buffers, tiles)).tolist())
    with fab.hardware_scope(hardware), fab.Program("buffers", channel_depth=1000) as program:
        source = Emit(fab.StreamType((buffers, tiles), FLOAT), encode(tensor, 2), (0,))()
        Collect([], (0,))(Streamify()(Bufferize()(source)))
    return program


def waited_by_definition(buffers: int, tiles: int, page_bytes: int, pages: int) -> int:
    cycle, reader, waited = 1, 0, 0
    given_back: list[tuple[int, int]] = []
    taken = 0
    for _ in range(buffers):
        own = 0
        for number in range(1, tiles + 1):
            more = -(-number * TILE_BYTES // page_bytes) - own
            seen = cycle
            while taken + more - sum(n for when, n in given_back if when <= cycle) > pages:
                cycle += 1
            waited += cycle - seen
            taken, own = taken + more, own + more
            cycle += number < tiles
        reader = max(reader, cycle + 1) + tiles
        given_back.append((reader, own))
    return waited


@pytest.mark.parametrize("page_bytes", [1, 3, 4, 8, 10, 100])
@pytest.mark.parametrize(("tiles", "units"), [(1, 1), (3, 1), (3, 2), (4, 3), (5, 1)])
def test_tile_without_a_free_page_waits(page_bytes: int, tiles: int, units: int) -> None:
    pages = -(-tiles * TILE_BYTES // page_bytes) * units + (units > 1)
    hardware = fab.Hardware(
        on_chip=OnChipDescription(
            page_bytes=page_bytes,
            unit_bytes=pages * page_bytes,
            # The part of the capacity that is not a whole page stays unused.
            capacity_bytes=pages * page_bytes + page_bytes - 1,
        )
    )
    report = fab.simulate(buffers_on(hardware, 6, tiles))
    expected = waited_by_definition(6, tiles, page_bytes, pages)
    assert report.on_chip_wait_cycles == expected
    assert report.on_chip_peak_pages is not None
    assert report.on_chip_peak_pages <= pages
    assert expected or units > 1 or tiles == 1


def test_whole_pages_wait_as_bytes_do() -> None:
    reports = [
        fab.simulate(
            buffers_on(
                fab.Hardware(on_chip=OnChipDescription(capacity_bytes=20, page_bytes=page_bytes)),
                5,
                3,
            )
        )
        for page_bytes in (None, 1, 2, 4)
    ]
    assert len({report.cycles for report in reports}) == 1
    assert reports[0].units[1].capacity_cycles > 0
    for report in reports[1:]:
        assert report.units == reports[0].units
        assert report.on_chip_peak_empty_bytes == 0


def test_empty_bytes_of_pages_are_counted_in_each_cycle() -> None:
    one = fab.Hardware(on_chip=OnChipDescription(page_bytes=10, capacity_bytes=20))
    report = fab.simulate(buffers_on(one, 1, 3))
    # Empty bytes of pages: 4 of 10, 8 of 10, and 12 of 20 bytes are used.
    assert (report.on_chip_peak_pages, report.on_chip_peak_empty_bytes) == (2, 8)


def test_pages_that_nobody_can_free_are_a_deadlock() -> None:
    def build(capacity_bytes: int) -> fab.Program:
        on_chip = OnChipDescription(capacity_bytes=capacity_bytes, page_bytes=8, unit_bytes=20)
        tensor = definitions.map_values(tile, 2, [[1, 2, 3]])
        with fab.hardware_scope(fab.Hardware(on_chip=on_chip)), fab.Program("two") as program:
            for _ in range(2):
                source = Emit(fab.StreamType((1, 3), FLOAT), encode(tensor, 2), (0,))()
                Collect([], (0,))(Streamify()(Bufferize()(source)))
        return program

    report = fab.simulate(build(24))
    assert report.status == "deadlock"
    assert report.deadlock is not None
    assert report.deadlock["code"] == "FAB-D006"
    assert (
        "Of 2 pages of 8 bytes on chip bufferize_1 holds 1, bufferize_2 holds 1"
        in (report.deadlock["loops"][0]["cause"])
    )
    # With a third page, one buffer is filled and read. Two pages fit into the first unit of 20
    # bytes.
    after_bytes = report.deadlock["remedy"]["capacity"]["after_bytes"]
    assert fab.simulate(build(after_bytes)).status == "completed"
    assert fab.simulate(build(after_bytes - 1), on_deadlock="describe").status == "deadlock"
    assert after_bytes == 28


def test_a_trace_and_a_held_run_know_who_waits_for_pages(tmp_path: Path) -> None:
    on_chip = OnChipDescription(capacity_bytes=24, page_bytes=10, unit_bytes=20)
    program = buffers_on(fab.Hardware(on_chip=on_chip), 3, 3)
    _, trace = record(program, tmp_path)
    seen: set[tuple[int, int]] = set()
    with fab.open_run(program) as run:
        for cycle in range(12):
            run.until(cycle=cycle)
            traced = state_in(trace, cycle).on_chip
            assert traced.requests == run.state.on_chip.requests
            assert traced.pages == on_chip.pages
            seen.update(traced.requests)
    # The second buffer requests its first page while the first buffer holds both pages.
    assert seen == {(1, 10)}


def test_question_of_pages_has_a_table_of_their_sizes() -> None:
    assert (map_bytes(32), map_bytes(16)) == (28 * 1024, 60 * 1024)
    study = open_study(PROGRAMS / "questions" / "pages.py", StudyOptions())
    small = replace(
        study, fixed={**study.fixed, "experts": 4, "top_k": 2, "hidden": 64, "inter": 64}
    )
    outcome = fab.run_point(small, small.point(16))
    assert (outcome.status, outcome.reason) == ("completed", None)
    assert outcome.setting["hardware.on_chip.page_bytes"] == 16
    held, pages = outcome.numbers["on_chip_peak_bytes"], outcome.numbers["on_chip_peak_pages"]
    assert isinstance(pages, int)
    assert isinstance(held, int)
    # The scale of a token has two bytes, and takes a page of 16 bytes.
    assert 16 * pages - held == 14
