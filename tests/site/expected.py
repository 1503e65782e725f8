"""What a crawl of the site must come to with the source of ``client.source_toml`` (codes of ``searchcrawl.codes``).

URLs are written as host, path and query, without scheme and port: ``www.acme.test/about/``.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from tests.site.behaviour import is_aside
from tests.site.content import read_stage

_FORBIDDEN: Final = (
    "www.acme.test/cyberworld/map/",
    "www.acme.test/cyberworld/map/north.html",
    "www.acme.test/tmp/scratch.html",
    "www.acme.test/%74mp/scratch2.html",
    "www.acme.test/foo.html",
)
#: Linked, but on hosts outside the boundary: no row, the links are counted.
OUTSIDE: Final = frozenset(
    {
        "offsite.test/",
        "offsite.test/from-partner.html",
        "notacme.test/",
        "acme.test.evil.test/",
        "partner.test/next.html",
        "elsewhere.test/301.html",
        "elsewhere.test/308.html",
        "elsewhere.test/refreshed.html",
    }
)
#: No way that may be followed leads there (nofollow, inside a PDF, in noframes): no row, no request.
UNLINKED: Final = frozenset(
    {
        "docs.acme.test/only-in-pdf.html",
        "www.acme.test/handbook/draft-secret.html",
        "www.acme.test/handbook/nofollowed.html",
        "www.acme.test/frames/plain.html",
        "www.acme.test/commented-out.html",
        "www.acme.test/in-script.html",
        "www.acme.test/in-textarea.html",
        "www.acme.test/only-in-text.html",
    }
)
#: Never asked for, in whatever spelling.
NEVER_REQUESTED: Final = OUTSIDE | UNLINKED | {*_FORBIDDEN, "www.acme.test/tmp/scratch2.html"}
#: Same bytes: one of each group is indexed, the others are 909.
COPIES: Final = (
    frozenset(
        {"www.acme.test/downloads/terms.html", "www.acme.test/downloads/terms-copy.html", "mirror.acme.test/terms.html"}
    ),
    frozenset({"www.acme.test/handbook/safety.html", "mirror.acme.test/handbook/safety.html"}),
)
#: A page that names another one as canonical, and that one: it stands for both.
CANONICAL: Final = frozenset({"www.acme.test/handbook/print/travel.html", "www.acme.test/handbook/travel.html"})
#: Rows whose code the documents leave open: a frameset without text, a page without a type.
OPEN: Final = frozenset({"www.acme.test/frames/", "www.acme.test/tests/untyped"})
#: Only answered on the way to another page; rows of their own only as far as links lead to them.
_STEPS: Final = ("chain-2", "chain-3", "loop-b", *(f"growing?n={number}" for number in range(2, 31)))
_CODES: Final = {
    "www.acme.test/handbook/archive.html": 952,
    "www.acme.test/handbook/canteen.html": 952,
    "www.acme.test/handbook/print/travel.html": 964,
    "www.acme.test/downloads/firmware.acm": 908,
    "www.acme.test/tests/empty.html": 911,
    "www.acme.test/tests/blank.html": 911,
    "www.acme.test/products/missing.html": 404,
    "www.acme.test/nowhere.html": 404,
    "www.acme.test/redirects/no-location": 1003,
    "www.acme.test/redirects/to-missing": 404,
    "www.acme.test/redirects/to-forbidden": 951,
    "www.acme.test/redirects/loop-a": 963,
    "www.acme.test/redirects/self": 963,
    "www.acme.test/redirects/growing?n=1": 963,
    "www.acme.test/redirects/chain-1": 200,
    "www.acme.test/redirects/refresh.html": 953,
    "www.acme.test/redirects/refresh-outside.html": 953,
    **{f"www.acme.test/redirects/{status}-{side}": 954 for status in (301, 308) for side in ("inside", "outside")},
    **{f"www.acme.test/redirects/{status}-{side}": 200 for status in (302, 303, 307) for side in ("inside", "outside")},
    **dict.fromkeys(_FORBIDDEN, 951),
}
#: The end of a 302, 303 or 307: kept under the address first asked for, so without a row.
_ENDS: Final = tuple(f"www.acme.test/redirected/{name}.html" for name in ("302", "303", "307", "chain"))


def codes(*, changed: bool = False) -> dict[str, int]:
    """The code of each row of www, docs, mirror and jp after a completed run, copies counted as 200.

    With ``changed`` after a second run on stage ``changed``. Rows of OUTSIDE and OPEN are left out.
    """
    pages = read_stage("base", 0) | (read_stage("changed", 0) if changed else {})
    found = {
        host + path: page.status
        for (host, path), page in pages.items()
        if host.endswith(".acme.test") and not host.startswith("bad.") and not is_aside(path)
    }
    found |= _CODES
    left_out = NEVER_REQUESTED.difference(_FORBIDDEN) | OPEN | {*_ENDS}
    left_out |= {f"www.acme.test/redirects/{step}" for step in _STEPS}
    return {url: code for url, code in sorted(found.items()) if url not in left_out}


def short(url: str) -> str:
    """The form of ``url`` that this module uses."""
    parts = urlsplit(url)
    rest = (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    return f"{parts.hostname}{parts.path}{rest}"
