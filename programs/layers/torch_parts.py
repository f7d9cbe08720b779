"""A part of a causal language model as a module that PyTorch can trace, with its arguments.

A part is the whole model, some of its layers, or its ends: embedding, last norm and head. The
module takes the keys and values of earlier tokens as tensors, and returns those of new tokens.
"""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.cache_utils import DynamicCache, DynamicLayer

Part: TypeAlias = Literal["model", "layers", "ends"]


class Called(NamedTuple):
    """The arguments of a part.

    Attributes:
        given: tokens, int64 [requests, tokens]. For a part without embedding, embedded tokens,
            [requests, tokens, columns].
        positions: the positions of tokens in their requests, int64 [requests, tokens].
        mask: 1 for tokens that are present, with cached tokens first, int64 [requests, all tokens];
            None if all tokens are present.
        past: keys and values of each layer in turn, [requests, heads, cached tokens, columns].
    """

    given: Any
    positions: Any
    mask: Any
    past: tuple[Any, ...]


class LanguageModelPart(torch.nn.Module):
    """A part of a model, as a server calls it."""

    def __init__(self, model: Any, part: Part) -> None:
        """Take a model of transformers that has the layers of the part. The ends have no layers."""
        super().__init__()
        self.model: Final = model
        self.part: Final = part
        if part == "layers":
            _without_ends(model.base_model)

    def forward(self, given: Any, positions: Any, mask: Any, *past: Any) -> tuple[Any, ...]:
        """Return the result, and keys and values of the new tokens, layer by layer.

        The result is the logits of the last token of each request. For a part without a head, it is
        the result of the last layer for every token.
        """
        cache = _Cache(past)
        called: dict[str, Any] = {
            "position_ids": positions,
            "attention_mask": mask,
            "past_key_values": cache,
            "use_cache": True,
        }
        if self.part == "layers":
            result = self.model.base_model(inputs_embeds=given, **called).last_hidden_state
        else:
            result = self.model(input_ids=given, logits_to_keep=1, **called).logits
        return (result, *cache.added)


class _Cache(DynamicCache):
    """A cache of given tensors that records additions."""

    def __init__(self, past: tuple[Any, ...]) -> None:
        super().__init__()
        self.added: list[Any] = []
        for keys, values in zip(past[::2], past[1::2], strict=True):
            layer = DynamicLayer()
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
            self.layers.append(layer)

    def update(self, key_states: Any, value_states: Any, layer_idx: int, *args: Any) -> Any:
        """Return all keys and values of a layer, cached and new."""
        self.added += [key_states, value_states]
        if layer_idx >= len(self.layers):
            return key_states, value_states
        return super().update(key_states, value_states, layer_idx, *args)


class _NoPositions(torch.nn.Module):
    """Replaces the table of positions by 0, since the ends have added the positions already."""

    def forward(self, positions: Any) -> Any:
        return torch.zeros((), device=positions.device)


def _without_ends(body: Any) -> None:
    """Remove the norm behind the last layer, and GPT-2's table of positions."""
    last = "ln_f" if hasattr(body, "ln_f") else "norm"
    setattr(body, last, torch.nn.Identity())
    if hasattr(body, "wpe"):
        body.wpe = _NoPositions()


def prefilling(model: Any, part: Part, requests: int, tokens: int, seed: int) -> Called:
    """Return the arguments for requests that bring ``tokens`` tokens each and have no cache."""
    positions = torch.arange(tokens).expand(requests, tokens).contiguous()
    return Called(_given(model, part, requests, tokens, seed), positions, None, ())


def decoding(model: Any, part: Part, lengths: NDArray[np.int64], seed: int) -> Called:
    """Return the arguments for requests with one token each, and caches of ``lengths`` tokens.

    A shorter request is padded on the left to the longest length, as in transformers.
    """
    requests, longest = len(lengths), int(lengths.max())
    cached = torch.from_numpy(lengths)
    mask = (torch.arange(longest + 1) >= longest - cached[:, None]).long()
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    columns = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    shape = requests, heads, longest, columns
    past = tuple(
        _drawn(model, shape, (seed, 2, index)) for index in range(2 * config.num_hidden_layers)
    )
    return Called(_given(model, part, requests, 1, seed), cached[:, None], mask, past)


def _given(model: Any, part: Part, requests: int, tokens: int, seed: int) -> Any:
    if part == "layers":
        return _drawn(model, (requests, tokens, model.config.hidden_size), (seed, 0))
    random = np.random.default_rng((seed, 1))
    return torch.from_numpy(random.integers(0, model.config.vocab_size, (requests, tokens)))


def _drawn(model: Any, shape: tuple[int, ...], seed: tuple[int, ...]) -> Any:
    """Return normally distributed numbers; without data if the model has no weights."""
    if model.device.type == "meta":
        return torch.empty(shape, dtype=model.dtype, device="meta")
    numbers = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(numbers).to(model.dtype)
