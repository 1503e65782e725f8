from __future__ import annotations

import tracemalloc

from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html.regions import find_region


def test_region_when_pages_have_endless_names_then_they_are_not_kept() -> None:
    tracemalloc.start()
    for number in range(100):
        parser = LexborHTMLParser(f'<div class="{number} {"x" * 100_000}" id="{number}{"y" * 100_000}">')
        node = parser.css_first("div")
        assert node is not None
        find_region("div", node)
    del parser, node
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 2 << 20
