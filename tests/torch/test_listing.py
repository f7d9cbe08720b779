from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from fabric import ProgramError
from operators.torch import from_torch, unsupported_calls
from operators.torch.__main__ import main
from tests.torch.test_capture import Computing

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


def test_unsupported_calls_lists_all_with_their_modules() -> None:
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
def test_module_that_writes_to_buffers_or_arguments_is_refused(
    module: nn.Module, written: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        from_torch(module, (torch.randn(4, 8),))

    assert str(caught.value).endswith(
        f"from_torch is given {type(module).__name__}, which writes to {written}: expected a "
        "module that leaves its buffers and its arguments as they are"
    )


def test_unsupported_calls_state_what_is_needed() -> None:
    (first, *_) = unsupported_calls(Computing(lambda x: torch.fft.fft(x).real), GIVEN)
    (empty,) = unsupported_calls(Computing(lambda x: torch.exp(x)[:0]), GIVEN)
    (open_ended,) = unsupported_calls(Computing(lambda x: torch.relu(x[x > 0]) + 1), GIVEN)

    assert first.needed == (
        "expected a call that an importer is registered for; operators.torch.imports registers "
        "yours"
    )
    assert (
        empty.needed == "its result is stored: it gives a tensor [0, 8]: expected one with elements"
    )
    # Computing an inverse checks for success, which is not a side effect of the module.
    (inverse,) = unsupported_calls(Computing(torch.linalg.inv), (torch.randn(4, 4),))
    assert inverse.call == "aten.linalg_inv_ex.default"
    assert open_ended.needed == (
        "data decide the size of its result, [u0], which the module returns: expected a known one"
    )


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("", r"1 +digamma +aten\.digamma\.default +inner +hard\.py:7 +expected a call that an "),
        ("60", r"1 +digamma +aten\.\w+ "),
    ],
)
def test_command_lists_unsupported_calls_as_wide_as_the_terminal(
    columns: str,
    row: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    file = tmp_path / "hard.py"
    for text, status, last in (
        (FILE, 1, "calls that cannot be imported: 4 of 8\n"),
        (
            FILE.replace("return Outer()", "return Easy()"),
            0,
            "every call that depends on data can be imported, 2 in all\n",
        ),
    ):
        file.write_text(text)
        with pytest.raises(SystemExit) as caught:
            main([str(file)])
        said = capsys.readouterr().out
        assert caught.value.code == status
        assert said.endswith(last)
        if status:
            assert re.search(row, said)
            assert (max(map(len, said.splitlines())) > 60) == (not columns)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "expected a FILE, or --list for all calls with an importer"),
        ("", "own.py defines no model(): expected one that returns (module, args)"),
        ("def model(): return 1", "returns int: expected (module, args), where args is a tuple"),
        ("def model(): return 1, [2]", "returns tuple: expected (module, args), where args is a"),
    ],
)
def test_command_wrong_use_is_one_sentence(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(text or "")
    with pytest.raises(SystemExit) as caught:
        main([] if text is None else [str(file)])
    said = capsys.readouterr()
    assert (caught.value.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert message in said.err


def test_import_and_command_without_torch_name_the_extra(tmp_path: Path) -> None:
    hidden = "import sys, importlib.util as u; real = u.find_spec\n"
    hidden += "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
    clone = Path(__file__).parents[2]
    sentence = (
        "operators.torch needs torch, which is not installed: expected the extra torch, as in "
        f"pip install -c {clone}/constraints.txt -e '{clone}[torch]'"
    )
    script = tmp_path / "own.py"
    script.write_text(hidden + "from operators.torch import from_torch\n")
    said = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert said.stderr.endswith(f"ConfigurationError: {sentence}\n")

    script.write_text(hidden + "from operators.torch.__main__ import main; main(['--list'])\n")
    said = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (2, "", f"error: {sentence}\n")
