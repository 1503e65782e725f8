"""Random edits of all keys: ``plan`` counts what ``apply`` does, and the index is as after a crawl (L2, D9)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from searchcrawl.codes import REFUSED
from searchcrawl.store.states import FetchState
from tests import backends
from tests.acceptance import test_edited_keys as keys
from tests.acceptance.support_project import CrawlProject, new_project
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

_SETTLED: Final = int(FetchState.SETTLED)
_OF_INDEX: Final = frozenset({"crawled_at", "crawl_version", "first_seen", "anchor"})
#: Tables besides [scope] and [keep]: documents depend on them, or the requests, or nothing.
_TABLES: Final[Mapping[str, Any]] = {
    "attributes": [{}, {"meta:dc.creator": "writer"}, {"header:content-type": "kind"}, {"use_desc_fallback": True}],
    "fetch": [
        {},
        {"default_language": "de"},
        {"default_charset": "utf-8"},
        {"headers": {"X-Team": "a"}},
        {"timeout_seconds": 9},
    ],
    "change": [{}, {"condition": ["etag"]}],
    "robots": [{}, {"crawl_delay": False}],
    "content": [{}, {"mode": "all"}, {"drop": ["h1"]}],
    "copies": [{}, {"scope": "off"}, {"near": "remove"}],
    "display": [[], [{"from": "http://edits.acme.test", "to": "http://shown.acme.test"}]],
    "rewrite": [[], [{"match": "/day/", "replace": "/DAY/"}]],
}


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with keys.make_site() as site:
        yield site


@st.composite
def edits(draw: st.DrawFn, port: int) -> dict[str, Any]:
    """An edit of some keys of [scope] and [keep], and of other tables."""
    step = draw(keys.steps(port, then="nothing"))
    which = draw(st.integers(0, 3))
    tables: dict[str, Any] = {"scope": dict(step.scope)} if which & 1 else {}
    tables |= {"keep": dict(step.keep)} if which & 2 or not which else {}
    for name in draw(st.lists(st.sampled_from(sorted(_TABLES)), max_size=2, unique=True)):
        tables[name] = draw(st.sampled_from(_TABLES[name]))
    return tables


def write(project: CrawlProject, **tables: Any) -> None:
    project.edit(
        start={"urls": [project.site.url(keys.HOST)]},
        scope={"include_hosts": list(keys.HOSTS), **tables.get("scope", {})},
        keep=tables.get("keep", {}),
        fetch={"retries": 0, "host_concurrency": 8, **tables.get("fetch", {})},
        lifecycle={"recrawl_every_hours": 100, "max_delete_percent": 100},
        **{name: value for name, value in tables.items() if name not in {"scope", "keep", "fetch"}},
    )


def indexed(project: CrawlProject) -> dict[str, dict[str, Any]]:
    """The documents of the index with their fields, but for those that say when they were sent."""
    return {
        hit.id: {name: value for name, value in hit.fields.items() if name not in _OF_INDEX}
        for hit in project.hits("*")
    }


def live(site: SiteProcess, folder: Path, tables: Mapping[str, Any]) -> None:
    project = new_project(folder / "planned", site)
    write(project)
    project.crawl()
    crawled = CrawlProject(folder=backends.current.copy(folder / "planned", folder / "crawled"), site=site)
    before, rows = project.versions(), project.rows()
    site.clear_log()

    write(project, **tables)
    plan = project.ask("plan", "demo")
    done = project.ask("apply", plan["plan"])

    after, now = project.versions(), project.rows()
    new = {
        url
        for url, row in now.items()
        if row["fetch_state"] != _SETTLED and (url not in rows or rows[url]["code"] in REFUSED)
    }
    assert site.requested() == []
    assert plan["leave"] == len(before.keys() - after.keys()) == done["removed"]
    assert plan["enter"] == len(after.keys() - before.keys()) + len(new)
    assert plan["send"] == sum(before.get(url) != version for url, version in after.items()) == done["documents"]
    assert plan["to_fetch"] == plan["refetch"] + len(new) == done["to_fetch"]
    if done["to_fetch"]:
        project.crawl()
    write(crawled, **tables)
    crawled.crawl()
    assert indexed(project) == indexed(crawled)
    assert project.command("plan", "demo", "--json").returncode == 0


def examine(site: SiteProcess, draw: st.DataObject) -> None:
    tables = draw.draw(edits(site.port))
    note(f"{tables}")
    with tempfile.TemporaryDirectory() as folder:
        live(site, Path(folder), tables)


@settings(keys.UNHURRIED, max_examples=6, derandomize=True, phases=[Phase.generate])
@given(draw=st.data())
def test_plan_when_keys_are_edited_then_its_counts_are_what_apply_does(site: SiteProcess, draw: st.DataObject) -> None:
    examine(site, draw)


@pytest.mark.soak
@settings(keys.UNHURRIED, max_examples=40)
@given(draw=st.data())
def test_plan_when_forty_edits_are_made_then_its_counts_are_what_apply_does(
    site: SiteProcess, draw: st.DataObject
) -> None:
    examine(site, draw)
