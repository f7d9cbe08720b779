"""Hardware descriptions: the paper's fabric by default, and bad files refused in one sentence."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fabric import extend, simulate
from fabric.graph.hardware.description import (
    ChannelDescription,
    ClockDescription,
    EnergyDescription,
    FlatDescription,
    Hardware,
    OffChipDescription,
    OnChipDescription,
    PlacementDescription,
    TileDescription,
)
from fabric.graph.hardware.file import load_hardware, varied_hardware
from fabric.graph.hardware.memory_models import (
    MODELS,
    ArbitratedBanksDescription,
    BankedDescription,
)
from fabric.messages.telling.errors import ConfigurationError
from tests.programs.loading import program

HARDWARE = Path(__file__).parents[2] / "programs" / "hardware"
COUNT = "an integer from 1 to 2147483647"
HBM_KEYS = (
    "model, channels, request_bytes, latency_cycles, initiation_interval_cycles, startup_cycles, "
    "requests_per_bundle"
)
MAPPING = ("channel ^ above", "column:2", "pseudo_channel", "bank_group", "bank", "column", "row")


def refused(folder: Path, text: str) -> str:
    """Return the message with which a hardware file of ``text`` is refused, without its folder."""
    path = folder / "fabric.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load_hardware(path)
    return str(raised.value).replace(str(folder), "")


class TestFiles:
    def test_paper_is_the_default(self) -> None:
        """``paper.toml`` reads as the fabric a run has without ``--hardware``."""
        assert Hardware() == load_hardware(HARDWARE / "paper.toml")

    def test_paper_states_every_key(self) -> None:
        """Whoever copies ``paper.toml`` sees every key; the unlimited capacity is a comment."""
        stated = tomllib.loads((HARDWARE / "paper.toml").read_text(encoding="utf-8"))

        expected = Hardware().as_dict() | {"placement": asdict(PlacementDescription())}
        expected["channel"] = asdict(ChannelDescription())
        del expected["on_chip"]["capacity_bytes"]
        assert expected == stated

    def test_hdl_validation(self) -> None:
        """The fabric the paper validates against HDL differs in five keys."""
        expected = Hardware(
            hbm=FlatDescription(channels=8, requests_per_bundle=4),
            on_chip=OnChipDescription(bytes_per_cycle=256),
            channel=ChannelDescription(depth=1),
            tile=TileDescription(dtype="float32"),
        )

        assert expected == load_hardware(HARDWARE / "hdl_validation.toml")

    def test_hdl_as_run(self) -> None:
        """The HDL's memory: 256 bytes a cycle, and its published timing."""
        as_run = load_hardware(HARDWARE / "hdl_as_run.toml")
        hbm = as_run.hbm
        assert isinstance(hbm, ArbitratedBanksDescription)
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
        assert replace(as_run, hbm=FlatDescription()) == replace(
            load_hardware(HARDWARE / "hdl_validation.toml"), hbm=FlatDescription()
        )

    def test_paper_priced(self) -> None:
        """The priced fabric of the paper is the paper's, and prices all that its programs do."""
        priced = load_hardware(HARDWARE / "paper_priced.toml")

        unpriced = replace(priced, clock=ClockDescription(), energy=EnergyDescription())
        assert Hardware() == unpriced
        report = simulate(program("swiglu", "paper_priced.toml"))
        assert report.joules is not None
        assert report.cycles is not None
        assert pytest.approx(report.cycles * 1e-9) == report.seconds

    def test_u55c(self) -> None:
        """The card's bandwidth within 1 %, its operations in 24 units, its memory and its power."""
        card = load_hardware(HARDWARE / "u55c_like.toml")

        frequency_hz = card.clock.frequency_hz
        assert frequency_hz == 250e6
        assert pytest.approx(460e9, rel=0.01) == float(card.hbm.peak_bytes_per_cycle) * 250e6
        assert pytest.approx(24.5e12, rel=0.01) == 24 * card.compute.flops_per_cycle * 250e6
        assert card.on_chip.capacity_bytes == 41_000_000
        assert card.tile.dtype == "int8"
        report = simulate(program("own_operator", "u55c_like.toml"), mode="timing")
        assert report.seconds is not None
        assert pytest.approx(150 * report.seconds) == report.joules

    def test_models_in_python(self, tmp_path: Path) -> None:
        """What a file can name can be made without a file, too."""
        own = {name for name, kind in MODELS.items() if kind.__module__.startswith("fabric.")}
        assert own == {"flat", "banked", "fixed", "arbitrated", "arbitrated banks"}
        for model in own:
            path = tmp_path / "memory.toml"
            path.write_text(f'[hbm]\nmodel = "{model}"\n', encoding="utf-8")
            kind = type(load_hardware(path).hbm)
            assert getattr(extend, kind.__name__) is kind

    def test_empty_file(self, tmp_path: Path) -> None:
        """Every key is optional."""
        path = tmp_path / "empty.toml"
        path.touch()

        assert Hardware() == load_hardware(path)

    def test_frozen(self) -> None:
        """A description cannot change under a run."""
        with pytest.raises(AttributeError, match=r"^cannot assign to field 'channels'$"):
            FlatDescription().channels = 3  # type: ignore[misc]

    @pytest.mark.parametrize(
        "hbm",
        [
            FlatDescription(channels=4),
            BankedDescription(),
            BankedDescription(preset="HBM3 6400 Mbps", cl_cycles=0, cwl_cycles=0, mapping=MAPPING),
        ],
    )
    def test_as_dict(self, hbm: OffChipDescription, tmp_path: Path) -> None:
        """What ``run --json`` prints under ``hardware`` is a hardware file of the same fabric."""
        hardware = Hardware(
            hbm=hbm,
            on_chip=OnChipDescription(capacity_bytes=1024),
            clock=ClockDescription(frequency_hz=2.5e8),
            energy=EnergyDescription(hop_picojoules_per_byte=0.5, static_watts=0),
            placement=PlacementDescription(tiles="contiguous", stagger_bytes=256),
        )

        assert hardware == load_hardware(_written(hardware, tmp_path))
        printed = json.loads(json.dumps(hardware.as_dict()))
        assert hardware.as_dict() == printed
        assert None not in printed["hbm"].values()


def _written(hardware: Hardware, folder: Path) -> Path:
    """Return a file of ``hardware``."""
    path = folder / "fabric.toml"
    lines = []
    for section, keys in hardware.as_dict().items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


class TestVaried:
    def test_keys(self) -> None:
        """Studies vary keys of any model; what is None is that of the preset."""
        keys = {"model": "banked", "mapping": list(MAPPING), "cl_cycles": None, "banks": 8}
        varied = varied_hardware(None, {f"hbm.{key}": value for key, value in keys.items()})

        assert varied.hbm == BankedDescription(mapping=MAPPING, banks=8)

    def test_refused(self) -> None:
        """What they do not fit is told without a file."""
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
                "[hbm]\nrequests_per_bundle = 65537",
                "[hbm] requests_per_bundle is 65537: expected an integer from 1 to 65536",
            ),
            (
                "[on_chip]\nbytes_per_cycle = -64",
                f"[on_chip] bytes_per_cycle is -64: expected {COUNT}",
            ),
            (
                "[compute]\nflops_per_cycle = 2.5",
                f"[compute] flops_per_cycle is 2.5: expected {COUNT}",
            ),
            (
                "[clock]\nfrequency_hz = 0",
                "[clock] frequency_hz is 0: expected a number from 1 to 1000000000000000",
            ),
            (
                "[energy]\nhbm_picojoules_per_byte = nan",
                "[energy] hbm_picojoules_per_byte is nan: expected a number from 0 to "
                "1000000000000000",
            ),
            (
                "[energy]\nstatic_watts = '150 W'",
                "[energy] static_watts is '150 W': expected a number from 0 to 1000000000000000",
            ),
            ("[channel]\ndepth = true", f"[channel] depth is True: expected {COUNT}"),
            ('[channel]\ndepth = "2"', f"[channel] depth is '2': expected {COUNT}"),
            (
                "[hbm]\nstartup_cycles = -1",
                "[hbm] startup_cycles is -1: expected an integer from 0 to 2147483647",
            ),
            (
                "[on_chip]\ncapacity_bytes = 0",
                "[on_chip] capacity_bytes is 0: expected an integer from 1 to 4611686018427387904",
            ),
            (
                '[tile]\ndtype = "double"',
                "[tile] dtype is 'double': expected one of float32, float16, bfloat16, "
                "float8_e4m3, float8_e5m2, int8, int16, int32, int64, uint8, uint16, uint32",
            ),
            (
                "[hbm]\nchanels = 3",
                f"[hbm] has no key chanels (found chanels = 3): expected one of {HBM_KEYS} "
                "(did you mean channels?)",
            ),
            (
                "[channel]\nslots = 3",
                "[channel] has no key slots (found slots = 3): expected one of depth, "
                "interval_cycles",
            ),
            (
                "[hmb]\nchannels = 3",
                "[hmb] is not a section: expected one of hbm, on_chip, channel, compute, tile, "
                "clock, energy, area, placement, network (did you mean hbm?)",
            ),
            ("hbm = 3", "hbm is 3: expected a section, [hbm] with keys"),
            (
                '[on_chip]\nmodel = "flat"',
                "[on_chip] has no key model (found model = 'flat'): expected one of "
                "bytes_per_cycle, capacity_bytes, page_bytes, unit_bytes, spill",
            ),
        ],
    )
    def test_value(self, tmp_path: Path, text: str, message: str) -> None:
        """The file, the line, the key, what was found and what was expected, in one sentence."""
        line = 1 if text.startswith(("[hmb]", "hbm = 3")) else 2
        assert f"/fabric.toml:{line}: {message}" == refused(tmp_path, text)

    def test_line(self, tmp_path: Path) -> None:
        """That of the key in its section, however it is written; else of the section."""
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

    def test_line_of_other_keys(self, tmp_path: Path) -> None:
        """A key that is given beside the file is in no line of it."""
        path = tmp_path / "fabric.toml"
        path.write_text("[network]\ncolumns = 4\nrows = 4", "utf-8")
        with pytest.raises(ConfigurationError, match="rows is 1") as raised:
            varied_hardware(path, {"network.rows": 1})
        assert (str(path), None) == (raised.value.file, raised.value.line)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ("banks = 0", "banks is 0: expected an integer from 1 to 32"),
            ("bank_groups = 6", "bank_groups is 6: expected a power of two"),
            ("burst_bytes = 48", "burst_bytes is 48: expected a power of two"),
            (
                "request_bytes = 16",
                "request_bytes is 16: expected at least 32, burst_bytes",
            ),
            ("row_bytes = 32", "row_bytes is 32: expected at least 64, request_bytes"),
            ("rc_cycles = 47", "rc_cycles is 47: expected at least 48, ras_cycles + rp_cycles"),
            ("ras_cycles = 35", "rc_cycles is 48: expected at least 49, ras_cycles + rp_cycles"),
            ("ccd_l_cycles = 1", "ccd_l_cycles is 1: expected at least 2, ccd_s_cycles"),
            ("rrd_s_cycles = 5", "rrd_l_cycles is 4: expected at least 5, rrd_s_cycles"),
            ("wtr_l_cycles = 5", "wtr_l_cycles is 5: expected at least 6, wtr_s_cycles"),
            ("faw_cycles = 3", "faw_cycles is 3: expected at least 4, rrd_s_cycles"),
            (
                "refi_cycles = 399",
                "refi_cycles is 399: expected at least 400, in which a refresh and a request to a "
                "closed row fit",
            ),
            (
                "refi_cycles = 503\nrequest_bytes = 1024",
                "refi_cycles is 503: expected at least 504, in which a refresh and a request to a "
                "closed row fit",
            ),
            *(
                (
                    f"{keys}\nrefi_cycles = {least - 1}",
                    f"refi_cycles is {least - 1}: expected at least {least}, in which a refresh "
                    "and a request to a closed row fit",
                )
                for keys, least in (
                    # A precharge takes the command slot for a cycle at least.
                    ("rp_cycles = 0", 350 + 1 + 34 + 2),
                    ("rcd_write_cycles = 40", 350 + 14 + 40 + 4 + 2),
                    ("rcd_read_cycles = 35\nburst_cycles = 9", 350 + 14 + 35 + 9 + 2),
                    ("rcd_read_cycles = 35\nrequest_bytes = 32", 350 + 14 + 35 + 2),
                )
            ),
            (
                "read_window_bursts = 1",
                "read_window_bursts is 1: expected at least 2, those of a request",
            ),
            (
                "request_bytes = 1024\nwrite_window_bursts = 31",
                "write_window_bursts is 31: expected at least 32, those of a request",
            ),
            (
                "write_low_percent = 81",
                "write_high_percent is 80: expected at least 81, write_low_percent",
            ),
            (
                "preset = 'HBM2'",
                "preset is 'HBM2': expected one of HBM2 1600 Mbps, HBM2 2000 Mbps, "
                "HBM2 2400 Mbps, HBM3 6400 Mbps",
            ),
            ("mapping = ['row']", "mapping drops 5 bits of channel: found 0 in all, expected 5"),
            ("mapping = 3", "mapping is 3: expected text or a tuple of texts"),
        ],
    )
    def test_banked(self, tmp_path: Path, keys: str, message: str) -> None:
        """What does not fit the other keys is told with them, and with its line."""
        text = f"[hbm]\nmodel = 'banked'\n{keys}"
        key = message.partition(" ")[0]
        stated = [n for n, line in enumerate(text.split("\n"), 1) if line.startswith(f"{key} =")]
        found = refused(tmp_path, text)
        assert f"/fabric.toml:{stated[0] if stated else 1}: [hbm] {message}" == found

    def test_without_refresh(self, tmp_path: Path) -> None:
        """Cycles between refreshes do not matter where there are none."""
        path = tmp_path / "fabric.toml"
        path.write_text("[hbm]\nmodel = 'banked'\nrefreshes = false\nrefi_cycles = 1", "utf-8")
        expected = BankedDescription(refreshes=False, refi_cycles=1)
        assert expected == load_hardware(path).hbm

    @pytest.mark.parametrize(
        ("model", "hint"), [("'flatt'", " (did you mean flat?)"), ("3", ""), ("[]", "")]
    )
    def test_unknown_model(self, tmp_path: Path, model: str, hint: str) -> None:
        """The models are listed, those that users have registered as well."""
        shown = "the list []" if model == "[]" else model
        expected = f"[hbm] model is {shown}: expected one of {', '.join(MODELS)}{hint}"

        found = refused(tmp_path, f"[hbm]\nmodel = {model}")
        assert f"/fabric.toml:2: {expected}" == found

    def test_not_toml(self, tmp_path: Path) -> None:
        """A syntax error names its line."""
        expected = "/fabric.toml:2: not a TOML file: Expected '=' after a key in a key/value pair"

        assert expected == refused(tmp_path, "[hbm]\nchannels 3\n")

    def test_not_text(self, tmp_path: Path) -> None:
        """A file that is no text at all is refused, too."""
        path = tmp_path / "fabric.toml"
        path.write_bytes(b"\xff\xfe\x00")

        with pytest.raises(
            ConfigurationError, match=r"fabric\.toml: not a TOML file: it is not UTF-8 text$"
        ):
            load_hardware(path)

    @pytest.mark.parametrize(
        ("name", "reason"), [("missing.toml", "No such file or directory"), ("", "Is a directory")]
    )
    def test_unreadable(self, tmp_path: Path, name: str, reason: str) -> None:
        """A missing file and a folder are told apart."""
        path = tmp_path / name

        with pytest.raises(ConfigurationError) as raised:
            load_hardware(path)

        expected = f"{path}: cannot be read ({reason}): expected a hardware description in TOML"
        assert expected == str(raised.value)
