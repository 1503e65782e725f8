"""Rules about hosts, ports and paths (B1–B3), and about whole URLs: globs, and expressions declared as such (B4); compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal
from urllib.parse import quote

import ada_url
import re2

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.decision import Decision, RuleList
from searchcrawl.urls import has_route, split_route, unescape_unreserved

#: Characters that are not escaped in a path and in a query (WHATWG URL, path and query percent-encode sets).
_KEPT_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]_|~"
#: A fragment is escaped less than a path (URL Standard, "fragment percent-encode set").
_KEPT_IN_ROUTE: Final = "!#$%&'()*+,-./:;=?@[\\]^_{|}~"
_KEPT_IN_QUERY: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"
#: As other programs name all hosts below one.
_ANY_BELOW: Final = re.compile(r"\*\.[\w.-]{1,253}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostScope:
    """A ``[[scope.host]]`` block: the rules of the hosts that match its host rule ``host``.

    Paths are prefixes as written, and upper and lower case differ. Only one of the two port lists may be given (B3).
    """

    host: str
    include_paths: tuple[str, ...] = ()
    exclude_paths: tuple[str, ...] = ()
    include_ports: tuple[int, ...] = ()
    exclude_ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A host rule in comparable form: ``text`` is in lower case and punycode."""

    kind: Literal["suffix", "prefix", "exact"]
    text: str


def parse_host_rule(rule: str, *, file: str, key: str) -> HostPattern:
    """Reads ``example.com`` (it and all below), ``=example.com`` (it alone) or ``www.*`` (a prefix).

    Raises ConfigurationError for anything else.
    """
    text = rule.strip()
    kind: Literal["suffix", "prefix", "exact"] = "suffix"
    if text.startswith("="):
        kind, text = "exact", text[1:]
    elif text.endswith("*"):
        kind, text = "prefix", text[:-1]
    if not text or "*" in text:
        below = f': "{text[2:]}" has all hosts below it' if _ANY_BELOW.fullmatch(text) else ""
        raise ConfigurationError(file, key, f"must be a host, =host or a prefix like www.*{below} (got {rule!r})")
    whole_labels = kind != "prefix" or text.endswith(".")
    if not whole_labels and not text.isascii():
        raise ConfigurationError(file, key, f"a prefix within a label must be ASCII (got {rule!r})")
    return HostPattern(kind, _parse_host(text, rule, file, key) + ("." if kind == "prefix" and whole_labels else ""))


def _parse_host(text: str, rule: str, file: str, key: str) -> str:
    if ":" in text and not text.startswith("["):
        text = f"[{text}]"
    try:
        parsed = ada_url.URL(f"http://{text}/")
    except ValueError as error:
        raise ConfigurationError(file, key, f"not a host (got {rule!r})") from error
    plain = parsed.pathname == "/" and not (parsed.search or parsed.hash or parsed.username or parsed.port)
    host = parsed.hostname.rstrip(".")
    if not plain or not host or host.startswith(".") or ".." in host:
        raise ConfigurationError(file, key, f"a host only, without scheme, port or path (got {rule!r})")
    return host


class HostIndex:
    """Host rules, found by the labels of a host: the cost does not grow with the number of rules.

    ``find`` returns the positions of all rules that name the host.
    """

    def __init__(self, patterns: Iterable[HostPattern]) -> None:
        self._suffixes: dict[str, list[int]] = {}
        self._exact: dict[str, list[int]] = {}
        self._prefixes: list[tuple[str, int]] = []
        for position, pattern in enumerate(patterns):
            if pattern.kind == "prefix":
                self._prefixes.append((pattern.text, position))
            else:
                table = self._suffixes if pattern.kind == "suffix" else self._exact
                table.setdefault(pattern.text, []).append(position)
        self._any_prefix = tuple(text for text, _ in self._prefixes)

    def find(self, host: str) -> list[int]:
        """Positions, rising, of the rules that name ``host`` (lower case, no dot at the end)."""
        found = list(self._exact.get(host, ()))
        rest = host
        while rest:
            found += self._suffixes.get(rest, ())
            rest = rest.partition(".")[2]
        if self._any_prefix and host.startswith(self._any_prefix):
            found += [position for text, position in self._prefixes if host.startswith(text)]
        return sorted(found)


class HostNameRules(RuleList):
    """Rules about host names (B1)."""

    __slots__ = ("_index",)

    def __init__(self, include: Sequence[str], exclude: Sequence[str], file: str) -> None:
        lists = (include, True, "scope.include_hosts"), (exclude, False, "scope.exclude_hosts")
        decisions = [Decision(allowed, rule, file, key) for rules, allowed, key in lists for rule in rules]
        super().__init__(decisions, "scope.include_hosts", file)
        self._index = HostIndex(parse_host_rule(each.rule, file=file, key=each.key) for each in self.decisions)

    def find(self, host: str) -> list[Decision]:
        """All that the rules say about a host (lower case, no dot at the end)."""
        return self.require_include([self.decisions[position] for position in self._index.find(host)])


class PortRules(RuleList):
    """Rules about ports: those of the source and of all blocks that name a host add up (B3)."""

    def find(self, port: int) -> list[Decision]:
        """All that the rules say about a port."""
        text = str(port)
        return self.require_include([decision for decision in self.decisions if decision.rule == text])


class PathRules(RuleList):
    """Path prefixes, as ``compile_paths`` makes them, of all blocks that name a host (B2)."""

    __slots__ = ("_any_prefix", "_rules")

    def __init__(self, rules: Iterable[tuple[str, Decision]], include_key: str, file: str) -> None:
        self._rules = sorted(rules, key=lambda rule: rule[1].allowed)
        self._any_prefix = tuple(prefix for prefix, _ in self._rules)
        super().__init__([decision for _, decision in self._rules], include_key, file)

    def find(self, target: str) -> list[Decision]:
        """All that the rules say about ``target``, a path and query in the form that rules see."""
        found = []
        if target.startswith(self._any_prefix):
            found = [decision for prefix, decision in self._rules if target.startswith(prefix)]
        return self.require_include(found) if self.include_count else found


def compile_paths(rules: Sequence[str], *, allowed: bool, file: str, key: str) -> list[tuple[str, Decision]]:
    """Path prefixes in the form that rules see, each with its Decision."""
    return [(to_comparable_text(rule), Decision(allowed, rule, file, key)) for rule in rules]


def to_comparable_text(rule: str, *, routes: bool = False) -> str:
    """A rule as rules see URLs: characters that a URL must escape are escaped, and no others; ``routes`` as for URLs."""
    if routes and has_route(rule):
        rest, route = split_route(rule)
        return to_comparable_text(rest) + unescape_unreserved(quote(route, safe=_KEPT_IN_ROUTE))
    path, mark, query = rule.partition("?")
    return unescape_unreserved(quote(path, safe=_KEPT_IN_PATH) + mark + quote(query, safe=_KEPT_IN_QUERY))


#: What a rule begins with that is a regular expression.
REGULAR: Final = "re:"
_WILDCARDS: Final = re.compile(r"([*?])")
_SET_MEMORY_BYTES: Final = 64 << 20
#: Scheme, host and port of a glob that names all of them.
_GLOB_ORIGIN: Final = re.compile(r"https?://[^/*?#]+(?=/)", re.IGNORECASE)
_SCHEMES: Final = tuple(f"{scheme}://" for scheme in urls.DEFAULT_PORTS)
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


class NameRules(RuleList):
    """Names or MIME types: texts with ``*`` and ``?``, without regard to case, or regular expressions (``re:``)."""

    __slots__ = ("_matches",)

    def __init__(self, include: Sequence[str], exclude: Sequence[str], file: str, key: str, exclude_key: str) -> None:
        lists = (include, True, key), (exclude, False, exclude_key)
        decisions = [Decision(allowed, text, file, where) for texts, allowed, where in lists for text in texts]
        super().__init__(decisions, key, file)
        self._matches = [_compile_name(decision.rule, file, decision.key) for decision in self.decisions]

    def find(self, text: str) -> list[Decision]:
        """All that the rules say about a MIME type or a name."""
        rules = zip(self._matches, self.decisions, strict=True)
        return self.require_include([decision for match, decision in rules if match(text)])


def _compile_name(text: str, file: str, key: str) -> Callable[[str], Any]:
    """Whether a text matches, by an RE2 expression: its time is linear, however many stars there are."""
    if not text.removeprefix(REGULAR).strip():
        raise ConfigurationError(file, key, f"must not be empty (got {text!r})")
    if text.startswith(REGULAR):
        regular: Callable[[str], Any] = compile_rule(text, text.removeprefix(REGULAR), file, key).search
        return regular
    pieces = _WILDCARDS.split(text.strip())
    signs = {"*": ".*", "?": "."}
    glob: Callable[[str], Any] = re2.compile(
        "(?is)" + "".join(signs.get(piece) or re2.escape(piece) for piece in pieces)
    ).fullmatch
    return glob


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
        return f'is a glob for the whole URL, with its scheme: write "*{text}"'
    if not star and text.count("/") == _SLASHES_BEFORE_HOST:
        return f'names no path, and each URL has one: write "{text}/*"'
    return None
