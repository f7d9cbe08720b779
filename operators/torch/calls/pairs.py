"""Calls on complex numbers, which are pairs of real ones: rotary positions have them."""

from __future__ import annotations

from operators.functions.steps import ComplexProduct
from operators.kernels.tensors import Opaque, View
from operators.torch.call import Call
from operators.torch.calls.views import exchanged
from operators.torch.importing import Importing
from operators.torch.registry import imports
from operators.torch.routed_rows import Pairs

_PRODUCT = "aten.mul.Tensor"


@imports("aten.view_as_complex.default")
def as_complex(importing: Importing, call: Call) -> View:
    """Pairs along the last dimension."""
    return _pairs(call, call.tensor())


@imports("aten.view_as_real.default", of=Pairs)
def as_real(importing: Importing, call: Call) -> View:
    """The numbers of each pair."""
    return _reals(call.tensor())


@imports("aten.view.default", "aten._unsafe_view.default", "aten.unsqueeze.default", of=Pairs)
@imports("aten.squeeze.dim", "aten.squeeze.dims", of=Pairs)
@imports("aten.alias.default", "aten.clone.default", of=Pairs)
def reshaped(importing: Importing, call: Call) -> View:
    """The same pairs under other dimensions."""
    return _pairs(call, _reals(call.tensor()).reshaped((*call.result.shape, 2)))


@imports("aten.expand.default", of=Pairs)
def expanded(importing: Importing, call: Call) -> View:
    """The same pairs again and again."""
    return _pairs(call, _reals(call.tensor()).expanded((*call.result.shape, 2)))


@imports("aten.permute.default", "aten.transpose.int", of=Pairs)
def permuted(importing: Importing, call: Call) -> View:
    reals = _reals(call.tensor())
    rank = len(reals.shape) - 1
    if call.target == "aten.permute.default":
        dims = [dim % rank for dim in call.args[1]]
    else:
        dims = exchanged(rank, *call.args[1:3])
    return _pairs(call, reals.permuted((*dims, rank)))


@imports(_PRODUCT, of=Pairs)
def product(importing: Importing, call: Call) -> View:
    """The products of complex numbers."""
    operands = [each for each in call.args[:2] if isinstance(each, View)]
    forms = [each.source.form for each in operands if isinstance(each.source, Opaque)]
    if len(forms) != 2 or not all(isinstance(each, Pairs) for each in forms):
        importing.unsupported("it multiplies complex numbers with others: expected complex ones")
    reals = [_reals(each) for each in operands]
    shape = call.result.shape
    if not shape or any(each.shape[-2:-1] != shape[-1:] for each in reals):
        importing.unsupported("it repeats complex numbers along the last dimension: expected rows")
    rows = [each.reshaped((*each.shape[:-2], 2 * each.shape[-2])) for each in reals]
    step = ComplexProduct((0, 1), reals[0].dtype)
    found = importing.chain(call, rows, (step,), rows_of=(*shape[:-1], 2 * shape[-1]))
    return _pairs(call, found.reshaped((*shape, 2)))


def _pairs(call: Call, reals: View) -> View:
    return View.of(Opaque(call.name, call.result.shape, call.result.dtype, Pairs(reals)))


def _reals(view: View) -> View:
    source = view.source
    assert isinstance(source, Opaque)
    assert isinstance(source.form, Pairs)
    return source.form.reals
