"""Read-only views of sources, runs and URLs, for people who read the store with SQL, also while a crawl writes (J6).

They have no data of their own, and are made with the tables. Words
for states and codes come from the same tables as those of ``urls`` and ``status``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Final

from sqlalchemy import Connection, text

from searchcrawl.codes import REFUSED, ROBOTS_UNAVAILABLE, Code, CodeClass, describe_code
from searchcrawl.counters import COUNTS
from searchcrawl.rules.recrawl import UNTIL_LISTED_MS
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls.url_state import STATE_BY_CLASS, STATE_BY_DOCUMENT, WAS_DOCUMENT, UrlState

#: The columns of each view, each with its meaning.
VIEWS: Final[Mapping[str, Mapping[str, str]]] = {
    "view_sources": {
        "source": "The name of the source: that of its file.",
        "run": "The number of its last run; null before the first one.",
        "documents": "Documents in the index, by the table.",
        "waiting": "Documents and removals on their way to the index.",
        "quarantined": "Removals that wait for an approval.",
    },
    "view_runs": {
        "run": "The number of the run.",
        "source": "The name of its source.",
        "kind": "`initial` or `maintenance`.",
        "started": "When it began.",
        "ended": "When it ended; null: it goes on, or a process left it behind.",
        "end_reason": "Why it ended.",
        "exit_code": "The exit code of its process.",
        **COUNTS,
    },
    "view_urls": {
        "source": "The name of the source.",
        "url": "The access URL: the one that is requested.",
        "state": "The state, in the same word as in `urls`.",
        "in_index": "1: the index has a document of the URL. 0: it has not.",
        "code": "What became of the last visit, as a number.",
        "code_meaning": "The same in words.",
        "rule": "The rule that decided, as KEY: RULE.",
        "error": "Why the visit failed, or why the index refused the document.",
        "fetch_state": "How far the next visit is.",
        "document_state": "How far the document is on its way to the index; null: there was never one.",
        "depth": "The smallest number of links from a start page.",
        "referrer": "The page that led to the URL first.",
        "first_seen": "When the URL was found.",
        "last_fetched": "When it was visited last.",
        "last_changed": "When its document changed last.",
        "next_due": "When it is to be visited; null: never again by itself.",
        "duplicate_of": "The URL of the document that is indexed in its place.",
        "etag": "The ETag of the document; what begins with `\"!` is a mark of searchcrawl's own.",
        "last_modified": "Its Last-Modified header, as the server sent it.",
        "checksum": "The checksum of its text and fields.",
        "batch": "The number of the delivery that it was in last.",
        "run": "The number of the run that visited or refused it last.",
    },
}

_F: Final = FetchState
_D: Final = DocumentState


def create_views(connection: Connection) -> None:
    """Makes the views, within the open transaction."""
    for name, query in build_views(connection.dialect.name).items():
        # In a text a colon begins a parameter.
        connection.execute(text(f"CREATE VIEW {name} AS {query}".replace(":", "\\:")))


def build_views(dialect: str) -> dict[str, str]:
    """The query of each view."""
    expressions = {
        "view_sources": _build_sources(),
        "view_runs": _build_runs(dialect),
        "view_urls": _build_urls(dialect),
    }
    return {
        name: f"SELECT {', '.join(f'{columns[column]} AS {column}' for column in VIEWS[name])} FROM {tables}"  # noqa: S608  # made of constants
        for name, (columns, tables) in expressions.items()
    }


def _build_sources() -> tuple[dict[str, str], str]:
    of_source = "SELECT count(*) FROM documents d WHERE d.source_id = s.id AND"
    waiting = [int(state) for state in _D if state.facts.pending and state is not _D.QUARANTINED]
    return {
        "source": "s.name",
        "run": "(SELECT max(r.id) FROM runs r WHERE r.source_id = s.id)",
        "documents": f"({of_source} d.indexed_version IS NOT NULL)",
        "waiting": f"({of_source} d.state IN ({_list(waiting)}))",
        "quarantined": f"({of_source} d.state = {int(_D.QUARANTINED)})",
        # PostgreSQL would let people write to a view of one table.
    }, "sources s CROSS JOIN (SELECT 1) AS once"


def _build_runs(dialect: str) -> tuple[dict[str, str], str]:
    if dialect == "postgresql":
        counters = {name: f"coalesce(CAST(CAST(r.counts AS json) ->> '{name}' AS bigint), 0)" for name in COUNTS}
    else:
        counters = {name: f"coalesce(json_extract(r.counts, '$.{name}'), 0)" for name in COUNTS}
    return {
        "run": "r.id",
        "source": "s.name",
        "kind": "r.kind",
        "started": _show_time(dialect, "r.started_ms"),
        "ended": _show_time(dialect, "r.ended_ms"),
        "end_reason": "r.end_reason",
        "exit_code": "r.exit_code",
        **counters,
    }, "runs r JOIN sources s ON s.id = r.source_id"


def _build_urls(dialect: str) -> tuple[dict[str, str], str]:
    digest = "encode(d.fields_digest, 'hex')" if dialect == "postgresql" else "lower(hex(d.fields_digest))"
    columns = {
        **{name: f"u.{name}" for name in ("url", "code", "rule", "depth")},
        **{name: f"d.{name}" for name in ("etag", "last_modified")},
        "source": "s.name",
        "state": _build_state(),
        "in_index": "CASE WHEN d.indexed_version IS NULL THEN 0 ELSE 1 END",
        "code_meaning": _build_meaning(),
        "error": "coalesce(u.error, d.index_error)",
        "fetch_state": _choose("u.fetch_state", {int(state): state.facts.title for state in _F}),
        "document_state": _choose("d.state", {int(state): state.facts.title for state in _D}),
        "referrer": "referrer.url",
        "first_seen": _show_time(dialect, "u.first_seen_ms"),
        "last_fetched": _show_time(dialect, "u.last_fetched_ms"),
        "last_changed": _show_time(dialect, "d.last_changed_ms"),
        "next_due": f"CASE WHEN u.due_ms < {UNTIL_LISTED_MS} THEN {_show_time(dialect, 'u.due_ms')} END",
        "duplicate_of": f"CASE WHEN u.code <> {int(Code.DISPLAY_URL_CLASH)} THEN survivor.url END",
        "checksum": f"CASE WHEN length(d.fields_digest) > 0 THEN {digest} END",
        "batch": "d.batch_id",
        "run": "u.run_id",
    }
    return columns, (
        "urls u JOIN sources s ON s.id = u.source_id LEFT JOIN documents d ON d.url_id = u.id "
        "LEFT JOIN urls referrer ON referrer.id = u.referrer_id LEFT JOIN urls survivor ON survivor.id = d.duplicate_of"
    )


def _build_state() -> str:
    """The word of ``derive_url_state``, with the conditions in the same order.

    What removes a document is known to the configuration alone; but what removed it is noted beside it.
    """
    evidence = "CASE WHEN coalesce(u.rule, '') = '' THEN CAST(u.code AS text) ELSE u.code || ' ' || u.rule END"
    removed = (
        f"d.state = {int(_D.NONE)} AND d.code IN ({_list(WAS_DOCUMENT)}) AND d.indexed_version IS NULL "
        f"AND d.evidence = {evidence}"
    )
    by_class = [(f"u.code IN ({_list(_find_codes(kind))})", state) for kind, state in STATE_BY_CLASS.items()]
    robots = f"(u.code = {int(Code.ROBOTS)} AND u.rule <> '{ROBOTS_UNAVAILABLE}')"
    refused = f"u.rule IS NOT NULL AND (u.code IN ({_list(REFUSED)}) OR {robots})"
    cases = [
        (f"u.fetch_state IN ({_list([_F.TODO, _F.SUSPECT])})", UrlState.TODO),
        (f"u.fetch_state <> {int(_F.SETTLED)}", UrlState.FETCHING),
        (f"d.state = {int(_D.REMOVING)} OR ({removed})", UrlState.GONE),
        *by_class,
        (f"{refused} AND u.redirects IS NULL", UrlState.REJECTED),
        (refused, UrlState.EXCLUDED),
        ("u.code <> 200 OR d.state IS NULL", UrlState.FAILED),
        (f"d.state = {int(_D.WITHHELD)} AND d.index_error IS NOT NULL", UrlState.FAILED),
        *((f"d.state = {int(number)}", state) for number, state in STATE_BY_DOCUMENT.items()),
    ]
    return f"CASE {' '.join(f'WHEN {condition} THEN {_quote(state.value)}' for condition, state in cases)} END"


def _find_codes(kind: CodeClass) -> list[int]:
    return [int(code) for code in Code if code.facts.kind is kind]


def _build_meaning() -> str:
    known = {*(int(code) for code in Code), *(int(status) for status in HTTPStatus)}
    named = _choose("u.code", {code: describe_code(code) for code in sorted(known)})
    unnamed = describe_code(599).removeprefix("599")
    return f"coalesce({named}, u.code || {_quote(unnamed)})"


def _choose(column: str, words: Mapping[int, str]) -> str:
    return f"CASE {column} {' '.join(f'WHEN {number} THEN {_quote(word)}' for number, word in words.items())} END"


def _show_time(dialect: str, column: str) -> str:
    """A time as in all answers: ISO 8601 in UTC, with milliseconds."""
    if dialect == "postgresql":
        moment = f"to_timestamp({column} / 1000.0) AT TIME ZONE 'UTC'"
        return f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
    seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000, 'unixepoch')"
    return f"{seconds} || printf('.%03dZ', {column} % 1000)"


def _list(numbers: Collection[int]) -> str:
    return ", ".join(str(int(number)) for number in sorted(numbers))


def _quote(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"
