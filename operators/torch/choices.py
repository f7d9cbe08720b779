"""The experts of each token, for runs that have no data to choose them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node
from torch.fx.node import map_arg

from fabric.extend import checked
from operators.kernels.routed import Choice, drawn
from operators.torch.capture import Captured


@checked
def routing(layers: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return ``layers`` as arrays: the check converts them."""
    return layers


class Choices:
    """The choice of each layer: the stated one, otherwise PyTorch's, otherwise a drawn one.

    PyTorch chooses if the module and its arguments have data. Otherwise every token draws distinct
    experts, all equally likely, seeded by the layer's number.
    """

    def __init__(self, captured: Captured, stated: Sequence[np.ndarray] | None) -> None:
        self.stated: Final = stated
        self._nodes: Final = {node.name: node for node in captured.calls}
        self._tensors: Final = captured.tensors
        self._real: Final = not any(each.is_meta for each in captured.tensors.values())
        self._values: Final[dict[Node, Any]] = dict(captured.tensors)

    def of(self, number: int, chooser: str, tokens: int, hits: int) -> Choice:
        """Return the choice of layer ``number``; the call ``chooser`` reads its experts."""
        if self.stated is not None:
            stated = self.stated[number] if number < len(self.stated) else ()
            return lambda _: np.asarray(stated)
        if self._real:
            return partial(self._chosen, self._nodes[chooser].args[0], tokens, hits)
        return drawn(number, tokens, hits)

    def _chosen(self, node: Node, tokens: int, hits: int, _experts: int) -> NDArray[np.int64]:
        with torch.no_grad():
            experts: NDArray[np.int64] = self._computed(node).numpy()
        return experts.reshape(tokens, hits)

    def _computed(self, node: Node) -> Any:
        waiting = [node]
        while waiting:
            call = waiting[-1]
            missing = [read for read in call.all_input_nodes if read not in self._values]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if call not in self._values:
                args = map_arg(call.args, self._values.__getitem__)
                kwargs = map_arg(call.kwargs, self._values.__getitem__)
                assert callable(call.target)
                self._values[call] = call.target(*args, **dict(kwargs))
        return self._values[node]
