from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fabric.graph.hardware.dram import PRESETS

TABLE = Path(__file__).parents[2] / "programs/data/published/dram/hbm_parameters.csv"
COLUMNS = {
    "HBM2 1600 Mbps": "Ramulator 2.1 HBM2_1600Mbps HBM2_8Gb",
    "HBM2 2000 Mbps": "Ramulator 2.1 HBM2_2000Mbps HBM2_8Gb",
    "HBM2 2400 Mbps": "Ramulator 2.1 HBM2_2400Mbps HBM2_8Gb",
    "HBM3 6400 Mbps": "Ramulator 2.1 HBM3_6400Mbps HBM3_16Gb_8hi (clocks)",
}
NAMES = {"nBL": "burst", "nRCDRD": "rcd_read", "nRCDWR": "rcd_write", "nRTPL": "rtp"} | {
    f"n{group}{length}": f"{group.lower()}_{length.lower()}"
    for group in ("CCD", "RRD", "WTR")
    for length in ("S", "L")
}


@pytest.mark.parametrize("preset", PRESETS)
def test_timing_of_a_preset_equals_the_published_table(preset: str) -> None:
    with TABLE.open(encoding="utf-8") as file:
        rows = {row["parameter"]: row[COLUMNS[preset]] for row in csv.DictReader(file)}
    named = {NAMES.get(name, name[1:].lower()): number for name, number in rows.items() if number}
    found = {key: each for key, each in vars(PRESETS[preset]).items() if key.endswith("_cycles")}

    assert found == {key: int(float(named[key.removesuffix("_cycles")])) for key in found}
