"""What ``check --memory-map`` prints: where each tensor is in off-chip memory."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fabric.telling.wording import merged_text
from fabric.terminal.output import print_line
from fabric.values.stream_type import shape_text
from fabric.values.value import dtype_name
from fabric.wiring.memory_map import ALIGNMENT_BYTES, MemoryMap, Placed

__all__ = ["print_memory_map"]


def print_memory_map(memory_map: MemoryMap, console: Console) -> None:
    """Print the tensors by address, with the operators that read or write them."""
    console.print()
    if not memory_map.tensors:
        console.print("no off-chip tensors")
        return
    heads = [("address", "bytes"), *map(_numbers, memory_map.tensors)]
    tails = ["tensor", *map(_tensor, memory_map.tensors)]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
    for (address, size), tail in zip(heads, tails, strict=True):
        line = f"{address:>{widths[0]}} {size:>{widths[1]}}  {tail}"
        print_line(console, Text(line, style="dim" if tail == tails[0] else ""), 4)
    console.print(f"Each begins at a multiple of {ALIGNMENT_BYTES:,} bytes.")


def _numbers(placed: Placed) -> tuple[str, str]:
    size = "by data" if placed.size_bytes is None else f"{placed.size_bytes:,}"
    return f"{placed.first_address:#x}", size


def _tensor(placed: Placed) -> str:
    """Return what a tensor is called: an output by its name, all by the operators that use them."""
    users = merged_text([node.name for node in placed.nodes])
    tensor = placed.tensor
    if tensor is None:
        return users
    name = users if tensor.output is None else f"{tensor.output} of {users}"
    return f"{name}  {shape_text(tensor.shape)} {dtype_name(tensor.dtype)}"
