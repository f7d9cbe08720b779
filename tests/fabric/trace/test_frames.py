"""Tables of a trace in pyarrow, polars, pandas and numpy: the same rows everywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fabric import ConfigurationError, Trace, open_trace
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.messages.telling.vocabulary import TABLES
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of a run that stopped: everything in it may be null."""
    depths = {"reassemble_1.2": 2}
    return record(program("simplified_moe"), tmp_path_factory.mktemp("run"), depths=depths)[1]


@pytest.mark.parametrize("name", TABLES)
def test_same_rows(trace: Trace, name: str) -> None:
    """Every table has its columns and rows in each of them, and null is null."""
    table = trace.tables[name]
    rows = trace.rows(f"FROM {name}")
    arrow = pa.table(table)

    assert TABLES[name] == table.columns == tuple(arrow.column_names)
    assert len(rows) == len(table) == arrow.num_rows
    assert rows == table.rows() == pl.DataFrame(table).rows()
    assert rows == list(zip(*(column.to_pylist() for column in arrow.columns), strict=True))
    frame = table.df()
    assert rows == [
        tuple(None if pd.isna(cell) else cell for cell in row)
        for row in frame.astype(object).itertuples(index=False)
    ]
    for column, array in table.numpy().items():
        assert arrow[column].to_pylist() == np.ma.asarray(array).tolist()


def test_types(trace: Trace) -> None:
    """Cycles and counts are integers of 64 bits, also where some are null."""
    schema = pa.table(trace.tables["transfers"]).schema

    assert {"bare": pa.bool_()} == {
        field.name: field.type for field in schema if field.type != pa.int64()
    }
    assert trace.query("SELECT * FROM transfers WHERE taken_cycle IS NULL").rows()
    assert pl.Int64 == pl.DataFrame(trace.tables["transfers"])["taken_cycle"].dtype


@pytest.mark.parametrize("name", QUERIES)
def test_ready_queries(trace: Trace, name: str) -> None:
    """They are asked by name, and come in their order."""
    answer = trace.query(name)

    assert trace.rows(QUERIES[name].sql) == answer.rows()
    assert answer.rows() == pl.DataFrame(answer).rows()


def test_frames_stay(trace: Trace) -> None:
    """What was taken out of a trace does not go with it."""
    with open_trace(trace.folder) as other:
        arrow, frame = pa.table(other.tables["units"]), other.tables["units"].df()

    assert arrow.num_rows == len(frame) == len(trace.tables["units"])


def test_no_pandas(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what is missing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"df\(\) needs pandas, which is not installed"):
        trace.tables["units"].df()
