"""What one layer takes for given tokens: runs of a program in timing mode, kept by a study."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fabric.study.conducting import Told, conduct
from fabric.study.outcome import metric
from fabric.study.space import Scalar, zipped
from fabric.study.storage import file_url
from fabric.study.store import Store
from fabric.study.study import Study
from fabric.study.workers import Workers
from fabric.telling.errors import ConfigurationError
from fabric.telling.whole_file import beside
from fabric.telling.wording import counted

__all__ = ["Laboratory", "Layer", "Situation"]


@dataclass(frozen=True)
class Situation:
    """The tokens of one step, as a layer gets them.

    Attributes:
        caches: tokens of the cache of each that generates, in order.
        prompts: tokens of prompts; each finds an empty cache, see ``FabricCost``.
    """

    caches: tuple[int, ...]
    prompts: int

    @property
    def tokens(self) -> int:
        """All of them."""
        return len(self.caches) + self.prompts


@dataclass(frozen=True)
class Layer:
    """What a layer takes.

    Attributes:
        cycles: of the run.
        joules: of the run; None where the hardware does not price all of it.
    """

    cycles: float
    joules: float | None


class Laboratory:
    """Runs situations, each once, in processes of a study; what is known is in its storage."""

    def __init__(
        self,
        name: str,
        program: Path,
        parameters: Mapping[str, Scalar],
        hardware: Path | None,
        routing: NDArray[np.int64],
        seed: int,
        folder: Path,
        workers: Workers,
        told: Told,
    ) -> None:
        """Know what is to be run.

        Args:
            name: of the study.
            program: takes ``batch``, ``kv`` and ``routing`` as ``programs/decoder.py`` does.
            parameters: that all situations have.
            hardware: a file; the paper's where None.
            routing: [tokens, top_k], recorded; a situation's tokens are drawn from its rows.
            seed: of what is drawn.
            folder: where situations and the storage are.
            workers: who run them.
            told: is told how far it is.
        """
        self._name: Final = name
        self._program: Final = program
        self._parameters: Final = parameters
        self._hardware: Final = hardware
        self._routing: Final = routing
        self._seed: Final = seed
        self._folder: Final = folder
        self._workers: Final = workers
        self._told: Final = told

    def run(self, situations: Iterable[Situation]) -> dict[Situation, Layer]:
        """Return what each of them takes.

        Raises:
            ConfigurationError: a run does not come to its end, or the hardware states no clock.
            KeyboardInterrupt: somebody stopped it; what has run is kept.
        """
        wanted = list(dict.fromkeys(situations))
        if not wanted:
            return {}
        study = Study(
            program=self._program,
            name=self._name,
            hardware=self._hardware,
            mode="timing",
            fixed=dict(self._parameters),
            space=zipped(
                batch=[each.tokens for each in wanted],
                kv=[self._kept(self._lengths(each), "npy") for each in wanted],
                routing=[self._kept(self._drawn(each), "npz") for each in wanted],
            ),
        )
        store = Store(study, file_url(self._folder / "study.db"))
        result = conduct(study, self._workers, store, self._told)
        if result.interrupted:
            raise KeyboardInterrupt
        found = {}
        for situation, outcome in zip(wanted, result.outcomes, strict=True):
            cycles = metric(outcome, "cycles")
            if cycles is None:
                raise ConfigurationError(
                    f"a layer with {counted(len(situation.caches), 'request')} and "
                    f"{counted(situation.prompts, 'token')} of prompts: {outcome.status}, "
                    f"{outcome.reason}",
                    file=str(self._program),
                )
            found[situation] = Layer(cycles, metric(outcome, "joules"))
        return found

    def _lengths(self, situation: Situation) -> NDArray[np.int64]:
        return np.array([*situation.caches, *[0] * situation.prompts], np.int64)

    def _drawn(self, situation: Situation) -> NDArray[np.int64]:
        """Return the experts of each token, [tokens, top_k], in the order they were recorded."""
        recorded, tokens = self._routing, situation.tokens
        random = np.random.default_rng((self._seed, tokens))
        whole, rest = divmod(tokens, len(recorded))
        rows = np.sort(random.choice(len(recorded), rest, replace=False))
        return np.concatenate([*[recorded] * whole, recorded[rows]])

    def _kept(self, values: NDArray[np.int64], suffix: str) -> str:
        """Write an array into a file that is named by what it has, and return its path."""
        digest = hashlib.sha256(values.tobytes() + str(values.shape).encode()).hexdigest()[:16]
        path = self._folder / "situations" / f"{digest}.{suffix}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside(path) as other, other.open("wb") as file:
                if suffix == "npz":
                    np.savez(file, data=values)
                else:
                    np.save(file, values)
        return str(path)


def spread_caches(lengths: Sequence[int], requests: int, mean: int, seed: int) -> tuple[int, ...]:
    """Return caches of ``requests`` that are spread as ``lengths`` are, ``mean`` on the average."""
    random = np.random.default_rng((seed, requests, mean))
    drawn = random.choice(np.asarray(lengths, np.float64), requests)
    return tuple(np.maximum(0, np.rint(drawn * mean / drawn.mean())).astype(int).tolist())
