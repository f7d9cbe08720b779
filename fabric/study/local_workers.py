"""Processes on this machine that work on points: everything is imported once for all of them."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Final, cast

from typing_extensions import override

from fabric.study.evaluation import Job
from fabric.study.workers import Answer, ThreadedWorkers, WorkerLost

__all__ = ["LocalWorkers"]

_IMPORTED: Final = [
    "fabric.study.evaluation",
    "fabric.compiled.kernel",
    "fabric.symbolic.metrics",
    "operators",
    "sympy",
]
"""What runs import when they first need it."""

_POINTS_OF_A_WORKER: Final = 200
"""After so many questions a process is replaced: what programs leave behind stays bounded."""

_CHILDREN: Final = threading.RLock()
"""Held by whoever starts a process or asks how one is. Whenever one starts, Python asks all of
them, and how a process ended is told once: of two threads that ask together one gets it wrong.
"""


class LocalWorkers(ThreadedWorkers):
    """Processes on this machine, one for each point that is worked on.

    Each has a pipe and a thread of its own that waits for its answer or its end: whatever becomes
    of a process, the others do not notice.
    """

    def __init__(self, slots: int, timeout_seconds: float | None) -> None:
        """Start them when they are first asked for something.

        Args:
            slots: how many.
            timeout_seconds: for one point; None: as long as it takes.
        """
        super().__init__(slots, "worker", _leave_ctrl_c)
        self._timeout_seconds: Final = timeout_seconds
        # Children of a small process that has one thread and everything imported.
        self._context: Final = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_IMPORTED)
        self._idle: Final = queue.LifoQueue[_Process | None]()
        for _ in range(slots):
            self._idle.put(None)
        self._alive: Final[set[_Process]] = set()
        self._closed = False

    def close(self) -> None:
        """Stop them, whatever is under way."""
        with _CHILDREN:
            self._closed = True
            for process in self._alive:
                process.kill()
        self._threads.shutdown(cancel_futures=True)

    @property
    def processes(self) -> list[ForkServerProcess]:
        """The processes that there are now."""
        with _CHILDREN:
            return [each.process for each in self._alive]

    @override
    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        """Have a process answer, in a thread that waits for it."""
        process = self._idle.get()
        try:
            if process is not None and process.has_ended():
                self._end(process)
                process = None
            if process is None:
                process = self._started()
            answer = process.ask(function, job, self._timeout_seconds)
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

    def _started(self) -> _Process:
        with _CHILDREN:
            if self._closed:
                raise WorkerLost("nobody works any more")
            process = _Process(self._context)
            self._alive.add(process)
        return process

    def _end(self, process: _Process) -> None:
        process.kill()
        with _CHILDREN:
            self._alive.discard(process)


class _Process:
    """A process that answers questions, one after the other.

    Attributes:
        process: itself.
        questions: that it has answered.
    """

    def __init__(self, context: ForkServerContext) -> None:
        self._ours, theirs = context.Pipe()
        self.process: Final = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        # With the last end closed its own end shows: there is nothing more to read.
        theirs.close()
        self.questions = 0

    def ask(
        self, function: Callable[[Job], Answer], job: Job, timeout_seconds: float | None
    ) -> Answer | BaseException:
        """Return the answer to a question, or what was raised instead.

        Raises:
            TimeoutError: it takes longer than ``timeout_seconds``.
            WorkerLost: the process ended.
        """
        try:
            self._ours.send((function, job))
            # A thread of the program may end the process and keep its end of the pipe open.
            ready = wait([self._ours, self.process.sentinel], timeout_seconds)
            answer = self._ours.recv() if self._ours in ready else None
        except (EOFError, OSError):
            ready, answer = [self.process.sentinel], None
        if not ready:
            raise TimeoutError
        if answer is None:
            raise WorkerLost.with_exit_code(self._exit_code())
        self.questions += 1
        return cast("Answer | BaseException", answer)

    def has_ended(self) -> bool:
        """Whether it is there no more."""
        with _CHILDREN:
            return not self.process.is_alive()

    def kill(self) -> None:
        """End it, whatever it does."""
        with _CHILDREN:
            self.process.kill()
        self._exit_code()

    def _exit_code(self) -> int | None:
        """Wait for its end, and return how it ended."""
        wait([self.process.sentinel])
        with _CHILDREN:
            self.process.join()
            return self.process.exitcode


def _serve(questions: Connection) -> None:
    """Answer questions as long as who conducts the study lives."""
    _prepare()
    with contextlib.suppress(EOFError, OSError):  # the other end is gone
        while True:
            function, job = questions.recv()
            questions.send(_answered(function, job))


def _answered(function: Callable[[Job], Answer], job: Job) -> Answer | BaseException:
    """Return the answer, or what is raised instead: it is raised again where it is seen."""
    try:
        return function(job)
    except KeyboardInterrupt:
        # SIGTERM during a run: somebody wants this process to end.
        os._exit(128 + signal.SIGTERM)
    except BaseException as error:  # noqa: BLE001 - see above
        return error


def _leave_ctrl_c() -> None:
    """Leave Ctrl-C to who conducts the study: a terminal sends it to all processes.

    Those that this thread starts, and their own, have it blocked from their first moment.
    """
    # The process that multiprocessing starts first would take the block away again.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _prepare() -> None:
    # Standard output may be for one JSON object; what programs print otherwise goes beside it.
    os.dup2(2, 1)
    # It is blocked: a KeyboardInterrupt is a program's own.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As in the command line: a program is many objects that stay.
    gc.set_threshold(500_000, 50, 1_000)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when who conducts the study is gone, by SIGKILL, say."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
