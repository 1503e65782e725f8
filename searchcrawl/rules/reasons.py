"""Every rule of a boundary that has a say about a URL, not only the one that decides first (L1). Pure.

``Boundary`` asks until the first no, and fast; this asks all, for ``explain``. A test holds the two together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from searchcrawl import urls
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.host_rules import NO_INCLUDE, HostIndex, HostRules, comparable_text, parse_host_rule
from searchcrawl.rules.url_rules import UrlRules


@dataclass(frozen=True, slots=True)
class Proposal:
    """The include that would end a refusal by ``NO_INCLUDE``: ``value`` is to be added to the list ``key``."""

    key: str
    value: str | int


@dataclass(frozen=True, slots=True)
class _Includes:
    """The rules of one kind that could include a URL: those that do, and how many there are."""

    matching: list[Decision]
    total: int

    @property
    def decisive(self) -> bool:
        """Whether the URL would be refused without those that match: an empty list asks for nothing."""
        return 0 < len(self.matching) < self.total


@dataclass(frozen=True, slots=True)
class _Place:
    """A URL as rules see it; ``target`` is its path and query."""

    url: str
    host: str
    port: int
    target: str


class Reasons:
    """The rules of a source's ``[scope]``; takes the values that ``Boundary`` takes, which has accepted them."""

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
        self._file = file
        self._allow_all = allow_all
        self._include_hosts, self._exclude_hosts = include_hosts, exclude_hosts
        self._included, self._excluded = _index(include_hosts, file), _index(exclude_hosts, file)
        self._blocks, self._of_block = hosts, _index([block.host for block in hosts], file)
        self._include_ports, self._exclude_ports = include_ports, exclude_ports
        self._url_includes = UrlRules(include=include_urls, exclude=(), file=file)
        self._url_excludes = UrlRules(include=(), exclude=exclude_urls, file=file)
        self._dynamic_pages = dynamic_pages
        self._limits = {
            "depth": depth,
            "max_url_length": max_url_length,
            "max_path_segments": max_path_segments,
            "max_query_parameters": max_query_parameters,
            "max_repeated_segments": max_repeated_segments,
        }

    def refusals(self, url: str, depth: int | None = None) -> list[Decision]:
        """All rules that refuse ``url`` (an identity), found at ``depth``; first the one ``Boundary.decide`` names.

        Empty where it is allowed. Without all of them, and with what ``proposal`` says of each ``NO_INCLUDE``,
        it would be allowed. Without ``depth`` that limit is not asked.
        """
        place = _place(url)
        return [
            *self._over("max_url_length", len(url)),
            *self._host_refusals(place),
            *self._port_refusals(place),
            *self._path_refusals(place),
            *self._url_excludes.matching(place.url),
            *self._unless_included(self._urls(place), "scope.include_urls"),
            *self._limits_passed(place.target, depth),
        ]

    def admissions(self, url: str) -> list[Decision]:
        """The rules that admit ``url``, which is allowed: without all of them it would not be.

        They are of the most precise kind of which that is true; where it is true of none, all that include
        anything: a source without them is refused (B5).
        """
        place = _place(url)
        hosts, pages = self._hosts(place), self._urls(place)
        for includes in (pages, self._paths(place), self._ports(place)[0], hosts):
            if includes.decisive:
                return includes.matching
        everything = [Decision(True, "allow_all", self._file, "scope.allow_all")] if self._allow_all else []
        return [*hosts.matching, *pages.matching, *everything]

    def proposal(self, url: str, refusal: Decision) -> Proposal | None:
        """What to include so that this ``refusal`` ends; None where it is none for want of an include."""
        if refusal.rule != NO_INCLUDE:
            return None
        place = _place(url)
        values: dict[str, str | int] = {
            "include_hosts": place.host,
            "include_ports": place.port,
            "include_paths": place.target.partition("?")[0],
            "include_urls": place.url,
        }
        return Proposal(refusal.key, values[refusal.key.rpartition(".")[2]])

    def _host_refusals(self, place: _Place) -> Iterator[Decision]:
        for number in self._excluded.matching(place.host):
            yield Decision(False, self._exclude_hosts[number], self._file, "scope.exclude_hosts")
        yield from self._unless_included(self._hosts(place), "scope.include_hosts")

    def _port_refusals(self, place: _Place) -> Iterator[Decision]:
        for key, _, excluded in self._port_lists(place):
            for port in excluded:
                if port == place.port:
                    yield Decision(False, str(port), self._file, f"{key}.exclude_ports")
        yield from self._unless_included(*self._ports(place))

    def _path_refusals(self, place: _Place) -> Iterator[Decision]:
        key = ""
        for number in self._of_block.matching(place.host):
            block, name = self._blocks[number], f"scope.host[{number}]"
            for rule in block.exclude_paths:
                if place.target.startswith(comparable_text(rule)):
                    yield Decision(False, rule, self._file, f"{name}.exclude_paths")
            key = key or (f"{name}.include_paths" if block.include_paths else "")
        yield from self._unless_included(self._paths(place), key)

    def _limits_passed(self, target: str, depth: int | None) -> Iterator[Decision]:
        path, mark, query = target.partition("?")
        if mark:
            if not self._dynamic_pages:
                yield Decision(False, "dynamic_pages = false", self._file, "scope.dynamic_pages")
            yield from self._over("max_query_parameters", query.count("&") + 1)
        yield from self._over("max_path_segments", path.count("/") - path.endswith("/"))
        segments = Counter(segment for segment in path.split("/") if segment)
        yield from self._over("max_repeated_segments", max(segments.values(), default=0))
        yield from self._over("depth", depth or 0)

    def _over(self, name: str, amount: int) -> Iterator[Decision]:
        limit = self._limits[name]
        if 0 < limit < amount:
            yield Decision(False, f"{name} = {limit}", self._file, f"scope.{name}")

    def _unless_included(self, includes: _Includes, key: str) -> Iterator[Decision]:
        if includes.total and not includes.matching:
            yield Decision(False, NO_INCLUDE, self._file, key)

    def _hosts(self, place: _Place) -> _Includes:
        matching = [
            Decision(True, self._include_hosts[number], self._file, "scope.include_hosts")
            for number in self._included.matching(place.host)
        ]
        return _Includes(matching, len(self._include_hosts))

    def _ports(self, place: _Place) -> tuple[_Includes, str]:
        """The includes of ports, and the key of the most precise list of them."""
        matching: list[Decision] = []
        total, last = 0, ""
        for name, included, _ in self._port_lists(place):
            key = f"{name}.include_ports"
            matching += [Decision(True, str(port), self._file, key) for port in included if port == place.port]
            total += len(included)
            last = key if included else last
        return _Includes(matching, total), last

    def _port_lists(self, place: _Place) -> Iterator[tuple[str, Sequence[int], Sequence[int]]]:
        yield "scope", self._include_ports, self._exclude_ports
        for number in self._of_block.matching(place.host):
            block = self._blocks[number]
            yield f"scope.host[{number}]", block.include_ports, block.exclude_ports

    def _paths(self, place: _Place) -> _Includes:
        matching: list[Decision] = []
        total = 0
        for number in self._of_block.matching(place.host):
            key = f"scope.host[{number}].include_paths"
            for rule in self._blocks[number].include_paths:
                total += 1
                if place.target.startswith(comparable_text(rule)):
                    matching.append(Decision(True, rule, self._file, key))
        return _Includes(matching, total)

    def _urls(self, place: _Place) -> _Includes:
        return _Includes(self._url_includes.matching(place.url), len(self._url_includes))


def _index(rules: Sequence[str], file: str) -> HostIndex:
    return HostIndex([parse_host_rule(rule, file=file, key="scope") for rule in rules])


def _place(url: str) -> _Place:
    # A dot at the end of a host names the same host.
    seen = urls.unescape_unreserved(urls.resolve(url))
    parsed = urls.parse(seen)
    return _Place(seen, parsed.host.rstrip("."), parsed.port, seen[seen.index("/", 8) :])
