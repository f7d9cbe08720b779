"""Workers that evaluate points: processes on this machine, or of a Dask cluster."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import math
import multiprocessing
import os
import queue
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess

# Any: results of Dask's futures are untyped.
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typing_extensions import override

from fabric.explore.study.evaluation import Job, engine_digest, known_before, outcome_of
from fabric.explore.study.outcome import Before, Outcome
from fabric.messages.addresses import shown_address
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Promise

Answer = TypeVar("Answer", Before, Outcome)

_IMPORTED: Final = [
    "fabric.explore.study.evaluation",
    "fabric.timing.compiled.kernel",
    "fabric.analysis.symbolic.metrics",
    "operators",
    "sympy",
]

_POINTS_OF_A_WORKER: Final = 200
"""A process is replaced after this many points, since programs may leak memory."""

_CHILDREN: Final = threading.RLock()
"""Held to start a process or read its state.

Python polls all children whenever a process starts, and reports an exit status only once.
"""

_SAFE_PATH: Final = "PYTHONSAFEPATH"
_CONNECT_SECONDS: Final = 10

_LOOK_SECONDS: Final = 0.5
"""Interval of checks whether a worker has started a point, which starts its timeout."""

_DESERTED_SECONDS: Final = 30
"""A cluster may be without workers for this time: nannies replace them within seconds."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Serialises a worker's threads, which share standard output and the interpreter lock."""


class Workers(ABC):
    """Workers for points, each with a thread that waits for its results.

    A result fails with TimeoutError after the timeout, and with WorkerLost if its worker ends. Only
    that point is lost.
    """

    def __init__(
        self, slots: int, timeout_seconds: float | None, begin: Callable[[], object] | None = None
    ) -> None:
        """Start a thread for each of ``slots`` workers; each calls ``begin`` first."""
        self.slots = slots
        self.timeout_seconds = timeout_seconds
        self._threads: Final = ThreadPoolExecutor(slots, "worker", begin)

    def look(self, job: Job) -> Future[Before]:
        """Begin to compute a point's bounds."""
        return self._threads.submit(self._answer, known_before, job)

    def run(self, job: Job) -> Future[Outcome]:
        """Begin to run a point."""
        return self._threads.submit(self._answer, outcome_of, job)

    @abstractmethod
    def close(self) -> None:
        """Stop, and abandon the running points."""

    @abstractmethod
    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        """Wait for the result of a worker; called in the worker's thread."""


class WorkerLost(Exception):  # noqa: N818 - an event, not an error of ours
    """A worker ended without an answer; the text gives the reason."""


def unanswered(job: Job, error: BaseException, workers: Workers) -> Outcome:
    """Return the outcome of an unanswered point; raise ``error`` if it is internal."""
    if isinstance(error, TimeoutError):
        seconds = workers.timeout_seconds
        return job.point.outcome(
            "timeout", reason=f"took longer than {seconds:g} s", wall_seconds=seconds
        )
    if isinstance(error, WorkerLost):
        return job.point.outcome("lost", reason=f"its worker ended ({error})")
    raise error


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalWorkers(Workers):
    """Processes on this machine, one for each running point.

    Each process has a pipe of its own, so that a process that ends loses only its own point.
    """

    def __init__(self, slots: int, timeout_seconds: float | None) -> None:
        super().__init__(slots, timeout_seconds, _block_ctrl_c)
        # Forked from a small process that has one thread and has imported all modules.
        self._context: Final = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_IMPORTED)
        self._idle: Final = queue.LifoQueue[_Process | None]()
        for _ in range(slots):
            self._idle.put(None)
        self._alive: Final[set[_Process]] = set()
        self._closed = False

    @override
    def close(self) -> None:
        with _CHILDREN:
            self._closed = True
            for process in self._alive:
                process.kill()
        self._threads.shutdown(cancel_futures=True)

    @property
    def processes(self) -> list[ForkServerProcess]:
        with _CHILDREN:
            return [each.process for each in self._alive]

    @override
    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        process = self._idle.get()
        try:
            if process is not None and process.has_ended():
                self._end(process)
                process = None
            if process is None:
                process = self._start()
            answer = process.ask(function, job, self.timeout_seconds)
            if process.questions == _POINTS_OF_A_WORKER:
                self._end(process)
                process = None
        except BaseException:
            if process is not None:
                self._end(process)
                process = None
            raise
        finally:
            self._idle.put(process)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _start(self) -> _Process:
        with _CHILDREN, _safe_path():
            if self._closed:
                raise WorkerLost("the workers are closed")
            process = _Process(self._context)
            self._alive.add(process)
        return process

    def _end(self, process: _Process) -> None:
        process.kill()
        with _CHILDREN:
            self._alive.discard(process)


class _Process:
    def __init__(self, context: ForkServerContext) -> None:
        self._ours, theirs = context.Pipe()
        self.process: Final = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        # Then only the process has a copy of ``theirs``, so that its exit ends our reads.
        theirs.close()
        self.questions = 0

    def ask(
        self, function: Callable[[Job], Answer], job: Job, timeout_seconds: float | None
    ) -> Answer | BaseException:
        try:
            self._ours.send((function, job))
            # The sentinel, too: children of an ended process may hold its end of the pipe open.
            ready = wait([self._ours, self.process.sentinel], timeout_seconds)
            answer = self._ours.recv() if self._ours in ready else None
        except (EOFError, OSError):
            ready, answer = [self.process.sentinel], None
        if not ready:
            raise TimeoutError
        if answer is None:
            raise WorkerLost(self._end())
        self.questions += 1
        return cast("Answer | BaseException", answer)

    def has_ended(self) -> bool:
        with _CHILDREN:
            return not self.process.is_alive()

    def kill(self) -> None:
        with _CHILDREN:
            self.process.kill()
        self._end()

    def _end(self) -> str:
        wait([self.process.sentinel])
        with _CHILDREN:
            self.process.join()
            code = self.process.exitcode
        if code is None:
            return "for an unknown reason"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _serve(questions: Connection) -> None:
    _prepare()
    with contextlib.suppress(EOFError, OSError):  # the other end is gone
        while True:
            function, job = questions.recv()
            questions.send(_answer_or_error(function, job))


def _answer_or_error(function: Callable[[Job], Answer], job: Job) -> Answer | BaseException:
    try:
        return function(job)
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGTERM)  # SIGTERM arrived during a run
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        return error


def _block_ctrl_c() -> None:
    # A terminal sends Ctrl-C to all processes; only the parent handles it. Processes that this
    # thread starts inherit the blocked signal.
    with _CHILDREN, _safe_path():
        # Started first, because its start unblocks the signal.
        resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    # Interpreters started meanwhile ignore the current folder, whose files could hide modules.
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _prepare() -> None:
    # Standard output may be reserved for a JSON object: programs print on standard error.
    os.dup2(2, 1)
    os.environ.pop(_SAFE_PATH, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As in the command line: a program has many long-lived objects.
    gc.set_threshold(500_000, 50, 1_000)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class DaskWorkers(Workers):
    """Workers of a Dask cluster, one point each.

    A point whose worker is lost runs again on another worker, up to
    ``distributed.scheduler.allowed-failures`` times. The process of a point is killed after the
    timeout, or at the end of the study; a nanny replaces it. The study fails if no worker is left.
    """

    def __init__(self, address: str, timeout_seconds: float | None) -> None:
        """Connect to the scheduler at ``address``."""
        from distributed import Client

        # Lost workers are reported with their points.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._address: Final = shown_address(address)
        try:
            self._client: Final[Client] = Client(
                address, timeout=_CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"there is no Dask cluster at {self._address} ({type(error).__name__}): expected "
                "the address of a scheduler, as in tcp://10.0.0.1:8786"
            ) from None
        try:
            slots = _ready(self._client, self._address)
        except BaseException:
            self._client.close()
            raise
        super().__init__(slots, timeout_seconds)
        self._under_way: Final[set[Promise[Any]]] = set()
        self._lock: Final = threading.Lock()
        self._closed = False

    @override
    def close(self) -> None:
        with self._lock:
            self._closed = True
            under_way = list(self._under_way)
        self._stop(under_way)
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    @override
    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        from distributed import KilledWorker

        with self._lock:
            if self._closed:
                raise WorkerLost("the workers are closed")
            promise = self._client.submit(_run_alone, function, job, pure=False)
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
        look_seconds = min(_LOOK_SECONDS, self.timeout_seconds or _LOOK_SECONDS)
        begun = deserted = None  # times: the point began, the cluster was without workers
        while True:
            with contextlib.suppress(TimeoutError):
                return promise.result(timeout=look_seconds)
            now = time.monotonic()
            with contextlib.suppress(OSError):  # the promise reports a lost cluster
                deserted = None if self._client.nthreads() else deserted or now
                if begun is None and self._at_work({promise.key}):
                    begun = now
            if deserted is not None and now - deserted >= _DESERTED_SECONDS:
                raise OSError(
                    errno.ECONNRESET, "the Dask cluster has lost all workers", self._address
                )
            if begun is not None and now - begun >= (self.timeout_seconds or math.inf):
                raise TimeoutError

    def _stop(self, promises: list[Promise[Any]]) -> None:
        keys = {promise.key for promise in promises}
        with contextlib.suppress(OSError):  # the cluster is gone
            busy = self._at_work(keys) if keys else []
            self._client.cancel(promises, force=True)
            if busy:
                self._client.run(_end, workers=busy, wait=False)

    def _at_work(self, keys: set[Any]) -> list[str]:
        at_work = self._client.processing()
        return [worker for worker, tasks in at_work.items() if keys.intersection(tasks)]


def _ready(client: Client, address: str) -> int:
    from distributed.comm.core import CommClosedError

    digests: dict[str, str] = {}
    for worker, answer in client.run(engine_digest, on_error="return").items():
        if isinstance(answer, ImportError):
            raise ConfigurationError(
                f"workers of {address} cannot import the fabric ({answer}): expected step-fabric "
                "installed there"
            ) from answer
        if isinstance(answer, CommClosedError):  # the worker has left
            continue
        if isinstance(answer, Exception):
            raise answer
        digests[worker] = answer
    if not digests:
        raise ConfigurationError(f"the Dask cluster at {address} has no workers: expected a worker")
    own_digest = _own_digest()
    differing = [worker for worker, digest in digests.items() if digest != own_digest]
    if differing:
        raise ConfigurationError(
            f"worker {differing[0]} of {address} has another version of the fabric: expected this "
            "one"
        )
    return len(digests)


def _own_digest() -> str:
    return engine_digest()


async def _end() -> None:
    os._exit(1)


def _run_alone(function: Callable[[Job], Answer], job: Job) -> Answer:
    with _ONE_AT_A_TIME:
        return function(job)
