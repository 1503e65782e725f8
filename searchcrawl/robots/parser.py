"""Parses robots.txt files as RFC 9309 says (C5).

Protego matches patterns with URLs. The lines are read here: so an unknown line does not end a group, product
tokens are cut as the RFC says, and the line that decides about a URL is known by its text.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self
from urllib.parse import quote

from protego import Protego

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.rules.decision import ROBOTS_KEY, Decision

#: How much of a file is read; RFC 9309 §2.5 asks for at least this.
MAX_BYTES: Final = 500 * 1024
#: The most rules with a wildcard in a group: they are slow, because each is tried by itself.
MAX_WILDCARD_RULES: Final = 2000
MAX_LINE_CHARACTERS: Final = 2083 * 8 - 1
_MAX_SHOWN_CHARACTERS: Final = 200
_CHUNK_RULES: Final = 512
_RULE_BYTES: Final = 600
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_AGENT_END: Final = re.compile(r"[\s/]")
_KEPT: Final = "!$%&'()*+,-./:;<=>?@[\\]^_`{|}~\""
_NEEDS_NO_ESCAPE: Final = re.compile(r"[!-~]*").fullmatch
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
#: Names of lines with the spelling mistakes that other crawlers accept, too.
_NAMES: Final = {
    "user-agent": "agent",
    "useragent": "agent",
    "user agent": "agent",
    "disallow": "disallow",
    "dissallow": "disallow",
    "dissalow": "disallow",
    "disalow": "disallow",
    "diasllow": "disallow",
    "disallaw": "disallow",
    "allow": "allow",
    "crawl-delay": "delay",
    "crawl delay": "delay",
    "crawldelay": "delay",
    "sitemap": "sitemap",
    "sitemaps": "sitemap",
    "site-map": "sitemap",
}
#: A name, a colon (or a blank, where the colon was forgotten), and a value.
_DIRECTIVE: Final = re.compile(
    rf"({'|'.join(_NAMES)})(?:[ \t]*:|[ \t])[ \t]*(.*)", re.ASCII | re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with a known name: ``name`` is a value of _NAMES, ``text`` the line as written."""

    name: str
    value: str
    text: str


class _Matched:
    """One rule, or several, that URLs are compared with by their patterns."""

    def list_patterns(self) -> Iterable[str]:
        raise NotImplementedError

    @cached_property
    def matcher(self) -> Protego:
        """A Protego that refuses all URLs that one of the patterns matches."""
        return Protego.parse("User-agent: *\n" + "".join(f"Disallow: {each}\n" for each in self.list_patterns()))

    def matches(self, url: str) -> bool:
        return not self.matcher.can_fetch(url, "*")

    def __getstate__(self) -> dict[str, Any]:
        # A matcher is built anew where it is needed.
        return {name: value for name, value in vars(self).items() if name != "matcher"}


@dataclass(frozen=True)
class _Rule(_Matched):
    """A rule: its pattern, escaped as Protego needs it, and its line as written."""

    pattern: str
    allows: bool
    line: str

    def list_patterns(self) -> Iterable[str]:
        return (self.pattern,)


@dataclass(frozen=True)
class _Chunk(_Matched):
    """Rules that follow each other in the order of precedence, and are tried together."""

    rules: Sequence[_Rule]

    def list_patterns(self) -> Iterable[str]:
        return (rule.pattern for rule in self.rules)


@dataclass
class _Group:
    """The lines for one kind of agent, in the order of the file."""

    rules: list[_Rule] = field(default_factory=list)
    delay_seconds: float | None = None
    seen: bool = False


class RobotsFile:
    """The rules of one robots.txt for one user agent.

    ``crawl_delay_seconds`` is that of the agent's own group, None where there is none;
    ``sitemaps`` are absolute, each once.
    """

    def __init__(
        self,
        *,
        url: str = "",
        rules: Iterable[_Rule] = (),
        crawl_delay_seconds: float | None = None,
        sitemaps: tuple[str, ...] = (),
    ) -> None:
        self.url = url
        self.crawl_delay_seconds = crawl_delay_seconds
        self.sitemaps = sitemaps
        self._allowed = Decision(True, "", url, ROBOTS_KEY)
        ordered = _sort_by_precedence(rules)
        self._chunks = [_Chunk(ordered[n : n + _CHUNK_RULES]) for n in range(0, len(ordered), _CHUNK_RULES)]

    @property
    def memory_bytes(self) -> int:
        """About how much memory this takes once all rules were tried."""
        rules = (rule for chunk in self._chunks for rule in chunk.rules)
        return sum(_RULE_BYTES + 2 * len(rule.pattern) for rule in rules) + sum(map(len, self.sitemaps))

    @classmethod
    def parse(cls, body: bytes, user_agent: str, *, url: str = "") -> Self:
        """Reads the body that was answered at ``url``; never raises, whatever the body is.

        ``user_agent`` is the product token; one with a blank is compared as a whole.
        """
        own, others, sitemaps = _read_groups(_read_lines(_decode(body)), user_agent)
        group = own if own.seen else others
        return cls(
            url=url,
            rules=group.rules,
            crawl_delay_seconds=group.delay_seconds,
            sitemaps=tuple(_resolve_sitemaps(sitemaps, url)),
        )

    def prepare(self) -> Self:
        """Builds all matchers now, in any thread, instead of for the first URLs."""
        for chunk in self._chunks:
            _ = chunk.matcher
        return self

    def decide(self, url: str) -> Decision:
        """Whether ``url`` may be requested, without its route; ``rule`` is the line that decided, as written.

        The longest pattern decides, allow before disallow (RFC 9309 §2.2.2); robots.txt itself is always allowed.
        """
        url = urls.without_route(url)
        for chunk in self._chunks:
            if chunk.matches(url):
                rule = next(rule for rule in chunk.rules if rule.matches(url))
                return Decision(rule.allows, rule.line, self.url, ROBOTS_KEY)
        return self._allowed

    def refusals(self, url: str) -> list[Decision]:
        """All lines that forbid ``url``, the longest pattern first; empty where it is allowed (L1)."""
        if self.decide(url).allowed:
            return []
        url = urls.without_route(url)
        rules = (rule for chunk in self._chunks if chunk.matches(url) for rule in chunk.rules)
        matching = (rule for rule in rules if not rule.allows and rule.matches(url))
        return [Decision(False, rule.line, self.url, ROBOTS_KEY) for rule in matching]


def _sort_by_precedence(rules: Iterable[_Rule]) -> list[_Rule]:
    first = {(rule.pattern, rule.allows): rule for rule in reversed(list(rules))}
    wildcards = 0
    kept = []
    for rule in sorted(first.values(), key=lambda rule: (-len(rule.pattern), not rule.allows)):
        wildcards += "*" in rule.pattern
        if "*" not in rule.pattern or wildcards <= MAX_WILDCARD_RULES:
            kept.append(rule)
    return kept


def _decode(body: bytes) -> str:
    """The text of the first 500 KiB, without a line cut by this limit: a part of a line may forbid more."""
    whole = len(body) <= MAX_BYTES
    body = body[:MAX_BYTES]
    encoding = "utf-8"
    for bom, name in _BOMS:
        if body.startswith(bom):
            body, encoding = body[len(bom) :], name
            break
    errors = "surrogateescape" if encoding == "utf-8" else "replace"
    text = body.decode(encoding, errors)
    if whole:
        return text
    return text[: max(text.rfind("\n"), text.rfind("\r"), 0)]


def _read_lines(text: str) -> Iterator[_Line]:
    for raw in _LINE_END.split(text):
        line = raw[:MAX_LINE_CHARACTERS].partition("#")[0].strip()
        match = _DIRECTIVE.match(line)
        if match:
            yield _Line(_NAMES[match[1].lower()], match[2].strip(), _printable(line))


def _printable(line: str) -> str:
    text = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text)[:_MAX_SHOWN_CHARACTERS]


def _read_groups(lines: Iterable[_Line], user_agent: str) -> tuple[_Group, _Group, list[str]]:
    """The groups for ``user_agent`` as one, those for ``*`` as one, and the values of all sitemap lines."""
    own, others = _Group(), _Group()
    sitemaps: list[str] = []
    current: list[_Group] = []
    undelayed: list[_Group] = []
    in_rules = False
    for line in lines:
        if line.name == "agent":
            # Only a rule ends the list of agents of a group; other lines between them do not.
            if in_rules:
                current, undelayed, in_rules = [], [], False
            group = _find_group(line.value, user_agent, own, others)
            if group is not None:
                group.seen = True
                undelayed.append(group)
                # An agent that is named more than once gets each rule only once.
                if not any(group is one for one in current):
                    current.append(group)
        elif line.name == "sitemap":
            sitemaps.append(line.value)
        elif line.name == "delay":
            _set_delay(undelayed, line.value)
            undelayed = []
        else:
            in_rules = True
            for group in current:
                group.rules.extend(_read_rules(line))
    return own, others, sitemaps


def _find_group(value: str, user_agent: str, own: _Group, others: _Group) -> _Group | None:
    wanted = " ".join(user_agent.split()).casefold()
    # Lists are not in the RFC, but sites write them and mean each name.
    names = [" ".join(name.split()).casefold() for name in value.split(",")]
    if " " not in wanted:
        wanted = _AGENT_END.split(wanted, maxsplit=1)[0]
        names = [_AGENT_END.split(name, maxsplit=1)[0] for name in names]
    if wanted and wanted in names:
        return own
    return others if any(name.split(" ", 1)[0] == "*" for name in names) else None


def _set_delay(groups: Iterable[_Group], value: str) -> None:
    try:
        seconds = float(value)
    except ValueError:
        return
    if math.isfinite(seconds) and seconds >= 0:
        for group in groups:
            group.delay_seconds = seconds


def _read_rules(line: _Line) -> Iterator[_Rule]:
    """The rules of a line: none for an empty value, two for ``Allow: …/index.html``."""
    pattern = line.value
    if not _NEEDS_NO_ESCAPE(pattern):
        pattern = quote(pattern, safe=_KEPT, errors="surrogateescape")
    if not pattern:
        return
    allows = line.name == "allow"
    yield _Rule(pattern, allows, line.text)
    if allows and pattern.endswith("/index.html"):
        yield _Rule(pattern.removesuffix("index.html") + "$", allows, line.text)


def _resolve_sitemaps(sitemaps: Iterable[str], url: str) -> Iterator[str]:
    seen: set[str] = set()
    for text in sitemaps:
        try:
            sitemap = urls.resolve(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), url or None)
        except InvalidUrl:
            continue
        if sitemap not in seen:
            seen.add(sitemap)
            yield sitemap
