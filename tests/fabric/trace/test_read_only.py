"""Queries only read, and paths have names: what else is asked for is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.analysis.trace.reading.queries import QUERIES
from fabric.shell.cli import main
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import record


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of a chain."""
    wired = chain(("s0",), ("r0", "c10"), elements=5)
    return record(wired, tmp_path_factory.mktemp("run"))[1].folder.parent


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE units",
        "DELETE FROM units",
        "INSERT INTO units SELECT * FROM units",
        "UPDATE units SET unit = 9",
        "CREATE TABLE mine AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE TEMP MACRO f(x) AS x",
        "ALTER TABLE units DROP name",
        "COPY units TO 'out.csv'",
        "COPY units FROM 'in.csv'",
        "EXPORT DATABASE 'out'",
        "ATTACH 'out.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA threads = 1",
        "SET threads = 1",
        "RESET threads",
        "USE memory",
        "SET VARIABLE request_bytes = 1",
        "BEGIN",
        "COMMIT",
        "CHECKPOINT",
        "VACUUM",
        "CALL pragma_version()",
        "PREPARE q AS SELECT 1",
        "SELECT 1; DROP TABLE units",
        "SELECT 1; SELECT 2",
        "",
        "/* nothing */",
        "EXPLAIN ANALYZE DELETE FROM units",
        "FROM query('DROP TABLE units')",
        "WITH gone AS (DELETE FROM units RETURNING *) SELECT * FROM gone",
        "SELECT * FROM read_csv('secret.csv')",
        "SELECT * FROM 'secret.csv'",
        "FROM glob('*')",
        "SELECT * FROM read_text('secret.csv')",
        "FROM trace",
        "FROM sql",
        "SELECT getenv('HOME')",
        "FROM read_parquet('units.parquet')",
        "COMMENT ON TABLE units IS 'x'",
    ],
)
def test_queries_only_read(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    run: Path,
    query: str,
) -> None:
    """What changes anything, or reads another file, is refused in one sentence."""
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
    "query",
    [
        "FROM units",
        "DESCRIBE units",
        "SHOW TABLES",
        "SUMMARIZE units",
        "EXPLAIN FROM units",
        "WITH a AS (SELECT 1) FROM a;",
        "VALUES (1)",
        "PIVOT units ON kind USING count(*)",
    ],
)
def test_queries_that_read(capsys: pytest.CaptureFixture[str], run: Path, query: str) -> None:
    """Whatever only reads is answered."""
    status = main(["trace", "query", str(run), query])
    out, err = capsys.readouterr()

    assert (0, "") == (status, err)
    assert len(out.splitlines()) > 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", ""],
        ["run", "program.py", "--log-dir", ""],
        ["run", "program.py", "--hardware", ""],
        ["check", ""],
        ["check", "program.py", "--hardware", ""],
        ["graph", "", "-o", "graph.svg"],
        ["graph", "program.py", "-o", ""],
        ["graph", "program.py", "-o", "graph.svg", "--run", ""],
        *(["trace", name, ""] for name in ("summary", "stalls", "deadlock", "what-if")),
        ["trace", "show", "", "--at", "1"],
        ["trace", "query", "", "utilisation"],
        ["trace", "diff", "", "{run}"],
        ["trace", "diff", "{run}", ""],
        ["trace", "export", "", "--csv", "-o", "run.csv"],
        ["trace", "export", "{run}", "--csv", "-o", ""],
        ["trace", "report", "", "-o", "page.html"],
        ["trace", "report", "{run}", "-o", ""],
    ],
)
def test_empty_path(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    run: Path,
    arguments: list[str],
) -> None:
    """A path without a name is refused, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    status = main([each.replace("{run}", str(run)) for each in arguments])
    out, err = capsys.readouterr()

    assert (2, "", []) == (status, out, list(tmp_path.iterdir()))
    assert "'': expected a path, found an empty one" in err
