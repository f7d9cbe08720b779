"""Step costs on the fabric: a program of one layer runs at the corners of a grid."""

from __future__ import annotations

import hashlib
import itertools
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric.explore.serving.measured_costs import Lookup
from fabric.explore.serving.requests import Requests, read_requests
from fabric.explore.serving.server import Batch, Count, Price, Sampled, Server
from fabric.explore.study.driver import OnProgress, conduct
from fabric.explore.study.outcome import metric
from fabric.explore.study.space import Scalar, zipped
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from fabric.explore.study.study import Study
from fabric.explore.study.workers import Workers
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section
from fabric.graph.hardware.description import Hardware
from fabric.graph.hardware.file import load_hardware
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import atomic, hardware_file
from fabric.messages.text import counted

_PICO: Final = 1e-12


@dataclass(frozen=True, kw_only=True)
class FabricDescription(Section):
    """A program of one layer, and the grid of steps that it runs for.

    Attributes:
        program: takes ``batch``, ``kv`` and ``routing`` as ``programs/decoder.py`` does: the number
            of tokens, a file with the cached tokens of each, and a file with the experts of each.
        hardware: a hardware file with a clock, or the name of one that comes with the fabric; for
            joules, it needs a price for every kind of energy that a run spends.
        layers: number of layers of the model, all with equal cost.
        routing: a file with a recorded array ``data``, [tokens, top_k], of which rows are drawn.
        decode_requests: numbers of generating requests in the grid, ascending.
        cache_tokens: mean numbers of cached tokens of these requests in the grid, ascending.
        prefill_tokens: numbers of prompt tokens in the grid, ascending, in addition to 0.
        cache_bytes_per_token: bytes of a token's keys and values in one layer.
        attention_flops_per_pair: FLOPs of a token that attends to another token, in one layer.
        attention_flops_per_cycle: FLOPs per cycle of all attention units together.
        parameters: the program's other parameters.
        spread: a table of requests, whose prompts give the spread of caches in the grid; by
            default, the served requests.
        exact_steps: number of steps of each run to simulate exactly, which measures the error of
            interpolation.
    """

    program: Path
    hardware: Path
    layers: Count
    routing: Path
    decode_requests: tuple[Count, ...]
    cache_tokens: tuple[Count, ...]
    prefill_tokens: tuple[Count, ...]
    cache_bytes_per_token: Count
    attention_flops_per_pair: Count
    attention_flops_per_cycle: Count
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    spread: Path | None = None
    exact_steps: Annotated[int, Bounds(0, 1000)] = 4
    seed: Annotated[int, Bounds(0, 2**31 - 1)] = 0

    @override
    def __post_init__(self) -> None:
        """Check the fields, and find the hardware file by its name.

        Raises:
            ConfigurationError: a value does not fit its field, or the name is unknown.
        """
        super().__post_init__()
        object.__setattr__(self, "hardware", hardware_file(self.hardware))


class FabricCost:
    """The ``StepCost`` of a ``FabricDescription``.

    The cycles of a layer are interpolated between grid corners: linear in the number of generating
    requests, the mean of their cached tokens, and the number of prompt tokens.

    The program is a decode step, in which a prompt's token has an empty cache. The attention of
    prompts is added: the time of its bytes at the memory's peak, or of its FLOPs on the attention
    units, whichever is longer.
    """

    def __init__(self, described: FabricDescription, grid: Grid) -> None:
        """Interpolate in a grid of simulated layers; see ``LayerRuns.grid``."""
        self._described: Final = described
        self._hardware: Final = _with_clock(described.hardware)
        axes = ("decode_requests", "cache_tokens", "prefill_tokens")
        self._cycles: Final = Lookup(
            "of the fabric", axes, {at: each.cycles for at, each in grid.items()}, edge=True
        )
        joules = {at: each.joules for at, each in grid.items() if each.joules is not None}
        self._joules: Final = (
            Lookup("of the fabric", axes, joules, edge=True) if len(joules) == len(grid) else None
        )
        self._corners: Final = len(grid)
        self._random: Final = random.Random(described.seed)
        self._seen = 0
        self._reservoir: Final[list[Batch]] = []

    def cost(self, batches: Sequence[Batch]) -> Price:
        """Return the cost of a step; replicas that step together wait for the slowest."""
        batches = [batch for batch in batches if batch.tokens]
        costs = [self._batch_price(batch) for batch in batches]
        joules = [each.joules for each in costs]
        for batch in batches:
            self._sample(batch)
        return Price(
            max(each.seconds for each in costs),
            None if None in joules else sum(each for each in joules if each is not None),
        )

    def notes(self) -> Sequence[str]:
        return (
            f"a step costs {counted(self._described.layers, 'layer')} on the fabric; the cycles of "
            f"a layer are interpolated between {counted(self._corners, 'simulated step')}; outside "
            "of the grid they are those of the nearest point on its edge",
            "attention of prompt tokens is estimated from its bytes and FLOPs, not simulated",
        )

    def taken_outside(self) -> int:
        """Return the number of steps outside of the grid since the last call."""
        return self._cycles.taken_outside()

    def sampled(self) -> list[LayerStep]:
        """Return a sample of the steps, drawn with equal probability."""
        return [LayerStep(tuple(each.decodes), each.prefill_tokens) for each in self._reservoir]

    def compared(self, step: LayerStep, exact: Layer) -> Sampled:
        at = _grid_point(step.caches, step.prompts)
        return Sampled(*at, self._cycles(*at), exact.cycles)

    def _batch_price(self, batch: Batch) -> Price:
        described = self._described
        at = _grid_point(batch.decodes, batch.prefill_tokens)
        attention = self._prompt_attention(batch)
        cycles = described.layers * (self._cycles(*at) + attention.cycles)
        frequency_hz = self._hardware.clock.frequency_hz
        assert frequency_hz is not None
        joules = None
        if self._joules is not None and attention.joules is not None:
            joules = described.layers * (self._joules(*at) + attention.joules)
        return Price(cycles / frequency_hz, joules)

    def _prompt_attention(self, batch: Batch) -> Layer:
        described, hardware = self._described, self._hardware
        read = sum(tokens + cached for tokens, cached in batch.prefills)
        pairs = sum(tokens * (cached + (tokens + 1) / 2) for tokens, cached in batch.prefills)
        moved = read * described.cache_bytes_per_token
        flops = pairs * described.attention_flops_per_pair
        cycles = max(
            moved / float(hardware.hbm.peak_bytes_per_cycle),
            flops / described.attention_flops_per_cycle,
        )
        of_byte = hardware.energy.hbm_picojoules_per_byte
        of_flop = hardware.energy.flop_picojoules(hardware.tile.dtype)
        if of_byte is None or of_flop is None:
            return Layer(cycles, None)
        return Layer(cycles, (moved * of_byte + flops * of_flop) * _PICO)

    def _sample(self, batch: Batch) -> None:
        # Reservoir sampling: each step is in the sample with equal probability.
        self._seen += 1
        if len(self._reservoir) < self._described.exact_steps:
            self._reservoir.append(batch)
            return
        at = self._random.randrange(self._seen)
        if at < self._described.exact_steps:
            self._reservoir[at] = batch


def _grid_point(caches: Sequence[int], prompts: int) -> tuple[int, float, int]:
    return len(caches), sum(caches) / max(1, len(caches)), prompts


def _check_grid(described: FabricDescription, server: Server, requests: Requests) -> None:
    longest = int((requests.prompt_tokens + requests.output_tokens).max())
    for name in ("decode_requests", "cache_tokens", "prefill_tokens"):
        values = getattr(described, name)
        if not values or any(a >= b for a, b in itertools.pairwise(values)):
            raise ConfigurationError(
                f"{name} is {list(values)}: expected ascending numbers, at least one"
            )
    for name, first, last in (
        ("decode_requests", 1, min(server.max_num_seqs, server.max_num_batched_tokens)),
        ("prefill_tokens", None, server.max_num_batched_tokens),
    ):
        values = getattr(described, name)
        if values[-1] < last or (first is not None and values[0] > first):
            raise ConfigurationError(
                f"{name} is {list(values)}, and steps have up to {last:,}: expected "
                f"numbers {'from 1 ' if first else 'up '}to {last:,}"
            )
    if len(described.cache_tokens) < 2:
        raise ConfigurationError(
            f"cache_tokens is {list(described.cache_tokens)}: expected at least two, since caches "
            f"grow to {counted(longest, 'token')}"
        )


def _with_clock(path: Path) -> Hardware:
    hardware = load_hardware(path)
    if hardware.clock.frequency_hz is None:
        raise ConfigurationError(
            "has no [clock] frequency_hz: expected a frequency, to convert cycles to seconds",
            file=str(path),
        )
    return hardware


def _routing(path: Path) -> NDArray[np.int64]:
    try:
        content = np.load(path)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise ValueError("it has a single array")
        with content:
            data = content["data"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise ConfigurationError(
            f"cannot be read ({error}): expected an .npz file with an array data, [tokens, top_k]",
            file=str(path),
        ) from None
    if data.ndim != 2 or not len(data) or not np.issubdtype(data.dtype, np.integer):
        raise ConfigurationError(
            f"data is {data.dtype} {list(data.shape)}: expected integers [tokens, top_k]",
            file=str(path),
        )
    routing: NDArray[np.int64] = data.astype(np.int64)
    return routing


@dataclass(frozen=True)
class LayerStep:
    """Cached tokens of each generating request of a step, and its number of prompt tokens."""

    caches: tuple[int, ...]
    prompts: int

    @property
    def tokens(self) -> int:
        return len(self.caches) + self.prompts


@dataclass(frozen=True)
class Layer:
    """Cycles and energy of a layer; ``joules`` is None if an energy price is missing."""

    cycles: float
    joules: float | None


Grid: TypeAlias = Mapping[tuple[float, ...], Layer]
"""Layers by decode requests, mean cached tokens, and prompt tokens."""


@dataclass(eq=False)
class LayerRuns:
    """Runs steps of a layer as points of a study; the study's database keeps the results."""

    described: FabricDescription
    name: str
    folder: Path
    workers: Workers
    on_progress: OnProgress

    def __post_init__(self) -> None:
        _with_clock(self.described.hardware)
        self._routing = _routing(self.described.routing)

    def grid(self, requests: Requests, server: Server) -> Grid:
        described = self.described
        _check_grid(described, server, requests)
        spread = requests if described.spread is None else read_requests(described.spread)
        corners = self._corners(spread.prompt_tokens.tolist())
        layers = self.run(corners.values())
        return {point: layers[step] for point, step in corners.items()}

    def _corners(self, prompts: Sequence[int]) -> dict[tuple[float, ...], LayerStep]:
        described = self.described
        corners: dict[tuple[float, ...], LayerStep] = {
            (0, 0, tokens): LayerStep((), tokens)
            for tokens in dict.fromkeys((1, *described.prefill_tokens))
        }
        axes = described.decode_requests, described.cache_tokens, (0, *described.prefill_tokens)
        for requests, mean, tokens in itertools.product(*axes):
            caches = spread_caches(prompts, requests, mean, described.seed)
            corners[requests, mean, tokens] = LayerStep(caches, tokens)
        return corners

    def run(self, steps: Iterable[LayerStep]) -> dict[LayerStep, Layer]:
        distinct = list(dict.fromkeys(steps))
        if not distinct:
            return {}
        study = Study(
            program=self.described.program,
            name=self.name,
            hardware=self.described.hardware,
            mode="timing",
            fixed=dict(self.described.parameters),
            space=zipped(
                batch=[each.tokens for each in distinct],
                kv=[self._save(self._lengths(each), "npy") for each in distinct],
                routing=[self._save(self._experts(each), "npz") for each in distinct],
            ),
        )
        store = Store(study, file_url(self.folder / "study.db"))
        result = conduct(study, self.workers, store, self.on_progress)
        if result.interrupted:
            raise KeyboardInterrupt
        layers = {}
        for step, outcome in zip(distinct, result.outcomes, strict=True):
            cycles = metric(outcome, "cycles")
            if cycles is None:
                raise ConfigurationError(
                    f"a layer with {counted(len(step.caches), 'generating request')} and "
                    f"{counted(step.prompts, 'prompt token')} {outcome.ended}: "
                    f"{outcome.reason}",
                    file=str(self.described.program),
                )
            layers[step] = Layer(cycles, metric(outcome, "joules"))
        return layers

    def _lengths(self, step: LayerStep) -> NDArray[np.int64]:
        return np.array([*step.caches, *[0] * step.prompts], np.int64)

    def _experts(self, step: LayerStep) -> NDArray[np.int64]:
        recorded, tokens = self._routing, step.tokens
        random = np.random.default_rng((self.described.seed, tokens))
        whole, rest = divmod(tokens, len(recorded))
        rows = np.sort(random.choice(len(recorded), rest, replace=False))
        return np.concatenate([*[recorded] * whole, recorded[rows]])

    def _save(self, values: NDArray[np.int64], suffix: str) -> str:
        digest = hashlib.sha256(values.tobytes() + str(values.shape).encode()).hexdigest()[:16]
        path = self.folder / "steps" / f"{digest}.{suffix}"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            with atomic(path) as other, other.open("wb") as file:
                if suffix == "npz":
                    np.savez(file, data=values)
                else:
                    np.save(file, values)
        return str(path)


def spread_caches(lengths: Sequence[int], requests: int, mean: int, seed: int) -> tuple[int, ...]:
    """Draw cached tokens of ``requests`` requests, distributed as ``lengths`` with a given mean."""
    random = np.random.default_rng((seed, requests, mean))
    drawn = random.choice(np.asarray(lengths, np.float64), requests)
    return tuple(np.maximum(0, np.rint(drawn * mean / drawn.mean())).astype(int).tolist())
