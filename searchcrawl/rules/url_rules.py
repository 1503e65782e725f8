"""Rules about whole URLs: globs, and regular expressions declared as such (B4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import ada_url
import re2

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.decision import Decision, RuleList
from searchcrawl.rules.host_rules import to_comparable_text

#: What a rule begins with that is a regular expression.
REGULAR: Final = "re:"
_SET_MEMORY_BYTES: Final = 64 << 20
#: Scheme, host and port of a glob that names all of them.
_GLOB_ORIGIN: Final = re.compile(r"https?://[^/*?#]+(?=/)", re.IGNORECASE)
_SCHEMES: Final = ("http://", "https://")
_SLASHES_BEFORE_HOST: Final = 2
_GLOB_HOST: Final = re.compile(r"(https?://)([^/*:?]+)(.*)", re.IGNORECASE | re.DOTALL)


class UrlRules(RuleList):
    """Exclude and include rules for URLs, all matched in one pass over the URL.

    A rule is a glob against the whole URL, where only ``*`` is special and upper and lower case are equal; or ``re:``
    and an RE2 expression that is searched anywhere. With ``routes`` URLs may have one, and so may globs. The constructor raises ConfigurationError.
    """

    __slots__ = ("_match", "origins")

    def __init__(
        self,
        *,
        include: Sequence[str],
        exclude: Sequence[str],
        file: str,
        table: str = "scope",
        routes: bool = False,
    ) -> None:
        include_key, exclude_key = f"{table}.include_urls", f"{table}.exclude_urls"
        excludes = [Decision(False, rule, file, exclude_key) for rule in exclude]
        super().__init__([*excludes, *(Decision(True, rule, file, include_key) for rule in include)], include_key, file)
        patterns = re2.Set.SearchSet(_options())
        for decision in self.decisions:
            patterns.Add(_expression(decision.rule, file, decision.key, routes=routes))
        # An empty set cannot be searched, and finds nothing.
        try:
            if self.decisions:
                patterns.Compile()
        except re2.error as error:
            raise ConfigurationError(file, exclude_key, "the URL rules together are too large") from error
        self._match = patterns.Match
        #: scheme, host and port of all URLs that an include can match; None if that cannot be told
        self.origins = _find_origins(include)

    def find(self, url: str) -> list[Decision]:
        """All that the rules say about ``url``, in the form that rules see."""
        matching = self._match(url) if self.decisions else None
        found = [self.decisions[position] for position in sorted(matching)] if matching else []
        return self.require_include(found) if self.include_count else found


def _find_origins(include: Sequence[str]) -> frozenset[str] | None:
    found: set[str] = set()
    for rule in include:
        whole = _GLOB_ORIGIN.match(rule.strip())
        try:
            found.add(urls.resolve(whole[0]).rstrip("/")) if whole else None
        except InvalidUrl:
            whole = None
        if whole is None:
            return None
    return frozenset(found)


def _options() -> re2.Options:
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _SET_MEMORY_BYTES
    return options


def _expression(rule: str, file: str, key: str, *, routes: bool) -> str:
    """The rule as an RE2 expression that is searched for anywhere in a URL; raises ConfigurationError."""
    if not rule.removeprefix(REGULAR).strip():
        raise ConfigurationError(file, key, f"must not be empty (got {rule!r})")
    expression = rule.removeprefix(REGULAR) if rule.startswith(REGULAR) else glob_expression(rule, routes=routes)
    compile_rule(rule, expression, file, key)
    return expression


def compile_rule(rule: str, expression: str, file: str, key: str) -> Any:
    """The compiled expression of a rule; raises ConfigurationError."""
    try:
        return re2.compile(expression, _options())
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ConfigurationError(file, key, f"not an RE2 expression: {reason} (got {rule!r})") from error


@lru_cache(maxsize=1024)
def build_url_test(rule: str, file: str = "", key: str = "") -> Callable[[str], bool]:
    """Whether a single rule names a URL, an identity of ``urls.resolve``; raises ConfigurationError."""
    search = compile_rule(rule, _expression(rule, file, key, routes=True), file, key).search
    return lambda url: search(urls.unescape_unreserved(url)) is not None


def glob_expression(rule: str, *, routes: bool = False) -> str:
    """An RE2 expression, searched for anywhere in a URL, for a glob where ``*`` alone is special."""
    text = rule.strip()
    with_host = _GLOB_HOST.fullmatch(text)
    if with_host and not with_host[2].isascii():
        text = with_host[1] + (ada_url.idna_to_ascii(with_host[2]).decode("ascii") or with_host[2]) + with_host[3]
    text = to_comparable_text(text, routes=routes)
    # A star at an end becomes a missing anchor: that is faster, as the search ends at the first match.
    start = "" if text.startswith("*") else "^"
    end = "" if text.endswith("*") else "$"
    pieces = [re2.escape(piece) for piece in text.strip("*").split("*") if piece]
    return f"(?is){start}{'.*'.join(pieces)}{end}"


def explain_no_match(rule: str) -> str | None:
    """Why no URL can match a rule, which is a glob for the whole of it; None if one can."""
    text = rule.strip()
    start, star, _ = text.partition("*")
    if text.startswith("re:") or not start:
        return None
    if not any(scheme.startswith(start.lower()) or start.lower().startswith(scheme) for scheme in _SCHEMES):
        return f'is a glob for the whole URL, which begins with http: write "*{text}"'
    if not star and text.count("/") == _SLASHES_BEFORE_HOST:
        return f'names no path, and each URL has one: write "{text}/*"'
    return None
