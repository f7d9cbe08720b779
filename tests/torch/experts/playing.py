"""Imports calls one by one, without a capture, and runs each one in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from fabric import Program
from operators.kernels.fusion import merge_chains
from operators.kernels.model import wire
from operators.kernels.off_chip import Store
from operators.kernels.routed import Choice
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call, Spec
from operators.torch.capture import array_of, dtype_of
from operators.torch.importing import Importing
from operators.torch.planning import imported
from operators.torch.registry import whole
from tests.torch.calls.calling import called


@dataclass(frozen=True, eq=False)
class Handle:
    tensor: torch.Tensor
    view: View
    known: bool


class Player:
    def __init__(self, schedule: Schedule) -> None:
        self.importing = Importing(schedule, self._choice)
        self._sorted = torch.zeros(0)
        self._count = 0

    def given(self, tensor: torch.Tensor, *, known: bool = False) -> Handle:
        self._count += 1
        made = partial(array_of, tensor)
        spec = f"t{self._count}", tuple(tensor.shape), dtype_of(tensor.dtype)
        return Handle(tensor, View.of(Stored.of(*spec, made, known=known)), known)

    def play(self, target: str, *args: Any, **kwargs: Any) -> Any:
        handles = [each for each in _leaves(args) if isinstance(each, Handle)]
        done = called(target, _with(args, "tensor"), kwargs)
        if all(each.known for each in handles):
            known_handles = [self.given(each, known=True) for each in done]
            return known_handles if len(known_handles) > 1 else known_handles[0]
        if target == "aten.sort.default":
            self._sorted = handles[0].tensor
        self._count += 1
        specs = tuple(Spec(tuple(each.shape), dtype_of(each.dtype)) for each in done)
        name, many = f"c{self._count}", len(done) > 1
        call = Call(target, name, _with(args, "view"), kwargs, specs, many, "", None, None)
        result: Any = imported(self.importing, call)
        views: Sequence[Any] = result if isinstance(result, tuple) else (result,)
        results = [Handle(*pair, known=False) for pair in zip(done, views, strict=True)]
        return results if many else results[0]

    def program(self, handle: Handle) -> Program:
        model = self.importing.model
        view = whole(self.importing, handle.view)
        model.kernels.append(Store.of("y", view, self.importing.schedule))
        model.drop_unread()
        merge_chains(model)
        expected = array_of(handle.tensor)
        with Program("experts") as program:
            wire(program, model)
        program.expect(y=lambda: np.copy(expected))
        return program

    def _choice(self, number: int, name: str, tokens: int, hits: int) -> Choice:
        del number, name
        choice = self._sorted.numpy().reshape(tokens, hits)
        return lambda _: choice


def mixture(
    player: Player, x: Handle, choice: Handle, gates: Handle, weights: Sequence[Handle]
) -> Handle:
    play = player.play
    hits, experts = choice.tensor.shape[1], weights[0].tensor.shape[0]
    flat = play("aten.view.default", choice, [-1])
    ordered, order = play("aten.sort.default", flat)
    tokens = play("aten.div.Tensor_mode", order, hits, rounding_mode="floor")
    rows = play("aten.index.Tensor", x, [tokens])
    shares = play("aten.index.Tensor", play("aten.view.default", gates, [-1]), [order])
    floats = play("aten._to_copy.default", ordered, dtype=torch.float32)
    counts = play("aten.histc.default", floats, experts, 0, experts - 1)
    ends = play("aten.cumsum.default", counts, 0, dtype=torch.int32)
    inwards, outwards = (play("aten.transpose.int", each, -2, -1) for each in weights)
    both = play("transformers.grouped_mm_fallback.default", rows, inwards, ends)
    size = weights[1].tensor.shape[2]
    gate, up = play("aten.split.Tensor", both, size, -1)
    inner = play("aten.mul.Tensor", play("aten.silu.default", gate), up)
    out = play("transformers.grouped_mm_fallback.default", inner, outwards, ends)
    scaled = play("aten.mul.Tensor", out, play("aten.unsqueeze.default", shares, -1))
    count = len(flat.tensor)
    blank = player.given(torch.zeros(count, dtype=torch.int64), known=True)
    numbers = player.given(torch.arange(count), known=True)
    back = play("aten.index_put.default", blank, [order], numbers)
    gathered = play("aten.index.Tensor", scaled, [back])
    each = play("aten.view.default", gathered, [*choice.tensor.shape, x.tensor.shape[1]])
    result: Handle = play("aten.sum.dim_IntList", each, [1])
    return result


def routed(player: Player, logits: Handle, hits: int) -> tuple[Handle, Handle]:
    chances = player.play("aten.softmax.int", logits, -1)
    largest, choice = player.play("aten.topk.default", chances, hits)
    total = player.play("aten.sum.dim_IntList", largest, [-1], True)
    return choice, player.play("aten.div.Tensor", largest, total)


def _leaves(args: Any) -> list[Any]:
    if isinstance(args, list | tuple):
        return [leaf for each in args for leaf in _leaves(each)]
    return [args]


def _with(args: Any, attribute: str) -> Any:
    if isinstance(args, list | tuple):
        return type(args)(_with(each, attribute) for each in args)
    return getattr(args, attribute) if isinstance(args, Handle) else args
