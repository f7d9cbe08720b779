from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabric.display.terminal import plain_text
from fabric.explore.serving import result, served
from fabric.explore.serving.folder import drawn
from fabric.explore.serving.measured_costs import TableDescription
from fabric.explore.serving.question import RequestDescription, Serving
from fabric.explore.serving.requests import Requests
from fabric.explore.serving.server import Batch, ContinuousBatching, Price, Sampled, Server

NAN = float("nan")


def steps(*rows: tuple[float, float, int, int, int]) -> served.Steps:
    class Looked(ContinuousBatching):
        running = waiting = 0

    found = served.Steps()
    for start, seconds, running, waiting, blocks in rows:
        scheduler = Looked(Server())
        Looked.running, Looked.waiting = running, waiting
        scheduler.blocks = blocks
        found.add(start, Price(seconds), [Batch()], [scheduler])
    return found


SERVED = served.Served(
    requests=Requests(
        np.array([1.0, 2.0, 4.0, 7.0]), np.array([10, 20, 30, 40]), np.array([1, 3, 5, 2])
    ),
    server=Server(replicas=3),
    taken_seconds=np.array([1.0, 2.0, 4.0, NAN]),
    begun_seconds=np.array([1.0, 2.0, 4.0, NAN]),
    first_seconds=np.array([2.0, 4.0, 5.0, NAN]),
    last_seconds=np.array([2.0, 8.0, 17.0, NAN]),
    steps=(
        steps((0, 2, 1, 0, 4), (3, 2, 3, 2, 9)),
        served.Steps(),
        steps((1, 5, 2, 1, 7)),
    ),
    preemptions=6,
    joules=18.0,
    interrupted=False,
)


def test_measures_of_a_served_trace() -> None:
    found = served.measured(SERVED)
    assert vars(found.latency) == pytest.approx(
        {"mean": 20 / 3, "median": 6, "p90": 11.6, "p95": 12.3, "p99": 12.86}
    )
    assert found == served.Measures(
        requests=4,
        completed=3,
        offered_per_second=3 / 6,
        duration_seconds=16.0,
        time_to_first_token=served.Spread(4 / 3, 1.0, 1.8, 1.9, 1.98),
        time_per_token=served.Spread(2.5, 2.5, 2.9, 2.95, 2.99),
        latency=found.latency,
        output_tokens_per_second=9 / 16,
        prompt_tokens_per_second=60 / 16,
        requests_per_second=3 / 16,
        goodput_per_second=None,
        kept=None,
        joules_per_token=2.0,
        preemptions=6,
        steps=3,
        mean_running=(2 * 1 + 2 * 3 + 5 * 2) / 9,
        most_blocks=9,
        num_blocks=None,
        interrupted=False,
    )


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        (served.ServiceLevel(time_to_first_token_seconds=1), 2),
        (served.ServiceLevel(time_to_first_token_seconds=0.99), 0),
        (served.ServiceLevel(time_per_token_seconds=2), 2),
        (served.ServiceLevel(time_per_token_seconds=1.99), 1),
        (served.ServiceLevel(latency_seconds=6), 2),
        (served.ServiceLevel(latency_seconds=5.99), 1),
        (served.ServiceLevel(time_to_first_token_seconds=1, time_per_token_seconds=2), 1),
        (served.ServiceLevel(time_per_token_seconds=2, latency_seconds=1), 1),
        (served.ServiceLevel(), None),
        (None, None),
    ],
)
def test_service_level_counts_kept_requests(
    level: served.ServiceLevel | None, kept: int | None
) -> None:
    found = served.measured(SERVED, level)
    assert found.goodput_per_second == (None if kept is None else kept / 16)
    assert found.kept == (None if kept is None else kept / 4)


def test_measures_without_completed_requests_are_none() -> None:
    nothing = np.full(4, NAN)
    none = replace(SERVED, first_seconds=nothing, last_seconds=nothing, steps=(served.Steps(),))
    found = served.measured(none, served.ServiceLevel(latency_seconds=1))
    assert found.completed == found.steps == found.most_blocks == 0
    assert found.latency == served.Spread(None, None, None, None, None)
    assert found.duration_seconds is None
    assert found.requests_per_second is None
    assert found.goodput_per_second is None
    assert found.joules_per_token is None
    assert found.mean_running is None
    assert found.kept == 0
    assert served.measured(replace(SERVED, interrupted=True)).joules_per_token is None
    once = Requests(np.zeros(4), SERVED.requests.prompt_tokens, SERVED.requests.output_tokens)
    assert served.measured(replace(SERVED, requests=once)).offered_per_second is None
    assert result.Timeline.of(none) == result.Timeline((), (), (), ())


def test_timeline_adds_up_replicas() -> None:
    found = result.Timeline.of(SERVED)
    assert found.seconds == tuple(float(f"{6 * n / 120:.6g}") for n in range(1, 121))
    # The first replica steps from 0 to 2 and from 3 to 5, the last one from 1 to 6.
    assert found.running == tuple([1] * 20 + [3] * 20 + [2] * 20 + [5] * 40 + [2] * 20)
    assert found.waiting == tuple([0] * 20 + [1] * 40 + [3] * 40 + [1] * 20)
    assert found.blocks == tuple([4] * 20 + [11] * 20 + [7] * 20 + [16] * 40 + [7] * 20)


def spread(mean: float) -> served.Spread:
    return served.Spread(mean, mean / 2, mean * 2, mean * 3, mean * 5)


def run(design: str, rate: float | None, first: float, *, priced: bool = False) -> result.Run:
    known = served.measured(SERVED)
    measures = replace(
        known,
        requests=3,
        time_to_first_token=spread(first),
        time_per_token=spread(first / 4000),
        latency=spread(10 * first),
        output_tokens_per_second=1000 * (rate or 1.25),
        joules_per_token=first if priced else None,
    )
    timeline = result.Timeline((1.0, 2.0, 3.0), (1, 2, first), (0, 1, 0), (8, 16, 4))
    return result.Run(design, rate, measures, timeline)


def serving(*designs: str, rates: tuple[float, ...] = (1, 2, 4000)) -> Serving:
    cost = TableDescription(
        attention=Path("a.csv"),
        dense=Path("d.csv"),
        layers=2,
        in_each_layer={"q": 1, "v": 2},
        in_each_step={},
        graph_tokens=(1, 2),
    )
    return Serving(
        requests=RequestDescription(file=Path("r.csv"), rates=rates),
        designs=dict.fromkeys(designs, cost),
        server=Server(replicas=2),
        level=served.ServiceLevel(latency_seconds=2),
        name="two <designs>",
        question="Which of <both>?",
    )


def both() -> result.ServingResult:
    slow = run("slow", 4000, 0.9, priced=True)
    slow = replace(slow, measures=replace(slow.measures, interrupted=True, completed=2))
    fast = [run("fast", rate, at) for rate, at in ((1, 0.1), (2, 0.2), (4000, 0.21))]
    fast[1] = replace(fast[1], outside=1200, sampled=(Sampled(1, 2.0, 3, 110, 100),))
    off = (Sampled(1, 2.0, 3, 80, 100), Sampled(1, 2.0, 3, 100, 100))
    fast[2] = replace(fast[2], outside=34, sampled=off)
    kept = replace(fast[2].measures, goodput_per_second=1234.5, kept=0.5)
    fast[2] = replace(fast[2], measures=kept)
    runs = (*fast, run("slow", 1, 0.3, priced=True), run("slow", 2, 0.4, priced=True), slow)
    notices = {"fast": ("tables of <layers>",), "slow": ()}
    return result.ServingResult(serving("fast", "slow"), runs, notices, interrupted=True)


@pytest.mark.parametrize(
    ("firsts", "knee"),
    [
        ((1.0,), None),
        ((1.0, 2.0), None),
        ((1.0, 2.01), 1),
        ((1.0, 1.5, 2.0), None),
        ((1.0, 2.5, 1.0), 1),
        ((0.0, 0.0, 0.1), 2),
    ],
)
def test_knee_is_the_load_before_latency_doubles(
    firsts: tuple[float, ...], knee: float | None
) -> None:
    runs = [run("", rate, each) for rate, each in zip((1, 2, 4000), firsts, strict=False)]
    assert result.ServingResult(serving(""), tuple(runs), {}).knee("") == knee
    as_it_comes = (run("", None, 9.0), *runs)
    assert result.ServingResult(serving(""), as_it_comes, {}).knee("") == knee


def test_result_is_printed_and_an_object(golden: Callable[[str, str], None]) -> None:
    golden("both.txt", plain_text(both().sheet(), 120) + "\n")
    found = both().as_json()
    assert {name: found[name] for name in ("serving", "question", "status", "error")} == {
        "serving": "two <designs>",
        "question": "Which of <both>?",
        "status": "interrupted",
        "error": None,
    }
    assert found["notes"] == both().server_notes()
    fast, slow = found["designs"]
    assert (fast["design"], fast["knee_per_second"], len(fast["notes"])) == ("fast", 2, 3)
    assert [each["rate_per_second"] for each in slow["runs"]] == [1, 2, 4000]
    assert slow["runs"][0]["latency"]["p90"] == 6
    assert fast["runs"][1]["cost"]["outside"] == 1200
    assert replace(both(), interrupted=False).as_json()["status"] == "completed"


def test_times_have_a_unit_in_which_they_are_read() -> None:
    assert result.time_unit((0.0009, 0.001)) == result.time_unit((0.0,)) == (1e-3, "ms")
    assert result.time_unit((99, 0.01)) == (1e-3, "ms")
    assert result.time_unit((100, 0.01)) == (1, "s")
    assert result.time_unit((0.000999, None)) == (1e-6, "\u03bcs")


def test_knee_is_explained_if_a_design_has_one() -> None:
    load, _ = drawn(both())
    flat = replace(both(), runs=tuple(run("slow", rate, 0.3) for rate in (1, 2, 4000)))

    assert "A ring is the knee" in load.caption
    assert "knee" not in drawn(flat)[0].caption
