# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP

from fabric import FabricError, Hardware, Report, hardware_scope, simulate
from fabric.extend import FlatDescription
from operators.torch import Schedule, from_torch

EXPERTS, WIDE, INNER = 4, 64, 32
FORMS = {
    "as it is": Schedule(weight_dtypes={"*grouped*": "mxfp4"}),
    "static, two regions": Schedule(
        weight_dtypes={"*grouped*": "mxfp4"}, ragged="static", tile_rows=2, tile_cols=32, regions=2
    ),
}


def packed(rows: int, cols: int) -> Any:
    blocks = torch.randint(0, 256, (EXPERTS, rows, cols // 32, 16), dtype=torch.uint8)
    scales = torch.randint(122, 127, (EXPERTS, rows, cols // 32), dtype=torch.uint8)
    return convert_moe_packed_tensors(blocks, scales)


@pytest.fixture(scope="module", name="layer")
def _layer() -> Any:
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "gpt_oss",
        hidden_size=WIDE,
        intermediate_size=INNER,
        num_local_experts=EXPERTS,
        num_experts_per_tok=2,
        num_hidden_layers=1,
    )
    layer = GptOssMLP(config).to(torch.bfloat16).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    with torch.no_grad():
        layer.experts.gate_up_proj.copy_(packed(2 * INNER, WIDE))
        layer.experts.down_proj.copy_(packed(WIDE, INNER))
    return layer


def run(layer: Any, schedule: Schedule, tokens: int = 24) -> Report:
    torch.manual_seed(1)
    x = torch.randn(1, tokens, WIDE, dtype=torch.bfloat16)
    with hardware_scope(Hardware(hbm=FlatDescription(request_bytes=1))):
        return simulate(from_torch(layer, (x,), schedule=schedule), mode="functional")


@pytest.mark.parametrize("form", FORMS)
def test_gpt_oss_experts_in_mxfp4_read_17_bytes_for_32_weights(layer: Any, form: str) -> None:
    narrow = FORMS[form]
    wide = Schedule(**{**vars(narrow), "weight_dtypes": {}})

    report, before = run(layer, narrow), run(layer, wide)

    assert report.verified, report.verification
    assert before.verified
    assert report.off_chip_traffic_bytes is not None
    assert before.off_chip_traffic_bytes is not None
    saved = before.off_chip_traffic_bytes - report.off_chip_traffic_bytes
    # The weights of an expert are read once for each of its tiles of rows.
    of_expert = 3 * INNER * WIDE // 32 * (64 - 17)
    assert saved % of_expert == 0
    assert (saved == EXPERTS * of_expert) if form == "as it is" else (saved > EXPERTS * of_expert)
    assert report.flops == before.flops


def test_weights_that_mxfp4_rounds_are_refused(layer: Any) -> None:
    with pytest.raises(FabricError, match=r"which is -?[\d.e-]+ as mxfp4: expected values"):
        run(layer, Schedule(weight_dtype="mxfp4")).raise_for_status()


@pytest.mark.parametrize(("order", "units"), [("weight", 1), ("row", 2), ("output", 2)])
def test_linear_in_mxfp8_is_verified_for_every_order(order: Any, units: int) -> None:
    torch.manual_seed(2)
    layer = torch.nn.Linear(96, 48)
    with torch.no_grad():
        layer.weight.copy_(torch.randint(-4, 5, (48, 96)) * 0.5)
    schedule = Schedule(
        weight_dtype="mxfp8_e5m2", order=order, units=units, tile_cols=16, tile_inner=16
    )

    program = from_torch(layer, (torch.randn(8, 96),), schedule=schedule)

    assert simulate(program, mode="functional").verified
