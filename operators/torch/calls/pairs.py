"""Calls on complex numbers, as pairs of real numbers. Rotary position embeddings use them."""

from __future__ import annotations

from operators.functions.steps import ComplexProduct
from operators.kernels.tensors import Opaque, View
from operators.torch.call import Call
from operators.torch.calls.views import exchanged
from operators.torch.importing import Importing
from operators.torch.registry import imports
from operators.torch.routed_rows import Pairs, opaque_form


@imports("aten.view_as_complex.default")
def as_complex(importing: Importing, call: Call) -> View:
    return _pairs(call, call.tensor())


@imports("aten.view_as_real.default", of=Pairs)
def as_real(importing: Importing, call: Call) -> View:
    return _reals(call.tensor())


@imports("aten.view.default", "aten._unsafe_view.default", "aten.unsqueeze.default", of=Pairs)
@imports("aten.squeeze.dim", "aten.squeeze.dims", of=Pairs)
@imports("aten.alias.default", "aten.clone.default", of=Pairs)
def reshaped(importing: Importing, call: Call) -> View:
    return _pairs(call, _reals(call.tensor()).reshaped((*call.result.shape, 2)))


@imports("aten.expand.default", of=Pairs)
def expanded(importing: Importing, call: Call) -> View:
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


@imports("aten.mul.Tensor", of=Pairs)
def product(importing: Importing, call: Call) -> View:
    operands = call.args[:2]
    if not all(isinstance(opaque_form(each), Pairs) for each in operands):
        importing.unsupported("it multiplies complex numbers with others: expected complex ones")
    reals = [_reals(each) for each in operands]
    shape = call.result.shape
    if not shape or any(each.shape[-2:-1] != shape[-1:] for each in reals):
        importing.unsupported("it repeats complex numbers along the last dimension: expected rows")
    rows = [each.reshaped((*each.shape[:-2], 2 * each.shape[-2])) for each in reals]
    step = ComplexProduct((0, 1), reals[0].dtype)
    products = importing.chain(call, rows, (step,), rows_of=(*shape[:-1], 2 * shape[-1]))
    return _pairs(call, products.reshaped((*shape, 2)))


def _pairs(call: Call, reals: View) -> View:
    return View.of(Opaque(call.name, call.result.shape, call.result.dtype, Pairs(reals)))


def _reals(view: View) -> View:
    form = opaque_form(view)
    assert isinstance(form, Pairs)
    return form.reals
