from __future__ import annotations

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fabric import ConfigurationError
from fabric.extend import check_extra
from fabric.messages import extras
from fabric.shell.cli import main
from fabric.shell.experiments import STUDY_MODULES

_CLONE = Path(__file__).parents[1]


def test_missing_modules_give_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(folder: Path) -> str:
        monkeypatch.chdir(folder)
        with pytest.raises(ConfigurationError) as refused:
            check_extra("place", "placing", "numpy", "no_such_module", "no_other")
        found, _, after = refused.value.message.partition(": expected the extra placing, as in ")
        assert found == "place needs no_such_module, no_other, which are not installed"
        return after

    assert command(_CLONE) == "pip install -c constraints.txt -e '.[placing]'"
    assert command(tmp_path) == f"pip install -c {_CLONE}/constraints.txt -e '{_CLONE}[placing]'"
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "fabric/messages/extras.py"))
    assert command(tmp_path) == "pip install 'step-fabric[placing]'"
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "own.py").write_text("import torch\n", encoding="utf-8")
    assert main(["run", "own.py"]) == 2
    assert "extra torch, as in pip install 'step-fabric[torch]'\n" in capsys.readouterr().err


def test_each_check_names_an_extra_that_installs_its_modules() -> None:
    project = tomllib.loads((_CLONE / "pyproject.toml").read_text())["project"]
    homes, checked = packages_distributions(), set()
    tops = ("fabric", "operators", "programs")
    files = (file for top in tops for file in (_CLONE / top).rglob("*.py"))
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "check_extra":
            continue
        extra, *modules = (each.value for each in node.args[1:])  # type: ignore[attr-defined]
        required = project["dependencies"] + project["optional-dependencies"][extra]
        names = {Requirement(each).name for each in required}
        for module in modules if isinstance(modules[0], str) else STUDY_MODULES:
            assert names & {home.lower() for home in homes.get(module, [module])}, module
        checked.add(extra)
    assert checked == {"placing", "rtl", "sizing", "study", "torch"}
