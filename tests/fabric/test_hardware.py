"""Hardware descriptions: the defaults are the paper's fabric, and wrong files are refused."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fabric import simulate
from fabric.graph.hardware import description, memory_models
from fabric.graph.hardware.file import load_hardware, varied_hardware
from fabric.messages.errors import ConfigurationError
from tests.programs.loading import program

HARDWARE = Path(__file__).parents[2] / "programs" / "hardware"
HBM_KEYS = (
    "model, channels, request_bytes, latency_cycles, initiation_interval_cycles, startup_cycles, "
    "requests_per_bundle"
)
MAPPING = ("channel ^ above", "column:2", "pseudo_channel", "bank_group", "bank", "column", "row")


def refused(folder: Path, text: str) -> str:
    path = folder / "fabric.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load_hardware(path)
    return str(raised.value).replace(str(folder), "")


class TestFiles:
    def test_paper_file_is_the_default(self) -> None:
        assert description.Hardware() == load_hardware(HARDWARE / "paper.toml")

    def test_paper_file_states_every_key(self) -> None:
        stated = tomllib.loads((HARDWARE / "paper.toml").read_text(encoding="utf-8"))

        expected = description.Hardware().as_dict() | {
            "placement": asdict(description.PlacementDescription())
        }
        expected["channel"] = asdict(description.ChannelDescription())
        expected["registers"] = asdict(description.RegisterDescription())
        del expected["on_chip"]["capacity_bytes"]
        assert expected == stated

    def test_hdl_as_run_file_has_the_published_timing(self) -> None:
        as_run = load_hardware(HARDWARE / "hdl_as_run.toml")
        hbm = as_run.hbm
        assert isinstance(hbm, memory_models.ArbitratedBanksDescription)
        path = HARDWARE.parent / "data/published/dram/hbm_parameters.csv"
        with path.open(encoding="utf-8") as file:
            published = {row["parameter"]: list(row.values())[-1] for row in csv.DictReader(file)}
        names = {
            "BL": "burst",
            "RCDRD": "rcd_read",
            "RCDWR": "rcd_write",
            "RTPL": "rtp",
            "CCDL": "ccd_l",
            "RRDS": "rrd_s",
            "RRDL": "rrd_l",
            "WTRS": "wtr_s",
            "WTRL": "wtr_l",
        }
        names |= {each: each.lower() for each in ("CL", "CWL", "RP", "RAS", "RC", "WR", "FAW")}
        for theirs, ours in names.items():
            assert int(published[f"n{theirs}"]) == getattr(hbm, f"{ours}_cycles")

        assert hbm.peak_bytes_per_cycle == 256
        assert replace(as_run, hbm=description.FlatDescription()) == replace(
            load_hardware(HARDWARE / "hdl_validation.toml"), hbm=description.FlatDescription()
        )

    def test_paper_priced_file_prices_the_default(self) -> None:
        priced = load_hardware(HARDWARE / "paper_priced.toml")

        unpriced = replace(
            priced, clock=description.ClockDescription(), energy=description.EnergyDescription()
        )
        assert description.Hardware() == unpriced
        report = simulate(program("swiglu", "paper_priced.toml"))
        assert report.joules is not None
        assert report.cycles is not None
        assert pytest.approx(report.cycles * 1e-9) == report.seconds

    @pytest.mark.parametrize(
        "hbm",
        [
            description.FlatDescription(channels=4),
            memory_models.BankedDescription(),
            memory_models.BankedDescription(
                preset="HBM3 6400 Mbps", cl_cycles=0, cwl_cycles=0, mapping=MAPPING
            ),
        ],
    )
    def test_hardware_written_as_toml_is_read_back(
        self, hbm: description.OffChipDescription, tmp_path: Path
    ) -> None:
        hardware = description.Hardware(
            hbm=hbm,
            on_chip=description.OnChipDescription(capacity_bytes=1024),
            clock=description.ClockDescription(frequency_hz=2.5e8),
            energy=description.EnergyDescription(hop_picojoules_per_byte=0.5, static_watts=0),
            placement=description.PlacementDescription(tiles="contiguous", stagger_bytes=256),
        )

        assert hardware == load_hardware(_written(hardware, tmp_path))
        printed = json.loads(json.dumps(hardware.as_dict()))
        assert hardware.as_dict() == printed
        assert None not in printed["hbm"].values()


def _written(hardware: description.Hardware, folder: Path) -> Path:
    path = folder / "fabric.toml"
    lines = []
    for section, keys in hardware.as_dict().items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


class TestVaried:
    def test_varied_keys_reach_the_memory_model(self) -> None:
        keys = {"model": "banked", "mapping": list(MAPPING), "cl_cycles": None, "banks": 8}
        varied = varied_hardware(None, {f"hbm.{key}": value for key, value in keys.items()})

        assert varied.hbm == memory_models.BankedDescription(mapping=MAPPING, banks=8)

    def test_varied_key_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(
            ConfigurationError, match=r"^\[hbm\] rc_cycles is 40: expected at least 48, ras_cycles"
        ):
            varied_hardware(None, {"hbm.model": "banked", "hbm.rc_cycles": 40})


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "[hbm]\nchannels = 0",
                "[hbm] channels is 0: expected an integer from 1 to 1048576",
            ),
            (
                "[energy]\nhbm_picojoules_per_byte = nan",
                "[energy] hbm_picojoules_per_byte is nan: expected a number from 0 to "
                "1000000000000000",
            ),
            (
                "[hbm]\nchanels = 3",
                f"[hbm] has no key chanels (found chanels = 3): expected one of {HBM_KEYS} "
                "(did you mean channels?)",
            ),
            (
                "[hmb]\nchannels = 3",
                "[hmb] is not a section: expected one of hbm, on_chip, channel, registers, "
                "compute, tile, clock, energy, area, placement, network (did you mean hbm?)",
            ),
            ("hbm = 3", "hbm is 3: expected a section, [hbm] with keys"),
            (
                "[registers]\nend_cycles = 1",
                "[registers] end_cycles is 1: expected 0, or [channel] interval_cycles = 1",
            ),
        ],
    )
    def test_wrong_value_is_refused_with_its_line(
        self, tmp_path: Path, text: str, message: str
    ) -> None:
        line = 1 if text.startswith(("[hmb]", "hbm = 3")) else 2
        assert f"/fabric.toml:{line}: {message}" == refused(tmp_path, text)

    def test_refusal_names_the_line_of_the_key(self, tmp_path: Path) -> None:
        text = """# of a mesh
[channel]
depth = 2

[ network ]  # the mesh
columns = 4
"rows" = 1
"""
        assert "/fabric.toml:7: [network] rows is 1: expected" in refused(tmp_path, text)
        text = text.replace("= 1", "= 4")
        narrow = text + "link_bytes_per_cycle = 0"
        assert "/fabric.toml:8: [network] link_bytes_per_cycle is 0" in refused(tmp_path, narrow)
        dies = text + "die_columns = 2"
        assert "/fabric.toml:5: [network] crossing_cycles is missing" in refused(tmp_path, dies)
        odd = text + "die_columns = 3"
        assert "/fabric.toml:8: [network] die_columns is 3: expected" in refused(tmp_path, odd)
        dotted = "network.columns = 4\nnetwork.rows = 1"
        assert "/fabric.toml:2: [network] rows is 1: expected" in refused(tmp_path, dotted)
        inline = "channel = { depth = 2 }\nnetwork = { columns = 4, rows = 1 }"
        assert "/fabric.toml:2: [network] rows is 1: expected" in refused(tmp_path, inline)

    def test_varied_key_has_no_line(self, tmp_path: Path) -> None:
        path = tmp_path / "fabric.toml"
        path.write_text("[network]\ncolumns = 4\nrows = 4", "utf-8")
        with pytest.raises(ConfigurationError, match="rows is 1") as raised:
            varied_hardware(path, {"network.rows": 1})
        assert (str(path), None) == (raised.value.file, raised.value.line)

    @pytest.mark.parametrize(
        ("model", "hint"), [("'flatt'", " (did you mean flat?)"), ("3", ""), ("[]", "")]
    )
    def test_unknown_memory_model_is_refused(self, tmp_path: Path, model: str, hint: str) -> None:
        shown = "the list []" if model == "[]" else model
        expected = (
            f"[hbm] model is {shown}: expected one of {', '.join(memory_models.MODELS)}{hint}"
        )

        found = refused(tmp_path, f"[hbm]\nmodel = {model}")
        assert f"/fabric.toml:2: {expected}" == found
