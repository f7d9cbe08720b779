"""A model as kernels in an order in which each finds what it reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from operators.kernels.kernel import Kernel
from operators.kernels.tensors import Source, View

__all__ = ["Edge", "Model"]


@dataclass(frozen=True, eq=False)
class Edge:
    """One reading of what another kernel gives.

    Attributes:
        producer: the kernel that gives it.
        consumer: the kernel that reads it.
        operand: which of the consumer's operands.
    """

    producer: Kernel
    consumer: Kernel
    operand: int


@dataclass(frozen=True, eq=False)
class Model:
    """Kernels, and what comes out.

    Attributes:
        kernels: each behind those whose results it reads.
        outputs: what is stored, by name.
    """

    kernels: list[Kernel] = field(default_factory=list)
    outputs: dict[str, View] = field(default_factory=dict)
    _names: Counter[str] = field(default_factory=Counter)

    def name(self, wish: str) -> str:
        """Return ``wish``, with a number where it is taken."""
        self._names[wish] += 1
        count = self._names[wish]
        return wish if count == 1 else f"{wish}_{count}"

    def edges(self) -> Iterator[Edge]:
        """Every reading of what a kernel gives, in the order of the readers."""
        giving: dict[Source, Kernel] = {}
        for kernel in self.kernels:
            for index, operand in enumerate(kernel.operands):
                producer = giving.get(operand.view.source)
                if producer is not None:
                    yield Edge(producer, kernel, index)
            giving.update(dict.fromkeys(kernel.results, kernel))

    def readers(self) -> dict[Source, int]:
        """How often each result is read, outputs included."""
        count: dict[Source, int] = defaultdict(int)
        for kernel in self.kernels:
            for operand in kernel.operands:
                count[operand.view.source] += 1
        for view in self.outputs.values():
            count[view.source] += 1
        return count

    def drop_unread(self) -> None:
        """Drop kernels that give results none of which anybody reads."""
        while True:
            readers = self.readers()
            kept = [
                each
                for each in self.kernels
                if not each.results or any(readers.get(one) for one in each.results)
            ]
            if len(kept) == len(self.kernels):
                return
            self.kernels[:] = kept
