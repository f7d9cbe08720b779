"""Pages of on-chip memory: how many allocations take, and what their map does."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pages import map_bytes, rows

from fabric import Hardware, Program, Report, hardware_scope, run_point, simulate
from fabric.engine.on_chip import OnChipMemory
from fabric.extend import OnChipDescription
from fabric.loading.program_file import load_program
from fabric.study.opening import Asked, open_study
from fabric.telling.errors import ConfigurationError
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.programs.loading import PROGRAMS

MOE = ["model=tiny", "batch=8", "tiling=dynamic"]


def report_of(page_bytes: int | None, **given: int) -> Report:
    """Return the report of a small mixture of experts with dynamic tiles."""
    hardware = Hardware(on_chip=OnChipDescription(page_bytes=page_bytes, **given))
    return simulate(load_program(PROGRAMS / "moe.py", MOE, hardware).program, mode="timing")


def test_pages_of_a_byte_are_bytes() -> None:
    """Of pages of one byte there are as many as bytes; of larger ones enough for them."""
    one = report_of(1)
    assert one.on_chip_peak_bytes
    assert one.on_chip_peak_pages == one.on_chip_peak_bytes
    for page_bytes in (16, 100, 4096):
        pages = report_of(page_bytes).on_chip_peak_pages
        assert pages
        assert pages * page_bytes >= one.on_chip_peak_bytes


def test_pages_change_nothing_else() -> None:
    """A run that counts pages is one that does not, in everything else."""
    plain, paged = report_of(None), report_of(64)
    assert plain.on_chip_peak_pages is plain.on_chip_map_bytes is None
    same = replace(paged, on_chip_peak_pages=None, on_chip_map_bytes=None, hardware=plain.hardware)
    assert same == plain


@pytest.mark.parametrize(("page_bytes", "pages"), [(1024, 2), (2048, 1), (1500, 2), (256, 8)])
def test_a_tile_takes_whole_pages(page_bytes: int, pages: int) -> None:
    """Each tile takes whole pages of its own: 2 KB, read and written."""
    hardware = Hardware(on_chip=OnChipDescription(page_bytes=page_bytes))
    with hardware_scope(hardware), Program("copy", mode="timing") as program:
        rows_ = LinearOffChipLoad(np.ones((64, 64)), tile=(16, 64))()
        LinearOffChipStore("y")(rows_)
    report = simulate(program)
    tile_bytes = 16 * 64 * 2
    assert report.on_chip_peak_bytes
    tiles, rest = divmod(report.on_chip_peak_bytes, tile_bytes)
    assert rest == 0
    assert report.on_chip_peak_pages == tiles * pages


async def test_what_grows_fills_its_last_page_first() -> None:
    """What grows fills its last page first, and gives all of them back."""
    clock: Any = SimpleNamespace(now=0)
    unit: Any = SimpleNamespace(now=1)
    memory = OnChipMemory(None, clock)
    memory.page_bytes = 150
    found = []
    for held in (0, 100, 200):
        await memory.allocate(unit, 100, "a buffer", held_bytes=held)
        unit.now += 1
        found.append(memory.peak_pages)
    assert found == [1, 2, 2]
    memory.release(unit, 300, 9)
    await memory.allocate(unit, 450, "another")
    memory.release(unit, 450, 20)
    unit.now = 30
    await memory.allocate(unit, 150, "another")
    assert memory.peak_pages == 5
    assert memory.held_bytes == 150


def test_the_map_has_a_number_for_each_page() -> None:
    """A page's number in a unit of 512 KB has 19 bits for bytes, and so on."""
    report = report_of(256)
    assert report.on_chip_peak_pages
    assert report.on_chip_map_bytes == -(-report.on_chip_peak_pages * 11 // 8)
    assert report_of(256, unit_bytes=256).on_chip_map_bytes == 0
    assert report_of(256, unit_bytes=257).on_chip_map_bytes == -(-report.on_chip_peak_pages // 8)


def test_pages_fit_into_a_unit() -> None:
    """Pages are no larger than a memory unit."""
    with pytest.raises(ConfigurationError, match="page_bytes is 9: expected at most unit_bytes, 8"):
        OnChipDescription(page_bytes=9, unit_bytes=8)


def test_the_question_is_answered_by_its_table() -> None:
    """Numbers of pages of 32 bytes take 28 KiB of 512, of 16 bytes 60; a point of it runs."""
    assert (map_bytes(32), map_bytes(16)) == (28 * 1024, 60 * 1024)
    study = open_study(PROGRAMS / "questions" / "pages.py", Asked())
    small = replace(
        study, fixed={**study.fixed, "experts": 4, "top_k": 2, "hidden": 64, "inter": 64}
    )
    outcome = run_point(small, small.point(8))
    assert (outcome.status, outcome.reason) == ("completed", None)
    assert outcome.setting["hardware.on_chip.page_bytes"] == 16
    held, pages = outcome.numbers["on_chip_peak_bytes"], outcome.numbers["on_chip_peak_pages"]
    assert isinstance(pages, int)
    assert isinstance(held, int)
    # The scale of a token, two bytes, has a page of its own.
    assert 16 * pages - held == 14

    class Found:
        """A study in which each page size has a pages' peak of 10 and a bytes' peak of 100."""

        def value(self, metric: str, **_: object) -> float:
            return {"on_chip_peak_bytes": 100, "on_chip_peak_pages": 10}.get(metric, 25)

    found: Any = Found()
    first, *_ = rows(found)
    assert first == (16, 60 * 1024, "no", 25.0, 37.5, 25.0, 37.5)
