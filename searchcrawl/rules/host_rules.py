"""Rules about hosts, ports and paths (B1–B4), compiled and asked host by host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

import ada_url

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.decision import Decision
from searchcrawl.urls import unescape_unreserved

#: The rule of a refusal by an include list none of whose entries matches.
NO_INCLUDE: Final = "no include matches"
_MAX_PORT: Final = 65535
#: What stands in a path and in a query as it is written (WHATWG URL, path and query percent-encode sets).
_KEPT_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]_|~"
_KEPT_IN_QUERY: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """A ``[[scope.host]]`` block: what holds at the hosts that ``host``, a host rule, names.

    Paths are raw prefixes, and case counts. Of the two port lists only one may be given (B3).
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
        raise ConfigurationError(file, key, f"must be a host, =host or a prefix like www.* (got {rule!r})")
    whole_labels = kind != "prefix" or text.endswith(".")
    if not whole_labels and not text.isascii():
        raise ConfigurationError(file, key, f"a prefix within a label must be ASCII (got {rule!r})")
    return HostPattern(
        kind, _comparable_host(text, rule, file, key) + ("." if kind == "prefix" and whole_labels else "")
    )


def _comparable_host(text: str, rule: str, file: str, key: str) -> str:
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
    """Host rules, found by a host's labels: the cost doesn't grow with their number.

    ``matching`` yields the positions of all rules that name the host.
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

    def matching(self, host: str) -> list[int]:
        """Positions, rising, of the rules that name ``host`` (lower case, no dot at the end)."""
        found = list(self._exact.get(host, ()))
        rest = host
        while rest:
            found += self._suffixes.get(rest, ())
            rest = rest.partition(".")[2]
        if self._any_prefix and host.startswith(self._any_prefix):
            found += [position for text, position in self._prefixes if host.startswith(text)]
        return sorted(found)


class PathRules:
    """Path prefixes with the Decision each of them gives."""

    __slots__ = ("_all", "_rules")

    def __init__(self, rules: Mapping[str, Decision]) -> None:
        self._rules = rules
        self._all = tuple(rules)

    def __bool__(self) -> bool:
        return bool(self._all)

    def find(self, target: str) -> Decision | None:
        """The decision of the first rule that is a prefix of ``target`` (path and query)."""
        if not target.startswith(self._all):
            return None
        return next(decision for prefix, decision in self._rules.items() if target.startswith(prefix))


def parse_path_rules(rules: Sequence[str], *, allowed: bool, file: str, key: str) -> dict[str, Decision]:
    """Path prefixes as rules see paths, each with its Decision; raises ConfigurationError."""
    parsed: dict[str, Decision] = {}
    for rule in rules:
        if not rule.startswith("/"):
            raise ConfigurationError(file, key, f"a path starts with / (got {rule!r})")
        parsed.setdefault(comparable_text(rule), Decision(allowed, rule, file, key))
    return parsed


def comparable_text(rule: str) -> str:
    """A rule's text in the form URLs have when rules see them: escaped where a URL must be, no further."""
    path, mark, query = rule.partition("?")
    return unescape_unreserved(quote(path, safe=_KEPT_IN_PATH) + mark + quote(query, safe=_KEPT_IN_QUERY))


def check_ports(include: Sequence[int], exclude: Sequence[int], *, file: str, key: str) -> None:
    """Raises ConfigurationError for both lists at once (B3) and for what is no port."""
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
