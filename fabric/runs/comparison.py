"""Compares metrics, which are computed before a run, with measured values.

The sizes of symbols are computed from the numbers of elements in channels.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.symbolic.metrics import Metrics
from fabric.analysis.symbolic.substitution import Size, Substitution, followed
from fabric.graph.arguments.described import refuse
from fabric.graph.values.dims import Dim, free_symbols, is_ragged, short_text
from fabric.graph.values.expression import Symbol
from fabric.graph.values.stream_type import StreamType, TileType, shape_text
from fabric.graph.wiring.stream import Feedback
from fabric.messages.text import counted
from fabric.runs.counters import Compared, Comparison
from fabric.timing.state.run_state import LearnedSizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fabric.graph.wiring.elaborate import Plan
    from fabric.graph.wiring.program import Program
    from fabric.timing.engine.channel import AssumedSink
    from fabric.timing.state.resource_use import MemoryUse
    from fabric.timing.state.run_state import RunState


def compare(
    plan: Plan, state: RunState, used: MemoryUse, measured: Measured, metrics: Metrics
) -> Comparison:
    """Compare a completed run with the metrics of its program, for the measured sizes."""
    totals = _totals(metrics, used, state)
    guessed = measured.guessed
    # Most programs have no guessed or ragged sizes.
    means = bool(guessed) or any(map(is_ragged, measured.sizes))
    exact = not (
        _has_ragged_tiles(plan)
        or (means and any(_depends_on_means(edge.type, guessed) for edge in plan.edges))
    )
    carried = {id(stream): stream for stream in metrics.carried}
    counts = {at: _count(stream) for at, stream in carried.items()}
    elements = tuple([counts[id(stream)] for stream in metrics.carried])
    warnings = (
        *_binding_warnings(plan.program, measured),
        *(text for row in totals if not row.agrees and (text := _difference_text(row, exact))),
        *(
            f"{channel.name}: {counted(channel.taken, 'element')} measured, {expected:,} expected: "
            "this is a fault of the fabric, or of an operator's shapes"
            for channel, edge, expected in zip(state.channels, plan.edges, elements, strict=True)
            if channel.taken != expected and _is_exact(edge.type, expected, guessed)
        ),
    )
    return Comparison(totals, elements, warnings)


def _binding_warnings(program: Program, measured: Measured) -> Iterator[str]:
    for symbol, size in followed(program.sizes, program).items():
        if symbol in measured.shown and measured.sizes[symbol] != size:
            yield (
                f"the program binds {symbol.name} to {_size(size)}, but the run had "
                f"{_size(measured.sizes[symbol])}"
            )
    at = Substitution(measured.sizes)
    for total, size in program.totals.items():
        if free_symbols(total) <= measured.shown and at.dim(total) != size:
            yield (
                f"the program binds {short_text(total)} to {size:,}, but the run had "
                f"{at.dim(total):,}"
            )


def _totals(metrics: Metrics, used: MemoryUse, state: RunState) -> tuple[Compared, ...]:
    paper = metrics.paper
    rows = (
        Compared("off-chip loads, bytes", paper.load_bytes, used.loaded_bytes),
        Compared("off-chip stores, bytes", paper.store_bytes, used.stored_bytes),
        Compared("FLOPs", metrics.flops, state.flops),
        Compared(
            "on-chip bytes at the peak", paper.on_chip_bytes, used.on_chip_peak_bytes, at_most=True
        ),
    )
    # Channels do not show sizes of tiles: quantities with them cannot be compared.
    return tuple(row for row in rows if not free_symbols(row.expected))


def check_assumptions(
    plan: Plan, state: RunState, assumed: Iterable[AssumedSink], sizes: Substitution
) -> None:
    """Refuse assumed shapes that differ from the measured sizes.

    ``assumed`` are ends of channels, which have recorded the sizes of single groups.
    """
    for sink in assumed:
        sink.finish()
        for claim in sink.claims:
            expected = sizes.dim(claim.assumed)
            for size in sink.sizes.get(claim.dimension, ()):
                if size != expected and not is_ragged(claim.assumed):
                    claim.refuse(size, expected)
    # Ragged sizes are compared in total. Operators compare the sizes of single groups.
    for edge, channel in zip(plan.edges, state.channels, strict=True):
        if not edge.claims:
            continue
        stream = edge.consumer.inputs[edge.input]
        if channel.taken != (total := _count(sizes.stream(stream.type))):
            name, place = edge.claims[0].stream, edge.claims[0].place
            refuse(
                f"{name} has {counted(channel.taken, 'element')}: expected {total:,}, since "
                f"the program assumes {shape_text(stream.shape)}",
                place=place,
            )


def _size(size: int | Fraction) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


def _count(sized: StreamType) -> int:
    count: int = -(-sized.count // 1)
    return count


def _is_exact(stream: StreamType, expected: int, guessed: frozenset[Symbol]) -> bool:
    symbols = any(free_symbols(dim) for dim in stream.shape)
    return not _depends_on_means(stream, guessed) and (expected > 0 or not symbols)


def _depends_on_means(stream: StreamType, guessed: frozenset[Symbol]) -> bool:
    """Whether an expected count is a product of means, which may differ from the mean product.

    Guessed sizes are treated like means.
    """
    symbols = [symbol for dim in stream.shape for symbol in free_symbols(dim)]
    return sum(map(is_ragged, symbols)) > 1 or not guessed.isdisjoint(symbols)


def _difference_text(row: Compared, exact: bool) -> str | None:
    if row.at_most:
        why = "more than two buffers of an operator were alive"
        if not exact:
            why = "it counts ragged sizes with their mean"
        return f"{row.what}: {row.measured:,}, more than the requirement of {row.expected:,}: {why}"
    if not exact:
        return None
    return (
        f"{row.what}: {row.measured:,} measured, {row.expected:,} expected: this is a fault of "
        "the fabric, or of an operator's costs"
    )


def _has_ragged_tiles(plan: Plan) -> bool:
    """Whether tiles have ragged sizes; their means may differ between the parts of a stream."""
    values = {
        id(value): value
        for node in plan.nodes
        for stream in node.inputs
        if isinstance(value := stream.type.value, TileType)
    }
    return any(is_ragged(value.rows) or is_ragged(value.cols) for value in values.values())


class Measured(NamedTuple):
    """The sizes of a run.

    Attributes:
        sizes: the size of each symbol; for a ragged symbol, the mean over groups. A size that no
            channel determines is as the program binds it, or 0.
        guessed: symbols that occur only in products with other unknown symbols, and symbols
            derived from these.
        shown: symbols with a size that the channels determine.
    """

    sizes: dict[Symbol, Size]
    guessed: frozenset[Symbol]
    shown: frozenset[Symbol]


class _ChannelCount(NamedTuple):
    shape: tuple[Dim, ...]
    elements: int


def measured_sizes(plan: Plan, state: RunState) -> Measured:
    """Return the sizes that follow from the elements in the channels of a run."""
    program = plan.program
    bound = followed(program.sizes, program)
    learned = _Learned(bound)
    learned.from_channels(*_channel_counts(plan, state))
    sizes, guessed = followed(learned.sizes, program), learned.guessed
    shown = frozenset(sizes)
    streams = (stream for node in plan.nodes for stream in (*node.inputs, *node.outputs))
    types = {id(stream.type): stream.type for stream in streams}
    for type_ in types.values():
        for dim in learned.unknown(type_.shape):
            for symbol in free_symbols(dim):
                sizes.setdefault(symbol, bound.get(symbol, 0))
    # Channels do not show sizes inside buffers and tiles. For a stream of selected or repeated
    # groups, the mean size over all groups is taken.
    for symbol, of_all in program.renewed.items():
        if symbol not in sizes and free_symbols(of_all) <= sizes.keys():
            sizes[symbol] = Substitution(sizes).dim(of_all)
            guessed.add(symbol)
    for symbol, stands_for in program.absorbed.items():
        if free_symbols(stands_for) & guessed:
            guessed.add(symbol)
    return Measured(followed(sizes, program), frozenset(guessed), shown - guessed)


def _channel_counts(plan: Plan, state: RunState) -> tuple[list[_ChannelCount], list[_ChannelCount]]:
    carried, claimed = [], []
    for edge, channel in zip(plan.edges, state.channels, strict=True):
        carried.append(_ChannelCount(edge.type.shape, channel.taken))
        stream = edge.consumer.inputs[edge.input]
        if isinstance(stream, Feedback):
            # The reader has the shape that the Feedback declares.
            carried.append(_ChannelCount(stream.shape, channel.taken))
        elif edge.claims:
            claimed.append(_ChannelCount(stream.shape, channel.taken))
    return carried, claimed


class _Learned(LearnedSizes):
    """Sizes of symbols, computed from channels; ``guessed`` as in ``Measured``."""

    def __init__(self, bound: Mapping[Symbol, Size]) -> None:
        super().__init__()
        self._bound: Final = bound
        self.guessed: Final[set[Symbol]] = set()

    def from_channels(self, channels: list[_ChannelCount], claimed: list[_ChannelCount]) -> None:
        """Compute sizes from channels, then from channels with assumed shapes.

        If no channel separates two unknown sizes of a product, ``choose`` guesses one.
        """
        while channels:
            waiting = [channel for channel in channels if not self.learn(channel)]
            if len(waiting) == len(channels):
                unsettled = [channel for channel in claimed if not self.learn(channel)]
                if len(unsettled) == len(claimed) and not self.choose(waiting):
                    break
                claimed = unsettled
            channels = waiting

    def learn(self, channel: _ChannelCount) -> bool:
        """Compute a size from a channel; return whether the channel has no further information."""
        if not self.unknown(channel.shape):
            return True
        learned = self.bind(*channel)
        if learned is not None and any(free_symbols(dim) & self.guessed for dim in channel.shape):
            self.guessed.add(learned)
        return learned is not None

    def choose(self, channels: list[_ChannelCount]) -> bool:
        """Guess an unknown size of a shape with elements: the size that the program binds, or 1."""
        for shape, elements in channels:
            unknown = self.unknown(shape)
            symbols = [dim for dim in unknown if isinstance(dim, Symbol)]
            # A shape with elements has no symbol of size 0.
            if elements and symbols == unknown:
                chosen = next(filter(self._bound.get, symbols), symbols[0])
                self.sizes[chosen] = self._bound.get(chosen) or 1
                self.guessed.add(chosen)
                return True
        return False
