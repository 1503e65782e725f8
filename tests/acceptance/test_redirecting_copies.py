"""A URL that redirects for a while stands for no page that answers itself, and the choice is made anew (F3, C6)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance import support_plans as plans
from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST = "hops.acme.test"
LONG = "/a-longer-name-than-the-other.html"


def test_copies_when_one_only_redirects_then_the_page_that_answers_itself_is_indexed(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = new_project(tmp_path, site, **source(site, HOST))
        named = page("names", text="names it", head='<link rel="canonical" href="/t">')
        site.set_page(HOST, "/t", "", status=302, headers={"Location": LONG})
        site.set_pages(HOST, {LONG: page("target"), "/names.html": named, "/": page("start", "/t", "/names.html")})
        first = run(project)
        # The link leads to the page itself now.
        site.set_pages(HOST, {"/": page("start", LONG, "/names.html")})
        second = run(project)
        said = json.loads(project.command("explain", site.url(HOST, "/t"), "--json").stdout)
        site.set_page(HOST, "/t", page("target"), status=200, headers={})
        third = run(project)

    assert {f"{HOST}/t", f"{HOST}/names.html"} <= first.in_index
    assert (second.codes[f"{HOST}/t"], second.codes[f"{HOST}{LONG}"]) == (909, 200)
    assert second.in_index == {f"{HOST}/", f"{HOST}{LONG}", f"{HOST}/names.html"}
    assert said["decided_by"]["rule"] == f"a copy of {site.url(HOST, LONG)}"
    # It answers itself, and is the shorter one.
    assert (third.codes[f"{HOST}/t"], third.codes[f"{HOST}{LONG}"], third.codes[f"{HOST}/names.html"]) == (
        200,
        909,
        964,
    )


def test_apply_when_a_url_that_redirects_is_allowed_again_then_its_page_is_read_as_that_of_the_other_url(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site:
        wide = source(site, HOST)
        project = new_project(tmp_path, site, **wide)
        site.set_page(HOST, "/t", "", status=302, headers={"Location": "/deep/target.html"})
        site.set_page(HOST, "/deep/target.html", page("target", "other.html"))
        site.set_pages(HOST, {"/": page("start", "/t"), "/deep/other.html": page("other")})
        first = run(project)
        for excluded in (["*/t"], ["*/nothing/*"]):
            project.edit(**{**wide, "scope": {"include_hosts": [HOST], "exclude_urls": excluded}})
            plans.apply(project, plans.plan(project))
        rows = project.rows()

    assert project.indexed() == sorted(first.in_index) == [f"{HOST}/", f"{HOST}/deep/other.html", f"{HOST}/t"]
    # Links of the page are relative to the URL that gave it.
    assert rows.keys() == first.codes.keys()
    assert json.loads(rows[f"{HOST}/t"]["redirects"])[0] == {"url": site.url(HOST, "/t"), "code": 302}
