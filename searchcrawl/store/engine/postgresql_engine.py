"""Connections to a PostgreSQL database, through psycopg; loaded only where one is used.

Writing transactions are READ COMMITTED: ``lease.check`` locks the lease row of the source first, and each
statement after it sees all that earlier holders of that lock committed. REPEATABLE READ would see the
state from before the wait, and fail. Reading transactions are REPEATABLE READ and read only: all their statements
see one state of the store, without locks.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine, event

from searchcrawl.exceptions import ConfigurationError, StoreError

_OLDEST: Final = 15
#: A process that is frozen within a transaction loses the transaction and its locks before others stop waiting.
_SETTINGS: Final = "-c idle_in_transaction_session_timeout=30s -c lock_timeout=60s -c jit=off"
#: Values of libpq: a server that does not answer any more is noticed in half a minute.
_DEFAULTS: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "fallback_application_name": "searchcrawl",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def open_engine(url: URL) -> Engine:
    """The engine of a database; values in the query of the URL override ours.

    Raises ConfigurationError where the driver is missing. Connecting raises StoreError for a server
    older than PostgreSQL 15 and for a database that is not in UTF-8.
    """
    arguments = {name: value for name, value in _DEFAULTS.items() if name not in url.query}
    given = url.query.get("options", "")
    arguments["options"] = f"{_SETTINGS} {given if isinstance(given, str) else ' '.join(given)}".rstrip()
    try:
        from psycopg import RawCursor  # noqa: PLC0415  # the driver is an extra

        engine = create_engine(
            url,
            # With the server's own placeholders the driver need not parse each statement: that took 40 ms for 300 rows.
            paramstyle="numeric_dollar",
            connect_args={**arguments, "cursor_factory": RawCursor},
            isolation_level="READ COMMITTED",
            pool_size=8,
            # After a restart of the server no transaction is lost to an old connection.
            pool_pre_ping=True,
            use_native_hstore=False,
            # Error messages must not quote the text of pages.
            hide_parameters=True,
        )
    except ImportError as error:
        raise ConfigurationError(
            "searchcrawl.toml",
            "store.url",
            f"PostgreSQL needs the driver psycopg: pip install 'searchcrawl[postgresql]' ({error}) "
            f"(got {url.render_as_string()})",
        ) from error
    event.listen(engine, "connect", _configure)
    return engine


def _configure(connection: Any, _record: object) -> None:
    info = connection.info
    if info.server_version < _OLDEST * 10_000:
        raise StoreError(f"store: PostgreSQL {info.server_version // 10_000} is too old; {_OLDEST} or newer is needed")
    encoding = info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"store: database {info.dbname} has the encoding {encoding}; UTF8 is needed")
    connection.adapters.register_dumper(str, _text_dumper())


def _text_dumper() -> type:
    """Replaces NUL, which PostgreSQL refuses, and surrogates, which are no UTF-8: no page may stop a crawl."""
    from psycopg.adapt import Dumper  # noqa: PLC0415  # the driver is an extra

    class TextDumper(Dumper):
        def dump(self, obj: str) -> bytes:
            return obj.replace("\0", "\ufffd").encode("utf-8", "replace")

    return TextDumper
