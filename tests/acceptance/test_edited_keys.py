"""Edits of [scope] and [keep], at random and of each limit on traps: no document is left behind, and all are back (L3, L8, B6)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import tests.same_examples  # noqa: F401  # the same for everybody
from searchcrawl.kind import WEB
from searchcrawl.sources.config import Keep, Scope
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess
from tests.site.expected import short
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

HOST, OTHER, BELOW = "edits.acme.test", "other.acme.test", "deep.edits.acme.test"
HOSTS: Final = (HOST, OTHER, BELOW)
#: Documents in the index that no run looks at any more, without a removal that waits or is under way.
_STUCK: Final = """
    SELECT urls.url, urls.code, urls.rule, urls.fetch_state, documents.state FROM urls JOIN documents
    ON documents.url_id = urls.id WHERE documents.indexed_version IS NOT NULL AND documents.state NOT IN (5, 6)
    AND (urls.due_ms IS NULL OR urls.fetch_state = 1)
"""
_BODIES: Final = {
    "/": [
        "/a.html",
        "/b.htm",
        "/plain.txt",
        "/list.html?page=1&size=2",
        "/in/deep/1.html",
        "/day/1.html",
        "/day/2.html",
    ],
    "/a.html": ["/in/in/in/again.html", "/noindex.html", "/day/3.html", "/file.pdf?sid=7"],
    "/in/deep/1.html": ["/in/deep/2.html", f"/{'long' * 12}.html"],
    "/in/deep/2.html": ["/in/deep/very/much/deeper/3.html", "/empty.html"],
}
#: Globs and expressions that match some of the URLs, none, or all.
_URL_RULES: Final = ("*", "*/in/*", "*.html", "*day*", "*?*", "re:/[ab]\\.", "*none*", f"*{OTHER}*", "*long*")
_HOST_RULES: Final = ("acme.test", HOST, f"={HOST}", OTHER, BELOW, "other.*", "none.test")


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with make_site() as site:
        yield site


@contextmanager
def make_site() -> Iterator[SiteProcess]:
    """A site of three hosts, some of whose pages each kind of rule concerns."""
    with SiteProcess() as site:
        paths = {path for links in _BODIES.values() for path in links} | _BODIES.keys()
        for path in sorted(paths):
            head = '<meta name="robots" content="noindex">' if "noindex" in path else ""
            body = page(path, *_BODIES.get(path, ()), text=f"all that {path} has to say", head=head)
            fields = {"content_type": "text/plain"} if path.endswith(".txt") else {}
            site.set_page(HOST, path.partition("?")[0], "" if "empty" in path else body, **fields)
        start = [site.url(OTHER), site.url(BELOW, "/x/1.html")]
        site.set_page(HOST, "/", page("start", *_BODIES["/"], *start))
        for host in (OTHER, BELOW):
            names = [f"/x/{number}.html" for number in range(5)]
            site.set_page(host, "/", page(f"start of {host}", *names))
            for number, name in enumerate(names):
                site.set_page(host, name, page(f"{host}, the {number}th", "/"))
        yield site


def some_of(*values: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), max_size=3, unique=True)


def one_of_these(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def build_scope(port: int) -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for each key of [scope]; the two lists of ports are drawn together."""
    ports = some_of(port, 1, 65000)
    block = st.fixed_dictionaries(
        {"host": one_of_these(*_HOST_RULES)},
        optional={"include_paths": some_of("/in", "/x", "/a.html"), "exclude_paths": some_of("/in/deep", "/day", "/")},
    )
    of_ports = st.one_of(
        st.fixed_dictionaries({"include_ports": ports}), st.fixed_dictionaries({"exclude_ports": ports})
    )
    return {
        "allow_all": st.booleans(),
        "include_hosts": some_of(*_HOST_RULES),
        "exclude_hosts": some_of(*_HOST_RULES),
        "include_urls": some_of(*_URL_RULES),
        "exclude_urls": some_of(*_URL_RULES),
        "include_ports": of_ports,
        "exclude_ports": of_ports,
        "host": st.lists(st.builds(lambda block, ports: block | ports, block, of_ports), max_size=2),
        "depth": one_of_these(0, 1, 2, 3),
        "follow_links": st.booleans(),
        "dynamic_pages": st.booleans(),
        "max_url_length": one_of_these(0, 20, 40, 60, 2048),
        "max_path_segments": one_of_these(0, 1, 2, 4, 16),
        "max_query_parameters": one_of_these(0, 1, 10),
        "hash_routes": one_of_these(False),
        "max_repeated_segments": one_of_these(0, 1, 3),
        "max_urls": one_of_these(0, 1, 5, 12),
        "max_urls_per_pattern": one_of_these(0, 1, 2),
        "trap_after": one_of_these(0, 1, 2, 200),
        "strip_parameters": some_of("sid", "page", "*", "none"),
    }


_KEEP: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "mime_types": some_of("text/html", "text/*", "application/pdf"),
    "exclude_mime_types": some_of("text/html", "text/plain", "image/*"),
    "min_bytes": one_of_these(0, 1, 160, 100_000),
    "max_bytes": one_of_these(0, 160, 100_000, 10_000_000),
    "max_age_days": one_of_these(0, 1, 100_000),
    "include_urls": some_of(*_URL_RULES),
    "exclude_urls": some_of(*_URL_RULES),
    "include_names": some_of("*.html", "*.txt", "a*"),
    "exclude_names": some_of("*.htm", "*.txt", "1*"),
    "meta_robots": st.booleans(),
}


#: The limits refuse URLs that no other rule refuses: most is at stake there.
_OF_SCOPE: Final = {key for key in Scope.model_fields if WEB.has_key("scope", key)}
_LIMITS: Final = sorted(key for key in _OF_SCOPE if key.startswith("max_") or key in {"depth", "trap_after"})


@dataclass(frozen=True, slots=True)
class Step:
    """An edit, and what follows: ``nothing``, a ``whole`` run, one that is ``limited`` or ``killed``."""

    scope: Mapping[str, Any]
    keep: Mapping[str, Any]
    then: str

    def apply(self, project: CrawlProject) -> None:
        """Writes the source file, as far as it is a valid one, and runs."""
        write(project, self.scope, self.keep)
        match self.then:
            case "limited":
                project.crawl("-a", "limit=3")
            case "killed":
                project.crawl(SEARCHCRAWL_FAILPOINT="links.mid:2")
            case "whole":
                project.crawl()


@st.composite
def steps(draw: st.DrawFn, port: int, *, then: str | None = None) -> Step:
    """An edit of a limit, and of up to three other keys."""
    strategies = {("scope", key): one for key, one in build_scope(port).items()}
    strategies |= {("keep", key): one for key, one in _KEEP.items()}
    found: dict[str, dict[str, Any]] = {"scope": {}, "keep": {}}
    limit = draw(st.sampled_from(_LIMITS))
    others = draw(st.lists(st.sampled_from(sorted(strategies)), max_size=3, unique=True))
    for table, key in sorted({("scope", limit), *others}):
        value = draw(strategies[table, key])
        found[table] |= value if key in {"include_ports", "exclude_ports"} else {key: value}
    scope, keep = found["scope"], found["keep"]
    if {"include_ports", "exclude_ports"} <= scope.keys():
        del scope["exclude_ports"]
    if not (scope.get("allow_all") or scope.get("include_hosts", True) or scope.get("include_urls")):
        scope["allow_all"] = True
    if 0 < keep.get("max_bytes", 0) < keep.get("min_bytes", 0):
        del keep["max_bytes"]
    return Step(scope, keep, then or draw(st.sampled_from(["nothing", "whole", "limited", "killed"])))


def write(project: CrawlProject, scope: Mapping[str, Any], keep: Mapping[str, Any]) -> None:
    # Pages are due much later than the runs: an edit makes them due.
    # No request may leave the site, whatever the rules allow.
    project.edit(
        start={"urls": [project.site.url(HOST)]},
        scope={"include_hosts": list(HOSTS), **scope},
        keep=dict(keep),
        fetch={"retries": 0, "host_concurrency": 8},
        lifecycle={"recrawl_every_hours": 100},
    )


def live(site: SiteProcess, folder: Path, edits: list[Step]) -> None:
    """One life: known documents, edits with or without runs after them, the last one with a whole run, and back."""
    project = new_project(folder, site)
    write(project, {}, {})
    project.crawl()
    known = set(project.indexed())
    for edit in edits:
        edit.apply(project)
    stuck = query_columns(folder, _STUCK)
    write(project, {}, {})
    project.crawl()
    back = set(project.indexed())

    rows = project.rows()
    assert [dict(row) for row in stuck] == []
    # A page may have come to be known by another URL as well, without the parameters that were stripped for a while.
    missing = {url: short(rows[url]["copy_of"] or "") for url in known - back}
    assert set(missing.values()) <= back, missing
    assert {url for url, row in rows.items() if row["indexed_version"] is not None} == back
    assert query_columns(folder, _STUCK) == []


def test_strategies_when_keys_are_added_then_have_them_all(site: SiteProcess) -> None:
    assert build_scope(site.port).keys() == _OF_SCOPE
    assert _KEEP.keys() == Keep.model_fields.keys()


def examine(site: SiteProcess, draw: st.DataObject, *, most: int) -> None:
    edits = [*draw.draw(st.lists(steps(site.port), max_size=most)), draw.draw(steps(site.port, then="whole"))]
    note(f"{edits}")
    with tempfile.TemporaryDirectory() as folder:
        live(site, Path(folder), edits)


UNHURRIED: Final = settings(
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@settings(UNHURRIED, max_examples=8, derandomize=True, phases=[Phase.generate])
@given(draw=st.data())
def test_documents_when_keys_are_edited_there_and_back_then_none_is_left_behind(
    site: SiteProcess, draw: st.DataObject
) -> None:
    examine(site, draw, most=2)


@pytest.mark.soak
@settings(UNHURRIED, max_examples=300)
@given(draw=st.data())
def test_documents_when_keys_are_edited_again_and_again_then_none_is_left_behind(
    site: SiteProcess, draw: st.DataObject
) -> None:
    examine(site, draw, most=4)


KNOWN: Final = "known.acme.test"
#: Pages that pass each of the limits; {} is the number of the page.
PATHS: Final = {
    "max_path_segments": "/one/two/three/page-{}.html",
    "max_query_parameters": "/list-{}.html?size=1&order=2&view=3",
    "max_repeated_segments": "/again/again/again/{}.html",
    "max_urls_per_pattern": "/day/{}.html",
    "max_urls": "/day/{}.html",
}
LIMITS: Final = {
    "max_path_segments": 2,
    "max_query_parameters": 2,
    "max_repeated_segments": 1,
    "max_urls_per_pattern": 2,
    "max_urls": 3,
}
COUNT: Final = 6
#: Rows with a document that nothing will ever look at again.
STUCK: Final = """
    SELECT urls.url, urls.code, urls.rule FROM urls JOIN documents ON documents.url_id = urls.id
    WHERE documents.indexed_version IS NOT NULL AND urls.due_ms IS NULL AND documents.leaving = 0
    AND documents.state NOT IN (5, 6)
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        yield new_project(tmp_path, site)


def write_known(site: SiteProcess, template: str, numbers: range, *, text: str = "text") -> list[str]:
    """Sets pages, and a start page that leads to all up to the last of them."""
    paths = [template.format(number) for number in numbers]
    for path, number in zip(paths, numbers, strict=True):
        # The site knows pages by their paths alone.
        site.set_page(KNOWN, path.partition("?")[0], page(f"page {number}", text=f"{text} of {template} {number}"))
    site.set_page(KNOWN, "/", page("start", *(template.format(number) for number in range(numbers.stop))))
    return paths


def edit_known(project: CrawlProject, **scope: Any) -> None:
    project.edit(**source(project.site, KNOWN, scope=scope), lifecycle={"max_delete_percent": 100})


def refused(project: CrawlProject) -> dict[str, str]:
    """The keys of the rules that refuse rows, by path."""
    rows = project.rows().items()
    return {url.removeprefix(KNOWN): row["rule"].partition(":")[0] for url, row in rows if row["code"] in {955, 961}}


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", LIMITS)
def test_known_pages_when_a_limit_on_traps_is_set_below_them_then_they_are_visited_updated_and_removed(
    project: CrawlProject, limit: str
) -> None:
    site = project.site
    paths = write_known(site, PATHS[limit], range(COUNT))
    edit_known(project)
    first = run(project)
    edit_known(project, **{limit: LIMITS[limit]})
    write_known(site, PATHS[limit], range(COUNT, COUNT + 2))

    limited = run(project)
    stuck = query_columns(project.folder, STUCK)
    explained = project.ask("explain", site.url(KNOWN, paths[0]))
    write_known(site, PATHS[limit], range(COUNT), text="otherwise")
    changed = run(project)
    found = set(project.found("otherwise"))
    for path in paths:
        site.delete_page(KNOWN, path.partition("?")[0])
    removed = run(project)

    known = {f"{KNOWN}{path}" for path in paths}
    assert known <= first.in_index
    assert known <= limited.in_index
    # The site's log has no queries.
    assert {url.partition("?")[0] for url in known} <= {url.partition("?")[0] for url in limited.requested}
    if limit == "max_urls":
        # Links to new URLs get no row.
        (counted,) = limited.ended.status["refused_links"]
        assert (refused(project), counted["rule"], counted["count"]) == ({}, "scope.max_urls: 3", 2)
    else:
        assert refused(project) == {PATHS[limit].format(new): f"scope.{limit}" for new in range(COUNT, COUNT + 2)}
    assert stuck == []
    assert (explained["in_index"], explained["verdict"]) == (True, "in the index")
    assert (changed.counts["changed"], found) == (COUNT + 1, known)
    assert (removed.counts["deleted"], set(project.indexed())) == (COUNT, {f"{KNOWN}/"})


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", LIMITS)
def test_known_pages_when_excluded_and_let_in_again_below_a_limit_then_all_are_back(
    project: CrawlProject, limit: str
) -> None:
    site = project.site
    paths = write_known(site, PATHS[limit], range(12))
    edit_known(project)
    first = run(project)
    # Too many to leave at once: they wait.
    project.edit(**source(site, KNOWN, scope={"exclude_urls": ["*.html*"]}), lifecycle={"max_delete_documents": 1})
    held = run(project)
    edit_known(project, **{limit: LIMITS[limit]})

    back = run(project)

    assert (held.ended.exit_code, back.ended.exit_code) == (9, 0)
    assert back.in_index == first.in_index == set(back.versions)
    assert len(paths) < len(back.requested)
    assert refused(project) == {}
    assert query_columns(project.folder, STUCK) == []


@pytest.mark.parametrize(
    ("scope", "code"), [({"max_url_length": 45}, 1004), ({"depth": 1}, 955), ({"dynamic_pages": False}, 955)]
)
def test_known_pages_when_another_limit_refuses_them_then_leave_within_the_limits_and_come_back(
    project: CrawlProject, scope: dict[str, Any], code: int
) -> None:
    site = project.site
    site.set_page(KNOWN, "/", page("start", "/near.html"))
    deep = [f"/{'far' * 12}-{number}.html?page={number}" for number in range(3)]
    site.set_page(KNOWN, "/near.html", page("near", *deep))
    for path in deep:
        site.set_page(KNOWN, path.partition("?")[0], page(path, text=f"text of {path}"))
    edit_known(project)
    first = run(project)

    edit_known(project, **scope)
    limited = run(project)
    edit_known(project)
    back = run(project)

    gone = {f"{KNOWN}{path}" for path in deep}
    assert gone <= first.in_index
    assert limited.in_index == first.in_index - gone == set(limited.versions)
    assert {limited.codes[url] for url in gone} == {code}
    assert back.in_index == first.in_index == set(back.versions)


def test_urls_when_an_edited_limit_refuses_a_page_that_was_fetched_then_it_is_shown_as_rejected(
    project: CrawlProject,
) -> None:
    site = project.site
    site.set_page(KNOWN, "/", page("start", "/one/two/three/gone.html", "/one/two/three/four.html"))
    site.set_page(KNOWN, "/one/two/three/four.html", page("four", head='<meta name="robots" content="noindex">'))
    edit_known(project)
    run(project)
    edit_known(project, max_path_segments=2)
    limited = run(project)

    shown = project.lines("urls", "demo")

    below = {f"{KNOWN}/one/two/three/{name}.html" for name in ("gone", "four")}
    assert {limited.codes[url] for url in below} == {961}
    assert {row["state"] for row in shown if "/three/" in row["url"]} == {"rejected"}
    assert {row["in_index"] for row in shown if "/three/" in row["url"]} == {False}
