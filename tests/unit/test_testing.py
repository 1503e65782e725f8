"""What authors of plugins are given, used as they would."""

from __future__ import annotations

import doctest
import subprocess
import sys

from searchcrawl import testing
from searchcrawl.testing import FollowedLink, Rewritten, followed


class Mirror:
    """Fetches from the inner host what is shown with the public one."""

    opened: list[str] = []

    def open(self, source: str) -> None:
        self.opened.append(source)

    def rewrite(self, url: str, *, referrer: str | None) -> Rewritten | None:
        if "/private/" in url:
            return None
        if url.endswith("/broken"):
            raise ValueError(f"broken on {referrer}")
        return Rewritten(url.replace("www.", "inner."), url)

    def close(self) -> None:
        self.opened.append("closed")


def test_followed_when_a_rewriter_is_asked_about_links_then_as_in_a_run() -> None:
    page = "http://www.site.test/folder/page"

    found = followed(Mirror, ["a?utm_source=x#part", "/private/b", "/broken"], referrer=page, source="mine")

    assert found == [
        FollowedLink(
            access_url="http://inner.site.test/folder/a",
            display_url="http://www.site.test/folder/a?utm_source=x",
        ),
        FollowedLink(discarded="discarded by plugin Mirror"),
        FollowedLink(discarded=f"error in plugin Mirror (Mirror: ValueError('broken on {page}'))"),
    ]
    assert Mirror.opened == ["mine", "closed"]


def test_examples_when_they_are_run_then_they_say_what_is_so() -> None:
    ended = doctest.testmod(testing)

    assert (ended.failed, ended.attempted) == (0, 5)


def test_testing_when_it_is_imported_then_no_library_of_a_crawl_is_loaded() -> None:
    asked = "import sys, searchcrawl.testing; print([name for name in ('scrapy', 'sqlalchemy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True, text=True, timeout=60)

    assert done.stdout == "[]\n"
