"""A robots.txt file as RFC 9309 reads it, around Protego (C5).

Protego matches patterns with URLs. Reading the file is ours: groups survive unknown lines, tokens
are cut as the RFC says, and the line that decided is known by its text.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Self
from urllib.parse import quote

from protego import Protego

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.rules.decision import Decision

#: RFC 9309 §2.5: a parser reads at least so much; what follows is not read.
MAX_BYTES: Final = 500 * 1024
#: Rules with a wildcard beyond so many of one group are not kept: they can only be tried one by one.
MAX_WILDCARD_RULES: Final = 2000
MAX_LINE_CHARACTERS: Final = 2083 * 8 - 1
_MAX_SHOWN_CHARACTERS: Final = 200
_CHUNK_RULES: Final = 512
_RULE_BYTES: Final = 600
_KEY: Final = "robots.txt"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_AGENT_END: Final = re.compile(r"[\s/]")
_KEPT: Final = "!$%&'()*+,-./:;<=>?@[\\]^_`{|}~\""
_NEEDS_NO_ESCAPE: Final = re.compile(r"[!-~]*").fullmatch
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
#: Spellings found in the wild, as other crawlers forgive them.
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
#: A name, a colon or, where it was forgotten, a blank, and a value.
_DIRECTIVE: Final = re.compile(
    rf"({'|'.join(_NAMES)})(?:[ \t]*:|[ \t])[ \t]*(.*)", re.ASCII | re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that means something: ``name`` is a value of _NAMES, ``text`` the line as written."""

    name: str
    value: str
    text: str


@dataclass(frozen=True)
class _Rule:
    """A rule: its pattern, escaped as Protego takes it, and the line it stands in."""

    pattern: str
    allows: bool
    line: str

    @cached_property
    def matcher(self) -> Protego:
        return _matcher([self])


@dataclass(frozen=True)
class _Chunk:
    """Neighbours in the order of precedence, asked together."""

    rules: Sequence[_Rule]

    @cached_property
    def matcher(self) -> Protego:
        return _matcher(self.rules)


@dataclass
class _Group:
    """The lines for one kind of agent, in the order of the file."""

    rules: list[_Rule] = field(default_factory=list)
    delay_seconds: float | None = None
    seen: bool = False


class RobotsFile:
    """The answer of one host's robots.txt, for one user agent.

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
        self._allowed = Decision(True, "", url, _KEY)
        ordered = _by_precedence(rules)
        self._chunks = [_Chunk(ordered[n : n + _CHUNK_RULES]) for n in range(0, len(ordered), _CHUNK_RULES)]

    @property
    def memory_bytes(self) -> int:
        """About what this takes once all rules were asked."""
        rules = (rule for chunk in self._chunks for rule in chunk.rules)
        return sum(_RULE_BYTES + 2 * len(rule.pattern) for rule in rules) + sum(map(len, self.sitemaps))

    @classmethod
    def parse(cls, body: bytes, user_agent: str, *, url: str = "") -> Self:
        """Reads the body of a good answer of ``url``; whatever it is, it never raises.

        ``user_agent`` is the product token; one with a blank is looked for whole (decision 12).
        """
        own, others, sitemaps = _read_groups(_lines(_decode(body)), user_agent)
        group = own if own.seen else others
        return cls(
            url=url,
            rules=group.rules,
            crawl_delay_seconds=group.delay_seconds,
            sitemaps=tuple(_absolute(sitemaps, url)),
        )

    def prepare(self) -> Self:
        """Does now, in whatever thread, what the first questions would do."""
        for chunk in self._chunks:
            _ = chunk.matcher
        return self

    def decide(self, url: str) -> Decision:
        """Whether ``url`` may be requested; ``rule`` is the line that decided, as written.

        The longest pattern decides, allow before disallow (RFC 9309 §2.2.2); robots.txt itself is always allowed.
        """
        for chunk in self._chunks:
            if not chunk.matcher.can_fetch(url, "*"):
                rule = next(rule for rule in chunk.rules if not rule.matcher.can_fetch(url, "*"))
                return Decision(rule.allows, rule.line, self.url, _KEY)
        return self._allowed

    def refusals(self, url: str) -> list[Decision]:
        """All lines that forbid ``url``, the longest pattern first; empty where it is allowed (L1)."""
        if self.decide(url).allowed:
            return []
        rules = (rule for chunk in self._chunks if not chunk.matcher.can_fetch(url, "*") for rule in chunk.rules)
        matching = (rule for rule in rules if not rule.allows and not rule.matcher.can_fetch(url, "*"))
        return [Decision(False, rule.line, self.url, _KEY) for rule in matching]


def _matcher(rules: Sequence[_Rule]) -> Protego:
    """A Protego that refuses what any of the patterns matches."""
    return Protego.parse("User-agent: *\n" + "".join(f"Disallow: {rule.pattern}\n" for rule in rules))


def _by_precedence(rules: Iterable[_Rule]) -> list[_Rule]:
    first = {(rule.pattern, rule.allows): rule for rule in reversed(list(rules))}
    wildcards = 0
    kept = []
    for rule in sorted(first.values(), key=lambda rule: (-len(rule.pattern), not rule.allows)):
        wildcards += "*" in rule.pattern
        if "*" not in rule.pattern or wildcards <= MAX_WILDCARD_RULES:
            kept.append(rule)
    return kept


def _decode(body: bytes) -> str:
    """The text of the first 500 KiB; a line cut by that limit is left out, it might say too much."""
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


def _lines(text: str) -> Iterator[_Line]:
    for raw in _LINE_END.split(text):
        line = raw[:MAX_LINE_CHARACTERS].partition("#")[0].strip()
        match = _DIRECTIVE.match(line)
        if match:
            yield _Line(_NAMES[match[1].lower()], match[2].strip(), _shown(line))


def _shown(line: str) -> str:
    text = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text)[:_MAX_SHOWN_CHARACTERS]


def _read_groups(lines: Iterable[_Line], user_agent: str) -> tuple[_Group, _Group, list[str]]:
    """Our own groups merged, those of ``*`` merged, and the values of all sitemap lines."""
    own, others = _Group(), _Group()
    sitemaps: list[str] = []
    current: list[_Group] = []
    undelayed: list[_Group] = []
    in_rules = False
    for line in lines:
        if line.name == "agent":
            # Only a rule ends the list of a group's agents; anything else between them is passed over.
            if in_rules:
                current, undelayed, in_rules = [], [], False
            group = _group_of(line.value, user_agent, own, others)
            if group is not None:
                group.seen = True
                undelayed.append(group)
                # Once, however often it is named: each rule below is kept for each of them.
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
                group.rules.extend(_rules(line))
    return own, others, sitemaps


def _group_of(value: str, user_agent: str, own: _Group, others: _Group) -> _Group | None:
    wanted = " ".join(user_agent.split()).casefold()
    # Lists are outside the RFC, but sites write them and mean each of their names.
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


def _rules(line: _Line) -> Iterator[_Rule]:
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


def _absolute(sitemaps: Iterable[str], url: str) -> Iterator[str]:
    seen: set[str] = set()
    for text in sitemaps:
        try:
            sitemap = urls.resolve(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), url or None)
        except InvalidUrl:
            continue
        if sitemap not in seen:
            seen.add(sitemap)
            yield sitemap
