# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any, Final

import pytest
import torch
from torch import nn

from fabric import Report, simulate
from operators.torch import Schedule, from_torch


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)[0]


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1, bias=False)

    def forward(self, x: Any) -> Any:
        return x + self.convolution(x)


class _Rotary(nn.Module):
    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat((-two, one), -1) * sin


class _Rotated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.rotary = nn.Linear(16, 16), _Rotary()

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        return self.rotary(self.project(x), cos, sin)


class _Seen(nn.Module):
    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(q, k, v)


def _report(module: nn.Module, *args: Any, **schedule: Any) -> tuple[Report, int]:
    module.eval()
    with torch.no_grad():
        result = module(*args)
    report = simulate(from_torch(module, args, schedule=Schedule(**schedule)), mode="functional")
    assert report.verified
    return report, 4 * sum(each.numel() for each in (*args, *module.parameters(), result))


ROTARY: Final = torch.randn(2, 8, 16), torch.randn(8, 16), torch.randn(8, 16)


@pytest.mark.parametrize(
    ("module", "args"),
    [
        (_Attention(), (torch.randn(2, 32, 64),)),
        (nn.Linear(128, 192), (torch.randn(48, 128),)),
        (nn.Linear(64, 97), (torch.randn(48, 64),)),
        (_Rotated(), ROTARY),
    ],
)
def test_traffic_passes_memory_once(module: nn.Module, args: tuple[Any, ...]) -> None:
    report, once = _report(module, *args)

    assert report.off_chip_traffic_bytes == once
    assert (report.extra["moved_again_bytes"], report.extra["moved_again"]) == (0, [])


def test_residual_input_is_loaded_twice() -> None:
    report, once = _report(_Residual(), torch.randn(2, 4, 6, 6))

    assert report.extra["moved_again_bytes"] == 4 * 2 * 4 * 6 * 6
    assert report.off_chip_traffic_bytes == once + report.extra["moved_again_bytes"]
    assert report.extra["moved_again"] == ["x (bytes: 1,152): loaded 2 times, separately for add"]


def test_rotary_halves_are_loaded_again() -> None:
    report, once = _report(_Rotary(), *ROTARY)

    assert report.extra["moved_again_bytes"] == 4 * 2 * 8 * 16
    assert report.off_chip_traffic_bytes == once + report.extra["moved_again_bytes"]
    assert "x (bytes: 1,024): loaded 3 times" in str(report.extra["moved_again"])


@pytest.mark.parametrize(
    ("schedule", "again", "why"),
    [
        # Weights of 96 x 64 numbers are read for each of 4 tiles of 16 rows.
        (
            {"order": "row"},
            3 * 4 * 96 * 64,
            "read 4 times by linear, as the order row keeps other tiles on chip",
        ),
        # 64 x 64 numbers are read for each of 3 tiles of 32 columns.
        (
            {"on_chip_bytes": 20_000, "tile_cols": 32},
            2 * 4 * 64 * 64,
            "read 3 times by linear, as on_chip_bytes leaves no room",
        ),
    ],
)
def test_operands_are_read_again_for_the_order(
    schedule: dict[str, Any], again: int, why: str
) -> None:
    report, once = _report(nn.Linear(64, 96), torch.randn(64, 64), **schedule)

    assert report.extra["moved_again_bytes"] == again
    assert report.off_chip_traffic_bytes == once + again
    assert why in str(report.extra["moved_again"])


def test_keys_are_read_again_for_each_tile_of_queries() -> None:
    report, once = _report(_Seen(), *(torch.randn(1, 2, 32, 8) for _ in range(3)))

    assert report.extra["moved_again_bytes"] == 2 * 4 * 2 * 32 * 8
    assert report.off_chip_traffic_bytes == once + report.extra["moved_again_bytes"]
    assert "scaled_dot_product_attention reads some of its tiles more than once" in str(
        report.extra["moved_again"]
    )


def test_spilled_tensors_pass_memory_again() -> None:
    report, once = _report(_Attention(), torch.randn(2, 32, 64), on_chip_bytes=60_000)

    assert report.extra["edges_through_memory"] == 4
    assert report.extra["moved_again_bytes"] == report.extra["spilled_traffic_bytes"]
    assert "through memory, as on_chip_bytes leaves no room" in str(report.extra["moved_again"])
    assert report.off_chip_traffic_bytes == once + report.extra["moved_again_bytes"]
