"""Change detection in whole crawls: each set of conditions, over pages that lie about their changes in each way (D2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import Run, page, run, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "changes.acme.test"
KINDS: Final = ("date", "checksum", "etag")
CONDITIONS: Final = list(chain.from_iterable(combinations(KINDS, size) for size in range(1, len(KINDS) + 1)))
OLD_DATE: Final = "Mon, 13 May 2024 08:00:00 GMT"
NEW_DATE: Final = "Tue, 14 May 2024 08:00:00 GMT"
NEWEST: Final = "Wed, 15 May 2024 08:00:00 GMT"
_AT_ONCE: Final = 3

Sent = Callable[[frozenset[str]], bool]


@dataclass(frozen=True)
class Lie:
    """What a page has before, what it has afterwards, and with which conditions that is sent.

    The server honours no conditions, unless ``honours`` says so: else pages with the same validators would be 304.
    """

    sent: Sent
    etag: tuple[str | None, str | None] = ('"1"', '"1"')
    date: tuple[str | None, str | None] = (OLD_DATE, OLD_DATE)
    #: what is in the text, and what is in a comment
    words: tuple[str, str] = ("old", "old")
    comment: tuple[str, str] = ("", "")
    honours: bool = False
    #: what it answers to everything afterwards
    status: int = 200


def never(condition: frozenset[str]) -> bool:
    """With no condition: nothing that is indexed differs, or the server says that nothing does."""
    return False


def always(condition: frozenset[str]) -> bool:
    return True


def with_any(*kinds: str) -> Sent:
    """With one of these conditions."""
    return lambda condition: bool(condition & set(kinds))


LIES: Final[Mapping[str, Lie]] = {
    "honest": Lie(never, honours=True),
    "always_a_new_etag": Lie(never, etag=('"1"', '"2"')),
    "never_a_date": Lie(never, date=(None, None)),
    "no_validators": Lie(never, etag=(None, None), date=(None, None)),
    "new_bytes_same_text": Lie(never, comment=("", "<!-- made at noon -->")),
    "new_bytes_same_text_new_etag": Lie(never, etag=('"1"', '"2"'), comment=("", "<!-- made at noon -->")),
    "304_to_everything": Lie(never, words=("old", "new"), status=304),
    "new_date_same_bytes": Lie(with_any("date"), date=(OLD_DATE, NEW_DATE)),
    "new_text_same_validators": Lie(with_any("checksum"), words=("old", "new")),
    "new_text_weak_etag": Lie(with_any("checksum"), etag=('"1"', 'W/"1"'), words=("old", "new")),
    "new_text_new_etag": Lie(with_any("checksum", "etag"), etag=('"1"', '"2"'), words=("old", "new")),
    "new_text_new_date": Lie(with_any("checksum", "date"), date=(OLD_DATE, NEW_DATE), words=("old", "new")),
    "new_text_no_validators": Lie(always, etag=(None, None), date=(None, None), words=("old", "new")),
    # What the server does not send falls back to the checksum.
    "new_text_same_etag_no_date": Lie(with_any("checksum", "date"), date=(None, None), words=("old", "new")),
    "new_text_same_date_no_etag": Lie(with_any("checksum", "etag"), etag=(None, None), words=("old", "new")),
    "new_text_date_vanished": Lie(with_any("checksum", "date"), date=(OLD_DATE, None), words=("old", "new")),
    "new_text_honest": Lie(always, etag=('"1"', '"2"'), date=(OLD_DATE, NEW_DATE), words=("old", "new"), honours=True),
}


def _url(name: str) -> str:
    return f"{HOST}/{name}.html"


def _write(site: SiteProcess, name: str, lie: Lie, when: int, **other: Any) -> None:
    text = f"the {lie.words[when]} text of {name}"
    fields: dict[str, Any] = {"etag": lie.etag[when], "last_modified": lie.date[when], **other}
    body = page(name, text=f"{fields.pop('text', text)}{lie.comment[when]}")
    site.set_page(HOST, f"/{name}.html", body, honours_conditions=lie.honours, **fields)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], list[Run]]]:
    """For each set of conditions: a first run, one after the changes, one after no more, one after honest changes."""
    with SiteProcess() as site, ThreadPoolExecutor(_AT_ONCE) as threads:
        site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in LIES)))
        projects = []
        for condition in CONDITIONS:
            folder = tmp_path_factory.mktemp("-".join(condition))
            projects.append(new_project(folder, site, **source(site, HOST), change={"condition": list(condition)}))
        runs: dict[tuple[str, ...], list[Run]] = {condition: [] for condition in CONDITIONS}

        def all_run() -> None:
            for condition, ended in zip(CONDITIONS, threads.map(run, projects), strict=True):
                runs[condition].append(ended)

        for name, lie in LIES.items():
            _write(site, name, lie, 0)
        all_run()
        for name, lie in LIES.items():
            _write(site, name, lie, 1)
            if lie.status != 200:
                site.set_page(HOST, f"/{name}.html", "", status=lie.status)
        all_run()
        _write(site, "always_a_new_etag", LIES["always_a_new_etag"], 1, etag='"3"')
        all_run()
        for name, lie in LIES.items():
            _write(
                site, name, lie, 1, text=f"at last another text of {name}", etag='"9"', last_modified=NEWEST, status=200
            )
        all_run()
        yield runs


def _sent(before: Run, after: Run) -> set[str]:
    return {url for url, version in after.versions.items() if before.versions.get(url) != version}


@pytest.mark.parametrize("condition", CONDITIONS, ids="-".join)
def test_pages_when_they_lie_then_what_the_condition_says_is_sent_and_nothing_else(
    told: Mapping[tuple[str, ...], list[Run]], condition: tuple[str, ...]
) -> None:
    first, second, third, fourth = told[condition]
    expected = {_url(name) for name, lie in LIES.items() if lie.sent(frozenset(condition))}

    assert [each.ended.exit_code for each in (first, second, third, fourth)] == [0, 0, 0, 0]
    assert set(first.versions) == {f"{HOST}/", *map(_url, LIES)}
    assert _sent(first, second) == expected
    assert (second.counts["changed"], second.counts["indexed"]) == (len(expected), len(expected))
    # A change that does not count is none later either.
    assert _sent(second, third) == set()
    # Nor is it lost: the next one that counts brings all of it.
    assert _sent(third, fourth) == {*map(_url, LIES)}
    assert [{code for code in each.codes.values() if code != 200} for each in (second, third, fourth)] == [set()] * 3
