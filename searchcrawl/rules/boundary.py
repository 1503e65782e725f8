"""The boundary of a source: which URLs may be requested (interface.md §1, ``[scope]``; B1–B9, B12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.host_rules import (
    NO_INCLUDE,
    HostIndex,
    HostRules,
    PathRules,
    check_ports,
    parse_host_rule,
    parse_path_rules,
)
from searchcrawl.rules.url_rules import UrlRules

#: Verdicts on hosts are remembered, up to so many.
_MAX_REMEMBERED_HOSTS: Final = 4096
_LIMIT_CODES: Final = {
    "scope.max_url_length": Code.MALFORMED_URL,
    "scope.max_path_segments": Code.TRAP_LIMIT,
    "scope.max_query_parameters": Code.TRAP_LIMIT,
    "scope.max_repeated_segments": Code.TRAP_LIMIT,
    "scope.max_urls_per_pattern": Code.TRAP_LIMIT,
    "scope.trap_after": Code.TRAP_LIMIT,
}


class _HostVerdict(NamedTuple):
    """What holds for all URLs of one scheme, host and port."""

    decision: Decision
    exclude_paths: PathRules
    include_paths: PathRules
    no_path: Decision


def refusal_code(decision: Decision) -> Code:
    """The code of a URL that the boundary refused: 955, 1004 (overlong) or 961 (a trap limit)."""
    return _LIMIT_CODES.get(decision.key, Code.OUTSIDE_BOUNDARY)


class Boundary:
    """All rules of ``[scope]`` about single URLs, compiled once; asking is pure and thread-safe.

    Includes and excludes of the hosts, then the ports, the paths and the URLs must each agree;
    exclude wins; the order of rules is of no account. The ports of the source and of all
    ``hosts`` that match add up, as do their paths. Limits of 0 are none. ``file`` is named in the decisions.
    The constructor raises ConfigurationError with the key and the rule for invalid rules, and
    where there is neither an include nor ``allow_all`` (B5).
    """

    def __init__(
        self,
        *,
        allow_all: bool = False,
        include_hosts: Sequence[str] = (),
        exclude_hosts: Sequence[str] = (),
        include_urls: Sequence[str] = (),
        exclude_urls: Sequence[str] = (),
        include_ports: Sequence[int] = (),
        exclude_ports: Sequence[int] = (),
        hosts: Sequence[HostRules] = (),
        depth: int = 0,
        dynamic_pages: bool = True,
        max_url_length: int = 2048,
        max_path_segments: int = 16,
        max_query_parameters: int = 10,
        max_repeated_segments: int = 3,
        file: str = "",
    ) -> None:
        if not (allow_all or include_hosts or include_urls):
            raise ConfigurationError(file, "scope", "needs include_hosts, include_urls or allow_all = true (got none)")
        self._hosts = _Hosts(allow_all, include_hosts, exclude_hosts, file)
        self._blocks = _Blocks(hosts, include_ports, exclude_ports, file)
        self._url_rules = UrlRules(include=include_urls, exclude=exclude_urls, file=file)
        self._has_url_rules = bool(self._url_rules)
        self._limits = _Limits(
            depth, dynamic_pages, max_path_segments, max_query_parameters, max_repeated_segments, file
        )
        self._max_url_length = max_url_length
        self._too_long = Decision(False, f"max_url_length = {max_url_length}", file, "scope.max_url_length")
        self._verdicts: dict[str, _HostVerdict] = {}

    def decide(self, url: str, depth: int | None = None) -> Decision:
        """Whether ``url``, an identity of ``urls.resolve``, may be requested, found at ``depth``.

        Without ``depth`` that limit is not asked. Raises InvalidUrl for what is no http(s) URL.
        """
        if 0 < self._max_url_length < len(url):
            return self._too_long
        if not url.startswith(("http://", "https://")):
            url = urls.resolve(url)
        seen = urls.unescape_unreserved(url) if "%" in url else url
        slash = seen.find("/", 8)
        if slash < 0:
            seen = urls.resolve(seen)
            slash = seen.find("/", 8)
        verdict = self._verdicts.get(seen[:slash]) or self._judge(seen[:slash])
        decision = verdict.decision
        if not decision.allowed:
            return decision
        if verdict.exclude_paths or verdict.include_paths:
            decision = _judge_path(verdict, seen[slash:])
            if not decision.allowed:
                return decision
        if self._has_url_rules:
            decision = self._url_rules.decide(seen) or decision
            if not decision.allowed:
                return decision
        return self._limits.refusal(seen[slash:], depth) or decision

    def _judge(self, origin: str) -> _HostVerdict:
        parsed = urls.parse(origin)
        # A dot at the end names the same host; it must not lead past an exclude.
        verdict = self._host_verdict(parsed.host.rstrip("."), parsed.port)
        if len(self._verdicts) >= _MAX_REMEMBERED_HOSTS:
            self._verdicts.clear()
        self._verdicts[origin] = verdict
        return verdict

    def _host_verdict(self, host: str, port: int) -> _HostVerdict:
        decision = self._hosts.decision(host)
        blocks = self._blocks.matching(host)
        if decision.allowed:
            decision = self._blocks.port_refusal(blocks, port) or decision
        return self._blocks.verdict(blocks, decision)


class _Hosts:
    """``include_hosts`` and ``exclude_hosts`` (B1)."""

    def __init__(self, allow_all: bool, include: Sequence[str], exclude: Sequence[str], file: str) -> None:
        self._included = _host_index(include, file, "scope.include_hosts")
        self._excluded = _host_index(exclude, file, "scope.exclude_hosts")
        self._inclusions = [Decision(True, rule, file, "scope.include_hosts") for rule in include]
        self._exclusions = [Decision(False, rule, file, "scope.exclude_hosts") for rule in exclude]
        self._no_include = Decision(False, NO_INCLUDE, file, "scope.include_hosts")
        # Without host rules the URL rules decide alone.
        self._default = Decision(True, "allow_all", file, "scope.allow_all") if allow_all else Decision(True, file=file)

    def decision(self, host: str) -> Decision:
        excluded = self._excluded.matching(host)
        if excluded:
            return self._exclusions[excluded[0]]
        if not self._inclusions:
            return self._default
        included = self._included.matching(host)
        return self._inclusions[included[0]] if included else self._no_include


class _Blocks:
    """The ``[[scope.host]]`` blocks and the ports of the source."""

    def __init__(
        self, blocks: Sequence[HostRules], include_ports: Sequence[int], exclude_ports: Sequence[int], file: str
    ) -> None:
        check_ports(include_ports, exclude_ports, file=file, key="scope")
        self._blocks = tuple(blocks)
        self._file = file
        self._include_ports = {"scope": frozenset(include_ports)}
        self._exclude_ports = {"scope": frozenset(exclude_ports)}
        self._include_paths: list[dict[str, Decision]] = []
        self._exclude_paths: list[dict[str, Decision]] = []
        self._index = _host_index([block.host for block in blocks], file, "scope.host[{}].host")
        for number, block in enumerate(blocks):
            key = f"scope.host[{number}]"
            check_ports(block.include_ports, block.exclude_ports, file=file, key=key)
            self._include_ports[key] = frozenset(block.include_ports)
            self._exclude_ports[key] = frozenset(block.exclude_ports)
            self._include_paths.append(
                parse_path_rules(block.include_paths, allowed=True, file=file, key=f"{key}.include_paths")
            )
            self._exclude_paths.append(
                parse_path_rules(block.exclude_paths, allowed=False, file=file, key=f"{key}.exclude_paths")
            )
        self._refuse_both_port_lists()

    def _refuse_both_port_lists(self) -> None:
        """B3 is about a host, however many blocks name it."""
        for number, block in enumerate(self._blocks):
            for other in self._blocks[:number]:
                if other.host.strip().lower() == block.host.strip().lower():
                    check_ports(
                        other.include_ports or block.include_ports,
                        other.exclude_ports or block.exclude_ports,
                        file=self._file,
                        key=f"scope.host[{number}]",
                    )

    def matching(self, host: str) -> list[int]:
        return self._index.matching(host)

    def port_refusal(self, blocks: Sequence[int], port: int) -> Decision | None:
        keys = ["scope", *(f"scope.host[{number}]" for number in blocks)]
        for key in keys:
            if port in self._exclude_ports[key]:
                return Decision(False, str(port), self._file, f"{key}.exclude_ports")
        including = [key for key in keys if self._include_ports[key]]
        if not including or any(port in self._include_ports[key] for key in including):
            return None
        return Decision(False, NO_INCLUDE, self._file, f"{including[-1]}.include_ports")

    def verdict(self, blocks: Sequence[int], decision: Decision) -> _HostVerdict:
        including = [number for number in blocks if self._include_paths[number]]
        key = f"scope.host[{including[0]}].include_paths" if including else ""
        return _HostVerdict(
            decision=decision,
            exclude_paths=PathRules(_merged(self._exclude_paths, blocks)),
            include_paths=PathRules(_merged(self._include_paths, blocks)),
            no_path=Decision(False, NO_INCLUDE, self._file, key),
        )


class _Limits:
    """Depth, dynamic pages and the limits that end traps (B7, B9, L8)."""

    def __init__(
        self,
        depth: int,
        dynamic_pages: bool,
        max_path_segments: int,
        max_query_parameters: int,
        max_repeated_segments: int,
        file: str,
    ) -> None:
        self._depth = depth
        self._dynamic_pages = dynamic_pages
        self._max_segments = max_path_segments
        self._max_parameters = max_query_parameters
        self._max_repeated = max_repeated_segments
        values = {
            "depth": depth,
            "dynamic_pages": "false",
            "max_path_segments": max_path_segments,
            "max_query_parameters": max_query_parameters,
            "max_repeated_segments": max_repeated_segments,
        }
        self._refusals = {
            name: Decision(False, f"{name} = {value}", file, f"scope.{name}") for name, value in values.items()
        }

    def refusal(self, target: str, depth: int | None) -> Decision | None:
        path, mark, query = target.partition("?")
        if mark:
            if not self._dynamic_pages:
                return self._refusals["dynamic_pages"]
            if 0 < self._max_parameters <= query.count("&"):
                return self._refusals["max_query_parameters"]
        slashes = path.count("/")
        if 0 < self._max_segments < slashes - path.endswith("/"):
            return self._refusals["max_path_segments"]
        if 0 < self._max_repeated < slashes and self._repeats(path):
            return self._refusals["max_repeated_segments"]
        if depth is not None and 0 < self._depth < depth:
            return self._refusals["depth"]
        return None

    def _repeats(self, path: str) -> bool:
        """Whether one segment stands in the path too often, next to itself or not."""
        segments = path.split("/")
        if len(set(segments)) > len(segments) - self._max_repeated:
            return False
        counts = Counter(segments)
        # Doubled slashes and the ones at the ends are no segments.
        del counts[""]
        return max(counts.values(), default=0) > self._max_repeated


def _host_index(rules: Sequence[str], file: str, key: str) -> HostIndex:
    return HostIndex([parse_host_rule(rule, file=file, key=key.format(n)) for n, rule in enumerate(rules)])


def _merged(rules: Sequence[dict[str, Decision]], blocks: Sequence[int]) -> dict[str, Decision]:
    merged: dict[str, Decision] = {}
    for number in blocks:
        for prefix, decision in rules[number].items():
            merged.setdefault(prefix, decision)
    return merged


def _judge_path(verdict: _HostVerdict, target: str) -> Decision:
    refused = verdict.exclude_paths.find(target) if verdict.exclude_paths else None
    if refused is not None:
        return refused
    if not verdict.include_paths:
        return verdict.decision
    return verdict.include_paths.find(target) or verdict.no_path
