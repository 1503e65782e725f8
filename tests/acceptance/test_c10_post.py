"""Scripts that ask by POST, as those of a GraphQL API do: only where the source says so, and never a form (C10, L7)."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.crawl_forks import COMMANDS
from tests.hostile_login_site import APP, EVIL, NEAR, HostileLoginSite, Page
from tests.page_wall import need_browser
from tests.site.client import write_project

pytestmark = pytest.mark.extended

_WORDS = " ".join(f"answered{number}" for number in range(60))
#: Its own data by POST, that of an API that the source names and of one that it does not; and a form that sends itself.
_PAGE = """<title>by post</title><div id=root></div><form id=f method=post action=/form target=n><input name=a></form><iframe name=n></iframe>
<script>
const ask = (url, kind) => fetch(url, {method: 'POST', headers: {'content-type': kind}, body: '{"query": "{ text }"}'})
  .then(r => r.json()).then(d => document.getElementById('root').append(d.text + ' '), () => 0);
ask('/graphql', 'application/json'); ask('NAMED/graphql', 'application/json'); ask('OTHER/graphql', 'text/plain');
document.getElementById('f').submit();
</script>"""


@pytest.fixture
def site() -> Iterator[HostileLoginSite]:
    need_browser()
    with HostileLoginSite() as running:
        yield running


@pytest.mark.parametrize("posts", [True, False])
def test_c10_page_when_its_text_comes_by_post_then_it_is_read_where_the_source_says_so(
    tmp_path: Path, site: HostileLoginSite, posts: bool
) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> Page:
        cors = [
            ("Access-Control-Allow-Origin", handler.headers.get("Origin") or "*"),
            ("Access-Control-Allow-Headers", "content-type"),
        ]
        host = (handler.headers["Host"] or "").partition(".")[0]
        return Page(f'{{"text": "{host} {_WORDS}"}}', headers=cors, kind="application/json")

    html = _PAGE.replace("NAMED", site.url("", NEAR)).replace("OTHER", site.url("", EVIL))
    for path, page in {"/": Page(html), "/robots.txt": Page("", 404), "/graphql": answer}.items():
        for host in (APP, NEAR, EVIL):
            site.put(path, page, host)
    write_project(
        tmp_path,
        site.port,
        start={"urls": [site.url()], "sitemaps": "off"},
        scope={"include_hosts": [APP, EVIL]},
        fetch={"retries": 0, "delay_seconds": 0},
        render={"mode": "auto", "max_seconds": 5.0, "post": posts, "allow_hosts": [NEAR]},
    )

    ended = COMMANDS.run(tmp_path, "crawl", "demo")

    posted = {(one.host.partition(":")[0], one.path, one.body) for one in site.requests if one.method == "POST"}
    query = '{"query": "{ text }"}'
    assert posted == ({(APP, "/graphql", query), (NEAR, "/graphql", query)} if posts else set()), ended.stderr
    found = COMMANDS.run(tmp_path, "search", "answered7").stdout
    assert ("by post" in found) is posts
