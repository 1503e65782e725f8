"""The data from which ``explain`` explains a URL: the present rules of a source, and the store's rows (L1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.cache.opening import use_cache
from searchcrawl.cache.segment import StoredPage
from searchcrawl.codes import REDIRECTS, REFUSED, Code
from searchcrawl.commit.resolution import MAX_HOPS
from searchcrawl.exceptions import CacheError
from searchcrawl.html.file_name import find_file_name
from searchcrawl.http.address_guard import build_guard
from searchcrawl.items import ARCHIVE_ETAG
from searchcrawl.queries.explain_reasons import Reason, build_reason, propose
from searchcrawl.queries.source_findings import find_private
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.rules.boundary import MAX_URLS, NO_LIMITS, Boundary, is_trap_limit
from searchcrawl.rules.decision import NO_INCLUDE, ROBOTS_KEY, Decision
from searchcrawl.rules.index_filter import META_ROBOTS_KEY, FetchedFacts, read_last_modified
from searchcrawl.rules.redirects import list_exclusions, read_target
from searchcrawl.rules.rendering import Need, build_key
from searchcrawl.rules.rewriting import NormalisedUrl, Rewriting
from searchcrawl.rules.traps import find_patterns
from searchcrawl.sources.config import Origin, Source
from searchcrawl.sources.effective import BUILT_IN, list_layers
from searchcrawl.sources.fingerprint import compute_fingerprint, find_forcing_keys
from searchcrawl.sources.loading import build_boundary, build_index_filter, build_rewriting, read_start_urls
from searchcrawl.sources.project import Project
from searchcrawl.store import host_table, listing_table, owned_hosts, source_table
from searchcrawl.store.documents import anchor_table, duplicate_key_table
from searchcrawl.store.documents.duplicate_key_table import CanonicalTarget
from searchcrawl.store.documents.frozen_table import LANGUAGES, TITLES
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.host_table import HostPause
from searchcrawl.store.listing_table import FailedListing
from searchcrawl.store.owned_hosts import HostTurn
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.urls import link_table, pattern_table, recrawl_table, url_queries
from searchcrawl.store.urls.link_table import Nofollow, UnfollowedLink
from searchcrawl.store.urls.pattern_table import Gains, StoredPattern
from searchcrawl.store.urls.url_queries import ListedUrl, RedirectingUrl, UrlFacts
from searchcrawl.store.urls.url_state import UrlState, derive_url_state

_LIMITS: Final = frozenset(f"scope.{name}" for name in NO_LIMITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInputs:
    """What is the same for each URL of a source that is explained.

    ``lower_limits`` are the limits of the boundary that hold if the source file sets none, each with the place where it
    is set. ``fingerprint`` is that of the source file as it is now. ``is_gone``: there is no such file any more, and
    nothing else but the name of the source is known.
    """

    project: Project
    source: Source
    boundary: Boundary
    lower_limits: Sequence[tuple[Origin, Boundary]]
    rewriting: Rewriting
    starts: frozenset[str]
    fingerprint: str
    is_gone: bool = False


def build_inputs(project: Project, source: Source, *, is_gone: bool = False) -> SourceInputs:
    """Builds the inputs of a source; its ``rewriting`` is not yet open. Raises ConfigurationError."""
    return SourceInputs(
        project=project,
        source=source,
        boundary=build_boundary(source),
        lower_limits=_build_lower_limits(project, source),
        rewriting=build_rewriting(project, source),
        starts=frozenset(read_start_urls(project, source)),
        fingerprint=compute_fingerprint(source),
        is_gone=is_gone,
    )


def _build_lower_limits(project: Project, source: Source) -> list[tuple[Origin, Boundary]]:
    """The limits of the source's parameter set, of the defaults, and the built-in ones; each as if it stood alone."""
    found = []
    for layer in list_layers(project, {}, file=source.path, parameters=source.parameters)[1:]:
        limits = {name: value for name, value in layer.tables.get("scope", {}).items() if name in NO_LIMITS}
        if limits:
            found.append((layer.origin, Boundary(allow_all=True, **{**NO_LIMITS, **limits})))
    return [*found, (Origin(BUILT_IN), Boundary(allow_all=True))]


class Target(NamedTuple):
    """Where the redirect of a URL leads; ``code`` is that of its last visit, None where the source does not know it."""

    url: str
    in_index: bool = False
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known of one URL at one source; its lists name every rule that refuses or includes the URL now.

    What is read from the store of the source is as if there were nothing where it has none.
    """

    inputs: SourceInputs
    #: an identity
    url: str
    #: the display URL that was asked for, where ``url`` is the access URL behind it
    shown_as: str | None
    #: the rewriter that discards links to it
    discarded: Reason | None
    #: the last good robots.txt of its origin, where it is obeyed and was ever read
    robots: RobotsFile | None
    #: the pause of its host that is in force now
    block: HostPause | None
    #: who asks its host now, where a process does
    turn: HostTurn | None
    #: None where the source never saw it
    facts: UrlFacts | None = None
    #: None where the source never ran
    run: RunRow | None = None
    running: bool = False
    #: the keys of the source file that differ from those with which its documents were made
    changed: Sequence[str] = ()
    #: the pattern that refuses it before its first visit
    trap: Reason | None = None
    #: the limit ``scope.max_urls`` where it refuses new URLs
    full: Reason | None = None
    #: the rows whose pages came from it, and those whose last visit ended where they led to it; these two and the links
    #: below only where it was never seen by itself, or nothing names it any more
    led: Sequence[RedirectingUrl] = ()
    led_away: Sequence[RedirectingUrl] = ()
    #: the links to it that may not be followed
    unfollowed: Sequence[UnfollowedLink] = ()
    #: whether there may be others that are not known
    unfollowed_cut: bool = False
    #: the rows that it, and they in turn, name as canonical
    canonical_chain: Sequence[CanonicalTarget] = ()
    #: the texts of links that are indexed with it
    anchors: Sequence[str] = ()
    #: the language of most pages of its host, and what titles of them share (packed)
    usual_language: str = ""
    shared_titles: bytes = b""
    #: what rendering brought for pages like it, each with what their plain answers said
    gains: Sequence[tuple[str, Gains]] = ()
    #: those patterns of it that are ended, or visited last
    patterns: Sequence[StoredPattern] = ()
    #: where its redirect leads
    target: Target | None = None
    #: how many links to its host got no row, where it has none
    refused_links: int = 0
    #: whether somebody put it into the queue, and no run has looked at it yet
    submitted: bool = False
    #: where it has no row: itself, if it is a container, or what it is in and was not listed
    container: FailedListing | None = None

    @property
    def source(self) -> Source:
        """The source for which the URL is explained."""
        return self.inputs.source

    @property
    def listed(self) -> ListedUrl | None:
        """Its row; None if it was never seen."""
        return None if self.facts is None else self.facts.listed

    @property
    def is_known(self) -> bool:
        """Whether the source has a row of it, or its page by a redirect."""
        return self.facts is not None or bool(self.led)

    @property
    def is_linked(self) -> bool:
        """Whether something of the source leads to it, or to its host, that got no row."""
        return self.facts is None and bool(self.unfollowed or self.refused_links or self.led_away or self.submitted)

    @property
    def is_start(self) -> bool:
        """Whether it is one of the source's start URLs."""
        return self.url in self.inputs.starts

    @property
    def is_only_counted(self) -> bool:
        """Whether links to it get no row: they would be refused for ``scope.max_urls``, or lead to a host outside."""
        return self.facts is None and (self.full is not None or self.inputs.boundary.is_elsewhere(self.url))

    @property
    def depth(self) -> int | None:
        """The depth at which it was found; None if it was never found."""
        return None if self.listed is None else self.listed.depth

    @property
    def in_index(self) -> bool:
        """Whether the index has it, as far as the store knows."""
        return self.listed is not None and self.listed.indexed_version is not None

    @property
    def state(self) -> UrlState | None:
        """Its state, with the names of ``urls``; None if it was never seen."""
        return None if self.listed is None else derive_url_state(self.listed, self.source.lifecycle.remove_on)

    def blame(self, step: str, rule: str, key: str) -> Reason:
        """The rule of a key of the source that refuses it."""
        return build_reason(step, Decision(False, rule, key=key), self.source)

    def list_refusals(self, url: str | None = None) -> list[Reason]:
        """All rules of the boundary that refuse it now, or the target of its redirect, at its own depth."""
        listed = self.listed if url is None else None
        exempt = listed is not None and listed.is_known
        in_archive = listed is not None and (listed.etag or "").startswith(ARCHIVE_ETAG)
        url, boundary = url or self.url, self.inputs.boundary
        depth = 0 if self.is_start and self.depth is None else self.depth
        decisions = boundary.list_refusals(url, depth, in_archive=in_archive)
        decisions = [decision for decision in decisions if not (exempt and is_trap_limit(decision.key))]
        found = self.build_refusals(url, decisions, self.depth)
        # If a limit is removed from a file, the limit of a lower layer holds.
        limits = {decision.key for decision in decisions if decision.rule != NO_INCLUDE} & _LIMITS
        for origin, lower in self.inputs.lower_limits if limits else ():
            for decision in lower.list_refusals(url, self.depth):
                key = f"{origin.table}.{decision.key}" if origin.table else decision.key
                known = {(other.rule, other.file, other.key) for other in found}
                if decision.key in limits and (decision.rule, origin.file, key) not in known:
                    found.append(Reason(step="boundary", rule=decision.rule, file=origin.file, key=key))
        of_itself = (self.full, self.trap) if url == self.url else ()
        return [*found, *filter(None, of_itself)]

    def build_refusals(self, url: str, decisions: Sequence[Decision], depth: int | None) -> list[Reason]:
        """Refusals of a URL by the boundary, with what would admit it."""
        boundary = self.inputs.boundary
        return [
            build_reason(
                "boundary", decision, self.source, boundary.propose_include(url, decision), boundary.measure(url, depth)
            )
            for decision in decisions
        ]

    def list_exclusions(self, url: str) -> list[Reason]:
        """The exclude rules that name the target of a redirect now."""
        decisions = list_exclusions(url, self.inputs.boundary, self.inputs.rewriting, self.url)
        return [build_reason("boundary", decision, self.source) for decision in decisions]

    def list_includes(self) -> list[Reason]:
        """The rules of the boundary that include it: without them it would be refused."""
        decisions = self.inputs.boundary.list_includes(self.url)
        return [build_reason("boundary", decision, self.source) for decision in decisions]

    def list_robots_refusals(self) -> list[Reason]:
        """All lines of the stored robots.txt that forbid it."""
        decisions = self.robots.refusals(self.url) if self.robots is not None else []
        return [self.build_robots_reason(decision.rule) for decision in decisions]

    def build_robots_reason(self, line: str, url: str | None = None) -> Reason:
        """A line of the robots.txt of the URL's origin as the reason, or of that of ``url``, to which it redirects."""
        proposal = propose(Decision(False, key="robots.obey"), self.source)
        file = f"{urls.parse(url or self.url).origin}/robots.txt"
        return Reason(step="robots", rule=line, file=file, key=ROBOTS_KEY, proposal=proposal)

    def list_address_refusals(self) -> list[Reason]:
        """The networks for which its address may not be reached, as far as that is known without a name server (L7).

        Empty where a proxy or nobody knows, and for what is listed: its servers are those that the source file names.
        """
        if self.source.kind.is_listed:
            return []
        fetch, key = self.source.fetch, "fetch.private_networks"
        found = None if fetch.proxy else find_private(self.url, build_guard(fetch))
        if found is None:
            return []
        return [self.blame("address", f"{key} may not be reached" if key in self.source.references else found, key)]

    def list_unlinked(self) -> list[Reason]:
        """The key that keeps URLs which pages name from being new; empty without one."""
        if not self.source.finds_urls:
            return [self.blame("found", self.source.mode, "mode")]
        return [] if self.source.scope.follow_links else [self.blame("found", "false", "scope.follow_links")]

    def list_unfollowed(self) -> list[Reason]:
        """The links to it that are not followed as the source file is now, those first that an edit of it would change."""
        found = []
        for link in self.unfollowed:
            rule = f"{link.kind.title} on {link.page}"
            if link.kind is Nofollow.REL:
                found.append(Reason(step="found", rule=rule))
            elif self.source.keep.meta_robots:
                found.append(self.blame("found", rule, META_ROBOTS_KEY))
        return found

    def list_filter_refusals(self) -> list[Reason]:
        """All rules of ``[keep]`` that refuse its document now, by what its row says of it (B8–B10).

        The name of the file is that of the URL: no row keeps the name that was sent.
        """
        if self.facts is None:
            return []
        listed = self.facts.listed
        fetched = FetchedFacts(
            url=listed.url,
            name=find_file_name((), listed.url),
            mimetype=self.facts.mimetype or "",
            size_bytes=self.facts.content_length,
            modified_ms=read_last_modified(listed.last_modified),
            fetched_ms=listed.last_fetched_ms or clock.now_ms(),
        )
        key, _, rule = (listed.rule or "").partition(": ")
        noindex = rule if key == META_ROBOTS_KEY else ""
        values = {"mime_types": fetched.mimetype, "include_urls": fetched.url, "include_names": fetched.name}
        needed = {"keep.min_bytes": fetched.size_bytes, "keep.max_bytes": fetched.size_bytes}
        if fetched.modified_ms is not None:
            # The next visit is later: a day more.
            needed["keep.max_age_days"] = (fetched.fetched_ms - fetched.modified_ms) // clock.DAY_MS + 2
        return [
            build_reason("keep", decision, self.source, decision.propose_include(values), needed)
            for decision in build_index_filter(self.source).list_refusals(fetched, noindex=noindex)
        ]


def leads_outside(listed: ListedUrl) -> bool:
    """Whether the last visit was led to a URL that an exclude rule names; its error has the target."""
    return listed.code == Code.OUTSIDE_BOUNDARY and listed.redirects is not None


def read_page(context: Context, facts: UrlFacts) -> StoredPage | None:
    """Its page as the cache has it; None where it has none, or a damaged one."""
    if facts.place is None:
        return None
    try:
        with use_cache(context.inputs.project, context.source.name) as cache:
            return cache.read_page(facts.place, url=facts.listed.url)
    except CacheError:
        # The step about the content says so.
        return None


def build_context(transaction: Transaction, inputs: SourceInputs, url: str) -> Context:
    """Reads what is known of ``url``, a URL as it was found or as it is shown; raises StoreError."""
    source, asked = inputs.source, url
    source_id = run_table.find_source(transaction, source.name)
    url, shown_as, facts = _find_facts(transaction, source_id, url)
    named = inputs.rewriting.normalise(url) if facts is None else NormalisedUrl(url)
    if named.url != url:
        url, _, facts = _find_facts(transaction, source_id, named.url)
    found = Context(
        inputs=inputs,
        url=url,
        shown_as=shown_as,
        discarded=build_reason("rewrite", named.decision, source) if named.code else None,
        robots=_read_robots(transaction, inputs, url) if source.obeys_robots else None,
        block=host_table.find_block(transaction, urls.host_and_port(url), clock.now_ms()),
        turn=owned_hosts.find_turn(transaction, urls.host_and_port(url)),
        facts=facts,
    )
    return found if source_id is None else _add_rows(transaction, source_id, found, asked)


def _add_rows(transaction: Transaction, source_id: int, found: Context, asked: str) -> Context:
    """The context with what the store has of the source, and of the URL besides its own row."""
    inputs, source, url, facts = found.inputs, found.source, found.url, found.facts
    host, most = urls.host_and_port(url), source.scope.max_urls
    is_new = facts is None
    is_full = is_new and most and run_table.count_urls(transaction, source_id, without=REFUSED) >= most
    found = replace(
        found,
        run=run_table.find_last(transaction, source_id),
        running=lease.is_held(transaction, source_id),
        changed=find_forcing_keys(
            source_table.find(transaction, source_id, "fingerprint") or inputs.fingerprint, inputs.fingerprint
        ),
        trap=None if found.is_start else _find_trap(transaction, source_id, found),
        full=found.blame("boundary", str(most), MAX_URLS) if is_full else None,
        canonical_chain=()
        if facts is None or facts.canonical is None
        else duplicate_key_table.follow_canonicals(
            transaction, source_id, urls.key(facts.canonical), most=MAX_HOPS + 1
        ),
        gains=_find_gains(transaction, source_id, found),
        patterns=pattern_table.find(transaction, source_id, [text for _, text in find_patterns(url)]),
        target=_find_target(transaction, source_id, facts),
        refused_links=sum(row.links for row in link_table.load_refused(transaction, source_id) if row.host == host)
        if is_new
        else 0,
        container=listing_table.find_above(transaction, source_id, url) if is_new and source.kind.is_listed else None,
        submitted=recrawl_table.is_submitted(transaction, source_id, asked),
        anchors=() if facts is None else anchor_table.load_of(transaction, facts.listed.url_id),
        usual_language=LANGUAGES.find(transaction, source_id, host) or "",
        shared_titles=TITLES.find(transaction, source_id, host) or b"",
    )
    if facts is not None and not facts.is_orphan:
        return found
    # What leads to a URL without a row: redirects that were followed, and links that were not.
    unfollowed = link_table.find_unfollowed(transaction, source_id, urls.key(url), gone=source.lifecycle.remove_on)
    return replace(
        found,
        led=url_queries.find_redirecting(transaction, source_id, url),
        led_away=url_queries.find_led_away(transaction, source_id, url),
        unfollowed=unfollowed,
        unfollowed_cut=not unfollowed and link_table.is_unfollowed_cut(transaction, source_id),
    )


def _find_target(transaction: Transaction, source_id: int, facts: UrlFacts | None) -> Target | None:
    url = None if facts is None else read_target(facts.listed.error)
    if url is None:
        return None
    listed = url_queries.find_url(transaction, source_id, urls.key(url))
    return Target(url) if listed is None else Target(url, listed.indexed_version is not None, listed.code)


def _find_facts(transaction: Transaction, source_id: int | None, url: str) -> tuple[str, str | None, UrlFacts | None]:
    """The access URL, the display URL where ``url`` is one, and what is known of it."""
    if source_id is None:
        return url, None, None
    facts = _find_row(transaction, source_id, url)
    access_url = None if facts is not None else url_queries.find_shown_as(transaction, source_id, urls.key(url))
    if access_url is None:
        return url, None, facts
    return access_url, url, _find_row(transaction, source_id, access_url)


def _find_row(transaction: Transaction, source_id: int, url: str) -> UrlFacts | None:
    """What is known of a URL; its referrer has no code where it found the URL as a page and redirects elsewhere now."""
    facts = url_queries.find_facts(transaction, source_id, urls.key(url))
    if facts is None or facts.referrer_code not in REDIRECTS:
        return facts
    led = url_queries.find_redirects_before(transaction, facts.listed.url_id, limit=1)
    return facts if led else replace(facts, referrer_code=None)


def _find_trap(transaction: Transaction, source_id: int, found: Context) -> Reason | None:
    """The pattern that refuses a URL which is new, or waits for its first visit."""
    if found.listed is not None and (found.listed.code or not found.listed.depth):
        return None
    scope = found.source.scope
    watch = TrapWatch(
        source_id,
        trap_after=scope.trap_after,
        # A URL that waits was counted before.
        max_urls_per_pattern=scope.max_urls_per_pattern if found.facts is None else 0,
        file=found.source.path,
    )
    watch.recall(transaction)
    watch.prepare(transaction, [found.url])
    decision = watch.admit(found.url)
    return None if decision is None else build_reason("boundary", decision, found.source)


def _read_robots(transaction: Transaction, inputs: SourceInputs, url: str) -> RobotsFile | None:
    origin = urls.parse(url).origin
    body = host_table.find_robots(transaction, origin)
    agent = inputs.source.robots.user_agent or inputs.project.user_agent
    return None if body is None else RobotsFile.parse(body, agent, url=f"{origin}/robots.txt")


def _find_gains(transaction: Transaction, source_id: int, found: Context) -> list[tuple[str, Gains]]:
    """What rendering brought for pages like that of the URL; nothing where the source does not ask for it."""
    if found.source.render.mode != "auto":
        return []
    said = {Need.DOUBTFUL: "leaves a doubt", Need.NONE: "has text"}
    gains = [
        (text, pattern_table.find_gains(transaction, source_id, build_key(found.url, need)))
        for need, text in said.items()
    ]
    return [(text, known) for text, known in gains if known is not None]
