"""What a spider of a user answers when a run begins."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from itertools import repeat
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.spiders import user_spider
from searchcrawl.spiders.base_spider import SourceSpider
from searchcrawl.spiders.user_spider import read_starts

SOURCE: Any = SimpleNamespace(
    spider="mine:Shop", scope=SimpleNamespace(hash_routes=False), locate=lambda key: ("sources/demo.toml", key)
)


def leave(*arguments: Any, **more: Any) -> NoReturn:
    sys.exit(0)


def leave_later() -> Iterable[str]:
    yield "http://a.test/"
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (leave, "mine:Shop.list_start_urls failed: SystemExit(0)"),
        (leave_later, "mine:Shop.list_start_urls failed: CancelledError()"),
        (lambda: repeat("http://a.test/"), "mine:Shop.list_start_urls failed: ValueError('more than 3 URLs')"),
    ],
)
def test_starts_when_they_have_no_end_or_the_method_ends_the_process_then_file_and_key_are_named(
    find: Callable[[], Iterable[str]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_spider, "MAX_LINKS", 3)

    with pytest.raises(ConfigurationError) as caught:
        read_starts(find, SOURCE)

    assert str(caught.value) == f"sources/demo.toml: spider: {message}"
    assert read_starts(lambda: ["http://a.test/", "http://a.test", "http://b.test/"], SOURCE) == (
        "http://a.test/",
        "http://b.test/",
    )


def test_spider_when_its_class_ends_the_process_then_file_and_key_are_named() -> None:
    class Shop(SourceSpider):
        __init__ = leave
        source = SOURCE

    with pytest.raises(ConfigurationError) as caught:
        Shop.from_crawler(SimpleNamespace())  # type: ignore[arg-type]

    assert str(caught.value) == "sources/demo.toml: spider: mine:Shop cannot begin: SystemExit(0)"
