"""The inner loop of the flat memory, compiled: tens of millions of requests a run are normal.

In every cycle each client with a burst under way hands over one bundle of requests, in client
order. Entry i of a cycle's requests goes to memory channel ``offset + i(i+1)/2``; a channel
starts one request every ``interval`` cycles and answers ``startup + latency`` cycles later.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters, MachineCode

__all__ = ["advance"]

_NEVER = 1 << 62


@MachineCode
def advance(  # noqa: C901 - one loop, compiled as one function
    horizon: int,
    budget: int,
    finished: int,
    offset: int,
    free: Counters,
    next_bundle: Counters,
    left: Counters,
    last_ready: Counters,
    active: Counters,
    done: Counters,
    bundle: int,
    answer: int,
    interval: int,
) -> tuple[int, int, int, int, int]:
    """Run up to ``horizon``, or to the first cycle in which a client sees its burst complete.

    It may return earlier, between two cycles: after so many requests that the host's signals have
    waited long enough. Called again with what it returned, it goes on as if it had not.

    Args:
        horizon: the last cycle to process.
        budget: about so many requests at most, whole cycles of them, before it returns.
        finished: how many clients are done already; 0 unless it goes on.
        offset: the rotating pointer.
        free: per memory channel, the first cycle in which it can start a request.
        next_bundle: per client, the cycle in which its next bundle is taken.
        left: per client, requests not yet handed over.
        last_ready: per client, when the latest of its requests is ready.
        active: scratch space, one entry a client.
        done: filled with the clients whose last request was handed over.
        bundle: requests per bundle.
        answer: start-up and latency of a request.
        interval: cycles between the starts of two requests on one channel.

    Returns:
        The new offset, how many clients are done, the first cycle not yet processed, the last one
        to process: while that is not the smaller one, there is more to do; and a cycle up to which
        no client that is not done sees its burst complete.
    """
    channels = free.size
    count = 0
    cycle = horizon + 1
    for client in range(left.size):
        if left[client] > 0:
            active[count] = client
            count += 1
            cycle = min(cycle, next_bundle[client])
    turns = budget // max(1, count * bundle) + 1
    while count > 0 and cycle <= horizon and turns > 0:
        turns -= 1
        step = 0
        kept = 0
        following = horizon + 1
        for slot in range(count):
            client = active[slot]
            if next_bundle[client] <= cycle:
                requests = min(bundle, left[client])
                ready = last_ready[client]
                for _ in range(requests):
                    start = max(free[offset], cycle + 1)
                    free[offset] = start + interval
                    ready = max(ready, start + answer)
                    step += 1
                    if step == channels:
                        step = 0
                    offset += step
                    if offset >= channels:
                        offset -= channels
                last_ready[client] = ready
                left[client] -= requests
                next_bundle[client] = cycle + 1
                if left[client] == 0:
                    done[finished] = client
                    finished += 1
                    horizon = min(horizon, ready + 1)
                    continue
            following = min(following, next_bundle[client])
            active[kept] = client
            kept += 1
        count = kept
        cycle = following
    silent_until = _NEVER
    for slot in range(count):
        client = active[slot]
        bundles = -(-left[client] // bundle)
        silent_until = min(silent_until, next_bundle[client] + bundles + answer)
    return offset, finished, cycle, horizon, silent_until
