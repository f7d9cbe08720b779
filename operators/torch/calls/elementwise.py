"""Calls on single numbers."""

from __future__ import annotations

from operators.functions.elementwise import SiLU
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.silu.default")
def silu(importing: Importing, call: Call) -> View:
    """``x / (1 + exp(-x))``."""
    return importing.elementwise(call, SiLU(), call.args)
