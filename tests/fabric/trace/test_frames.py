from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fabric import Trace
from fabric.messages.vocabulary import TABLES
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    depths = {"reassemble_1.2": 2}
    return record(program("simplified_moe"), tmp_path_factory.mktemp("run"), depths=depths)[1]


@pytest.mark.parametrize("name", TABLES)
def test_table_has_equal_rows_in_all_libraries(trace: Trace, name: str) -> None:
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
