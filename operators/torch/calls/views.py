"""Calls that only say how the next reader walks the data."""

from __future__ import annotations

from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def reshape(importing: Importing, call: Call) -> View:
    """The same elements under another shape."""
    x: View = call.args[0]
    return x.reshaped(call.result.shape)


@imports("aten.transpose.int")
def transpose(importing: Importing, call: Call) -> View:
    """Two dimensions exchanged."""
    x: View = call.args[0]
    first, second = call.args[1:]
    dims = list(range(len(x.shape)))
    dims[first], dims[second] = dims[second], dims[first]
    return x.permuted(dims)
