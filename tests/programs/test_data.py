"""The traces and tables that are in the repository: whole, and what their README says of them."""

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
"""Tokens, experts of a token, experts with tokens, and the least, most and standard deviation of
the tokens of an expert."""

MISNAMED = {("b64", 484): 493.5, ("b64", 1370): 1340.4}
"""Standard deviations that differ from what the file's name says."""


def _column(table: str, name: str) -> set[str]:
    with (DATA / "published" / table).open(encoding="utf-8", newline="") as file:
        return {row[name] for row in csv.DictReader(file)}


class TestRouting:
    def test_files(self) -> None:
        found = {str(each.relative_to(ROUTING)) for each in ROUTING.rglob("*") if each.is_file()}
        assert HISTOGRAMS.keys() == found

    @pytest.mark.parametrize("name", HISTOGRAMS)
    def test_tokens_of_each_expert(self, name: str) -> None:
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


class TestLengths:
    @pytest.mark.parametrize(
        "path",
        sorted(LENGTHS.rglob("*.npy")),
        ids=lambda path: f"{path.parent.name}-{path.stem}",
    )
    def test_names(self, path: Path) -> None:
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

    def test_as_many_as_the_artifact_has(self) -> None:
        assert 51 == len(list(LENGTHS.rglob("*.npy")))


class TestTables:
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
    def test_traces(self, table: str, column: str, folder: Path) -> None:
        names = _column(table, column)

        assert names
        assert [] == [name for name in names if not (folder / name).is_file()]

    def test_provenance(self) -> None:
        said = (DATA / "README.md").read_text(encoding="utf-8")
        published = DATA / "published"
        tables = [each.name for each in published.glob("*.csv")]
        printed = [f"camera_ready/{each.name}" for each in published.glob("camera_ready/*.csv")]
        tables += printed

        assert 11 == len(printed)
        assert "Attribution 4.0" in (published / "camera_ready/LICENSE").read_text("utf-8")
        assert [] == [name for name in tables if f"`{name}`" not in said]

    def test_addresses(self) -> None:
        with np.load(DATA / "published/dram/one_channel_addresses.npz") as archive:
            sizes = {name: len(archive[name]) for name in archive.files}
        with (DATA / "published/dram/one_channel_reference.csv").open(newline="") as file:
            requests = {int(row["requests"]) for row in csv.DictReader(file)}

        assert {8_000} == requests == set(sizes.values())
