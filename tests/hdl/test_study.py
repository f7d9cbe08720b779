from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from tests.hdl.test_design import COUNTED
from tests.programs.studies.made import made, opened


def _tilings() -> dict[tuple[int, int], int]:
    return {(row["tile_batch"], row["tile_inter"]): row["hdl_cycles"] for row in COUNTED}


def test_study_has_all_tilings_in_tiles_and_pieces() -> None:
    study = opened("hdl")
    assert len(study.space) == 30
    assert {each.setting["pieces"] for each in study.known} == {16}
    known = {
        (each.setting["tile_batch"], each.setting["tile_inter"]): each.value for each in study.known
    }
    assert known == _tilings()


def test_table_and_picture_have_a_row_for_each_tiling() -> None:
    study = opened("hdl")

    def numbers(setting: Mapping[str, Any]) -> dict[str, float] | None:
        cycles = _tilings().get((setting["tile_batch"], setting["tile_inter"]))
        return None if cycles is None else {"cycles": cycles if setting["pieces"] else 2 * cycles}

    result = made(study, numbers)
    *rows, means = study.tables[0].rows(result)
    assert len(rows) == len(COUNTED)
    for row in rows:
        assert str(row[3]).endswith("(100.0 %)")
        assert row[4] == f"{row[1]} (0.0 %)"
    assert means[-2:] == ("100.00 %, at worst 100.0 %", "0.00 %, at worst 0.0 %")
    study.pictures[0].draw(result, figure := Figure())
    assert figure.axes[0].get_ylabel() == "off by (%)"
