"""What is switched on for a host or a path on top of its pages: statuses, headers, delays, faults."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

#: What a behaviour can do instead of answering.
MODES: Final = frozenset(
    {"reset", "hang", "cut", "slow-headers", "drip", "endless-body", "cut-chunked", "cut-by-reset"}
)


def is_aside(path: str) -> bool:
    """Whether a path is none of a page: robots.txt and sitemaps."""
    return path == "/robots.txt" or path.startswith("/sitemap")


def is_probe(path: str) -> bool:
    """Whether a path is one that a crawler made up, to see what a host answers to it."""
    return re.fullmatch(r".*/[a-z]{20}(\.[A-Za-z0-9]{1,6})?", path) is not None


@dataclass(slots=True, kw_only=True)
class Behaviour:
    """One rule for ``host`` ("*": all) and ``path`` (exact; null: each page, but not what is_aside) or ``prefix``.

    ``status`` replaces the answer's, with ``body`` as its text; ``headers`` are added; ``delay_seconds`` is waited
    before; ``mode`` is one of MODES; ``times`` is how often it still applies (null: always). ``known``: only where there
    is a page, ``missing``: only where there is none. A body may have ``{nonce}`` and ``{moment}``: no two answers have
    the same there.
    """

    host: str = "*"
    path: str | None = None
    prefix: str | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    delay_seconds: float = 0.0
    mode: str | None = None
    times: int | None = None
    known: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in MODES:
            raise ValueError(f"unknown mode: {self.mode!r}")

    def matches(self, host: str, path: str, known: bool) -> bool:
        """Whether it applies to a request for a page that there is (``known``) or not."""
        if self.host not in {"*", host} or self.times == 0 or (self.known and not known) or (self.missing and known):
            return False
        if self.path is not None:
            return path == self.path
        if self.prefix is not None:
            return path.startswith(self.prefix)
        return not is_aside(path)

    def text(self) -> str:
        """The body of one answer."""
        body = self.body or f"status {self.status}\n"
        return body.replace("{nonce}", secrets.token_hex(16)).replace("{moment}", datetime.now(UTC).isoformat(" "))

    @property
    def place(self) -> tuple[str, str | None, str | None]:
        """What it is switched on for; a new one for the same place replaces it."""
        return self.host, self.path, self.prefix

    @property
    def precision(self) -> tuple[bool, int, bool]:
        """Orders rules: an exact path first, then the longest prefix, then a named host."""
        return self.path is not None, len(self.prefix or ""), self.host != "*"


class Behaviours:
    """The rules in force; the most precise that matches decides alone."""

    def __init__(self) -> None:
        self._rules: list[Behaviour] = []

    def set(self, fields: Mapping[str, Any]) -> None:
        """Adds or replaces a rule; raises TypeError or ValueError for wrong fields."""
        rule = Behaviour(**fields)
        self._rules = sorted(
            [rule, *(old for old in self._rules if old.place != rule.place)],
            key=lambda one: one.precision,
            reverse=True,
        )

    def remove(self, places: Iterable[tuple[str, str | None, str | None]]) -> None:
        """Ends the rules of ``places``."""
        gone = set(places)
        self._rules = [rule for rule in self._rules if rule.place not in gone]

    def clear(self) -> None:
        """Ends all rules."""
        self._rules = []

    def take(self, host: str, path: str, known: bool) -> Behaviour | None:
        """The rule for a request, counted down where it is limited."""
        for rule in self._rules:
            if rule.matches(host, path, known):
                if rule.times is not None:
                    rule.times -= 1
                return rule
        return None
