"""A PyTorch module of your own: imported, run, and compared with PyTorch's result.

It needs the extra torch.

Run:      python -m fabric run programs/own_module.py -p tokens=100
Computes: y = x + down(gelu(up(norm(x))))
"""

from __future__ import annotations

import torch
from torch import nn

from fabric import Program
from operators.torch import from_torch


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def build(tokens: int = 100, width: int = 256, seed: int = 0) -> Program:
    torch.manual_seed(seed)
    block, x = Block(width).to(torch.bfloat16), torch.randn(tokens, width, dtype=torch.bfloat16)
    return from_torch(block.eval(), (x,))
