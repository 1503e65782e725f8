"""Scripts and styles that pages share (C10; RFC 9111)."""

from __future__ import annotations

import pytest

from searchcrawl import clock
from searchcrawl.render.browser_request import DecodedAnswer
from searchcrawl.render.resource_cache import Key, ResourceCache, build_key

URL = "http://site.test/a.js"


def key(url: str = URL, **headers: str) -> Key:
    return build_key("http://site.test", url, tuple(headers.items()), has_credentials=False)


def answer(body: bytes = b"x", *, status: int = 200, **headers: str) -> DecodedAnswer:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return DecodedAnswer(URL, status, pairs, body)


@pytest.mark.parametrize(
    ("kind", "kept", "is_kept"),
    [
        ("script", answer(), True),
        ("stylesheet", answer(cache_control="public, max-age=31536000, immutable"), True),
        ("script", answer(vary="Accept-Encoding, Origin"), True),
        ("data", answer(), False),
        ("unknown", answer(content_type="text/javascript"), True),
        ("unknown", answer(content_type="application/json"), False),
        ("document", answer(), False),
        ("script", answer(status=404), False),
        ("script", answer(cache_control="no-store"), False),
        ("script", answer(cache_control="private, No-Cache"), False),
        ("script", answer(cache_control="max-age=0"), False),
        ("script", answer(vary="Cookie"), True),
        ("script", answer(vary="Accept, Referer"), False),
        ("script", answer(set_cookie="a=b"), False),
        ("script", answer(vary="*"), False),
        ("script", answer(b"x" * 2000), False),
    ],
)
def test_resource_when_it_is_asked_for_again_then_it_is_kept_as_its_answer_allows(
    kind: str, kept: DecodedAnswer, is_kept: bool
) -> None:
    cache = ResourceCache(max_bytes=1000)
    cache.keep(key(), kind, kept)

    assert (cache.find(key(referer="http://site.test/b"), kind) is kept) is is_kept
    assert cache.find(key(origin="http://other.test"), kind) is None


def test_resource_when_its_time_is_over_then_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    cache = ResourceCache()
    cache.keep(key(), "script", answer(cache_control='max-age="30"'))
    now[0] += 29
    before = cache.find(key(), "script")
    now[0] += 2

    assert before is not None
    assert cache.find(key(), "script") is None


def test_resources_when_they_are_too_many_then_the_one_used_longest_ago_goes() -> None:
    cache = ResourceCache(max_bytes=25)
    for name in "abc":
        cache.keep(key(name), "script", answer(b"1234567890"))
        cache.find(key("a"), "script")

    assert [name for name in "abc" if cache.find(key(name), "script")] == ["a", "c"]
