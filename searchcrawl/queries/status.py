"""The state of sources and of their document caches, as ``status``, ``cache count`` and the end of ``crawl`` show it (J1, J2).

Beside its runs that is whether a source waits, was suspended, and when it runs next (H3). Each warning is a code and a text.
The documents of a source without a good file are found until the file is back or mended, or the source is deleted.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.admission.trap_watch import TrappedDocument, list_trapped
from searchcrawl.cache.opening import open_cache
from searchcrawl.codes import Code, describe_code
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
from searchcrawl.exceptions import ConfigurationError, Exit, UnknownSource
from searchcrawl.queries.receivers import describe_receivers, warn_of_receivers
from searchcrawl.rules.lifecycle import MOST_STOPS
from searchcrawl.rules.rendering import NO_TEXT, RUNS
from searchcrawl.scheduling.planner import StartPlan, find_next, find_overdue, find_unstarted, list_plans
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, describe_keys, find_forcing_keys
from searchcrawl.sources.loading import is_source_name, list_source_names, stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store import listing_table, owned_hosts, sitemap_table, source_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import job_table, lease, run_table
from searchcrawl.store.runs.job_table import Job, JobState
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import link_table, pattern_table, url_queries
from searchcrawl.store.urls.pattern_table import StoredPattern
from searchcrawl.store.urls.url_classes import UrlClass
from searchcrawl.store.urls.url_queries import Lacking
from searchcrawl.wording import counted

#: The most patterns of URLs that are named.
_MOST_PATTERNS: Final = 500
#: URLs that are named in one warning.
_MOST_SHOWN: Final = 3
#: States of a source whose last run left something to do, and of one that nothing happens to.
_LEFT: Final = frozenset({"waiting_for_resume", "stopped"})
_IDLE: Final = frozenset({"scheduled", "finished"})
#: The codes and texts of warnings.
_Warnings = Iterator[tuple[str, str]]
#: The code of the warning about what the last run saw of the index when it ended.
INDEX_DIFFERS: Final = "index_differs"
#: The state of a source whose last run finished, by the exit code of the run; ``failed`` for others.
_FINISHED_STATES: Final[Mapping[int | None, str]] = {
    Exit.DONE: "finished",
    Exit.QUARANTINE: "finished",
    Exit.INDEX_AWAY: "partially_failed",
}


def describe_status(
    project: Project, source: Source, database: Database, *, index: IndexLook | None = None
) -> dict[str, Any]:
    """What ``status --json`` prints of a source; one that never ran is ``scheduled``. ``index`` tells of lost documents."""

    def read(transaction: Transaction) -> dict[str, Any]:
        found = _read_status(transaction, source=source, preserve=project.cache.preserve)
        source_id = run_table.find_source(transaction, source.name)
        receivers = describe_receivers(transaction, project, source)
        of_job, warned = _read_job(transaction, project, source.name, source_id, found["state"])
        warnings = [*found["warnings"], *warned, *warn_of_receivers(receivers, source.name)]
        shown = [{"code": code, "message": message} for code, message in warnings]
        return found | {"warnings": shown, "receivers": receivers} | of_job

    status = database.read(read)
    found = None if index is None else index.find(database, source.name)
    if found is not None:
        # It says more, and is newer, than what the last run saw.
        status["warnings"] = [found._asdict(), *(each for each in status["warnings"] if each["code"] != INDEX_DIFFERS)]
    return status


def _read_status(transaction: Transaction, *, source: Source, preserve: bool) -> dict[str, Any]:
    """What follows from its runs, with the codes and texts of the warnings."""
    source_id = run_table.find_source(transaction, source.name)
    run = None if source_id is None else run_table.find_last(transaction, source_id)
    if source_id is None or run is None:
        return {
            "source": source.name,
            "state": "scheduled",
            "run": None,
            "counts": dict.fromkeys(COUNTS, 0),
            **dict.fromkeys(("documents", "waiting", "quarantined"), 0),
            "force_recrawl": None,
            "refused_links": [],
            "hosts": None,
            "warnings": [*_warn_of_source(source)],
        }
    totals = document_table.count_totals(transaction, source_id)
    executing = lease.is_held(transaction, source_id)
    links = link_table.load_refused(transaction, source_id)
    return {
        "source": source.name,
        "state": _find_state(run, executing=executing),
        "run": {
            "id": run.id,
            "kind": run.kind.value,
            "started": clock.iso(run.started_ms),
            "ended": clock.iso(run.ended_ms),
            "end_reason": run.end_reason,
        },
        "counts": {name: run.counts.get(name, 0) for name in COUNTS},
        **totals,
        "force_recrawl": _find_recrawl_reason(transaction, source_id, source),
        "refused_links": [{"rule": row.rule, "host": row.host, "count": row.links} for row in links],
        "hosts": owned_hosts.count_hosts(transaction, source_id, clock.now_ms())._asdict() if executing else None,
        "listings": _count_listings(transaction, source_id, source),
        "warnings": [
            *_warn_of_source(source, run),
            *warn_of_rendering(source, run.counts, url_queries.find_lacking(transaction, source_id, apart=NO_TEXT)),
            *_warn_of_counters(run),
            *_warn_of_end_look(source.name, run),
            *_warn_of_no_delivery(source, run, totals["waiting"], executing=executing),
            *_warn_of_run(transaction, source_id, source, run, totals["waiting"], executing=executing),
            *_warn_of_documents(transaction, source_id, source.name, totals["quarantined"], preserve=preserve),
            *_warn_of_urls(transaction, source_id, source.name, run.counts),
            *_warn_of_patterns(source, pattern_table.load(transaction, source_id)),
            *_warn_of_trapped_documents(source.name, list_trapped(transaction, source_id)),
            *_warn_of_lists(transaction, source_id, source),
        ],
    }


def _find_state(run: RunRow, *, executing: bool) -> str:
    if run.ended_ms is None:
        return "executing" if executing else "waiting_for_resume"
    if run.end_reason == EndReason.FINISHED:
        return _FINISHED_STATES.get(run.exit_code, "failed")
    if run.end_reason == EndReason.APPLIED:
        return "scheduled"
    return "failed" if run.end_reason == EndReason.STORE_FAILED else "stopped"


def _find_recrawl_reason(transaction: Transaction, source_id: int, source: Source) -> str | None:
    """Why the next run visits all or some URLs without validators (D9); None if it does not."""
    now = compute_fingerprint(source)
    changed = find_forcing_keys(source_table.find(transaction, source_id, "fingerprint") or now, now)
    edited = f"changed: {describe_keys(changed)}" if changed else None
    return "; ".join(filter(None, (edited, source_table.find(transaction, source_id, "recrawl")))) or None


def _warn_of_source(source: Source, run: RunRow | None = None) -> _Warnings:
    """Says what a source file leaves out, and what its last run lacked for it."""
    if not source.robots.obey:
        yield "robots", "robots.txt is not obeyed for this source (robots.obey = false)"
    shells = 0 if run is None else run.counts.get(SHELLS, 0)
    if shells and not source.render.in_use:
        has = f"{counted(shells, 'page', 'pages')} that the last run read {'has' if shells == 1 else 'have'}"
        remedy = f'[render] mode = "auto" in {source.path} has a browser render such pages'
        yield "needs_javascript", f"{has} next to no text without JavaScript: {remedy}"


def _warn_of_no_delivery(source: Source, run: RunRow, waiting: int, *, executing: bool) -> _Warnings:
    """Says what a run that delivers would send and remove (D11, H6)."""
    if executing or source.no_delivery_key is None:
        return
    removals, documents = run.counts.get(UNSENT_REMOVALS, 0), counted(waiting, "document", "documents")
    past = ", which is past the limits on deleting: they would wait in quarantine" if PAST_LIMITS in run.counts else ""
    because = f"nothing is delivered, because of {source.no_delivery_key} in {source.path}"
    yield "no_delivery", f"{because}: a run without it would send {documents} and remove {removals}{past}"


def _warn_of_run(
    transaction: Transaction, source_id: int, source: Source, run: RunRow, waiting: int, *, executing: bool
) -> _Warnings:
    name, waits = source.name, counted(waiting, "document or deletion waits", "documents or deletions wait")
    if executing:
        return
    if run.ended_ms is None:
        yield "interrupted", f"run {run.id} was cut off: searchcrawl crawl {name} continues it"
    if run.exit_code == Exit.NO_START and (NO_START in run.counts or not has_mostly_failed_logins(run.counts)):
        yield "no_start", f"no start URL could be fetched: searchcrawl urls {name} says why"
    if waiting and source.no_delivery_key is None:
        yield "waiting", f"{waits} for the index, to be sent by the next run, or: searchcrawl flush {name}"
    if source_table.find(transaction, source_id, "resend_version") is not None:
        rest = f"the next run, or searchcrawl flush {name}, sends what is left of it"
        yield "resend", f"a resend was cut off: {rest}"


def _warn_of_counters(run: RunRow) -> _Warnings:
    """Says where the counters of URLs cannot be right: it is an error of the program."""
    missed = run.counts.get(DISCOVERED, 0) - sum(run.counts.get(name, 0) for name in UrlClass)
    if wrong := abs(missed) or run.counts.get(MISCOUNTED, 0):
        by = counted(wrong, "URL", "URLs")
        yield "counters", f"the counters of run {run.id} do not add up, by {by}: the URL table is right"


def _warn_of_end_look(name: str, run: RunRow) -> _Warnings:
    """Says what the look at the index found when the run ended, as long as nobody mended it."""
    if differing := run.counts.get(DIFFERING, 0):
        looked_at = f"{counted(run.counts.get(LOOKED_AT, 0), 'document', 'documents')} that the run looked at"
        found = f"when run {run.id} ended {differing} of {looked_at} differed in the index"
        yield INDEX_DIFFERS, f"{found}: searchcrawl verify {name} --repair"


def _warn_of_documents(
    transaction: Transaction, source_id: int, name: str, quarantined: int, *, preserve: bool
) -> _Warnings:
    if quarantined:
        wait = counted(quarantined, "deletion waits", "deletions wait")
        yield "quarantine", f"{wait} for approval: searchcrawl quarantine list {name}"
    if find_over(transaction, source_id):
        gone = "documents of other sources that stood for copies in this one have changed or gone"
        yield "shared_copies", f"{gone}: searchcrawl crawl {name}"
    if refused := url_queries.count_refused_documents(transaction, source_id):
        documents = counted(refused, "document", "documents")
        yield "refused", f"the index refuses {documents}: searchcrawl urls {name} --state failed"
    if preserve and (lost := url_queries.count_indexed_without_record(transaction, source_id)):
        documents = counted(lost, "document of the index is", "documents of the index are")
        yield "cache", f"{documents} no longer in the cache, and fetched by a resend"


def _warn_of_urls(transaction: Transaction, source_id: int, name: str, counts: Mapping[str, int]) -> _Warnings:
    warned = url_queries.count_warned_urls(transaction, source_id)
    logins = warned.get(Code.LOGIN_FAILED, 0)
    if counts.get(LOGIN_FAILURES) and has_mostly_failed_logins(counts):
        share = f"{counts[LOGIN_FAILURES]} of {counts['fetched'] + counts['fetch_failures']}"
        most = f"most pages of the last run failed the login, {share}"
        yield "login", f"{most}: searchcrawl urls {name} --code 959"
    elif logins:
        pages = f"{counted(logins, 'page', 'pages')} could not be read, the login failed"
        yield "login", f"{pages}: searchcrawl urls {name} --code 959"
    if held_back := counts.get(HELD_BACK):
        pages = counted(held_back, "page of the last run was", "pages of the last run were")
        why = "as a host asked for a pause or is overloaded"
        yield "busy", f"{pages} not asked for, {why}: searchcrawl urls {name} --state failed"
    if placeholders := warned.get(Code.SENTINEL):
        pages = counted(placeholders, "page is", "pages are")
        kinds = "what a host answers to any path, a login form, an error page, or a text that many known pages of it have now"
        known = "what was known before stays"
        yield "sentinel", f"{pages} not taken: {kinds}; {known}: searchcrawl urls {name} --code 965"
    if count := warned.get(Code.SET_ASIDE):
        first = url_queries.find_set_aside(transaction, source_id, limit=_MOST_SHOWN)
        named = f"{counted(count, 'page', 'pages')} ({', '.join(first)}{', …' if count > len(first) else ''})"
        why = f"set aside, because they stopped the crawler {MOST_STOPS} times"
        again = "tried again once the source file is edited"
        yield "set_aside", f"{why}: {named}, {again}: searchcrawl urls {name} --code 966"


def _warn_of_patterns(source: Source, patterns: Sequence[StoredPattern]) -> _Warnings:
    """Names each pattern of URLs that is ended, or goes on by itself, and what to do about it (F5, L12)."""
    ended = [row for row in patterns if row.cut is not None]
    for row in ended[:_MOST_PATTERNS]:
        why = "it has as many URLs as allowed" if not row.pages else row.describe()
        end = f"{row.text} is ended ({row.cut} = {row.cut_limit})"
        yield "trap", f"URL looping: {end}: {why}; others of it are refused with 961"
    if len(ended) > _MOST_PATTERNS:
        more = counted(len(ended) - _MOST_PATTERNS, "more pattern is", "more patterns are")
        yield "trap", f"URL looping: {more} ended"
    going_on = [row for row in patterns if row.cut is None and row.goes_on]
    for row in going_on[:_MOST_PATTERNS]:
        goes_on = f"{row.text} goes on by itself, with text of its own: {row.describe()}"
        ends = f"scope.max_urls or fetch.max_minutes in {source.path} ends such a crawl, scope.exclude_urls leaves them out"
        yield "endless", f"URL looping: {goes_on}; its URLs are visited last, and {ends}"


def _warn_of_trapped_documents(name: str, trapped: Iterable[TrappedDocument]) -> _Warnings:
    """Says which documents of ended patterns the index has, and the command that takes them out."""
    found = Counter(document.pattern for document in trapped)
    for text, number in found.most_common(_MOST_PATTERNS):
        documents = f"the index has {counted(number, 'document', 'documents')} of {text} without text of their own"
        remedy = f"searchcrawl forget --traps {name} takes them out"
        yield "trap_documents", f"{documents}, from before it was ended: {remedy}"


def _count_listings(transaction: Transaction, source_id: int, source: Source) -> dict[str, int] | None:
    """How many folders and tables are known, and how many could not be read; None for a source that is not listed."""
    if not source.kind.is_listed:
        return None
    known, failed = listing_table.count(transaction, source_id)
    return {"known": known, "failed": failed}


def _warn_of_lists(transaction: Transaction, source_id: int, source: Source) -> _Warnings:
    if source.kind.is_listed:
        for failed in listing_table.find_failures(transaction, source_id, limit=_MOST_SHOWN):
            text = f"{failed.url} could not be listed ({describe_code(failed.code)}): {failed.error}"
            yield "listing", f"{text}; what is known of it stays"
        return
    named = source.start.sitemaps if isinstance(source.start.sitemaps, tuple) else ()
    for url, error in sitemap_table.find_failures(transaction, source_id, [urls.resolve(url) for url in named]):
        yield "sitemap", f"{url} could not be read: {error}"


def count_cache(project: Project, database: Database, name: str) -> dict[str, Any]:
    """``{"source", "records", "segments", "bytes"}``: documents with a record, and the files and their size.

    Records that were replaced count in the bytes alone. Raises StoreError.
    """
    records = database.read(run_table.read_of, name, url_queries.count_cached_records, 0)
    sizes = [size for _, size in open_cache(project, name).list_segments()]
    return {"source": name, "records": records, "segments": len(sizes), "bytes": sum(sizes)}


def warn_of_rendering(source: Source, counts: Mapping[str, int], lacking: Sequence[Lacking]) -> _Warnings:
    """``counts`` are those of the last run, ``lacking`` is of ``find_lacking``."""
    if lacking and lacking[0].lacks is None:
        total, most = lacking[:2]
        pages = counted(total.pages, "rendered page is incomplete", "rendered pages are incomplete")
        some = "for example, " if most.pages == 1 else f"for {most.pages} of them, "
        which = most.lacks if most.pages == total.pages else f"{some}{most.lacks}"
        stays = f"a known text stays until its page is whole again, or has ended the same way in {RUNS} runs"
        yield "incomplete", f"{pages}: {which}; {stays}: searchcrawl explain {shlex.quote(most.url)}"
    if lacking and lacking[-1].lacks == NO_TEXT:
        empty = lacking[-1]
        pages = counted(empty.pages, "page was rendered, and still has", "pages were rendered, and still have")
        test = f"searchcrawl test {shlex.quote(empty.url)} --source {source.name} --render shows what it lacks"
        keys = f"render.wait_for or render.allow_hosts in {source.path} may help"
        yield "rendered_empty", f"{pages} next to no text, such as {empty.url}: {test}; {keys}"
    # Each rule because of which most rendered pages of the last run lack something.
    rendered = counts.get(RENDERED, 0)
    for name, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if name.startswith(REFUSED_PARTS) and 2 * number > rendered:
            rule, of_all = name.removeprefix(REFUSED_PARTS), counted(rendered, "rendered page", "rendered pages")
            asked = f"{number} of {of_all} asked for what is refused by {rule}"
            yield "refused_parts", f"{asked}{_propose(rule, source)}"


def _propose(rule: str, source: Source) -> str:
    """The key that would allow what a rule refuses; empty where none does."""
    if rule.startswith("method POST"):
        return f"; render.post = true in {source.path} sends it"
    if rule.startswith("robots.txt"):
        return ""
    if rule.endswith(" is outside the boundary"):
        return f"; render.allow_hosts in {source.path} allows a host"
    return f"; {rule.partition(':')[0]} in {source.path} decides it" if rule.startswith(("scope.", "render.")) else ""


def _read_job(
    transaction: Transaction, project: Project, name: str, source_id: int | None, state: str
) -> tuple[dict[str, Any], _Warnings]:
    """What follows from the schedule and the job of a source: keys and warnings; ``state`` is that of its runs."""
    job = job_table.load(transaction, [] if source_id is None else [source_id]).get(source_id or 0)
    suspended = source_id in job_table.find_suspended(transaction)
    schedules = {key: each for key, each in project.schedules.items() if name in each.sources}
    plan = list_plans(schedules).get(name, StartPlan(name=name))
    next_ms = None if suspended else find_next(job, plan, clock.now_ms())
    disabled = any(not each.enabled for each in schedules.values())
    keys = {
        "state": _find_job_state(state, job, suspended=suspended, disabled=disabled),
        "next_run": clock.iso(next_ms),
        "log": str(project.logs_dir / f"{name}.log"),
        "error": job.error if job is not None else None,
    }
    return keys, _warn_of_job(job, plan, may_start=state != "executing" and not suspended)


def _warn_of_job(job: Job | None, plan: StartPlan, *, may_start: bool) -> _Warnings:
    if may_start and (reason := find_unstarted(job)):
        yield "not_started", describe_unstarted(reason)
    if job is None:
        return
    if may_start and (since_ms := find_overdue(job, plan, clock.now_ms())) is not None:
        yield "overdue", describe_overdue(since_ms)
    if job.overruns:
        moments = counted(job.overruns, "moment was", "moments were")
        yield "overrun", f"its run takes longer than its schedule has time for: {moments} passed over"
    if job.skipped:
        runs = counted(job.skipped, "run was", "runs were")
        yield "missed", f'nothing could start it in time: {runs} passed over (misfire = "skip")'


def describe_unstarted(reason: str) -> str:
    """That a crawl could not be started."""
    return f"its last start failed: {reason}"


def describe_overdue(since_ms: int) -> str:
    """That a run should have begun long ago."""
    return (
        f"it is due since {clock.iso(since_ms)} and has not begun: is searchcrawl run up, or tick called each minute, and is "
        "max_parallel high enough?"
    )


def _find_job_state(state: str, job: Job | None, *, suspended: bool, disabled: bool) -> str:
    if state == "executing":
        return state
    if suspended:
        return "suspended"
    # What has ended before its run began waits for the next tick, which starts it again.
    if job is not None and (job.state is JobState.WAITING or job.is_lost):
        return "waiting_for_resume" if state in _LEFT else "waiting_for_start"
    if job is not None and job.state is JobState.LAUNCHING:
        return "launching"
    if disabled and state in _IDLE:
        return "disabled"
    # Its last start ended before it was a run.
    return "failed" if job is not None and job.error and state in _IDLE else state


class GoneSource(NamedTuple):
    """A source that the store knows and that has no file; ``documents`` are those that the index has, by the table."""

    name: str
    documents: int

    @property
    def file(self) -> str:
        """Where its file was."""
        return f"sources/{self.name}.toml"

    @property
    def text(self) -> str:
        """What is the matter, and what can be done."""
        return (
            f"the file of the source is gone, and {self.documents} of its documents can still be found: put {self.file} back,"
            f" or searchcrawl delete {self.name}"
        )


def list_gone_sources(project: Project, database: Database) -> list[GoneSource]:
    """The sources of the store that have no file, by name; raises StoreError."""
    names = set(list_source_names(project))

    def find(transaction: Transaction) -> list[GoneSource]:
        known = run_table.find_source_names(transaction)
        return sorted(
            GoneSource(name, document_table.count_totals(transaction, source_id)["documents"])
            for source_id, name in known.items()
            if name not in names
        )

    return database.read(find)


def find_known_name(project: Project, database: Database, name: str) -> str:
    """``name``, if there is a file of such a source, good or broken, or the store knows it; raises UnknownSource."""
    if name in list_source_names(project) or name in {each.name for each in list_gone_sources(project, database)}:
        return name
    raise UnknownSource(f"unknown source: {name}")


def describe_gone_source(project: Project, gone: GoneSource, database: Database) -> dict[str, Any]:
    """What ``status`` says of it, in the shape of all sources; raises StoreError."""
    return _describe_stand_in(project, gone.name, database, state="disabled", warnings={"no_file": [gone.text]})


def find_refused_sources(
    project: Project, good: Collection[str], errors: Iterable[ConfigurationError]
) -> dict[str, list[ConfigurationError]]:
    """The errors of each source that has a file and is not ``good``, by its name."""
    refused: dict[str, list[ConfigurationError]] = {
        name: [] for name in list_source_names(project) if name not in good and is_source_name(name)
    }
    files = {f"sources/{name}.toml": of_source for name, of_source in refused.items()}
    for error in errors:
        if error.file in files:
            files[error.file].append(error)
    return refused


def describe_refused_source(
    project: Project, name: str, errors: Iterable[ConfigurationError], database: Database
) -> dict[str, Any]:
    """What ``status`` says of a source that cannot run for the errors of its file; raises StoreError."""
    texts = [str(error) for error in errors]
    return _describe_stand_in(project, name, database, state="failed", warnings={"bad_file": texts})


def _describe_stand_in(
    project: Project, name: str, database: Database, *, state: str, warnings: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    status = describe_status(project, stand_in_for(project, name), database)
    # Nothing that its file would decide is known.
    return status | {
        # A crawl that began before goes on with what it has read.
        "state": status["state"] if status["state"] == "executing" else state,
        "force_recrawl": None,
        "warnings": [{"code": code, "message": text} for code, texts in warnings.items() for text in texts],
    }
