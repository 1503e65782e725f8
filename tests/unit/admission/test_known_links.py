"""What known links cost, and how near canonical ones are (F1, B7, L5)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, event, select

from searchcrawl import urls
from searchcrawl.admission.admit import Admission, FoundLinks, UrlMemory
from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.store import schema as tables
from searchcrawl.store.documents import document_table
from searchcrawl.store.documents.document_table import DocumentUpdate
from searchcrawl.store.engine.database import Database
from searchcrawl.store.states import DocumentState

SITE = "http://a.test/"


@pytest.fixture
def tested() -> Admission:
    return Admission(source_id=1, boundary=Boundary(include_hosts=["a.test"], depth=9), max_urls=0, known_urls=0)


def links(*names: str) -> list[Link]:
    return [Link(SITE + name) for name in names]


def admit(database: Database, tested: Admission, *found: FoundLinks) -> list[str]:
    """Admits links; the statements that it took."""
    statements: list[str] = []

    def noted(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        statements.append(" ".join(statement.split()))

    with database.write_once() as transaction:
        event.listen(transaction, "before_cursor_execute", noted)
        tested.admit(transaction, list(found))
    tested.note_commit()
    return statements


def depths(database: Database) -> dict[str, int]:
    with database.read_once() as transaction:
        rows = transaction.execute(select(tables.urls.c.url, tables.urls.c.depth))
        return {url.removeprefix(SITE): depth for url, depth in rows}


def id_of(database: Database, name: str) -> int:
    with database.read_once() as transaction:
        return int(transaction.execute(select(tables.urls.c.id).where(tables.urls.c.url == SITE + name)).scalar_one())


def store(database: Database, name: str, canonical: str) -> None:
    """The document of a page that names another one as canonical."""
    values = {"record_offset": 0, "response_bytes": 1, "fields_bytes": 1, "content_length": 1, "last_changed_ms": 1}
    with database.write_once() as transaction:
        row = DocumentUpdate(
            **values,  # type: ignore[arg-type]  # numbers all
            url_id=id_of(database, name),
            state=DocumentState.CACHED,
            code=200,
            segment=1,
            body_digest=b"body",
            fields_digest=b"fields",
            mimetype="text/html",
            etag=None,
            last_modified=None,
            canonical_key=urls.key(SITE + canonical),
        )
        document_table.store(transaction, 1, [row])


@pytest.mark.parametrize("known", [5, 500])
def test_links_when_all_are_known_then_only_the_outlinks_of_their_pages_are_written(
    database: Database, tested: Admission, known: int
) -> None:
    names = [f"page{number}" for number in range(known)]
    admit(database, tested, FoundLinks(None, 1, links(*names)))
    pages = [FoundLinks(id_of(database, name), 2, links(*names)) for name in names[:3]]

    admit(database, tested, *pages)
    statements = admit(database, tested, *pages)

    # Three pages and up to 1,500 links: no row is looked up, none is written.
    assert [statement.split(" ", 3)[:3] for statement in statements] == [["INSERT", "INTO", "outlinks"]]


def test_links_when_one_of_many_is_new_then_only_that_one_is_looked_up(database: Database, tested: Admission) -> None:
    names = [f"page{number}" for number in range(50)]
    admit(database, tested, FoundLinks(None, 1, links(*names)))

    statements = admit(database, tested, FoundLinks(id_of(database, "page1"), 2, links(*names, "new")))

    lookups = [one for one in statements if one.startswith("SELECT") and "FROM urls" in one and "key" in one]
    assert len(lookups) == 1
    assert len(depths(database)) == 51


def test_canonical_when_a_page_names_it_then_it_is_as_near_as_the_page(database: Database, tested: Admission) -> None:
    admit(database, tested, FoundLinks(None, 3, links("page")))

    admit(database, tested, FoundLinks(id_of(database, "page"), 4, links("below", "best"), canonicals=links("best")))

    assert depths(database) == {"page": 3, "below": 4, "best": 3}


@pytest.mark.parametrize("linked", [(), ("best",)], ids=["only named", "linked too"])
def test_canonical_when_the_page_comes_nearer_then_so_does_what_it_names(
    database: Database, tested: Admission, linked: Sequence[str]
) -> None:
    admit(database, tested, FoundLinks(None, 5, links("page")))
    admit(database, tested, FoundLinks(id_of(database, "page"), 6, links("below", *linked), canonicals=links("best")))
    store(database, "page", canonical="best")

    admit(database, tested, FoundLinks(None, 1, links("page")))

    assert depths(database) == {"page": 1, "below": 2, "best": 1}


def test_find_within_when_learnt_then_the_row_comes_back_down_to_its_depth() -> None:
    memory = UrlMemory()

    memory.add(-(2**63), 7, 3)
    memory.add(2**63 - 1, 2**40, 0)

    assert [memory.find_within(-(2**63), depth) for depth in (2, 3, 4)] == [None, 7, 7]
    assert memory.find_within(2**63 - 1, 0) == 2**40
    assert memory.find_within(1, 9) is None


def test_add_when_known_already_then_the_new_depth_counts() -> None:
    memory = UrlMemory()

    memory.add(1, 7, 3)
    memory.add(1, 7, 2)

    assert [memory.find_within(1, depth) for depth in (1, 2)] == [None, 7]


def test_add_when_the_depth_is_beyond_bounds_then_the_row_is_still_right() -> None:
    memory = UrlMemory()

    memory.add(1, 7, 1_000_000)

    assert [memory.find_within(1, depth) for depth in (65_534, 65_535)] == [None, 7]


def test_add_when_full_then_those_not_asked_for_lately_make_room() -> None:
    memory = UrlMemory(limit=8)
    for key in range(8):
        memory.add(key, key, 0)
        # A link of each page.
        assert memory.find_within(0, 0) == 0

    for key in range(8, 12):
        memory.add(key, key, 0)
        assert memory.find_within(0, 0) == 0

    assert [memory.find_within(key, 0) for key in (1, 2, 3, 4)] == [None] * 4
    assert [memory.find_within(key, 0) for key in (11, 10, 0)] == [11, 10, 0]
