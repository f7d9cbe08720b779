"""What ``check --memory-map`` prints: where each tensor is in off-chip memory."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fabric.telling.wording import counted, merged_text
from fabric.terminal.output import print_line
from fabric.values.stream_type import shape_text
from fabric.values.value import dtype_name
from fabric.wiring.memory_map import MemoryMap, Placed

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
    placement = memory_map.placement
    further = ""
    if placement.stagger_bytes:
        further = f", and {placement.stagger_bytes:,} further for each before it"
    begin = f"Each begins at a multiple of {counted(placement.alignment_bytes, 'byte')}{further}."
    print_line(console, Text(begin), 0)


def _numbers(placed: Placed) -> tuple[str, str]:
    size = "by data" if placed.size_bytes is None else f"{placed.size_bytes:,}"
    return f"{placed.first_address:#x}", size


def _tensor(placed: Placed) -> str:
    """Return what a tensor is called: an output by its name, all by the operators that use them."""
    users = merged_text([node.name for node in placed.nodes])
    tensor, layout = placed.tensor, _layout(placed)
    if tensor is None:
        return f"{users}{layout}"
    name = users if tensor.output is None else f"{tensor.output} of {users}"
    return f"{name}  {shape_text(tensor.shape)} {dtype_name(tensor.dtype)}{layout}"


def _layout(placed: Placed) -> str:
    """Return what is not as it usually is, or not as the hardware wants it."""
    layout, tensor = placed.layout, placed.tensor
    if layout.contiguous:
        assert tensor is not None
        assert tensor.tile is not None
        rows, cols = tensor.tile
        return f", tiles of {rows}x{cols} one behind the other"
    free = layout.padding_bytes
    padded = f", {counted(free, 'byte')} free behind each row" if free else ""
    return padded if layout.reason is None else f"{padded}, row-major: {layout.reason}"
