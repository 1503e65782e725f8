"""A URL that redirects and is allowed again: its page is read as one that came by a redirect (C6, L2)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance import support_plans as plans
from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST = "hops.acme.test"


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
