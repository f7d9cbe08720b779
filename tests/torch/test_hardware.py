from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.programs.loading import program

pytest.importorskip("amaranth", reason="needs the extra rtl")

EQUAL: list[tuple[str, dict[str, Any]]] = [
    ("own_module", {}),
    ("torch_model", {}),
    *(
        ("torch_model", {"model": model, "phase": phase, "part": "layers"})
        for model in ("gpt2", "llama", "qwen3", "gemma3", "qwen3-moe", "mixtral")
        for phase in ("prefill", "decode")
    ),
    ("torch_model", {"part": "ends"}),
]


def test_imported_module_has_a_pipeline_for_each_chain() -> None:
    from operators.rtl.hardware import design

    units = design(program("own_module", "wires.toml", tokens=4, width=16)).netlist.units

    pipelines = [each.module for each in units if each.module.startswith("Map_Chain")]
    assert [each.rpartition("_")[0] for each in pipelines] == [
        "Map_Chain_LayerNorm",
        "Map_Chain_gelu",
        "Map_Chain_add",
    ]
    assert [each.module for each in units].count("Map_ScaledAdd1") == 2


@pytest.mark.deep
def test_hardware_of_imported_models_equals_their_runs(tmp_path: Path) -> None:
    from operators.rtl.hardware import design, run, write
    from tests.rtl.driving import beside, linted

    both = beside([design(program(name, "wires.toml", **given)) for name, given in EQUAL])

    found = run(both, write(both, tmp_path), tmp_path)

    assert found.equal, found
    assert linted(tmp_path, "modules.sv", "top.sv", "testbench.sv") == ""
