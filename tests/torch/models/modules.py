"""Small modules that were written to be run by PyTorch, without a look at what can be imported."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(12), nn.LayerNorm(12)
        self.tokens = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.channels = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))

    def forward(self, x: Any) -> Any:
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class GatedConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * 8, 2 * 8)

    def forward(self, x: Any) -> Any:
        padded = functional.pad(x, (0, 0, 2, 0))
        tokens = x.shape[1]
        seen = torch.cat([padded[:, shift : shift + tokens] for shift in range(3)], dim=-1)
        value, gate = self.mix(seen).chunk(2, dim=-1)
        return value * torch.sigmoid(gate)


class TiedWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 16) / 4)

    def forward(self, x: Any) -> Any:
        hidden = torch.tanh(x @ self.weight.T)
        return hidden @ self.weight


class BroadcastBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4, 1, 8))
        self.scale = nn.Parameter(torch.randn(5, 1))

    def forward(self, x: Any) -> Any:
        return (x + self.bias) * self.scale


class ScalarBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("temperature", torch.tensor(0.7))
        self.head = nn.Linear(16, 6)

    def forward(self, x: Any) -> Any:
        return torch.softmax(self.head(x) / self.temperature, dim=-1)


class UnusedInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 6, bias=False)

    def forward(self, x: Any, ignored: Any) -> Any:
        del ignored
        return self.head(x)


MODULES: Final[dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]]] = {
    "mixer": (Mixer, ((2, 8, 12),)),
    "gated convolution": (GatedConvolution, ((2, 6, 8),)),
    "tied weights": (TiedWeights, ((5, 16),)),
    "a broadcast bias": (BroadcastBias, ((3, 4, 5, 8),)),
    "a scalar buffer": (ScalarBuffer, ((4, 16),)),
    "an unused input": (UnusedInput, ((4, 16), (3,))),
}
