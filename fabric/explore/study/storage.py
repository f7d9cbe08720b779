"""Open Optuna's storage by its URL, and report a damaged one."""

from __future__ import annotations

import contextlib
import errno
import logging
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fabric.messages.addresses import library_text, shown_address
from fabric.messages.errors import ConfigurationError
from fabric.timing.machine.terminations import uninterrupted

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage, RDBStorage

_BUSY_SECONDS: Final = 60

_OPTUNA_TABLES: Final = frozenset({"studies", "version_info"})

_TRIES: Final = 5
_RETRY_SECONDS: Final = 0.2

_FORM: Final = "form"


def file_url(path: Path) -> str:
    """Return the URL of an SQLite file."""
    return f"sqlite:///{path.absolute()}"


def open_storage(url: str | None) -> BaseStorage:
    """Open a storage, or create it; without a URL it is in memory."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if url is None:
        return optuna.storages.InMemoryStorage()
    import sqlalchemy
    from sqlalchemy.engine import make_url

    # It logs a traceback if a signal interrupts it. Failures are raised as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    try:
        sqlite = make_url(url).get_backend_name() == "sqlite"
        options: dict[str, Any] = {"connect_args": {"timeout": _BUSY_SECONDS}} if sqlite else {}
        engine = sqlalchemy.create_engine(url, **options)
        tables = sqlalchemy.inspect(engine).get_table_names()
        engine.dispose()
        if tables and not _OPTUNA_TABLES.intersection(tables):
            raise ConfigurationError(
                f"{_named(url)} is a database of something else, with {_some(tables)}: expected an "
                "empty one, or one of Optuna"
            )
        storage = _connect(url, options)
    except RuntimeError as error:
        # Optuna's own message names the version and the remedy.
        raise ConfigurationError(
            f"{_named(url)}: {library_text(str(error).strip(), url)}"
        ) from None
    except ImportError as error:
        raise ConfigurationError(
            f"{_named(url)} needs a driver that is not installed ({library_text(error, url)})"
        ) from None
    except (
        sqlalchemy.exc.SQLAlchemyError,
        optuna.exceptions.StorageInternalError,
        ValueError,
    ) as error:
        raise ConfigurationError(
            f"{_named(url)} cannot be opened ({_reason(error, url)}): expected the URL of a whole "
            "database or of none yet, such as sqlite:///study.db"
        ) from None
    return optuna.storages.get_storage(storage)


def _connect(url: str, options: dict[str, Any]) -> RDBStorage:
    import optuna
    import sqlalchemy

    for _ in range(_TRIES):  # another process may create the tables at the same time
        with contextlib.suppress(
            AssertionError, sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError
        ):
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        time.sleep(_RETRY_SECONDS)
    return optuna.storages.RDBStorage(url, engine_kwargs=options)


def study_of_form(storage: BaseStorage, name: str, form: dict[str, Any]) -> optuna.Study:
    """Return or create Optuna's study of a name and form (metrics, conditions and axes).

    If the study of the name has another form, ``NAME-2``, ``NAME-3``, ... is used.
    """
    import optuna

    number, tries = 1, 0
    while True:
        title = name if number == 1 else f"{name}-{number}"
        try:
            study = optuna.load_study(study_name=title, storage=storage)
        except KeyError:
            with contextlib.suppress(optuna.exceptions.DuplicatedStudyError):
                study = optuna.create_study(
                    study_name=title,
                    storage=storage,
                    directions=["minimize"] * len(form["objectives"]),
                )
                with warnings.catch_warnings():
                    # Experimental since its version 3.2; the dashboard shows the names.
                    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                    study.set_metric_names(form["objectives"])
                study.set_user_attr(_FORM, form)
                return study
            tries += 1
            if tries == _TRIES:
                raise ValueError(f"study {title} is there and cannot be loaded") from None
            continue  # another process has created it
        if study.user_attrs.get(_FORM) == form:
            return study
        number += 1


@contextlib.contextmanager
def writing(url: str | None) -> Iterator[None]:
    """Write to a storage with signals delayed, and name it in errors.

    A signal would suspend the write while its exception is referenced, and block the next write.
    """
    import optuna

    try:
        with uninterrupted():
            yield
    except optuna.exceptions.StorageInternalError as error:
        raise OSError(errno.EIO, _reason(error, url), _named(url)) from None


@contextlib.contextmanager
def reading(url: str | None) -> Iterator[None]:
    """Read a storage with signals delayed, as ``writing``; refuse a damaged one."""
    import optuna
    import sqlalchemy

    try:
        with uninterrupted():
            yield
    except (
        *(optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError),
        *(ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError),
        AssertionError,  # raised by Optuna as it reads
    ) as error:
        raise ConfigurationError(
            f"{_named(url)} is damaged ({_reason(error, url)}): expected a whole one; in a new one "
            "every point runs again"
        ) from None


def _named(url: str | None) -> str:
    return "storage in memory" if url is None else f"storage {shown_address(url)}"


def _reason(error: BaseException, url: str | None) -> str:
    while True:
        inner = getattr(error, "orig", None) or error.__cause__
        if inner is None:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            return library_text(line, url)
        error = inner


def _some(tables: list[str]) -> str:
    shown = ", ".join(tables[:3])
    return f"tables {shown}, ..." if len(tables) > 3 else f"tables {shown}"
