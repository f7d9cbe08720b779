"""The expected results of decoder layers, request by request and expert by expert, in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from layers.decoder_data import DecoderData
from layers.decoder_parts import Layer, Step

Wide = NDArray[np.float64]


class _Result(NamedTuple):
    """The output of a layer, and its stored caches with the new token."""

    y: Wide
    keys: Wide
    values: Wide


def outputs(data: DecoderData) -> dict[str, Callable[[], Wide]]:
    """Return functions that compute each stored output, by name. Each layer is computed once."""

    @cache
    def results() -> list[_Result]:
        x, of_layers = data.x.array.astype(np.float64), []
        for layer in data.layers:
            of_layers.append(_layer(data.step, layer, x))
            x = of_layers[-1].y
        return of_layers

    def keys(index: int) -> Wide:
        return results()[index].keys

    def values(index: int) -> Wide:
        return results()[index].values

    expected: dict[str, Callable[[], Wide]] = {"y": lambda: results()[-1].y}
    for index, layer in enumerate(data.layers):
        for name, part in zip(layer.caches.outputs, (keys, values), strict=True):
            expected[name] = partial(part, index)
    return expected


def _layer(step: Step, layer: Layer, x: Wide) -> _Result:
    attended, keys, values = _attention(step, layer, _normalised(x))
    h = x + attended
    return _Result(h + _mixture(layer, _normalised(h)), keys, values)


def _attention(step: Step, layer: Layer, x: Wide) -> tuple[Wide, Wide, Wide]:
    size, caches = step.attention, layer.caches
    batch, room = len(x), caches.rows * caches.stride
    shape = (size.key_heads, batch, room, size.head_dim)
    keys, values = (each.array.astype(np.float64) for each in (caches.keys, caches.values))
    result = np.zeros((batch, layer.router.shape[0]))
    for head in range(size.key_heads):
        key, value = x @ layer.keys[head].array, x @ layer.values[head].array
        query = (x @ layer.queries[head].array).reshape(batch, size.queries, size.head_dim)
        if size.head_norm:
            query, key = _normalised(query), _normalised(key)
        for request, length in enumerate(step.lengths.tolist()):
            own_keys = keys.reshape(shape)[head, request]
            own_values = values.reshape(shape)[head, request]
            own_keys[length] = _rotated(key[request], length, size.rotary_base)
            own_values[length] = value[request]
            scores = _rotated(query[request], length, size.rotary_base) @ own_keys[: length + 1].T
            powers = np.exp(scores / np.sqrt(size.head_dim))
            mean = powers @ own_values[: length + 1] / powers.sum(axis=1, keepdims=True)
            result[request] += mean.reshape(-1) @ layer.output[head].array
    return result, keys, values


def _rotated(rows: Wide, position: int, base: float) -> Wide:
    """Rotate each pair of columns, as a complex number, by the angle of the position."""
    half = rows.shape[-1] // 2
    angles = position * base ** (-np.arange(half) / half)
    pairs = (rows[..., :half] + 1j * rows[..., half:]) * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


def _mixture(layer: Layer, x: Wide) -> Wide:
    result = np.zeros_like(x)
    logits = x @ layer.router.array
    top_k, share = layer.choice.shape[1], layer.experts[0].up.shape[0]
    chosen = np.argsort(-logits, axis=1)[:, :top_k]
    powers = np.exp(np.take_along_axis(logits, chosen, axis=1))
    gates = powers / powers.sum(axis=1, keepdims=True)
    for expert in range(logits.shape[1]):
        token, slot = np.nonzero(chosen == expert)
        region = layer.experts[expert // share]
        up, gate, down = (
            each.array[expert % share] for each in (region.up, region.gate, region.down)
        )
        gated = x[token] @ gate
        inner = gated / (1 + np.exp(-gated)) * (x[token] @ up)
        result[token] += gates[token, slot][:, np.newaxis] * (inner @ down)
    return result


def _normalised(x: Wide) -> Wide:
    result: Wide = x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-6)
    return result
