"""Rules about hosts, ports and paths, compiled (B1–B4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

import ada_url

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.decision import Decision, RuleList
from searchcrawl.urls import has_route, split_route, unescape_unreserved

_MAX_PORT: Final = 65535
#: Characters that are not escaped in a path and in a query (WHATWG URL, path and query percent-encode sets).
_KEPT_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]_|~"
#: A fragment is escaped less than a path (URL Standard, "fragment percent-encode set").
_KEPT_IN_ROUTE: Final = "!#$%&'()*+,-./:;=?@[\\]^_{|}~"
_KEPT_IN_QUERY: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"
#: As other programs name all hosts below one.
_ANY_BELOW: Final = re.compile(r"\*\.[\w.-]{1,253}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBlock:
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
    """Path prefixes in the form that rules see, each with its Decision; raises ConfigurationError."""
    for rule in rules:
        if not rule.startswith("/"):
            raise ConfigurationError(file, key, f"a path starts with / (got {rule!r})")
    return [(to_comparable_text(rule), Decision(allowed, rule, file, key)) for rule in rules]


def to_comparable_text(rule: str, *, routes: bool = False) -> str:
    """A rule as rules see URLs: characters that a URL must escape are escaped, and no others; ``routes`` as for URLs."""
    if routes and has_route(rule):
        rest, route = split_route(rule)
        return to_comparable_text(rest) + unescape_unreserved(quote(route, safe=_KEPT_IN_ROUTE))
    path, mark, query = rule.partition("?")
    return unescape_unreserved(quote(path, safe=_KEPT_IN_PATH) + mark + quote(query, safe=_KEPT_IN_QUERY))


def check_ports(include: Sequence[int], exclude: Sequence[int], *, file: str, key: str) -> None:
    """Raises ConfigurationError if both lists have entries (B3), or if a number is no port."""
    if include and exclude:
        raise ConfigurationError(
            file,
            f"{key}.exclude_ports",
            f"either include_ports or exclude_ports (got {list(include)} and {list(exclude)})",
        )
    for name, ports in (("include_ports", include), ("exclude_ports", exclude)):
        for port in ports:
            if not 1 <= port <= _MAX_PORT:
                raise ConfigurationError(file, f"{key}.{name}", f"not a port (got {port!r})")
