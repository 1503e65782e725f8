"""Connections to a PostgreSQL database, through psycopg; loaded only where one is used.

Writing transactions are READ COMMITTED: ``lease.check`` locks the lease row of the source first, and each
statement after it sees all that earlier holders of that lock committed. REPEATABLE READ would see the
state of before the wait, and fail instead of waiting. Reading ones are REPEATABLE READ and read only:
one state of the store for all their statements, without locks.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine, event

from searchcrawl.exceptions import ConfigurationError, StoreError

_OLDEST: Final = 15
#: A process that was frozen within a transaction loses it, and its locks, before others give up waiting.
_SETTINGS: Final = "-c idle_in_transaction_session_timeout=30s -c lock_timeout=60s -c jit=off"
#: Values of libpq; a server that went away without a word is noticed in half a minute.
_DEFAULTS: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "fallback_application_name": "searchcrawl",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def open_engine(url: URL) -> Engine:
    """The engine of a database; what the URL says in its query goes before our own values.

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
            # With placeholders of the server's own the driver need not read each statement: 40 ms for 300 rows.
            paramstyle="numeric_dollar",
            connect_args={**arguments, "cursor_factory": RawCursor},
            isolation_level="READ COMMITTED",
            pool_size=8,
            # A server that was started again costs no transaction.
            pool_pre_ping=True,
            use_native_hstore=False,
            # Page text has no place in error messages.
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
    """Writes any text: PostgreSQL takes no NUL, and UTF-8 no surrogates; what pages say must not stop a crawl."""
    from psycopg.adapt import Dumper  # noqa: PLC0415  # the driver is an extra

    class TextDumper(Dumper):
        def dump(self, obj: str) -> bytes:
            return obj.replace("\0", "\ufffd").encode("utf-8", "replace")

    return TextDumper
