"""Readers of URLs: what a page or a header names, and what is done with each that is found."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.file_name import find_file_name
from searchcrawl.html.links import Resolver
from searchcrawl.kinds.web.login.session import LoginPages
from searchcrawl.rules import rendering
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.copy_order import build_order, find_fit, rank
from searchcrawl.rules.index_filter import FetchedFacts, IndexFilter
from searchcrawl.rules.redirects import OwnOrigins, TargetRules, read_target, write_target
from searchcrawl.rules.rendering import Need
from searchcrawl.rules.rewriting import SESSION_NAMES, DisplayMap, Identity, PatternRewriter, Rewriting
from searchcrawl.rules.traps import (
    KnownText,
    build_counted_pattern,
    build_values_pattern,
    find_pattern,
    find_patterns,
    is_of_hosts,
)
from searchcrawl.rules.turned_pages import split_url
from searchcrawl.rules.url_rules import HostScope
from searchcrawl.soft404.signature import probe_url
from searchcrawl.store.name_table import is_shared, read_row
from searchcrawl.terminal import to_one_line
from tests.readers.declaring import BODY, URL, declare

#: The parts of a URL that a parser treats in its own way.
PARTS: Final = (
    *(
        "/",
        "//",
        "..",
        "./",
        "?",
        "&",
        ";",
        "=",
        "#",
        "%",
        "%2F",
        "%41",
        "[",
        "]",
        ":",
        "@",
        "\\",
        " ",
        "\t",
        "é",
        "\0",
        "{n}",
    ),
    *(
        "a",
        "a{n}/",
        "a.",
        "xn--",
        "0x",
        "1.",
        "http:",
        "https://",
        "http://a.test",
        "mailto:",
        "javascript:",
        "utm_x",
        "jsessionid=",
    ),
    *("?a{n}=1&", "-", "_", "{n}-", "%5B", "²", "\u2100", "\uff0e", b"\xff", "*", "8080", "f00d"),
)
_MANY_STARS: Final = Identity(["*a*a*a*a*b", "utm_*"])
_IDENTITY: Final = Identity(SESSION_NAMES)
_BOUNDARY: Final = Boundary(
    include_hosts=["a.test"],
    exclude_urls=["*/private/*", "re:(a+)+$"],
    exclude_ports=[8081],
    hosts=[HostScope(host="a.test", exclude_paths=("/x/*",))],
    dynamic_pages=False,
)
_REWRITING: Final = Rewriting([PatternRewriter("(a*)*b", "\\1")])


def _read(given: bytes) -> str:
    """The identity of a URL on a page; raises InvalidUrl."""
    return urls.resolve(given.decode("utf-8", "replace"), URL)


@declare(
    *PARTS,
    most=65_536,
    grown=[lambda n: " " * n, lambda n: "a." * n, lambda n: "[" + ":" * n, lambda n: "a" + " " * n + "b"],
    raises=(InvalidUrl,),
)
def typed_url(given: bytes) -> None:
    urls.resolve_typed(given.decode("utf-8", "replace"))


@declare(
    *PARTS,
    most=65_536,
    grown=[lambda n: "../" * n, lambda n: "a/../" * n, lambda n: "%" * n, lambda n: "//" + "a." * n],
)
def link(given: bytes) -> None:
    reference = given.decode("utf-8", "replace")
    for resolver in (Resolver(URL), Resolver("http://a.test/?x/y"), Resolver(URL, "gbk"), Resolver(URL, routes=True)):
        if resolver.resolve(reference) is None:
            resolver.is_malformed(reference)


@declare(*PARTS, raises=(InvalidUrl,))
def identity(given: bytes) -> None:
    url = _read(given)
    parsed = urls.parse(url)
    assert urls.host(url) == parsed.host
    assert urls.origin_of(url) == parsed.origin
    urls.host_and_port(url)
    urls.shown_host(url)
    urls.key(url)
    urls.document_id("source", url)
    urls.without_query(url)
    routed = urls.resolve(given.decode("utf-8", "replace"), URL, routes=True)
    assert (urls.without_route(routed), urls.keep_route(routed)) == (url, routed)
    assert urls.has_route(routed) == (urls.split_route(routed)[1] != "")
    urlsplit(url)


@declare(
    *PARTS,
    raises=(InvalidUrl,),
    grown=[
        lambda n: "/" + "1" * n,
        lambda n: "/" + "a1" * n,
        lambda n: "/1-" * n,
        lambda n: "/" + "f" * n,
        lambda n: "?" + "a&" * n,
    ],
)
def pattern(given: bytes) -> None:
    url = _read(given)
    found = find_patterns(url)
    assert build_values_pattern(url) in {None, found[0].text}
    assert build_counted_pattern(url) in {None, build_values_pattern(url)}
    find_pattern(url, {"http://none.test/"}, set())
    is_of_hosts(found[-1].text)
    rendering.build_key(url, Need.NONE)
    rendering.is_sampled(url, 1)


@declare(
    *(*PARTS, ".zip!/"),
    raises=(InvalidUrl,),
    grown=[
        lambda n: "?a" + ".zip!/a&utm_a" * n,
        lambda n: "?a" + "!/a&utm_a" * n,
        lambda n: "?" + "a" * n,
        lambda n: "?" + "a&" * n,
        lambda n: "?" + "utm_" * n,
        lambda n: "?" + ";" * n,
        lambda n: "?" + "%" * n,
    ],
)
def parameters(given: bytes) -> None:
    url = _read(given)
    for names in (_MANY_STARS, _IDENTITY):
        names.find_name(url)
        assert names.strip(names.strip(url)) == names.strip(url)


@declare(
    *(*PARTS, "/private/", "aaaa", ".zip!/", ".gz!/"),
    raises=(InvalidUrl,),
    grown=[lambda n: "/a" + ".zip!/a" * n, lambda n: "/a" + "!/a" * n],
)
def boundary(given: bytes) -> None:
    url = _read(given)
    for decide in (
        _BOUNDARY.decide_sitemap,
        _BOUNDARY.list_exclusions,
        _BOUNDARY.includes_origin,
        _BOUNDARY.list_includes,
    ):
        decide(url)
    decision = _BOUNDARY.decide(url)
    _BOUNDARY.decide_known(url, 0)
    _BOUNDARY.is_elsewhere(url)
    _BOUNDARY.list_refusals(url, 0)
    if not decision.allowed:
        _BOUNDARY.propose_include(url, decision)
    targets = TargetRules(_BOUNDARY, starts=[URL])
    targets.refuse(url, URL)
    targets.find_forgotten(url)
    targets.is_public_only(url)
    targets.is_side_public_only(url)
    OwnOrigins([URL], []).has(url, from_https=False)


@declare(*PARTS, "pdf", raises=(InvalidUrl,))
def index_filter(given: bytes) -> None:
    url = _read(given)
    rules = IndexFilter(mime_types=["text/*"], exclude_names=["*a*b*.pdf"], exclude_urls=["*/x/*"])
    name = find_file_name((), url)
    rules.list_refusals(FetchedFacts(url, name, mimetype=url[:50], size_bytes=1, modified_ms=None, fetched_ms=0))


@declare(*PARTS, "aaaa", "b", raises=(InvalidUrl,))
def rewriting(given: bytes) -> None:
    url = _read(given)
    _REWRITING.normalise(url, URL)
    display = DisplayMap([("http://a.test/", "https://b.test/")])
    display.show(url, None)
    display.resolve(url, None)
    read_target(write_target(url))


@declare(*PARTS, raises=(InvalidUrl,))
def probe(given: bytes) -> None:
    url = _read(given)
    probe_url(url)
    split_url(url)


@declare(*PARTS, "index.php", raises=(InvalidUrl,))
def login_page(given: bytes) -> None:
    url = _read(given)
    pages = LoginPages("http://a.test/login?action=login")
    pages.note(url, "http://a.test/index.php")
    pages.note_opened(url)
    assert isinstance(url in pages, bool)


@declare(*PARTS, raises=(InvalidUrl,))
def own_text(given: bytes) -> None:
    assert 0 <= KnownText().measure(_read(given), "", given.decode("utf-8", "replace")) <= 1


@declare(
    *PARTS,
    *("en", "/de/", "index.en.html", "pt_BR", "?lang=fr", "smtp", ".8"),
    raises=(InvalidUrl,),
    grown=[
        lambda n: "/en" * n,
        lambda n: "/index" + ".en" * n,
        lambda n: "?" + "lang=en&" * n,
        lambda n: "/" + "a-" * n,
    ],
)
def order_of_copies(given: bytes) -> None:
    url, text = _read(given), given.decode("utf-8", "replace")
    fit = find_fit(url, language="en", title=text, text=text)
    order, unknown = (build_order(url, redirected=False, url_fit=known) for known in (fit, None))
    assert rank(url) in {order[2:-1], unknown[2:-1]}


@declare("a", ".", "-", "_", "A", " ", "1.2.3.4", "::1", "fe80::1%", ":", "%", "\0", "\n", "é", "{n}", most=BODY)
def host_name(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    is_shared(text)
    for answer in (read_row(text, None, 1), read_row(None, text, 1)):
        assert answer is not None
        assert len(answer.addresses) <= 64
        assert answer.error is None or to_one_line(answer.error) == answer.error
