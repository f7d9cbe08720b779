"""What cannot be imported is said, all at once: in Python, by the command, and by from_torch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fabric import ProgramError
from operators.torch import from_torch, unsupported_calls
from operators.torch.__main__ import folded, main
from operators.torch.registry import Unsupported

FILE = """
import torch
from torch import nn

class Inner(nn.Module):
    def forward(self, x):
        return torch.digamma(x)

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.inner = Inner()
    def forward(self, x):
        y = self.inner(self.norm(x))
        return torch.erfinv(torch.relu(y)) + torch.fft.fft(x).real

class Easy(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def model():
    return Outer(), (torch.randn(4, 8),)
"""
GIVEN = (torch.randn(4, 8),)


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.digamma(x))


class Complex(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x).real


class Nothing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x)[:0]


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x[x > 0]) + 1


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += x
        return self.seen * 2


class Overwriting(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    called = [sys.executable, "-m", "operators.torch", *arguments]
    piped = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(called, capture_output=True, text=True, cwd=cwd, check=False, env=piped)


def test_from_torch_says_the_first() -> None:
    with pytest.raises(ProgramError) as caught:
        from_torch(Unknown(), GIVEN)

    line = Unknown.forward.__code__.co_firstlineno + 2
    assert str(caught.value) == (
        f"{__file__}:{line}: from_torch cannot import digamma (aten.digamma.default): "
        "expected a call that an importer is registered for; operators.torch.imports registers "
        "yours"
    )


def test_all_of_them() -> None:
    names: dict[str, object] = {}
    exec(FILE, names)
    found = unsupported_calls(*names["model"]())  # type: ignore[operator]

    assert [each.call for each in found] == [
        "aten.digamma.default",
        "aten.erfinv.default",
        "aten._fft_r2c.default",
        "aten.view_as_real.default",
    ]
    assert [each.module for each in found] == ["inner", "", "", ""]
    assert [each.written for each in found] == ["digamma", "erfinv", "fft_fft", ""]


@pytest.mark.parametrize(("module", "written"), [(Counting(), "seen"), (Overwriting(), "x")])
def test_modules_that_write(module: nn.Module, written: str) -> None:
    with pytest.raises(ProgramError) as caught:
        from_torch(module, (torch.randn(4, 8),))

    assert str(caught.value).endswith(
        f"from_torch is given {type(module).__name__}, which writes to {written}: expected a "
        "module that leaves its buffers and its arguments as they are"
    )


def test_what_would_be_needed() -> None:
    (first, *_) = unsupported_calls(Complex(), GIVEN)
    (empty,) = unsupported_calls(Nothing(), GIVEN)
    (open_ended,) = unsupported_calls(Choosing(), GIVEN)

    assert first.needed == (
        "expected a call that an importer is registered for; operators.torch.imports registers "
        "yours"
    )
    assert (
        empty.needed
        == "what it gives is stored: it gives a tensor [0, 8]: expected one with elements"
    )
    assert open_ended.needed == (
        "data decide the size of its result, [u0], which the module returns: expected a known one"
    )


def test_nothing_is_missing() -> None:
    assert unsupported_calls(nn.Sequential(nn.LayerNorm(8), nn.GELU()), GIVEN) == ()


def test_the_command(tmp_path: Path) -> None:
    hard, easy = tmp_path / "hard.py", tmp_path / "easy.py"
    hard.write_text(FILE)
    easy.write_text(FILE.replace("return Outer()", "return Easy()"))

    said = command("hard.py", cwd=tmp_path)
    assert said.returncode == 1
    assert re.search(r"1 +digamma +aten\.digamma\.default +inner +hard\.py:7 ", said.stdout)
    assert said.stdout.endswith("calls that cannot be imported: 4 of 8\n")

    said = command("easy.py", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (
        0,
        "every call that depends on data can be imported, 2 in all\n",
    )


def test_equal_calls_are_one_row() -> None:
    calls = [
        Unsupported("sort", "aten.sort.default", module, "m.py", line, "an importer")
        for module, line in [("layers.0.mlp", 3), ("", 9), ("layers.10.mlp", 3), ("head2", 3)]
    ]
    assert folded(calls) == [
        (2, replace(calls[0], module="layers.i.mlp")),
        (1, calls[1]),
        (1, calls[3]),
    ]


def test_the_command_lists_calls(tmp_path: Path) -> None:
    said = command("--list", cwd=tmp_path)

    assert said.returncode == 0
    assert re.search(
        r"^elementwise:\n(  aten\..*\n)*  aten\.gelu\.default\n", said.stdout, re.MULTILINE
    )


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ([], None, "error: expected a FILE, or --list for the calls there are\n"),
        (
            ["own.py"],
            "",
            "error: own.py defines no model(): expected one that returns (module, args)\n",
        ),
        (
            ["own.py"],
            "def model(): return 1",
            "error: own.py: model() returns int: expected (module, args), where args is a tuple\n",
        ),
        *(
            (
                ["own.py"],
                f"def model(): return {returned}",
                "error: own.py: model() returns tuple: expected (module, args), where args is a "
                "tuple\n",
            )
            for returned in ("1, (), {}", "1, [2]")
        ),
    ],
)
def test_the_command_is_wrongly_used(
    arguments: list[str], text: str | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "own.py").write_text(text)
    said = command(*arguments, cwd=tmp_path)

    assert (said.returncode, said.stdout, said.stderr) == (2, "", message)


@pytest.mark.parametrize("columns", ["", "60"])
def test_the_table_is_as_wide_as_asked(
    columns: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    (tmp_path / "own.py").write_text(FILE)
    with pytest.raises(SystemExit):
        main([str(tmp_path / "own.py")], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert (max(map(len, lines)) > 100) == (not columns)


def test_without_torch(tmp_path: Path) -> None:
    hidden = "import sys, importlib.util as u; real = u.find_spec\n"
    hidden += "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
    sentence = (
        "operators.torch needs PyTorch, which is not installed: expected the extra torch, as in "
        "pip install 'step-fabric[torch]'"
    )
    script = tmp_path / "own.py"
    script.write_text(hidden + "from operators.torch import from_torch\n")
    said = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert said.stderr.endswith(f"ConfigurationError: {sentence}\n")

    script.write_text(hidden + "from operators.torch.__main__ import main; main(['--list'])\n")
    said = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (2, "", f"error: {sentence}\n")


def test_calls_that_check_themselves() -> None:
    class Inverse(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.inv(x)

    (found,) = unsupported_calls(Inverse(), (torch.randn(4, 4),))

    line = Inverse.forward.__code__.co_firstlineno + 1
    assert (found.call, found.file, found.line) == (
        "aten.linalg_inv_ex.default",
        __file__,
        line,
    )
    assert found.needed.startswith("expected a call that an importer is registered for")
