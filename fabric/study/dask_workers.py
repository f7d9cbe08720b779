"""Workers of a Dask cluster that work on points."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError

# Any: what a question of Dask returns is not in its type.
from typing import TYPE_CHECKING, Any, Final, cast

from typing_extensions import override

from fabric.study.evaluation import Job
from fabric.study.identity import engine_digest
from fabric.study.workers import Answer, ThreadedWorkers, WorkerLost
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Promise

__all__ = ["DaskWorkers"]

_CONNECT_SECONDS: Final = 10

_LOOK_SECONDS: Final = 0.5
"""So often is looked whether a worker has a point already: from then on its time counts."""

_DESERTED_SECONDS: Final = 30
"""So long a cluster may be without workers: nannies start others within seconds."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Of a worker: its threads share standard output, and would wait for each other anyway."""


class DaskWorkers(ThreadedWorkers):
    """Workers of a cluster, one point each.

    A point whose worker is lost is run again by another one; a point that has lost as many as
    the cluster allows (``distributed.scheduler.allowed-failures``) is lost. The process of a point
    that takes longer than it is given is ended, as those are that work at the end: a nanny, where
    the worker has one, starts another. Where no worker is left the study ends with an error.

    Attributes:
        slots: how many workers there were at the beginning.
    """

    def __init__(self, address: str, timeout_seconds: float | None) -> None:
        """Connect to a cluster.

        Args:
            address: of its scheduler.
            timeout_seconds: for one point; None: as long as it takes.

        Raises:
            ConfigurationError: there is no cluster, no worker, or another fabric on one.
        """
        from distributed import Client

        # What it says of lost workers is said of the points.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._address: Final = address
        self._timeout_seconds: Final = timeout_seconds
        try:
            self._client: Final[Client] = Client(
                address, timeout=_CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"there is no Dask cluster at {address} ({type(error).__name__}): expected the "
                "address of a scheduler, as in tcp://10.0.0.1:8786"
            ) from error
        try:
            slots = _ready(self._client, address)
        except BaseException:
            self._client.close()
            raise
        super().__init__(slots, "dask")
        self._under_way: Final[set[Promise[Any]]] = set()
        self._lock: Final = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Stop, whatever is under way, and leave the cluster."""
        with self._lock:
            self._closed = True
            under_way = list(self._under_way)
        self._stop(under_way)
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def at_work(self) -> bool:
        """Say whether a worker has a point by now."""
        with self._lock:
            keys = {promise.key for promise in self._under_way}
        return bool(self._at_work(keys))

    @override
    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        """Have the cluster answer, in a thread that waits for it."""
        from distributed import KilledWorker

        with self._lock:
            if self._closed:
                raise WorkerLost("nobody works any more")
            promise = self._client.submit(_alone, function, job, pure=False)
            self._under_way.add(promise)
        try:
            return cast("Answer", self._result(promise))
        except TimeoutError:
            self._stop([promise])
            raise
        except KilledWorker as error:
            raise WorkerLost(counted(error.allowed_failures + 1, "time")) from None
        except CancelledError:
            if self._client.status != "running" and not self._closed:
                raise OSError(errno.ECONNRESET, "the Dask cluster is gone", self._address) from None
            raise WorkerLost("the cluster has cancelled it") from None
        finally:
            with self._lock:
                self._under_way.discard(promise)

    def _result(self, promise: Promise[Any]) -> object:
        """Return an answer.

        Raises:
            TimeoutError: a worker has had it for longer than a point is given.
            OSError: there are no workers any more.
        """
        look_seconds = min(_LOOK_SECONDS, self._timeout_seconds or _LOOK_SECONDS)
        begun = deserted = None
        while True:
            with contextlib.suppress(TimeoutError):
                return promise.result(timeout=look_seconds)
            now = time.monotonic()
            with contextlib.suppress(OSError):  # the cluster is gone: the promise says so
                deserted = None if self._client.nthreads() else deserted or now
                if begun is None and self._at_work({promise.key}):
                    begun = now
            if deserted is not None and now - deserted >= _DESERTED_SECONDS:
                raise OSError(
                    errno.ECONNRESET, "the Dask cluster has lost all workers", self._address
                )
            if begun is not None and now - begun >= (self._timeout_seconds or math.inf):
                raise TimeoutError

    def _stop(self, promises: list[Promise[Any]]) -> None:
        """End the processes that are busy with these."""
        keys = {promise.key for promise in promises}
        with contextlib.suppress(OSError):  # the cluster is gone
            busy = self._at_work(keys) if keys else []
            self._client.cancel(promises, force=True)
            if busy:
                self._client.run(_end, workers=busy, wait=False)

    def _at_work(self, keys: set[Any]) -> list[str]:
        """Return the workers that have one of these questions."""
        at_work = self._client.processing()
        return [worker for worker, tasks in at_work.items() if keys.intersection(tasks)]


def _ready(client: Client, address: str) -> int:
    """Return how many workers there are, all with the same fabric as here."""
    try:
        digests = client.run(engine_digest)
    except ImportError as error:
        raise ConfigurationError(
            f"workers of {address} cannot import the fabric ({error}): expected step-fabric "
            "installed there"
        ) from error
    if not digests:
        raise ConfigurationError(f"the Dask cluster at {address} has no workers: expected one")
    here = _here()
    other = [worker for worker, digest in digests.items() if digest != here]
    if other:
        raise ConfigurationError(
            f"worker {other[0]} of {address} has another version of the fabric: expected this one"
        )
    return len(digests)


def _here() -> str:
    """Return the digest of the fabric of this process."""
    return engine_digest()


async def _end() -> None:
    """End a worker's process, whatever it does."""
    os._exit(1)


def _alone(function: Callable[[Job], Answer], job: Job) -> Answer:
    with _ONE_AT_A_TIME:
        return function(job)
