"""One URL before one source: the rules as they are now, and what the store knows of it (L1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchcrawl import urls
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.queries.reason import Because, because, because_beneath
from searchcrawl.queries.url_state import UrlState, url_state
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import NO_INCLUDE
from searchcrawl.rules.rewriting import Named, Rewriting
from searchcrawl.sources.config import Origin, Source
from searchcrawl.sources.effective import BUILT_IN, list_layers
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import build_boundary, build_rewriting, read_start_urls
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.hosts import robots_table
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.urls import url_facts
from searchcrawl.store.urls.url_facts import UrlFacts

_LIMITS: Final = frozenset(
    f"scope.{name}"
    for name in (
        "depth",
        "dynamic_pages",
        "max_url_length",
        "max_path_segments",
        "max_query_parameters",
        "max_repeated_segments",
    )
)


_NO_LIMITS: Final = dict.fromkeys(
    ("max_url_length", "max_path_segments", "max_query_parameters", "max_repeated_segments"), 0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``url`` is an identity; ``beneath`` are the limits of lower layers; ``facts`` is None where the source never saw it, ``run`` where it never ran.

    ``changed`` are the keys of the source file that differ from what its documents were made with;
    ``shown_as`` is the display URL that was asked for, where ``url`` is the access URL behind it;
    ``discarded`` is the rewriter that gives up links to it; ``robots`` the last good robots.txt of its origin, where it is obeyed and was ever had;
    ``trap`` the pattern that refuses it where it was never asked for.
    """

    source: Source
    url: str
    reasons: Boundary
    beneath: Sequence[tuple[Origin, Boundary]]
    facts: UrlFacts | None
    run: RunRow | None
    running: bool
    changed: Sequence[str]
    is_start: bool
    cache_dir: Path
    robots: RobotsFile | None = None
    shown_as: str | None = None
    discarded: Because | None = None
    trap: Because | None = None

    @property
    def depth(self) -> int | None:
        """The depth at which it was found; None where it never was."""
        return None if self.facts is None else self.facts.listed.depth

    @property
    def in_index(self) -> bool:
        """Whether the index holds it by the table."""
        return self.facts is not None and self.facts.listed.indexed_version is not None

    @property
    def state(self) -> UrlState | None:
        """Its word in ``urls``; None where it was never seen."""
        return None if self.facts is None else url_state(self.facts.listed, self.source.lifecycle.remove_on)

    def refusals(self, url: str | None = None) -> list[Because]:
        """All rules of the boundary that refuse it now, or the target of its redirect, at its own depth."""
        url = url or self.url
        decisions = self.reasons.refusals(url, 0 if self.is_start and self.depth is None else self.depth)
        found = [
            because("boundary", decision, self.source, self.reasons.proposal(url, decision)) for decision in decisions
        ]
        limits = {decision.key for decision in decisions if decision.rule != NO_INCLUDE} & _LIMITS
        if limits:
            # A limit that is taken out of a file leaves the one beneath it.
            found += [
                reason
                for origin, reasons in self.beneath
                for decision in reasons.refusals(url, self.depth)
                if decision.key in limits and (reason := because_beneath(decision, origin)) not in found
            ]
        return found if self.trap is None or url != self.url else [*found, self.trap]

    def robots_refusals(self) -> list[Because]:
        """All lines of the stored robots.txt that forbid it."""
        decisions = self.robots.refusals(self.url) if self.robots is not None else []
        return [robots_line(self.url, decision.rule) for decision in decisions]

    def admissions(self) -> list[Because]:
        """The rules of the boundary without which it would be refused."""
        return [because("boundary", decision, self.source) for decision in self.reasons.admissions(self.url)]


def robots_line(url: str, rule: str) -> Because:
    """A line of robots.txt as what decided; its file is that of the URL's origin."""
    return Because(step="robots", rule=rule, file=f"{urls.parse(url).origin}/robots.txt", key="robots.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A source as it is asked about URLs: what is the same for each of them; ``now`` is its fingerprint."""

    project: Project
    source: Source
    reasons: Boundary
    beneath: Sequence[tuple[Origin, Boundary]]
    rewriting: Rewriting
    starts: frozenset[str]
    now: str


def witness_of(project: Project, source: Source, versions: Mapping[str, int]) -> Witness:
    """A source to be asked; ``rewriting`` is not yet open. Raises ConfigurationError."""
    return Witness(
        project=project,
        source=source,
        reasons=build_boundary(source),
        beneath=_beneath(project, source),
        rewriting=build_rewriting(project, source),
        starts=frozenset(read_start_urls(project, source)),
        now=compute_fingerprint(source, versions=versions),
    )


def _beneath(project: Project, source: Source) -> list[tuple[Origin, Boundary]]:
    """The limits of the source's set, of the defaults, and the built-in ones; each as if it stood alone."""
    found = []
    for layer in list_layers(project, {}, file=source.file, parameters=source.parameters)[1:]:
        written = layer.tables.get("scope", {})
        values = {name: value for name, value in written.items() if f"scope.{name}" in _LIMITS}
        if values:
            found.append((layer.origin, Boundary(allow_all=True, **{**_NO_LIMITS, **values})))
    return [*found, (Origin(BUILT_IN), Boundary(allow_all=True))]


def case_of(transaction: Transaction, witness: Witness, url: str, *, now_ms: int) -> Case:
    """What is known of ``url``, as it was found or is shown; raises StoreError."""
    source, project = witness.source, witness.project
    source_id = run_table.find_source(transaction, source.name)
    url, shown_as, facts = _known_as(transaction, source_id, url)
    named = witness.rewriting.named(url) if facts is None else Named(url)
    if named.url != url:
        url, _, facts = _known_as(transaction, source_id, named.url)
    run, made_with, running = None, None, False
    if source_id is not None:
        run = run_table.last(transaction, source_id)
        made_with = run_table.made_with(transaction, source_id)
        running = lease.held(transaction, source_id, now_ms)
    return Case(
        source=source,
        url=url,
        reasons=witness.reasons,
        beneath=witness.beneath,
        facts=facts,
        run=run,
        running=running,
        changed=find_changed_keys(made_with or witness.now, witness.now),
        is_start=url in witness.starts,
        cache_dir=project.cache_dir / source.name,
        robots=_robots(transaction, project, source, url) if source.robots.obey else None,
        shown_as=shown_as,
        discarded=because("rewrite", named.decision, source) if named.code else None,
        trap=_trap(transaction, source, source_id, url, facts) if url not in witness.starts else None,
    )


def _known_as(transaction: Transaction, source_id: int | None, url: str) -> tuple[str, str | None, UrlFacts | None]:
    """The access URL, the display URL where ``url`` is one, and what is known of it."""
    if source_id is None:
        return url, None, None
    facts = url_facts.find(transaction, source_id, urls.key(url))
    access_url = None if facts is not None else url_facts.shown_as(transaction, source_id, urls.key(url))
    if access_url is None:
        return url, None, facts
    return access_url, url, url_facts.find(transaction, source_id, urls.key(access_url))


def _trap(
    transaction: Transaction, source: Source, source_id: int | None, url: str, facts: UrlFacts | None
) -> Because | None:
    """The pattern that refuses a URL which is new, or waits for its first visit."""
    if source_id is None or (facts is not None and (facts.listed.code or not facts.listed.depth)):
        return None
    scope = source.scope
    watch = TrapWatch(
        source_id,
        trap_after=scope.trap_after,
        # What waits was counted.
        max_urls_per_pattern=scope.max_urls_per_pattern if facts is None else 0,
        file=source.file,
    )
    watch.recall(transaction)
    watch.prepare(transaction, [url])
    decision = watch.admit(url)
    return None if decision is None else because("boundary", decision, source)


def _robots(transaction: Transaction, project: Project, source: Source, url: str) -> RobotsFile | None:
    origin = urls.parse(url).origin
    body = robots_table.find(transaction, origin)
    agent = source.robots.user_agent or project.user_agent
    return None if body is None else RobotsFile.parse(body, agent, url=f"{origin}/robots.txt")
