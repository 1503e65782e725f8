"""What is forgotten is not asked for again through a redirect, however its URL is written there (C6)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

HOST: Final = "people.acme.test"


def test_forget_when_a_redirect_adds_a_tracking_parameter_then_it_is_not_asked_for(tmp_path: Path) -> None:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in ("alpha", "beta")})
        target = site.url(HOST, "/alpha.html")
        site.set_behaviour(HOST, "/beta.html", status=302, headers={"Location": f"{target}?utm_source=x"})
        project = new_project(tmp_path, site, **source(site, HOST))

        done = project.command("forget", target, "--json")
        first = run(project)

        assert done.returncode == 0
        assert not [url for url in first.requested if "alpha" in url]
        assert first.codes[f"{HOST}/beta.html"] == 955
        assert project.rows()[f"{HOST}/beta.html"]["rule"] == f"forget: {target}"
