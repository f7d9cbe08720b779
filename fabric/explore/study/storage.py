"""Open the database of a study by its URL, and report a damaged one."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fabric.messages.addresses import library_text, shown_address
from fabric.messages.errors import ConfigurationError
from fabric.timing.machine.terminations import uninterrupted

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table

_BUSY_SECONDS: Final = 60


def file_url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


class Database:
    """A table of runs, and a table of the runs that processes have claimed.

    Attributes:
        runs: columns ``number``, ascending; ``identity``; ``study``, its name; ``owner``, the host
            and number of a process; ``drawn``, whether a search drew the point; ``outcome``, a JSON
            object with the whole setting.
        claims: columns ``identity`` and ``owner``.
    """

    def __init__(self, url: str) -> None:
        """Open the database, and create its tables.

        Raises:
            ConfigurationError: ``url`` is malformed, or is not a database of studies.
        """
        import sqlalchemy
        from sqlalchemy.engine import make_url
        from sqlalchemy.schema import CreateTable

        # The pool logs a traceback if a signal interrupts it. Errors are raised anyway.
        logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
        self._url: Final = url
        self.runs, self.claims = _tables()
        try:
            sqlite = make_url(url).get_backend_name() == "sqlite"
            options: dict[str, Any] = {"connect_args": {"timeout": _BUSY_SECONDS}} if sqlite else {}
            self._engine: Final[Engine] = sqlalchemy.create_engine(url, **options)
            names = sqlalchemy.inspect(self._engine).get_table_names()
            missing = [each for each in (self.runs, self.claims) if each.name not in names]
            if names and len(missing) == 2:
                raise ConfigurationError(
                    f"{self._title} is a database of something else, with {_tables_text(names)}: "
                    "expected an empty one, or one of a study"
                )
            for table in missing:
                with self._engine.begin() as connection:
                    connection.execute(CreateTable(table, if_not_exists=True))
        except ImportError as error:
            raise ConfigurationError(
                f"{self._title} needs a driver that is not installed ({library_text(error, url)})"
            ) from None
        except (sqlalchemy.exc.SQLAlchemyError, ValueError) as error:
            raise ConfigurationError(
                f"{self._title} cannot be opened ({self._reason(error)}): expected the URL of an "
                "existing or a new database, such as sqlite:///study.db"
            ) from None

    def write(self, statement: Any) -> int:
        """Return the number of rows that a statement changed; -1 if a key exists already.

        Signals are delayed: the exception of a signal would keep the transaction open, which blocks
        the next write.

        Raises:
            OSError: the database cannot be written.
        """
        import sqlalchemy

        try:
            with uninterrupted(), self._engine.begin() as connection:
                return int(connection.execute(statement).rowcount)
        except sqlalchemy.exc.IntegrityError:
            return -1
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise OSError(errno.EIO, self._reason(error), self._title) from None

    def read(self, statement: Any) -> list[Any]:
        """Return the rows of a query, with signals delayed.

        Raises:
            ConfigurationError: the database is damaged.
        """
        with self.reporting_damage(), uninterrupted(), self._engine.connect() as connection:
            return list(connection.execute(statement))

    @contextlib.contextmanager
    def reporting_damage(self) -> Iterator[None]:
        """Report an error in what was read as a damaged database.

        Raises:
            ConfigurationError: the database is damaged.
        """
        import sqlalchemy

        try:
            yield
        except (
            *(sqlalchemy.exc.SQLAlchemyError, ValueError, LookupError, TypeError),
            *(AttributeError, OverflowError, RecursionError),
        ) as error:
            raise ConfigurationError(
                f"{self._title} is damaged ({self._reason(error)}): expected an undamaged one, or "
                "a new one, for which every point runs again"
            ) from None

    @property
    def _title(self) -> str:
        return f"storage {shown_address(self._url)}"

    def _reason(self, error: BaseException) -> str:
        error = getattr(error, "orig", None) or error
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return library_text(line, self._url)


def _tables() -> tuple[Table, Table]:
    from sqlalchemy import Boolean, Column, Integer, MetaData, String, Table, Text

    tables = MetaData()
    runs = Table(
        "fabric_runs",
        tables,
        Column("number", Integer, primary_key=True),
        Column("identity", String(64), nullable=False),
        Column("study", Text, nullable=False),
        Column("owner", Text, nullable=False),
        Column("drawn", Boolean, nullable=False),
        Column("outcome", Text, nullable=False),
    )
    claims = Table(
        "fabric_claims",
        tables,
        Column("identity", String(64), primary_key=True),
        Column("owner", Text, nullable=False),
    )
    return runs, claims


def _tables_text(tables: list[str]) -> str:
    shown = ", ".join(tables[:3])
    return f"tables {shown}, ..." if len(tables) > 3 else f"tables {shown}"
