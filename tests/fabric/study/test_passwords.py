from __future__ import annotations

import sys
import traceback
from pathlib import Path
from unittest.mock import Mock

import pytest
import sqlalchemy

from fabric import ConfigurationError
from fabric.explore.study.storage import Database
from fabric.messages.addresses import shown_address, without_passwords
from fabric.shell.cli import main
from fabric.shell.experiments import shown_command

PROGRAM = Path(__file__).parent / "program_of_points.py"

ADDRESSES = (
    "postgresql://user:hunter2@host/db",
    "postgresql+psycopg://me@corp.com:hunter2@host:5432/db",
    "mysql://user:hunter2/x:y@z@host/db",
    "redis://:hunter2@host:6379/0",
    "postgresql://user:hunter2@host:port/db",
    "sqlite://user:hunter2@host/x.db",
    "postgresql:///db?host=h&user=u&password=hunter2",
    "mssql+pyodbc:///?odbc_connect=UID%3Du%3BPWD%3Dhunter2%3BX%3Dy",
    "no_such_database://user:hunter2@host/db",
    "user:hunter2@tcp(host)/db",
    "postgresql:user:hunter2@host/db",
    "postgresql://user:hunter2 with spaces@host/db",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_password_of_an_unopened_storage_is_hidden(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--json"]):
        command = ["study", str(PROGRAM), "--vary", "tiles=1", "--storage", address, *more]
        assert main([*command, "-o", str(tmp_path)]) == 2
        said = "".join(capsys.readouterr())
        assert "storage" in said
        assert "***" in said
        assert "hunter2" not in said
    with pytest.raises(ConfigurationError) as caught:
        Database(address)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "address", ["tcp://user:hunter2@127.0.0.1:1", "tls://user:hunter2@host", "x://:hunter2@host:1"]
)
def test_password_of_a_missing_cluster_is_hidden(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fabric.explore.study.workers._CONNECT_SECONDS", 0.1)
    assert main(["study", str(PROGRAM), "--vary", "tiles=1", "--dask", address]) == 2
    said = "".join(capsys.readouterr())
    assert f"no Dask cluster at {shown_address(address)}" in said
    assert "hunter2" not in said


def test_password_in_library_errors_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://user:hunter2@host/db"
    for text in (f"lost {address}", "no host 'hunter2'", "password=hunter2 is refused"):
        error = sqlalchemy.exc.OperationalError(text, None, Exception(text))
        monkeypatch.setattr(sqlalchemy, "create_engine", Mock(side_effect=error))
        with pytest.raises(ConfigurationError) as caught:
            Database(address)
        assert "***" in str(caught.value)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_password_in_a_study_page_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["study", str(PROGRAM), "--vary", "fault=print,x://u:hunter2@h", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fabric", *asked, "--storage=postgresql://u:hunter2@h/db"])
    assert main([*asked, "--jobs", "1", "--json"]) == 0
    page = (tmp_path / "index.html").read_text()
    assert "--storage=postgresql://u:***@h/db" in page
    assert "hunter2" not in page + "".join(capsys.readouterr())


@pytest.mark.parametrize("wrong", [["x://u:hunter2@h"], ["-p", "tiles=x://u:hunter2@h"]])
def test_password_in_other_commands_is_hidden(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("run", "check", "size", "serve"):
        assert main([command, str(PROGRAM), *wrong]) == 2
        assert "hunter2" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:////home/a:b@c/study.db",
        "tcp://10.0.0.1:8786",
        "see http://localhost:8787/status and mail a@b",
        "name:value@place",
    ],
)
def test_address_without_a_password_is_unchanged(text: str) -> None:
    assert without_passwords(text) == text


def test_printed_command_with_an_address_is_quoted() -> None:
    command = shown_command(["study", "a b.py", "--dask", "tls://u:a b@h:1"])
    assert command == "python -m fabric study 'a b.py' --dask 'tls://u:***@h:1'"
