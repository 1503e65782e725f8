"""The boundary of a source: which URLs may be requested, and all rules that refuse or include one (B1–B9, B12, L1).

With the limits of ``[scope]`` on depth and dynamic pages, and those that end traps (L8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.kind import WEB, Kind
from searchcrawl.rules.archives import MARK, list_archives
from searchcrawl.rules.decision import Decision, Proposal, RuleList
from searchcrawl.rules.forgotten import Forgotten
from searchcrawl.rules.listed import ListedRules
from searchcrawl.rules.url_rules import (
    HostIndex,
    HostNameRules,
    HostScope,
    PathRules,
    PortRules,
    UrlRules,
    compile_paths,
    parse_host_rule,
)

#: The rules of so many hosts are remembered.
_MAX_REMEMBERED_HOSTS: Final = 4096
MAX_URLS: Final = "scope.max_urls"
_LIMIT_CODES: Final = {
    "scope.max_url_length": Code.MALFORMED_URL,
    "scope.max_path_segments": Code.TRAP_LIMIT,
    "scope.max_query_parameters": Code.TRAP_LIMIT,
    "scope.max_repeated_segments": Code.TRAP_LIMIT,
    "scope.max_urls_per_pattern": Code.TRAP_LIMIT,
    "scope.trap_after": Code.TRAP_LIMIT,
}
#: Limits against endless URLs. They are no evidence about a page: one with a document in the index is exempt (L8).
_TRAP_LIMITS: Final = frozenset({key for key, code in _LIMIT_CODES.items() if code == Code.TRAP_LIMIT} | {MAX_URLS})
#: That on the age of what is listed: tomorrow it refuses what it allows today.
_OF_NEW: Final = _TRAP_LIMITS | {"scope.max_age_days"}
#: The limits on single URLs, with the values that limit nothing.
NO_LIMITS: Final[Mapping[str, Any]] = {
    "depth": 0,
    "dynamic_pages": True,
    "max_url_length": 0,
    "max_path_segments": 0,
    "max_query_parameters": 0,
    "max_repeated_segments": 0,
}
#: Rules about pages, which do not apply to sitemaps.
_ABOUT_PAGES: Final = (
    *(".include_paths", ".include_urls"),
    *(f".{name}" for name in NO_LIMITS if name != "max_url_length"),
)


def refusal_code(decision: Decision) -> Code:
    """The code of a URL that the boundary refused: 955, 1004 (overlong) or 961 (a trap limit)."""
    return _LIMIT_CODES.get(decision.key, Code.OUTSIDE_BOUNDARY)


def is_trap_limit(key: str) -> bool:
    """Whether the rules of a key, as ``scope.max_urls``, only refuse URLs that are new."""
    return key in _OF_NEW


@dataclass(frozen=True, slots=True)
class _Origin:
    """What is decided for all URLs of one scheme, host and port.

    ``decisions`` are the refusals by host and port. Without any refusal it is the rule that includes the host.
    """

    host: str
    port: int
    ports: PortRules
    paths: PathRules
    decisions: Sequence[Decision]
    has_paths: bool


class Boundary:
    """All rules of ``[scope]`` about single URLs, compiled once. The methods are pure and thread-safe.

    A URL is allowed if its length, host, port, path, the whole URL and the limits all allow it. An exclude wins over an
    include. The ports of the source and of all ``hosts`` that match are joined, and so are their paths. A limit of 0 is
    no limit. What is ``forgotten`` is refused before all else. What excludes an archive excludes its files, and so does the
    list of what is forgotten; its includes and limits are its own. ``listed`` are the rules of a kind that is listed. ``file`` is named in the other decisions. The constructor
    raises ConfigurationError, with the key and the rule, for an invalid rule, and for a source that has neither an include
    nor ``allow_all`` (B5).
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
        hosts: Sequence[HostScope] = (),
        depth: int = 0,
        dynamic_pages: bool = True,
        max_url_length: int = 2048,
        max_path_segments: int = 16,
        max_query_parameters: int = 10,
        max_repeated_segments: int = 3,
        hash_routes: bool = False,
        listed: ListedRules | None = None,
        forgotten: Forgotten | None = None,
        file: str = "",
        kind: Kind = WEB,
    ) -> None:
        if not (allow_all or include_hosts or include_urls):
            raise ConfigurationError(file, "scope", "needs include_hosts, include_urls or allow_all = true (got none)")
        self._allow_all = [Decision(True, "allow_all", file, "scope.allow_all")] if allow_all else []
        self._default = self._allow_all or [Decision(True, file=file)]  # without host rules the URL rules decide alone
        self._host_names = HostNameRules(include_hosts, exclude_hosts, file)
        self._blocks = _Blocks(hosts, include_ports, exclude_ports, file)
        self._url_rules = UrlRules(include=include_urls, exclude=exclude_urls, file=file, routes=hash_routes)
        self._has_url_rules = bool(self._url_rules)
        self._limits = ScopeLimits(
            file,
            depth=depth,
            dynamic_pages=dynamic_pages,
            max_path_segments=max_path_segments,
            max_query_parameters=max_query_parameters,
            max_repeated_segments=max_repeated_segments,
        )
        self._max_url_length = max_url_length
        self._too_long = [Decision(False, f"max_url_length = {max_url_length}", file, "scope.max_url_length")]
        self._no_routes = None if hash_routes else Decision(False, "hash_routes = false", file, "scope.hash_routes")
        self._listed = listed
        self._forgotten = forgotten
        self._begins = kind.begins
        #: of the URLs of another kind of source
        self._other_kind = Decision(False, kind.name, file, "type")
        self._origins: dict[str, _Origin] = {}

    def replace_forgotten(self, forgotten: Forgotten | None) -> None:
        """Refuses from now on what is ``forgotten``, and nothing else that was; any thread may call it."""
        self._forgotten = forgotten

    def decide(self, url: str, depth: int | None = None, *, in_archive: bool = False) -> Decision:
        """Decides whether ``url``, an identity of ``urls.resolve`` that was found at ``depth``, may be requested.

        A refusal has the first rule that refuses; a permission has the most precise rule that includes. Without
        ``depth`` the limit of depth is not checked. ``in_archive`` is as for ``list_archives``. Raises InvalidUrl for
        what is no URL.
        """
        for decisions in self._ask_in_order(url, depth, in_archive=in_archive):
            if decisions:
                decision = decisions[0]
                if not decision.allowed:
                    break
        return decision

    def decide_known(self, url: str, depth: int, *, in_archive: bool = False) -> Decision:
        """Decides as ``decide`` about a URL whose document is in the index: the limits that end traps do not apply."""
        decision = self.decide(url, depth, in_archive=in_archive)
        if decision.allowed or not is_trap_limit(decision.key):
            return decision
        refusals = self.list_refusals(url, depth, in_archive=in_archive)
        others = (refusal for refusal in refusals if not is_trap_limit(refusal.key))
        return next(others, Decision(True, file=decision.file))

    def decide_sitemap(self, url: str) -> Decision:
        """Decides whether a sitemap may be requested: its host and port must be inside, and no exclude may forbid it.

        The includes of paths and URLs and the limits on pages do not apply: ``/sitemap.xml`` may list pages below
        ``/docs/``. The URLs that it lists are decided like links.
        """
        decision = self.decide(url)
        if decision.allowed or self.is_elsewhere(url):
            return decision
        # All are asked: behind a missing include there may be an exclude.
        others = (refusal for refusal in self.list_refusals(url) if not refusal.key.endswith(_ABOUT_PAGES))
        return next(others, Decision(True, file=decision.file))

    def list_exclusions(self, url: str) -> list[Decision]:
        """Lists the exclude rules that name ``url``, whether or not any rule includes it.

        They hold for the targets of redirects that are followed to hosts which no rule includes (C6).
        """
        return [refusal for refusal in self.list_refusals(url) if refusal.is_exclusion]

    def includes_origin(self, url: str) -> bool:
        """Whether a rule about hosts, or ``allow_all``, includes the host of ``url``, and its port is allowed.

        Where only URL rules include, no host as such is included.
        """
        decision = self._locate(url)[0].decisions[0]
        return decision.allowed and bool(decision.key)

    def is_elsewhere(self, url: str) -> bool:
        """Whether ``url`` is on a host outside: its host or port is refused, or no include of URLs can match there."""
        origin, seen, slash = self._locate(url)
        if not origin.decisions[0].allowed:
            return True
        origins = self._url_rules.origins if self._url_rules.include_count else None
        return origins is not None and seen[:slash] not in origins

    def list_refusals(self, url: str, depth: int | None = None, *, in_archive: bool = False) -> list[Decision]:
        """Lists all rules that refuse ``url``, in the order in which they are asked; ``decide`` returns the first.

        The list is empty for a URL that is allowed. If all rules of the list were removed, and the include that
        ``propose_include`` names for each ``NO_INCLUDE`` was added, the URL would be allowed.
        """
        asked = self._ask_in_order(url, depth, in_archive=in_archive)
        return [decision for decisions in asked for decision in decisions if not decision.allowed]

    def _ask_in_order(self, url: str, depth: int | None, *, in_archive: bool) -> Iterator[Sequence[Decision]]:
        """What each kind of rule says about ``url``; a kind is asked only when its turn comes."""
        if self._forgotten is not None and (gone := self._forgotten.find(url, in_archive=in_archive)) is not None:
            yield [gone]
        if 0 < self._max_url_length < len(url):
            yield self._too_long
        if self._no_routes is not None and urls.has_route(url):
            # It has a row since the key was true.
            yield [self._no_routes]
        origin, seen, slash = self._locate(url)
        yield origin.decisions
        # All of them have the origin of the URL.
        archives = list_archives(seen, in_archive=in_archive) if MARK in seen else ()
        if self._listed is not None:
            yield self._listed.find(seen)
        if origin.has_paths:
            yield _find_for(origin.paths, seen[slash:], [archive[slash:] for archive in archives])
        if self._has_url_rules:
            yield _find_for(self._url_rules, seen, archives)
        yield self._limits.find(seen[slash:], depth)

    def list_includes(self, url: str) -> list[Decision]:
        """Lists the rules that include ``url``, which has to be allowed: if they were removed, it would be refused.

        Four kinds of includes are looked at in this order: URLs, paths, ports, hosts. The first kind is returned that
        has includes which match and includes which do not match; of these, the ones that match. If there is no such
        kind, all includes of hosts and URLs that match are returned, with ``allow_all``: a source needs one of them
        (B5).
        """
        origin, seen, slash = self._locate(url)
        if self._listed is not None:
            return self._listed.list_includes(seen)
        kinds = (self._url_rules, seen), (origin.paths, seen[slash:]), (origin.ports, origin.port)
        for rules, subject in (*kinds, (self._host_names, origin.host)):
            including = rules.list_includes(subject)
            # A kind without includes refuses nothing. So one include that does not match has to be left over.
            if 0 < len(including) < rules.include_count:
                return including
        return [*self._host_names.list_includes(origin.host), *self._url_rules.list_includes(seen), *self._allow_all]

    def propose_include(self, url: str, refusal: Decision) -> Proposal | None:
        """Returns the include that would end ``refusal``; None if no missing include is the reason."""
        origin, seen, slash = self._locate(url)
        path = seen[slash:].partition("?")[0]
        return refusal.propose_include(
            {"include_hosts": origin.host, "include_ports": origin.port, "include_paths": path, "include_urls": seen}
        )

    def measure(self, url: str, depth: int | None = None) -> dict[str, int]:
        """What ``url`` has of that which limits count, by their keys: a limit that is as high would not refuse it."""
        _, seen, slash = self._locate(url)
        return {"scope.max_url_length": len(url), **self._limits.measure(seen[slash:], depth)}

    def _locate(self, url: str) -> tuple[_Origin, str, int]:
        """The rules of the URL's host and port, the URL in the form that rules see, and where its path begins."""
        if not url.startswith(self._begins):
            url = urls.resolve(url, listed=True)
        seen = urls.unescape_unreserved(url) if "%" in url else url
        host = seen.find("://") + 3
        slash = seen.find("/", host)
        if slash < 0:
            seen = urls.resolve(seen, listed=True)
            slash = seen.find("/", host)
        text = seen[:slash]
        return self._origins.get(text) or self._compile_origin(text), seen, slash

    def _compile_origin(self, text: str) -> _Origin:
        parsed = urls.parse(text)
        # A name with a dot at the end is the same host; it must not get past an exclude.
        host = parsed.host.rstrip(".")
        ports, paths = self._blocks.find_rules(host)
        decisions = [*self._host_names.list_refusals(host), *ports.list_refusals(parsed.port)]
        decisions = decisions or self._host_names.list_includes(host)[:1] or self._default
        if not text.startswith(self._begins):
            decisions = [self._other_kind]
        origin = _Origin(host, parsed.port, ports, paths, decisions, bool(paths))
        if len(self._origins) >= _MAX_REMEMBERED_HOSTS:
            self._origins.clear()
        self._origins[text] = origin
        return origin


def _find_for(rules: RuleList, subject: str, archives: Sequence[str]) -> list[Decision]:
    """What rules say about ``subject``, and which of them exclude an archive around it."""
    found = rules.find(subject)
    if not archives:
        return found
    excludes = [each for each in found if each.is_exclusion]
    inherited = (each for archive in archives for each in rules.find(archive) if each.is_exclusion)
    return [*dict.fromkeys([*excludes, *inherited]), *found[len(excludes) :]]


class _Block(NamedTuple):
    """The rules of one table, compiled."""

    ports: Sequence[Decision]
    paths: Sequence[tuple[str, Decision]] = ()


class _Blocks:
    """The ``[[scope.host]]`` blocks and the ports of the source."""

    def __init__(
        self, blocks: Sequence[HostScope], include_ports: Sequence[int], exclude_ports: Sequence[int], file: str
    ) -> None:
        self._file = file
        self._source = _Block(_compile_ports(include_ports, exclude_ports, file, "scope"))
        self._index = HostIndex(
            parse_host_rule(block.host, file=file, key=f"scope.host[{number}].host")
            for number, block in enumerate(blocks)
        )
        self._blocks = [_compile_block(block, file, f"scope.host[{number}]") for number, block in enumerate(blocks)]
        self._rules: dict[tuple[int, ...], tuple[PortRules, PathRules]] = {}
        self._refuse_both_port_lists(blocks)

    def _refuse_both_port_lists(self, blocks: Sequence[HostScope]) -> None:
        """Refuses blocks that name the same host and give it both lists of ports (B3)."""
        for number, block in enumerate(blocks):
            for other in blocks[:number]:
                include = other.include_ports or block.include_ports
                exclude = other.exclude_ports or block.exclude_ports
                if include and exclude and other.host.strip().lower() == block.host.strip().lower():
                    message = f"either include_ports or exclude_ports (got {list(include)} and {list(exclude)})"
                    raise ConfigurationError(self._file, f"scope.host[{number}].exclude_ports", message)

    def find_rules(self, host: str) -> tuple[PortRules, PathRules]:
        """The rules about ports and paths of the source and of all blocks that name ``host``."""
        numbers = tuple(self._index.find(host))
        rules = self._rules.get(numbers)
        if rules is None:
            rules = self._rules[numbers] = self._add_up([self._blocks[number] for number in numbers])
        return rules

    def _add_up(self, blocks: Sequence[_Block]) -> tuple[PortRules, PathRules]:
        ports = [decision for block in (self._source, *blocks) for decision in block.ports]
        paths = [rule for block in blocks for rule in block.paths]
        # The proposal for a missing port names the last list of ports (the most precise), for a path the first list.
        port_keys = [decision.key for decision in ports if decision.allowed]
        path_keys = [decision.key for _, decision in paths if decision.allowed]
        return (
            PortRules(ports, port_keys[-1] if port_keys else "", self._file),
            PathRules(paths, path_keys[0] if path_keys else "", self._file),
        )


def _compile_block(block: HostScope, file: str, key: str) -> _Block:
    return _Block(
        _compile_ports(block.include_ports, block.exclude_ports, file, key),
        [
            *compile_paths(block.include_paths, allowed=True, file=file, key=f"{key}.include_paths"),
            *compile_paths(block.exclude_paths, allowed=False, file=file, key=f"{key}.exclude_paths"),
        ],
    )


def _compile_ports(include: Sequence[int], exclude: Sequence[int], file: str, key: str) -> list[Decision]:
    excludes = [Decision(False, str(port), file, f"{key}.exclude_ports") for port in exclude]
    return [*excludes, *(Decision(True, str(port), file, f"{key}.include_ports") for port in include)]


class ScopeLimits:
    """Depth, dynamic pages and the limits that end traps (B7, B9, L8)."""

    def __init__(self, file: str, **values: int) -> None:
        self._depth = values["depth"]
        self._dynamic_pages = values["dynamic_pages"]
        self._max_segments = values["max_path_segments"]
        self._max_parameters = values["max_query_parameters"]
        self._max_repeated = values["max_repeated_segments"]
        shown = {**values, "dynamic_pages": "false"}
        self._refusals = {
            name: Decision(False, f"{name} = {value}", file, f"scope.{name}") for name, value in shown.items()
        }

    def find(self, target: str, depth: int | None) -> list[Decision]:
        """Lists the limits that a path with its query exceeds, if it was found at ``depth``."""
        passed: list[Decision] = []
        path, mark, query = target.partition("?")
        if mark:
            if not self._dynamic_pages:
                passed.append(self._refusals["dynamic_pages"])
            if 0 < self._max_parameters <= query.count("&"):
                passed.append(self._refusals["max_query_parameters"])
        slashes = path.count("/")
        if 0 < self._max_segments < slashes - path.endswith("/"):
            passed.append(self._refusals["max_path_segments"])
        if 0 < self._max_repeated < slashes and self._repeats(path):
            passed.append(self._refusals["max_repeated_segments"])
        if depth is not None and 0 < self._depth < depth:
            passed.append(self._refusals["depth"])
        return passed

    def measure(self, target: str, depth: int | None) -> dict[str, int]:
        """What a path with its query has of that which the limits count, by their keys."""
        path, mark, query = target.partition("?")
        segments = Counter(path.split("/"))
        del segments[""]
        found = {
            "scope.max_path_segments": path.count("/") - path.endswith("/"),
            "scope.max_query_parameters": query.count("&") + 1 if mark else 0,
            "scope.max_repeated_segments": max(segments.values(), default=0),
        }
        return found if depth is None else {**found, "scope.depth": depth}

    def _repeats(self, path: str) -> bool:
        """Whether a segment occurs too often in the path, side by side or apart."""
        segments = path.split("/")
        if len(set(segments)) > len(segments) - self._max_repeated:
            return False
        counts = Counter(segments)
        # Doubled slashes, and the slashes at both ends, make empty segments.
        del counts[""]
        return max(counts.values(), default=0) > self._max_repeated
