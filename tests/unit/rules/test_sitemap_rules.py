from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.host_rules import HostRules
from searchcrawl.rules.sitemap_rules import may_read, speaks_for

SITEMAP = "http://a.test/sitemap.xml"


@pytest.mark.parametrize(
    ("scope", "url", "allowed"),
    [
        ({"include_hosts": ["a.test"]}, SITEMAP, True),
        ({"include_hosts": ["a.test"]}, "http://b.test/sitemap.xml", False),
        ({"include_hosts": ["a.test"], "exclude_hosts": ["=a.test"]}, SITEMAP, False),
        ({"include_hosts": ["a.test"], "include_ports": [443]}, SITEMAP, False),
        ({"include_hosts": ["a.test"], "exclude_urls": ["*sitemap*"]}, SITEMAP, False),
        # What says which pages are wanted says nothing about sitemaps.
        ({"include_urls": ["http://a.test/docs/*"]}, SITEMAP, True),
        ({"include_hosts": ["a.test"], "dynamic_pages": False}, "http://a.test/sitemap.php?n=1", True),
        ({"include_hosts": ["a.test"], "max_path_segments": 1}, "http://a.test/a/b/sitemap.xml", True),
        ({"include_hosts": ["a.test"], "hosts": [HostRules(host="a.test", include_paths=["/docs/"])]}, SITEMAP, True),
        ({"include_hosts": ["a.test"], "hosts": [HostRules(host="a.test", exclude_paths=["/site"])]}, SITEMAP, False),
    ],
)
def test_may_read_when_the_boundary_has_rules_then_hosts_ports_and_excludes_decide(
    scope: dict[str, Any], url: str, allowed: bool
) -> None:
    assert may_read(Boundary(**scope), url).allowed is allowed


def test_speaks_for_when_origins_are_known_then_only_for_their_urls() -> None:
    own = frozenset({"http://a.test"})

    assert speaks_for(own, "http://a.test")
    assert not speaks_for(own, "https://a.test")
    assert speaks_for(None, "http://b.test")
