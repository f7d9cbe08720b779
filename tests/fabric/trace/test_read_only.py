from __future__ import annotations

from pathlib import Path

import pytest

from fabric.analysis.trace.reading.queries import QUERIES
from fabric.shell.cli import main
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import record
from tests.profiles import spread


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wired = chain(("s0",), ("r0", "c10"), elements=5)
    return record(wired, tmp_path_factory.mktemp("run"))[1].folder.parent


@pytest.mark.parametrize(
    "query",
    spread(
        [
            "DROP TABLE units",
            "INSERT INTO units SELECT * FROM units",
            "CREATE TABLE mine AS SELECT 1",
            "COPY units TO 'out.csv'",
            "ATTACH 'out.db'",
            "INSTALL httpfs",
            "SET VARIABLE request_bytes = 1",
            "CALL pragma_version()",
            "PREPARE q AS SELECT 1",
            "SELECT 1; DROP TABLE units",
            "",
            "EXPLAIN ANALYZE DELETE FROM units",
            "FROM query('DROP TABLE units')",
            "WITH gone AS (DELETE FROM units RETURNING *) SELECT * FROM gone",
            "SELECT * FROM 'secret.csv'",
            "SELECT * FROM read_text('secret.csv')",
            "FROM trace",
            "SELECT getenv('HOME')",
        ],
        4,
    ),
)
def test_query_that_changes_or_reads_files_is_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    run: Path,
    query: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret.csv").write_text("secret\n1\n", encoding="utf-8")
    kept = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    status = main(["trace", "query", str(run), query])
    out, err = capsys.readouterr()

    assert (2, "") == (status, out)
    assert err.startswith(f"fabric: query {query!r}: ")
    assert err.endswith(f", or one of {', '.join(QUERIES)}\n")
    assert 1 == err.count("\n")
    assert ["secret.csv"] == [path.name for path in tmp_path.iterdir()]
    assert kept == {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "query", ["FROM units", "DESCRIBE units", "EXPLAIN FROM units", "WITH a AS (SELECT 1) FROM a;"]
)
def test_query_that_only_reads_is_answered(
    capsys: pytest.CaptureFixture[str], run: Path, query: str
) -> None:
    status = main(["trace", "query", str(run), query])
    out, err = capsys.readouterr()

    assert (0, "") == (status, err)
    assert len(out.splitlines()) > 1
