"""The expected results of decoder layers, request by request and expert by expert, in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from layers.decoder_data import DecoderData
from layers.decoder_parts import Layer

Wide = NDArray[np.float64]


@dataclass(frozen=True)
class _Result:
    """The output of one layer, and its caches with the new token, as they are stored."""

    y: Wide
    keys: Wide
    values: Wide


class Reference:
    """The layers of ``data``, each computed once."""

    def __init__(self, data: DecoderData) -> None:
        self._data = data

    def outputs(self) -> dict[str, Callable[[], Wide]]:
        """Return the expected value of each stored output, by its name."""
        found: dict[str, Callable[[], Wide]] = {"y": lambda: self._results[-1].y}
        for index, layer in enumerate(self._data.layers):
            for name, part in zip(layer.caches.outputs, ("keys", "values"), strict=True):
                found[name] = partial(self._part, index, part)
        return found

    def _part(self, index: int, part: str) -> Wide:
        found: Wide = getattr(self._results[index], part)
        return found

    @cached_property
    def _results(self) -> list[_Result]:
        x, results = self._data.x.array.astype(np.float64), []
        for layer in self._data.layers:
            results.append(self._layer(layer, x))
            x = results[-1].y
        return results

    def _layer(self, layer: Layer, x: Wide) -> _Result:
        attended, keys, values = self._attention(layer, _normalised(x))
        h = x + attended
        return _Result(h + self._mixture(layer, _normalised(h)), keys, values)

    def _attention(self, layer: Layer, x: Wide) -> tuple[Wide, Wide, Wide]:
        step, caches = self._data.step, layer.caches
        size, batch, room = step.attention, len(x), caches.rows * caches.stride
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
                own_keys[length] = self._turned(key[request], length)
                own_values[length] = value[request]
                scores = self._turned(query[request], length) @ own_keys[: length + 1].T
                powers = np.exp(scores / np.sqrt(size.head_dim))
                mean = powers @ own_values[: length + 1] / powers.sum(axis=1, keepdims=True)
                result[request] += mean.reshape(-1) @ layer.output[head].array
        return result, keys, values

    def _turned(self, rows: Wide, position: int) -> Wide:
        """Turn each pair of columns, as one complex number, by the angle of the position."""
        size = self._data.step.attention
        half = size.head_dim // 2
        angles = position * size.rotary_base ** (-np.arange(half) / half)
        pairs = (rows[..., :half] + 1j * rows[..., half:]) * np.exp(1j * angles)
        return np.concatenate([pairs.real, pairs.imag], axis=-1)

    def _mixture(self, layer: Layer, x: Wide) -> Wide:
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
