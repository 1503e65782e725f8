"""How much memory a page may take (L7, X-O7)."""

from __future__ import annotations

import re

from tests.page_wall import RunningBrowser, need_browser

# Blocks that are never written to: they count, and cost nothing.
_GREEDY = """<p id="app">none</p><script>
const taken = [];
try { for (let count = 0; count < 120; count++) taken.push(new ArrayBuffer(50e6)); }
finally { document.getElementById("app").textContent = `took ${taken.length * 50} MB`; }
</script>"""


def test_page_that_wants_gigabytes_then_it_gets_two_and_the_next_one_is_rendered() -> None:
    need_browser()
    with RunningBrowser() as running:
        greedy = running.render("/greedy", _GREEDY)
        next_one = running.render("/next", "<p>modest</p>")

    took = re.search(r"took (\d+) MB", greedy.html)
    assert took is not None
    assert 500 <= int(took[1]) <= 2_200
    assert "modest" in next_one.html
