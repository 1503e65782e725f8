"""From access URLs to display URLs (A4)."""

from __future__ import annotations

import pytest

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.rules.display import MAX_BYTES, DisplayMap

PAIRS = (
    ("http://intra", "https://www.example.com"),
    ("http://intra/docs/", "https://docs.example.com/"),
    ("http://INTRA:80/docs/old", "https://archive.example.com/o"),
)


@pytest.mark.parametrize("pairs", [PAIRS, PAIRS[::-1]])
@pytest.mark.parametrize(
    ("access", "display"),
    [
        ("http://intra/", "https://www.example.com/"),
        ("http://intra/a?b=c", "https://www.example.com/a?b=c"),
        ("http://intra/docs/x/y.html", "https://docs.example.com/x/y.html"),
        ("http://intra/docs/older.html", "https://archive.example.com/oer.html"),
        ("http://intranet/", "http://intranet/"),
        ("http://intra:8080/docs/", "http://intra:8080/docs/"),
        ("https://intra/", "https://intra/"),
    ],
)
def test_display_url_when_prefixes_match_then_the_longest_decides_in_any_order(
    pairs: tuple[tuple[str, str], ...], access: str, display: str
) -> None:
    assert DisplayMap(pairs).resolve(access) == display


def test_display_url_when_an_index_could_not_hold_it_then_invalid_and_the_access_url_is_shown() -> None:
    display = DisplayMap([("http://intra/", "https://www.example.com/" + "x" * MAX_BYTES)])

    with pytest.raises(InvalidUrl, match="32766"):
        display.resolve("http://intra/a")
    assert display.show("http://intra/a") == "http://intra/a"
    assert display.resolve("http://other/") == "http://other/"
