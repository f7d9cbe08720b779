from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.explore.serving.requests import Requests, read_requests
from fabric.messages.errors import ConfigurationError
from tests.profiles import examples
from tests.serving.validation import DATA

HEADER = "arrival_seconds,prompt_tokens,output_tokens\n"


def some(*times: float) -> Requests:
    numbers = np.arange(1, len(times) + 1)
    return Requests(np.array(times), numbers, numbers)


@pytest.mark.parametrize(
    ("trace", "requests", "first", "last_seconds"),
    [("code", 8819, (4808, 10), 3435.948056)],
)
def test_azure_trace_is_read(
    trace: str, requests: int, first: tuple[int, int], last_seconds: float
) -> None:
    found = read_requests(DATA / f"AzureLLMInferenceTrace_{trace}.csv.gz")
    assert len(found) == requests
    assert (found.prompt_tokens[0], found.output_tokens[0]) == first
    assert found.arrival_seconds[0] == 0
    assert found.arrival_seconds[-1] == pytest.approx(last_seconds, abs=1e-9)


@pytest.mark.parametrize(
    ("moments", "seconds"),
    [
        (
            ("00:00:00.009930+00:00", "00:00:00.051930+00:00", "00:00:01+00:00"),
            [0, 0.042, 0.99007],
        ),
        (("00:00:00+00:00", "01:00:01+01:00", "00:00:02Z", "00:00:03"), [0, 1, 2, 3]),
        (("05:30:00.5+05:30", "00:00:00.512345678901Z"), [0, 0.012345678901]),
    ],
)
def test_times_of_dates_are_exact_with_offsets_and_any_digits(
    moments: tuple[str, ...], seconds: list[float], tmp_path: Path
) -> None:
    file = tmp_path / "moments.csv"
    rows = "".join(f"2024-05-10 {each},1,1\n" for each in moments)
    file.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}")

    assert read_requests(file).arrival_seconds == pytest.approx(seconds, rel=1e-15, abs=0)


def test_arrivals_in_nanoseconds_are_read() -> None:
    found = read_requests(DATA / "sharegpt_300_sps10_lengths.csv")
    assert len(found) == 300
    assert found.arrival_seconds[0] == pytest.approx(0.046926808, rel=1e-12)


def test_columns_may_have_any_order(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("user,output_tokens,arrival_seconds,prompt_tokens\nx,3,0.5,7\n\ny,1,0.5,2\n")
    assert list(read_requests(file).rows()) == [(0.5, 7, 3), (0.5, 2, 1)]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "its first line names no arrival_seconds or arrival_ns or TIMESTAMP: expected a "),
        ("arrival_ns,output_tokens\n", 1, "its first line names no prompt_tokens or ContextTokens"),
        (HEADER, None, "has no requests: expected a row for each"),
        (HEADER + "-1,2,3\n", 2, "line 2 arrives at -1 s: expected a time from 0 to 4e+09 s"),
        (HEADER + "nan,2,3\n", 2, "line 2 arrives at nan s: expected a time from 0 to 4e+09 s"),
        (HEADER + "soon,2,3\n", 2, "line 2 has 'soon' as arrival_seconds: expected a time"),
        (
            HEADER + "2,2,3\n1.5,2,3\n",
            3,
            "line 3 arrives 0.5 s before the line above it: expected ascending times",
        ),
        (HEADER + "1,2,0\n", 2, "line 2 has an output of 0 tokens: expected 1 to 2,147,483,647"),
        (HEADER + "1,0,2\n", 2, "line 2 has a prompt of 0 tokens: expected 1 to 2,147,483,647"),
        (HEADER + "1,-5,2\n", 2, "line 2 has a prompt of -5 tokens: expected 1 to 2,147,483,647"),
        (HEADER + "1,2.5,2\n", 2, "line 2 has '2.5' as tokens: expected a whole number"),
        (HEADER + "1,2\n", 2, "line 2 has 2 columns: expected one for each of the header"),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n",
            2,
            "line 2 has 'yesterday' as TIMESTAMP: expected a time",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:01.2.3,1,1\n",
            2,
            "line 2 has '2024-05-10 00:00:01.2.3' as TIMESTAMP: expected a time",
        ),
    ],
)
def test_wrong_tables_of_requests_are_refused_with_their_line(
    text: str, line: int | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "requests.csv"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_requests(file)
    assert raised.value.message.startswith(said)
    assert (raised.value.file, raised.value.line) == (str(file), line)


@pytest.mark.parametrize("rate", [1e-300, 1e-12])
def test_rates_whose_times_lose_microseconds_are_refused(rate: float) -> None:
    requests, message = some(0.0, 1.0, 2.0), "expected a time from 0 to 4e\\+09 s"
    with pytest.raises(ConfigurationError, match=message):
        requests.at_rate(rate)
    with pytest.raises(ConfigurationError, match=message):
        requests.poisson(rate, 3, 0)


@pytest.mark.parametrize(
    "content", [b"\x1f\x8bnot", gzip.compress(b"x" * 99, mtime=0)[:14], b"\xff\xfe\x00"]
)
def test_damaged_file_of_requests_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "requests.csv.gz"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="expected a table of requests"):
        read_requests(file)


@given(
    st.lists(st.floats(0, 1000, width=32), min_size=2, max_size=20, unique=True).map(sorted),
    st.floats(0.01, 100),
)
@examples(quick=12)
def test_at_rate_scales_gaps(times: list[float], rate: float) -> None:
    found = some(*times).at_rate(rate)
    assert found.per_second == pytest.approx(rate)
    assert found.arrival_seconds[0] == 0
    gaps, before = np.diff(found.arrival_seconds), np.diff(times)
    assert gaps == pytest.approx(before * gaps.sum() / before.sum(), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rate", [0.0, float("nan")])
def test_wrong_rates_are_refused(rate: float) -> None:
    with pytest.raises(ConfigurationError, match="a second: expected above 0"):
        some(0.0, 1.0).at_rate(rate)
    with pytest.raises(ConfigurationError, match="a second: expected above 0"):
        some(0.0, 1.0).poisson(rate, 3, 0)


def test_requests_at_one_time_have_no_rate() -> None:
    with pytest.raises(ConfigurationError, match="all requests arrive at one time"):
        some(1.0, 1.0).at_rate(2.0)


def test_poisson_arrivals_have_their_moments() -> None:
    table = some(*range(50))
    found = table.poisson(4.0, 20_000, seed=3)
    gaps = np.diff(found.arrival_seconds)
    assert gaps.mean() == pytest.approx(0.25, rel=0.02)
    assert gaps.std() == pytest.approx(0.25, rel=0.03)
    assert (found.prompt_tokens == found.output_tokens).all()
    assert set(found.prompt_tokens.tolist()) == set(range(1, 51))
    twice = table.poisson(8.0, 20_000, seed=3)
    assert twice.arrival_seconds == pytest.approx(found.arrival_seconds / 2)
    assert (twice.prompt_tokens == found.prompt_tokens).all()


def test_wrong_requests_of_python_are_refused() -> None:
    one = np.ones(2, np.int64)
    most = one * (2**31 - 1)
    assert len(Requests(np.array([0.0, 0.0]), most, most)) == 2
    with pytest.raises(ConfigurationError, match="request 0 has a prompt of 2,147,483,648 tokens"):
        Requests(np.array([0.0, 0.0]), most + 1, most)
    with pytest.raises(ConfigurationError, match="request 1 arrives at 1 s, after one that arriv"):
        Requests(np.array([2.0, 1.0]), one, one)
    with pytest.raises(ConfigurationError, match="request 0 has an output of 0 tokens"):
        Requests(np.array([1.0, 1.0]), one, 0 * one)
    with pytest.raises(ConfigurationError, match="there are no requests"):
        Requests(np.array([]), one[:0], one[:0])
