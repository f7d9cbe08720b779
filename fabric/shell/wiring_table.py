"""The sheets of ``check``: wiring, metrics, on-chip memory and warnings; and the memory map."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fabric.analysis.symbolic.check import Check
from fabric.analysis.symbolic.folding import operator_text, types_text
from fabric.analysis.symbolic.metrics import Accounting, intensity, largest
from fabric.analysis.symbolic.substitution import followed, known_sizes
from fabric.display.parts import Rows, Sheet, line
from fabric.graph.values.dims import Dim, free_symbols, short_text
from fabric.graph.values.stream_type import StreamType, shape_text
from fabric.graph.values.value import dtype_name
from fabric.graph.wiring.memory_map import MemoryMap, Placed
from fabric.graph.wiring.operator import Node
from fabric.messages.text import counted, merged_text, visible, without_numbers

_WARNINGS_SHOWN: Final = 30
_DIGITS: Final = re.compile(r"(?<![\w.,])\d{4,}(?![\w.])")
_TOTALS: Final[tuple[tuple[str, Callable[[Accounting], Dim]], ...]] = (
    ("off-chip traffic, bytes", lambda each: each.traffic_bytes),
    ("  loads", lambda each: each.load_bytes),
    ("  stores", lambda each: each.store_bytes),
    ("on-chip requirement, bytes", lambda each: each.on_chip_bytes),
    ("  with FIFOs", lambda each: each.on_chip_bytes + each.fifo_bytes),
    ("cycles at the HBM's peak", lambda each: each.memory_cycles),
)


def check_sheet(check: Check, file: str) -> Sheet:
    program = check.plan.program
    yield line((program.name, "bold"), f"  {visible(file)}")
    yield line(
        f"{counted(len(check.plan.nodes), 'operator')}, "
        f"{counted(len(check.plan.edges), 'channel')}, not run"
    )
    yield line()
    for group in check.groups:
        yield from _wiring(group)
    yield line()
    yield from _metrics(check)
    yield from _most_on_chip(check)
    unbound = check.free_symbols
    decided = {symbol.name for symbol in followed(known_sizes(program), program)}
    bound = len(decided.intersection(unbound))
    if unbound:
        note = f"; --data sets {bound:,} from the program's data" if bound else ""
        yield line()
        yield line(f"{counted(len(unbound), 'symbol')}: --set NAME=VALUE{note}")
        yield line(f"  {_symbol_names(unbound)}")
    for warning in check.warnings[:_WARNINGS_SHOWN]:
        yield line(("warning: ", "yellow"), warning)
    if len(check.warnings) > _WARNINGS_SHOWN:
        yield line(f"and {counted(len(check.warnings) - _WARNINGS_SHOWN, 'more warning')}: --json")


def _wiring(group: tuple[Node, ...]) -> Sheet:
    first = group[0]
    kind, place = f"  {operator_text(first)}", f"  {first.place.brief}"
    yield line((_name(group), "bold"), kind, (place, "dim"), indent=4)
    for label, types in (
        ("in ", [node.input_types for node in group]),
        ("out", [node.output_types for node in group]),
    ):
        for text in dict.fromkeys(_ports(types)):
            yield line(f"  {label} {text}", indent=6)
    stated = [each for node in group for each in node.assumed if each.stated_layout]
    for text in dict.fromkeys(str(each.layout) for each in stated):
        yield line(f"  laid out {text}", indent=6)


def _ports(types: list[tuple[StreamType, ...]]) -> Iterator[str]:
    if len(types) == 1:
        yield from types_text(types[0])
        return
    for port in zip(*types, strict=False):
        yield merged_text([str(stream) for stream in port])


def _name(group: tuple[Node, ...]) -> str:
    name = merged_text([node.name for node in group])
    return name if len(group) == 1 else f"{name} x{len(group)}"


def _metrics(check: Check) -> Sheet:
    metrics = check.metrics
    accountings = metrics.accountings.values()
    rows: list[tuple[str, list[str]]] = [
        (name, [_formula(of(each)) for each in accountings]) for name, of in _TOTALS
    ]
    intensities = [_rounded(intensity(metrics.flops, each.traffic_bytes)) for each in accountings]
    rows += [
        ("FLOPs", [_formula(metrics.flops)] * 2),
        ("FLOPs per byte", intensities),
        ("compute cycles of one unit", [_rounded(largest(metrics.compute_cycles))] * 2),
        ("allocated FLOPs per cycle", [f"{metrics.allocated_flops_per_cycle:,}"] * 2),
    ]
    numbers = [(name, *texts) for name, texts in rows if not any(map(_is_formula, texts))]
    yield Rows(("", *metrics.accountings), numbers, right=frozenset({1, 2}))
    for name, (paper, artifact) in rows:
        is_derived = name.startswith(("FLOPs per", "compute cycles"))
        if is_derived or not (_is_formula(paper) or _is_formula(artifact)):
            continue
        yield line(f"{name.strip()} =")
        if paper == artifact:
            yield line(f"  {paper}")
            continue
        yield line(f"  paper     {paper}", indent=12)
        yield line(f"  artifact  {artifact}", indent=12)


def _is_formula(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _rounded(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:,}" if value == int(value) else f"{value:,.2f}"


def _formula(value: Dim) -> str:
    if not free_symbols(value):
        return f"{value:,}"
    return _DIGITS.sub(lambda match: f"{int(match.group()):,}", short_text(value))


def _symbol_names(names: Sequence[str]) -> str:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(without_numbers(name), []).append(name)
    return ", ".join(merged_text(group) for group in groups.values())


def _most_on_chip(check: Check) -> Sheet:
    by_node = {each.node: each.costs for each in check.metrics.operators}
    total: Dim = check.metrics.paper.on_chip_bytes
    needs = [
        (sum(by_node[node].on_chip_bytes for node in group), group)
        for group in check.groups
        if all(isinstance(by_node[node].on_chip_bytes, int) for node in group)
    ]
    if not isinstance(total, int) or not total:
        return
    size, group = max(needs, key=lambda pair: pair[0])
    most, one = max(((by_node[node].on_chip_bytes, node) for node in by_node), key=lambda p: p[0])
    ties = sum(each == size for each, _ in needs) - 1
    tied = f"; {ties} more {'needs' if ties == 1 else 'need'} as much" if ties else ""
    yield line()
    yield line(f"most on chip (paper): {_name(group)}")
    yield line(
        f"  {counted(size, 'byte')}, {100 * size / total:.0f} %, {group[0].place.brief}{tied}"
    )
    yield line(f"of one operator: {one.name}")
    yield line(f"  {counted(most, 'byte')}, {one.place.brief}")


def memory_map_sheet(memory_map: MemoryMap) -> Sheet:
    """Yield the tensors by address, with the operators that read or write them."""
    yield line()
    if not memory_map.tensors:
        yield line("no off-chip tensors")
        return
    rows = [
        (
            f"{each.first_address:#x}",
            "by data" if each.size_bytes is None else each.size_bytes,
            _tensor(each),
        )
        for each in memory_map.tensors
    ]
    yield Rows(("address", "bytes", "tensor"), rows, right=frozenset({0, 1}))
    placement = memory_map.placement
    further = ""
    if placement.stagger_bytes:
        further = f", plus {placement.stagger_bytes:,} for each tensor before it"
    begin = f"Each begins at a multiple of {counted(placement.alignment_bytes, 'byte')}{further}."
    yield line(begin, indent=0)


def _tensor(placed: Placed) -> str:
    users = merged_text([node.name for node in placed.nodes])
    tensor, layout = placed.tensor, _layout(placed)
    if tensor is None:
        return f"{users}{layout}"
    name = users if tensor.output is None else f"{tensor.output} of {users}"
    return f"{name}  {shape_text(tensor.shape)} {dtype_name(tensor.dtype)}{layout}"


def _layout(placed: Placed) -> str:
    layout, tensor = placed.layout, placed.tensor
    if layout.contiguous:
        assert tensor is not None
        assert tensor.tile is not None
        rows, cols = tensor.tile
        return f", tiles of {rows}x{cols} one behind the other"
    free = layout.padding_bytes
    padded = f", {counted(free, 'byte')} free behind each row" if free else ""
    return padded if layout.reason is None else f"{padded}, row-major: {layout.reason}"
