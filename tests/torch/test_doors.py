from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from fabric import FabricError  # noqa: E402
from operators.torch import Call, Importing, from_torch, imports  # noqa: E402
from operators.torch.__main__ import main  # noqa: E402
from operators.torch.registry import importer_of  # noqa: E402

_RAISED: Final[dict[str, BaseException | type[BaseException]]] = {
    "ValueError": ValueError("mine"),
    "SystemExit": SystemExit(0),
    "RecursionError": RecursionError,
    "Untold": type("Untold", (Exception,), {"__str__": lambda _: 1 / 0}),
}


class _Module(torch.nn.Module):  # type: ignore[name-defined, misc, unused-ignore]
    def __init__(self, raised: str = "") -> None:
        super().__init__()
        self._raised = raised

    def forward(self, x: Any) -> Any:
        if self._raised:
            raise _RAISED[self._raised]
        return torch.special.i1(x)


@pytest.mark.parametrize("raised", _RAISED)
def test_error_of_an_importer_names_its_line(raised: str) -> None:
    @imports("aten.special_i1.default")
    def fails(_importing: Importing, _call: Call) -> Any:
        raise _RAISED[raised]

    assert importer_of("aten.special_i1.default") is fails
    with pytest.raises(FabricError) as caught:
        from_torch(_Module(), (torch.ones(4, 8),))
    assert f"the importer of aten.special_i1.default raised {raised}" in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


@pytest.mark.parametrize("raised", _RAISED)
def test_error_of_a_module_is_reported(raised: str) -> None:
    with pytest.raises(FabricError) as caught:
        from_torch(_Module(raised), (torch.ones(4, 8),))
    # torch itself formats the error.
    said = "ZeroDivisionError" if raised == "Untold" else raised
    assert said in str(caught.value)


@pytest.mark.parametrize("where", ["file", "model"])
def test_exit_of_a_users_file_is_an_error(
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "ends.py"
    what = "import sys\n{}def model():\n    sys.exit(0)\n"
    file.write_text(what.format("sys.exit(0)\n" if where == "file" else ""), "utf-8")
    monkeypatch.setattr(sys, "argv", ["operators.torch", str(file)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    line = 2 if where == "file" else 3
    who = "the file" if where == "file" else "model()"
    assert f"error: {file}:{line}: {who} raised SystemExit: 0\n" == capsys.readouterr().err
