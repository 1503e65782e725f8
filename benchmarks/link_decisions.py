"""What deciding on the 75 links of a page costs, with 200 rules: ``python -m benchmarks.link_decisions``.

Times are CPU time of this process, the best of several rounds; every link is new to the host cache once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from searchcrawl.admission.admit import FoundLinks
from searchcrawl.admission.url_normalisation import normalise_found
from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.rewriting import SESSION_NAMES, Identity, PatternRewriter, Rewriting
from searchcrawl.rules.url_rules import HostScope

LINKS: Final = 75
_PAGES: Final = 40
_ROUNDS: Final = 15


def boundary(rules: int = 200) -> Boundary:
    """A fifth each of host includes, host excludes, path rules, globs and expressions."""
    part = range(rules // 5)
    return Boundary(
        include_hosts=["acme.test", *(f"host{number}.example" for number in part[1:])],
        exclude_hosts=[f"no{number}.acme.test" for number in part],
        hosts=[HostScope(host="acme.test", exclude_paths=tuple(f"/private/{number}/" for number in part))],
        exclude_urls=[f"*/draft-{number}/*" for number in part] + [rf"re:/v\d+/old{number}\b" for number in part],
        depth=20,
    )


def pages(queries: int = 5) -> list[list[Link]]:
    """Pages of 75 links on a few hosts, so many of them with a query."""
    found = []
    for page in range(_PAGES):
        plain = [
            f"http://www{number % 7}.acme.test/docs/chapter-{page}/section-{number}.html"
            for number in range(LINKS - queries)
        ]
        asked = [f"http://www.acme.test/search?page={number}&topic={page}" for number in range(queries)]
        found.append([Link(url) for url in plain + asked])
    return found


def micros_a_page(work: Callable[[list[Link]], object], of: list[list[Link]]) -> float:
    """CPU time of ``work`` for one page, in microseconds."""
    best = float("inf")
    for _ in range(_ROUNDS):
        begun = time.process_time()
        for links in of:
            work(links)
        best = min(best, time.process_time() - begun)
    return best / len(of) * 1e6


def main() -> None:
    """Prints a line a measurement."""
    decide = boundary().decide
    few = boundary(5).decide
    plain, rewriting = Rewriting([], Identity(SESSION_NAMES)), Rewriting([PatternRewriter("^http://old", "http://new")])
    sessions = [[Link(f"{link.url};jsessionid=1") for link in page] for page in pages(0)]
    rows = (
        ("75 links decided, 200 rules", lambda links: [decide(link.url, 3) for link in links], pages()),
        ("75 links decided, 5 rules", lambda links: [few(link.url, 3) for link in links], pages()),
        (
            "strip_parameters, 5 of 75 with a query",
            lambda links: normalise_found([FoundLinks(1, 1, links)], plain, {}),
            pages(),
        ),
        ("strip_parameters, no query", lambda links: normalise_found([FoundLinks(1, 1, links)], plain, {}), pages(0)),
        (
            "strip_parameters, 75 of 75 with a session",
            lambda links: normalise_found([FoundLinks(1, 1, links)], plain, {}),
            sessions,
        ),
        (
            "one [[rewrite]] pattern, links seen before",
            lambda links: normalise_found([FoundLinks(1, 1, links)], rewriting, {}),
            pages(),
        ),
    )
    for name, work, of in rows:
        print(f"{micros_a_page(work, of):8.1f} µs a page   {name}")


if __name__ == "__main__":
    main()
