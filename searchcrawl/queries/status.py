"""The state of sources and of their document caches, as ``status``, ``cache count`` and the end of ``crawl`` show it (J1, J2)."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.admission.trapped_documents import TrappedDocument, list_trapped
from searchcrawl.cache.opening import open_cache
from searchcrawl.codes import Code
from searchcrawl.commit.shared_copies import find_over
from searchcrawl.comparison.look import IndexLook
from searchcrawl.counters import (
    COUNTS,
    DIFFERING,
    DISCOVERED,
    HELD_BACK,
    LOGIN_FAILURES,
    LOOKED_AT,
    MISCOUNTED,
    NO_START,
    PAST_LIMITS,
    REFUSED_PARTS,
    RENDERED,
    SHELLS,
    UNSENT_REMOVALS,
    has_mostly_failed_logins,
)
from searchcrawl.exit_codes import Exit
from searchcrawl.queries.job_status import describe_job, warn_of_job
from searchcrawl.queries.receivers import describe_receivers, warn_of_receivers
from searchcrawl.rules.lifecycle import MOST_STOPS
from searchcrawl.rules.rendering import NO_TEXT, RUNS
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, describe_keys, find_forcing_keys
from searchcrawl.sources.project import Project
from searchcrawl.store import batch_table, sitemap_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import link_table, pattern_table, recrawl_table, url_queries
from searchcrawl.store.urls.pattern_table import StoredPattern
from searchcrawl.store.urls.url_classes import UrlClass
from searchcrawl.store.urls.url_queries import Lacking
from searchcrawl.wording import counted

#: The most patterns of URLs that are named.
_MOST_PATTERNS: Final = 500
#: URLs that are named in one warning.
_MOST_SHOWN: Final = 3
#: The code of the warning about what the last run saw of the index when it ended.
INDEX_DIFFERS: Final = "index_differs"
#: The state of a source whose last run finished, by the exit code of the run; ``failed`` for others.
_FINISHED_STATES: Final[Mapping[int | None, str]] = {
    Exit.DONE: "finished",
    Exit.QUARANTINE: "finished",
    Exit.INDEX_AWAY: "partially_failed",
}


def describe_status(
    source: Source,
    database: Database,
    versions: Mapping[str, int],
    *,
    preserve: bool = False,
    index: IndexLook | None = None,
    project: Project | None = None,
) -> dict[str, Any]:
    """What ``status --json`` prints of a source; one that never ran is ``scheduled``. ``project`` has its schedule.

    With ``preserve`` (the project's) documents that cannot be sent again from the cache are warned about, with ``index``
    an index that has lost documents.
    """

    def read(transaction: Transaction) -> dict[str, Any]:
        found = _read_status(transaction, source=source, versions=versions, preserve=preserve)
        source_id = run_table.find_source(transaction, source.name)
        found["receivers"] = [] if project is None else describe_receivers(transaction, project, source)
        warnings = [
            *warn_of_job(transaction, project, source.name, source_id, found["state"]),
            *warn_of_receivers(found["receivers"], source.name),
        ]
        found["warnings"] += [_build_warning(*each) for each in warnings]
        return found | describe_job(transaction, project, source.name, source_id, found["state"])

    status = database.read(read)
    found = None if index is None else index.find(database, source.name)
    if found is not None:
        # It says more, and is newer, than what the last run saw.
        status["warnings"] = [found._asdict(), *(each for each in status["warnings"] if each["code"] != INDEX_DIFFERS)]
    return status


def _read_status(
    transaction: Transaction, *, source: Source, versions: Mapping[str, int], preserve: bool
) -> dict[str, Any]:
    source_id = run_table.find_source(transaction, source.name)
    run = None if source_id is None else run_table.find_last(transaction, source_id)
    if source_id is None or run is None:
        return _describe_new_source(source)
    totals = document_table.count_totals(transaction, source_id)
    executing = lease.is_held(transaction, source_id)
    refused = url_queries.count_refused_documents(transaction, source_id)
    lost = url_queries.count_indexed_without_record(transaction, source_id) if preserve else 0
    named = source.start.sitemaps if isinstance(source.start.sitemaps, tuple) else ()
    unread = sitemap_table.find_failures(transaction, source_id, [urls.resolve(url) for url in named])
    warned = url_queries.count_warned_urls(transaction, source_id)
    aside = url_queries.find_set_aside(transaction, source_id, limit=_MOST_SHOWN) if Code.SET_ASIDE in warned else []
    lacking = url_queries.find_lacking(transaction, source_id, apart=NO_TEXT)
    resending = batch_table.find_resend_version(transaction, source_id) is not None
    return {
        "source": source.name,
        "state": _find_state(run, executing=executing),
        "run": _describe_run(run),
        "counts": {name: run.counts.get(name, 0) for name in COUNTS},
        **totals,
        "force_recrawl": _find_recrawl_reason(transaction, source_id, source, versions),
        "refused_links": [
            {"rule": row.rule, "host": row.host, "count": row.links}
            for row in link_table.load_refused(transaction, source_id)
        ],
        "warnings": [
            *_warn_of_source(source, run),
            *(_build_warning(*each) for each in warn_of_rendering(source, run.counts, lacking)),
            *_warn_of_counters(run),
            *_warn_of_end_look(source.name, run),
            *_warn_of_no_delivery(source, run, totals["waiting"], executing=executing),
            *_warn_of_run(source, run, totals["waiting"], resending=resending, executing=executing),
            *_warn_of_documents(source.name, totals["quarantined"], find_over(transaction, source_id), refused, lost),
            *_warn_of_urls(source.name, warned, run.counts),
            *_warn_of_set_aside(source.name, warned.get(Code.SET_ASIDE, 0), aside),
            *_warn_of_patterns(source, pattern_table.load(transaction, source_id)),
            *_warn_of_trapped_documents(source.name, list_trapped(transaction, source_id)),
            *(_build_warning("sitemap", f"{url} could not be read: {error}") for url, error in unread),
        ],
    }


def _describe_run(run: RunRow) -> dict[str, Any]:
    return {
        "id": run.id,
        "kind": run.kind.value,
        "started": clock.iso(run.started_ms),
        "ended": clock.iso(run.ended_ms),
        "end_reason": run.end_reason,
    }


def _describe_new_source(source: Source) -> dict[str, Any]:
    return {
        "source": source.name,
        "state": "scheduled",
        "run": None,
        "counts": dict.fromkeys(COUNTS, 0),
        "documents": 0,
        "waiting": 0,
        "quarantined": 0,
        "force_recrawl": None,
        "refused_links": [],
        "warnings": [*_warn_of_source(source)],
    }


def _find_state(run: RunRow, *, executing: bool) -> str:
    if run.ended_ms is None:
        return "executing" if executing else "waiting_for_resume"
    if run.end_reason == EndReason.FINISHED:
        return _FINISHED_STATES.get(run.exit_code, "failed")
    if run.end_reason == EndReason.APPLIED:
        return "scheduled"
    return "failed" if run.end_reason == EndReason.STORE_FAILED else "stopped"


def _find_recrawl_reason(
    transaction: Transaction, source_id: int, source: Source, versions: Mapping[str, int]
) -> str | None:
    """Why the next run visits all or some URLs without validators (D9); None if it does not."""
    now = compute_fingerprint(source, versions=versions)
    changed = find_forcing_keys(run_table.find_fingerprint(transaction, source_id) or now, now)
    edited = f"changed: {describe_keys(changed)}" if changed else None
    return "; ".join(filter(None, (edited, recrawl_table.find_reason(transaction, source_id)))) or None


def _warn_of_source(source: Source, run: RunRow | None = None) -> Iterator[dict[str, str]]:
    """Says what a source file leaves out, and what its last run lacked for it."""
    if not source.robots.obey:
        yield _build_warning("robots", "robots.txt is not obeyed for this source (robots.obey = false)")
    shells = 0 if run is None else run.counts.get(SHELLS, 0)
    if shells and not source.render.in_use:
        yield _build_warning(
            "needs_javascript",
            f"{counted(shells, 'page', 'pages')} that the last run read {'has' if shells == 1 else 'have'} next to no text without "
            f'JavaScript: [render] mode = "auto" in {source.file} has a browser render such pages',
        )


def _warn_of_no_delivery(source: Source, run: RunRow, waiting: int, *, executing: bool) -> Iterator[dict[str, str]]:
    """Says what a run that delivers would send and remove (D11, H6)."""
    if executing or source.no_delivery_key is None:
        return
    removals = run.counts.get(UNSENT_REMOVALS, 0)
    past = ", which is past the limits on deleting: they would wait in quarantine" if PAST_LIMITS in run.counts else ""
    yield _build_warning(
        "no_delivery",
        f"nothing is delivered, because of {source.no_delivery_key} in {source.file}: a run without it would send "
        f"{counted(waiting, 'document', 'documents')} and remove {removals}{past}",
    )


def _warn_of_run(
    source: Source, run: RunRow, waiting: int, *, resending: bool, executing: bool
) -> Iterator[dict[str, str]]:
    name = source.name
    if executing:
        return
    if run.ended_ms is None:
        yield _build_warning("interrupted", f"run {run.id} was cut off: searchcrawl crawl {name} continues it")
    if run.exit_code == Exit.NO_START and (NO_START in run.counts or not has_mostly_failed_logins(run.counts)):
        yield _build_warning("no_start", f"no start URL could be fetched: searchcrawl urls {name} says why")
    if waiting and source.no_delivery_key is None:
        waits = counted(waiting, "document or deletion waits", "documents or deletions wait")
        yield _build_warning(
            "waiting", f"{waits} for the index, to be sent by the next run, or: searchcrawl flush {name}"
        )
    if resending:
        yield _build_warning(
            "resend", f"a resend was cut off: the next run, or searchcrawl flush {name}, sends what is left of it"
        )


def _warn_of_counters(run: RunRow) -> Iterator[dict[str, str]]:
    """Says where the counters of URLs cannot be right: it is an error of the program."""
    missed = run.counts.get(DISCOVERED, 0) - sum(run.counts.get(name, 0) for name in UrlClass)
    if wrong := abs(missed) or run.counts.get(MISCOUNTED, 0):
        yield _build_warning(
            "counters",
            f"the counters of run {run.id} do not add up, by {counted(wrong, 'URL', 'URLs')}: the URL table is right",
        )


def _warn_of_end_look(name: str, run: RunRow) -> Iterator[dict[str, str]]:
    """Says what the look at the index found when the run ended, as long as nobody mended it."""
    if differing := run.counts.get(DIFFERING, 0):
        yield _build_warning(
            INDEX_DIFFERS,
            f"when run {run.id} ended {differing} of {counted(run.counts.get(LOOKED_AT, 0), 'document', 'documents')} that "
            f"the run looked at differed in the index: searchcrawl verify {name} --repair",
        )


def _warn_of_documents(
    name: str, quarantined: int, has_over: bool, refused: int, lost: int
) -> Iterator[dict[str, str]]:
    if quarantined:
        yield _build_warning(
            "quarantine",
            f"{counted(quarantined, 'deletion waits', 'deletions wait')} for approval: searchcrawl quarantine list {name}",
        )
    if has_over:
        yield _build_warning(
            "shared_copies",
            f"documents of other sources that stood for copies in this one have changed or gone: searchcrawl crawl {name}",
        )
    if refused:
        yield _build_warning(
            "refused",
            f"the index refuses {counted(refused, 'document', 'documents')}: searchcrawl urls {name} --state failed",
        )
    if lost:
        yield _build_warning(
            "cache",
            f"{counted(lost, 'document of the index is', 'documents of the index are')} no longer in the cache, and fetched by a "
            "resend",
        )


def _warn_of_urls(name: str, warned: Mapping[int, int], counts: Mapping[str, int]) -> Iterator[dict[str, str]]:
    logins = warned.get(Code.LOGIN_FAILED, 0)
    if counts.get(LOGIN_FAILURES) and has_mostly_failed_logins(counts):
        yield _build_warning(
            "login",
            f"most pages of the last run failed the login, {counts[LOGIN_FAILURES]} of "
            f"{counts['fetched'] + counts['fetch_failures']}: searchcrawl urls {name} --code 959",
        )
    elif logins:
        yield _build_warning(
            "login",
            f"{counted(logins, 'page', 'pages')} could not be read, the login failed: searchcrawl urls {name} --code 959",
        )
    if held_back := counts.get(HELD_BACK):
        yield _build_warning(
            "busy",
            f"{counted(held_back, 'page of the last run was', 'pages of the last run were')} not asked for, as a host asked for "
            f"a pause or is overloaded: searchcrawl urls {name} --state failed",
        )
    if placeholders := warned.get(Code.SENTINEL):
        yield _build_warning(
            "sentinel",
            f"{counted(placeholders, 'page is', 'pages are')} not taken: what a host answers to any path, a login form, an error "
            "page, or a text that many known pages of it have now; what was known before stays: "
            f"searchcrawl urls {name} --code 965",
        )


def _warn_of_set_aside(name: str, count: int, first: Sequence[str]) -> Iterator[dict[str, str]]:
    if count:
        yield _build_warning(
            "set_aside",
            f"set aside, because they stopped the crawler {MOST_STOPS} times: {counted(count, 'page', 'pages')} ({', '.join(first)}"
            f"{', …' if count > len(first) else ''}), tried again once the source file is edited: "
            f"searchcrawl urls {name} --code 966",
        )


def _warn_of_patterns(source: Source, patterns: Sequence[StoredPattern]) -> Iterator[dict[str, str]]:
    """Names each pattern of URLs that is ended, or goes on by itself, and what to do about it (F5, L12)."""
    ended = [row for row in patterns if row.cut is not None]
    for row in ended[:_MOST_PATTERNS]:
        key = f"{row.cut} = {row.cut_limit}"
        why = "it has as many URLs as allowed" if not row.pages else row.describe()
        yield _build_warning(
            "trap", f"URL looping: {row.text} is ended ({key}): {why}; others of it are refused with 961"
        )
    if len(ended) > _MOST_PATTERNS:
        more = counted(len(ended) - _MOST_PATTERNS, "more pattern is", "more patterns are")
        yield _build_warning("trap", f"URL looping: {more} ended")
    going_on = [row for row in patterns if row.cut is None and row.goes_on]
    for row in going_on[:_MOST_PATTERNS]:
        yield _build_warning(
            "endless",
            f"URL looping: {row.text} goes on by itself, with text of its own: {row.describe()}; its URLs are visited last, "
            f"and scope.max_urls or fetch.max_minutes in {source.file} ends such a crawl, scope.exclude_urls leaves them out",
        )


def _warn_of_trapped_documents(name: str, trapped: Iterable[TrappedDocument]) -> Iterator[dict[str, str]]:
    """Says which documents of ended patterns the index has, and the command that takes them out."""
    found = Counter(document.pattern for document in trapped)
    for text, number in found.most_common(_MOST_PATTERNS):
        yield _build_warning(
            "trap_documents",
            f"the index has {counted(number, 'document', 'documents')} of {text} without text of their own, from before it was "
            f"ended: searchcrawl forget --traps {name} takes them out",
        )


def _build_warning(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}


def count_cache(project: Project, database: Database, name: str) -> dict[str, Any]:
    """``{"source", "records", "segments", "bytes"}``: documents with a record, and the files and their size.

    Records that were replaced count in the bytes alone. Raises StoreError.
    """

    def count(transaction: Transaction) -> int:
        source_id = run_table.find_source(transaction, name)
        return 0 if source_id is None else url_queries.count_cached_records(transaction, source_id)

    records = database.read(count)
    sizes = [size for _, size in open_cache(project, name).list_segments()]
    return {"source": name, "records": records, "segments": len(sizes), "bytes": sum(sizes)}


def warn_of_rendering(
    source: Source, counts: Mapping[str, int], lacking: Sequence[Lacking]
) -> Iterator[tuple[str, str]]:
    """The codes and texts of the warnings; ``counts`` are those of the last run, ``lacking`` is of ``find_lacking``."""
    if lacking and lacking[0].lacks is None:
        yield "incomplete", _describe_incomplete(*lacking[:2])
    if lacking and lacking[-1].lacks == NO_TEXT:
        yield "rendered_empty", _describe_empty(source, lacking[-1])
    yield from _warn_of_refused(source, counts)


def _describe_empty(source: Source, empty: Lacking) -> str:
    url = shlex.quote(empty.url)
    pages = counted(empty.pages, "page was rendered, and still has", "pages were rendered, and still have")
    return (
        f"{pages} next to no text, such as {empty.url}: searchcrawl test {url} --source {source.name} --render shows what it lacks; "
        f"render.wait_for or render.allow_hosts in {source.file} may help"
    )


def _describe_incomplete(total: Lacking, most: Lacking) -> str:
    pages = counted(total.pages, "rendered page is incomplete", "rendered pages are incomplete")
    if most.pages == total.pages:
        which = most.lacks
    else:
        which = f"for example, {most.lacks}" if most.pages == 1 else f"for {most.pages} of them, {most.lacks}"
    return (
        f"{pages}: {which}; a known text stays until its page is whole again, or has ended the same way in {RUNS} runs: "
        f"searchcrawl explain {shlex.quote(most.url)}"
    )


def _warn_of_refused(source: Source, counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Names each rule because of which most rendered pages of the last run lack something."""
    rendered = counts.get(RENDERED, 0)
    for name, pages in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if name.startswith(REFUSED_PARTS) and 2 * pages > rendered:
            rule = name.removeprefix(REFUSED_PARTS)
            asked = (
                f"{pages} of {counted(rendered, 'rendered page', 'rendered pages')} asked for what is refused by {rule}"
            )
            yield "refused_parts", f"{asked}{_propose(rule, source)}"


def _propose(rule: str, source: Source) -> str:
    """The key that would allow what a rule refuses; empty where none does."""
    if rule.startswith("method POST"):
        return f"; render.post = true in {source.file} sends it"
    if rule.startswith("robots.txt"):
        return ""
    if rule.endswith(" is outside the boundary"):
        return f"; render.allow_hosts in {source.file} allows a host"
    return f"; {rule.partition(':')[0]} in {source.file} decides it" if rule.startswith(("scope.", "render.")) else ""
