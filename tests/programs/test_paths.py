from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import Program, Study, grid, load_hardware, lower_bounds
from fabric.explore.serving.question import RequestDescription, open_servings
from fabric.explore.serving.requests import read_requests
from tests.programs.loading import PROGRAMS
from tests.serving.test_fabric_cost import DESCRIBED

BUILDS: dict[tuple[str, str], dict[str, Any]] = {
    ("attention", "kv"): {"requests": 2},
    ("decoder", "kv"): {"model": "tiny", "batch": 2},
    ("decoder", "routing"): {"model": "tiny", "batch": 2},
    ("edit_distance", "file"): {},
    ("moe", "routing"): {"model": "tiny", "batch": 2},
    ("moe_or_attention", "kv"): {"requests": 2},
    ("moe_or_attention", "routing"): {"part": "moe", "model": "tiny", "batch": 2},
    ("placed", "kv"): {"part": "attention", "requests": 2},
    ("placed", "routing"): {"model": "tiny", "batch": 2},
    ("torch_model", "kv"): {"phase": "decode", "batch": 2},
    ("torch_model", "routing"): {"model": "mixtral", "batch": 1, "context": 2},
    ("torch_model", "weights"): {"layers": 1},
}


@pytest.fixture(autouse=True)
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(PROGRAMS)
    yield
    importlib.invalidate_caches()


def test_every_path_of_a_program_is_tried() -> None:
    found = {
        (file.stem, argument.arg)
        for file in PROGRAMS.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == "build"
        for argument in (*node.args.args, *node.args.kwonlyargs)
        if argument.annotation is not None and "Path" in ast.unparse(argument.annotation)
    }
    assert found == BUILDS.keys()


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        pytest.param(*each, marks=pytest.mark.deep) if each[0] == "torch_model" else each
        for each in BUILDS
    ],
)
def test_build_takes_text_as_a_path(name: str, parameter: str, tmp_path: Path) -> None:
    if name == "torch_model":
        pytest.importorskip("torch", reason="needs the extra torch")
    file = tmp_path / "given.npz"
    if parameter == "routing":
        np.savez(file, data=np.array([[0, 1], [2, 1]]))
    elif parameter == "kv":
        file = tmp_path / "given.npy"
        np.save(file, [3, 2])
    elif parameter == "file":
        file.write_text("ab,abc\n")
    else:
        _save_weights(file)
    build: Callable[..., Program] = importlib.import_module(name).build
    text, path = (
        build(**BUILDS[name, parameter], **{parameter: given}) for given in (str(file), file)
    )
    assert lower_bounds(text).exact == lower_bounds(path).exact


def _save_weights(file: Path) -> None:
    from layers import torch_sizes, torch_weights
    from safetensors.torch import save_file

    model = torch_weights.model_of(
        "gpt2", torch_sizes.TINY["gpt2"], range(1), "bfloat16", weights=None, seed=0
    )
    save_file({name: each.clone() for name, each in model.state_dict().items()}, file)


def test_hardware_is_found_by_name_and_descriptions_take_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper_priced").mkdir()  # a folder does not hide a module's name
    priced = PROGRAMS / "hardware" / "paper_priced.toml"
    values = {**vars(DESCRIBED), "hardware": "paper_priced", "routing": str(DESCRIBED.routing)}
    described = type(DESCRIBED)(**values)
    study = Study(program=str(PROGRAMS / "moe.py"), space=grid(seed=[1]), hardware="paper_priced")  # type: ignore[arg-type] # converted
    tiny = (PROGRAMS / "serving" / "tiny.toml").read_text()
    file = tmp_path / "named.toml"
    file.write_text(tiny.replace('"../', f'"{PROGRAMS}/'))
    (serving,) = open_servings(file)

    assert described == DESCRIBED
    assert load_hardware("paper_priced") == load_hardware(priced)
    assert study.hardware is not None
    assert study.hardware.samefile(priced)
    for design in serving.designs.values():
        assert vars(design)["hardware"].samefile(priced)
    table = str(serving.requests.file)
    assert RequestDescription(file=table) == RequestDescription(file=Path(table))  # type: ignore[arg-type] # converted
    assert len(read_requests(table)) == len(read_requests(Path(table)))
