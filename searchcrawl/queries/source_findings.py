"""What ``sources check`` finds in files that a run would take: values that cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.http.address_guard import AddressGuard, build_guard
from searchcrawl.kind import load_named
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.rules.url_rules import explain_no_match
from searchcrawl.sources.checking import guess, quote_value
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary, build_rewriting, read_start_urls
from searchcrawl.sources.project import FILE, PLACEHOLDER_CONTACT, Project
from searchcrawl.sources.secrets import HIDDEN
from searchcrawl.urls import hide_user_info
from searchcrawl.wording import counted

_NO_TYPE: Final = 'is no MIME type, as "text/html" or "image/*"'
_NO_MATCH: Final = "matches no URL: it is a glob for the whole of it"
_TYPE: Final = re.compile(r"([^/*?]+)/([^/]+)")
#: The top-level types of media (RFC 6838 and its registry), and what is in use beside them.
_TOP_TYPES: Final = frozenset({
    "application", "audio", "chemical", "font", "haptics", "image", "message", "model", "multipart", "text", "video",
})  # fmt: skip
#: Of start URLs that cannot be meant so many are named.
_MOST_SHOWN: Final = 20


def find_doubts(project: Project) -> Iterator[ConfigurationError]:
    """A contact that nobody put in: a new project has one, and a run takes it."""
    if project.contact == PLACEHOLDER_CONTACT:
        message = "is a placeholder: put in whom the owners of crawled sites may ask"
        yield ConfigurationError(FILE, "contact", f"{message} (got {quote_value(project.contact)})")


def find_source_doubts(source: Source) -> Iterator[ConfigurationError]:
    """User names and passwords in start URLs, which no request has."""
    for number, url in enumerate(source.start.urls):
        if hide_user_info(url) != url:
            message = "has a user name or a password, which is not sent: [login] is the place for them"
            yield ConfigurationError(*source.locate(f"start.urls[{number}]"), message)


def ask_source(project: Project, source: Source) -> Iterator[tuple[bool, ConfigurationError]]:
    """What is wrong with a source as it says itself, as a database or a folder; each with whether it is an error, else a doubt."""
    if source.kind.checks:
        for finding in load_named(source.kind.checks)(source, project):
            yield finding.is_error, ConfigurationError(*source.locate(finding.key), finding.message)


def find_in_source(project: Project, source: Source) -> Iterator[ConfigurationError]:
    """MIME types that are none, URL rules that match nothing, and start URLs that no run would request; raises ConfigurationError as a run does."""
    types = ((f"keep.{key}", getattr(source.keep, key)) for key in ("mime_types", "exclude_mime_types"))
    named = ((f"{key}[{number}]", text) for key, texts in types for number, text in enumerate(texts))
    found = [(place, text, find_wrong_type(text), _NO_TYPE) for place, text in named]
    found += [(place, rule, explain_no_match(rule), _NO_MATCH) for place, rule in _list_url_rules(source)]
    for place, text, reason, plain in found:
        if reason is not None:
            # A value that is secret is in no message.
            shown, why = (HIDDEN, plain) if _is_secret(source, place) else (text, reason)
            yield ConfigurationError(*source.locate(place), f"{why} (got {quote_value(shown)})")
    rewriting = build_rewriting(project, source)
    rewriting.open(source.name)
    with closing(rewriting):
        yield from _find_in_starts(project, source, rewriting)


def _list_url_rules(source: Source) -> Iterator[tuple[str, str]]:
    """The URL rules of a source, each with its key."""
    for table in ("scope", "keep"):
        for key in (f"{table}.include_urls", f"{table}.exclude_urls"):
            rules: Sequence[str] = getattr(getattr(source, table), key.removeprefix(f"{table}."))
            yield from ((f"{key}[{number}]", rule) for number, rule in enumerate(rules))
    for number, action in enumerate(source.render.actions):
        if action.match is not None:
            yield f"render.actions[{number}].match", action.match


def find_wrong_type(text: str) -> str | None:
    """Why no answer can have a MIME type that matches; None if one can."""
    written = text.strip().lower()
    found = _TYPE.fullmatch(written)
    if found is None:
        return None if set(written) & set("*?") else _NO_TYPE
    top = found[1]
    if top in _TOP_TYPES or top.startswith("x-"):
        return None
    return f"there is no type {top}/{guess(top, _TOP_TYPES)}"


def _find_in_starts(project: Project, source: Source, rewriting: Rewriting) -> Iterator[ConfigurationError]:
    boundary, guard = build_boundary(source), build_guard(source.fetch)
    written = set(source.start.urls)
    found = 0
    for url in read_start_urls(project, source):
        try:
            start = rewriting.normalise(url)
            decision = boundary.decide(start.url, 0)
        except InvalidUrl:
            # Too long: the run notes it as such.
            continue
        rule = decision.key if _is_secret(source, "scope") else decision.text
        reason = None if decision.allowed else f"lies outside the scope ({rule})"
        if reason is None and not source.fetch.proxy:
            reason = find_private(start.url, guard)
            if reason is not None and _is_secret(source, "fetch.resolve"):
                reason = "may not be reached (fetch.private_networks)"
        if reason is None:
            continue
        found += 1
        if found <= _MOST_SHOWN:
            key = "start.files" if source.start.files and written.isdisjoint({url, start.url}) else "start.urls"
            shown = HIDDEN if _is_secret(source, "start") or _is_secret(source, "rewrite") else url
            yield ConfigurationError(*source.locate(key), f"{reason} (got {quote_value(shown)})")
    if found > _MOST_SHOWN:
        yield ConfigurationError(
            *source.locate("start"),
            f"{counted(found - _MOST_SHOWN, 'more start URL', 'more start URLs')} cannot be requested",
        )


def _is_secret(source: Source, place: str) -> bool:
    """Whether a value there comes from the environment or a file."""
    return any(each == place or each.startswith((f"{place}.", f"{place}[")) for each in source.references)


def find_private(url: str, guard: AddressGuard) -> str | None:
    """Why the address guard would refuse a URL, as far as that is known without a name server; None if nothing is."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    addresses = guard.addresses_for(host)
    if addresses is None:
        addresses = ["127.0.0.1"] if host == "localhost" or host.endswith(".localhost") else [host]
    for address in addresses:
        try:
            ip_address(address)
        except ValueError:
            continue
        if not guard.decide(address).allowed:
            return guard.explain(address)
    return None
