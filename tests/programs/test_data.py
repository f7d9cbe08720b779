from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.programs.loading import DATA

ROUTING = DATA / "traces/expert_routing"
LENGTHS = DATA / "traces/kv_lengths"

HISTOGRAMS = {
    "mixtral_b64/008_010.npz": (64, 2, 8, 10, 24, 5.345),
    "mixtral_b1024/019_009.npz": (1024, 2, 8, 164, 414, 76.278),
    "qwen_b64/032_012.npz": (64, 8, 60, 0, 42, 7.389),
    "qwen_b1024/022_016.npz": (1024, 8, 83, 0, 814, 135.524),
}

MISNAMED = {("b64", 484): 493.5, ("b64", 1370): 1340.4}
"""Standard deviations that differ from those in the file's name."""


def _column(table: str, name: str) -> set[str]:
    with (DATA / "published" / table).open(encoding="utf-8", newline="") as file:
        return {row[name] for row in csv.DictReader(file)}


def test_recorded_routings_are_all_known() -> None:
    found = {str(each.relative_to(ROUTING)) for each in ROUTING.rglob("*") if each.is_file()}
    assert HISTOGRAMS.keys() == found


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_recorded_routing_has_its_histogram(name: str) -> None:
    experts = 8 if name.startswith("mixtral") else 128
    with np.load(ROUTING / name) as archive:
        data = archive["data"]
    tokens = np.bincount(data.ravel(), minlength=experts)
    deviation = round(float(tokens.std(ddof=1)), 3)

    assert HISTOGRAMS[name] == (
        *data.shape,
        np.count_nonzero(tokens),
        tokens.min(),
        tokens.max(),
        deviation,
    )
    assert all(len(set(row)) == data.shape[1] for row in data.tolist())


@pytest.mark.parametrize(
    "path",
    sorted(LENGTHS.rglob("*.npy")),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_recorded_lengths_match_their_file_name(path: Path) -> None:
    _, deviation, first, last = path.stem.split("_")
    lengths = np.load(path)
    folder, named = path.parent.name, int(deviation.removeprefix("stdev"))
    found = float(lengths.std(ddof=1))

    assert (int(last) - int(first) + 1,) == lengths.shape
    assert f"b{len(lengths)}" == folder
    if (folder, named) in MISNAMED:
        assert MISNAMED[folder, named] == round(found, 1)
    else:
        assert found == pytest.approx(named, abs=2)


@pytest.mark.parametrize(
    ("table", "column", "folder"),
    [
        ("attention.csv", "trace", LENGTHS),
        ("moe_closed_forms.csv", "trace", ROUTING),
        ("moe_tiling.csv", "trace", ROUTING),
        ("moe_time_multiplexing.csv", "trace", ROUTING),
        ("reference_cycles.csv", "routing", ROUTING),
    ],
)
def test_published_tables_name_recorded_traces(table: str, column: str, folder: Path) -> None:
    names = _column(table, column)

    assert names
    assert [] == [name for name in names if not (folder / name).is_file()]


def test_published_tables_are_in_the_readme() -> None:
    said = (DATA / "README.md").read_text(encoding="utf-8")
    published = DATA / "published"
    tables = [each.name for each in published.glob("*.csv")]
    printed = [f"camera_ready/{each.name}" for each in published.glob("camera_ready/*.csv")]
    tables += printed

    assert 11 == len(printed)
    assert "Attribution 4.0" in (published / "camera_ready/LICENSE").read_text("utf-8")
    assert [] == [name for name in tables if f"`{name}`" not in said]
