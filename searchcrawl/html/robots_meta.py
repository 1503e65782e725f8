"""What a page asks of robots: meta elements and X-Robots-Tag headers (B10, L5)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from searchcrawl import clock
from searchcrawl.items import Headers

#: Directives that carry a value; any other word before a colon names an agent.
_WITH_VALUE: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_PREFIX: Final = re.compile(r"\s*([^\s:,;][^:,;]*+)(?<!\s):")
#: Nobody needs more to forbid what can be forbidden.
_MAX_CHARACTERS: Final = 4_096
_WORD: Final = re.compile(r"[^\s;]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsDirectives:
    """Whether the page may be indexed, until when, and whether its links may be followed.

    ``unavailable_ms`` is a moment to come (ms since 1970), after which it may not; None without one.
    """

    noindex: bool = False
    nofollow: bool = False
    unavailable_ms: int | None = None


NO_DIRECTIVES: Final = RobotsDirectives()


def list_robots_tags(headers: Headers) -> list[str]:
    """The values of all X-Robots-Tag headers."""
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"x-robots-tag"]


def robots_directives(
    *, metas: Iterable[tuple[str, str]], headers: Iterable[str], user_agent: str, now: datetime
) -> RobotsDirectives:
    """The sum of all restrictions that name no agent or ``user_agent``.

    ``metas`` are names and contents of meta elements, ``headers`` the values of X-Robots-Tag. A
    date of ``unavailable_after`` that lies before ``now`` is a noindex; an unreadable one is none.
    """
    agents = _names_of(user_agent)
    words: set[str] = set()
    moments: list[datetime] = []
    for name, content in metas:
        agent = name.strip().lower()
        if agent == "robots" or agent in agents:
            words |= _directives(content, agents=frozenset(), moments=moments)
    for value in headers:
        words |= _directives(value, agents=agents, moments=moments)
    if not words and not moments:
        return NO_DIRECTIVES
    first = min(moments, default=None)
    over = first is not None and first < now
    return RobotsDirectives(
        noindex=over or not words.isdisjoint({"noindex", "none"}),
        nofollow=not words.isdisjoint({"nofollow", "none"}),
        unavailable_ms=None if first is None or over else clock.to_ms(first),
    )


def _names_of(user_agent: str) -> frozenset[str]:
    """A configured name matches whole, and by its product token."""
    whole = user_agent.strip().lower()
    token = re.split(r"[/\s]", whole, maxsplit=1)[0]
    return frozenset({whole, token}) - {""}


def _directives(content: str, *, agents: frozenset[str], moments: list[datetime]) -> set[str]:
    """The words that apply; an agent's name and colon in front limits what follows it. Dates are added to ``moments``."""
    words: set[str] = set()
    applies = True
    parts = content[:_MAX_CHARACTERS].split(",")
    index = 0
    while index < len(parts):
        part, position = parts[index], 0
        index += 1
        while (match := _PREFIX.match(part, position)) and match[1].lower() not in _WITH_VALUE:
            applies = match[1].lower() in agents
            position = match.end()
        if match is None:
            words.update(_WORD.findall(part[position:].lower()) if applies else ())
        elif match[1].lower() == "unavailable_after":
            moment, length = _date_of([part[match.end() :], *parts[index : index + 1]])
            index += length - 1
            if applies and moment is not None:
                moments.append(moment)
    return words


def _date_of(parts: list[str]) -> tuple[datetime | None, int]:
    """A date and its number of parts: it may have a comma of its own; the shortest that is one counts."""
    for length in range(1, len(parts) + 1):
        moment = _date(",".join(parts[:length]).strip())
        if moment is not None:
            return moment, length
    return None, 1


def _date(text: str) -> datetime | None:
    """A date of RFC 822, RFC 850 or ISO 8601; UTC where it names no zone."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return None
