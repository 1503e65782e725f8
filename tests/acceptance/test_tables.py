"""A source of rows, as its user sees it: what is found, what a change brings, what leaves (A1, E9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchcrawl.sources.secrets import HIDDEN
from tests.acceptance.support_tables import MANY, SOURCE, ShopProject
from tests.crawl_forks import COMMANDS
from tests.site.pdf import make_pdf


@pytest.fixture
def shop(tmp_path: Path) -> ShopProject:
    return ShopProject(tmp_path)


def test_rows_when_nothing_has_changed_then_none_is_read(shop: ShopProject) -> None:
    first = shop.crawl()
    second = shop.crawl()

    assert (first["new"], first["fetched"]) == (MANY, MANY)
    assert (second["discovered"], second.get("fetched", 0)) == (0, 0)
    hits = shop.search("piece")
    assert len(hits) == MANY
    assert {hit["title"] for hit in hits} == {f"Article {number}" for number in range(1, MANY + 1)}


@pytest.mark.matrix
def test_rows_when_one_is_new_one_changed_and_one_deleted_then_these_are_three_updates(shop: ShopProject) -> None:
    shop.crawl()
    shop.put(MANY + 1, text="pears are green")
    shop.put(2, text="plums are blue")
    shop.execute("DELETE FROM articles WHERE id = 3")

    counts = shop.crawl()

    assert (counts["new"], counts["changed"], counts["deleted"]) == (1, 1, 1)
    # The deleted one was looked for once more.
    assert counts["fetched"] == 3
    assert [hit["url"] for hit in shop.search("plums")] == ["row://shop/articles/2"]
    assert [hit["url"] for hit in shop.search("pears")] == [f"row://shop/articles/{MANY + 1}"]
    assert len(shop.search("*")) == MANY


@pytest.mark.matrix
def test_rows_when_a_value_beside_the_text_changes_then_the_document_does(shop: ShopProject) -> None:
    shop.edit('[attributes]\n"column:city" = "city"')
    shop.crawl()
    shop.put(2, city="Oslo")
    shop.put(3, name="Pear")

    counts = shop.crawl()

    assert counts["changed"] == 2
    assert [hit["url"] for hit in shop.search("*", "--filter", "city:Oslo")] == ["row://shop/articles/2"]
    assert [hit["url"] for hit in shop.search("title:pear")] == ["row://shop/articles/3"]


@pytest.mark.matrix
def test_rows_when_all_are_deleted_then_they_wait_in_quarantine(shop: ShopProject) -> None:
    shop.crawl()
    shop.execute("DELETE FROM articles")

    counts = shop.crawl(code=9)

    assert counts["deleted"] == 0
    assert len(shop.search("*")) == MANY
    shop.command("quarantine", "approve", "shop")
    assert shop.search("*") == []


def test_rows_when_the_database_fails_then_nothing_leaves_and_the_run_says_so(shop: ShopProject) -> None:
    shop.crawl()
    shop.execute("ALTER TABLE articles RENAME TO other")

    counts = shop.crawl(code=3)

    assert counts["deleted"] == 0
    assert len(shop.search("*")) == MANY
    assert "no such table: articles" in shop.command("status", "shop")
    shop.execute("ALTER TABLE other RENAME TO articles")
    shop.crawl()


def test_rows_when_they_have_a_time_then_increments_and_comparisons_find_all(shop: ShopProject) -> None:
    shop.edit('modified = "changed"\ncompare_hours = 24')
    shop.crawl()
    shop.put(2, text="plums are blue", changed="2030-01-31 12:00:01.5")
    shop.execute("DELETE FROM articles WHERE id = 3")

    increment = shop.crawl()
    shop.edit('modified = "changed"\ncompare_hours = 0')
    comparison = shop.crawl()

    assert (increment["changed"], increment["deleted"], increment["fetched"]) == (1, 0, 1)
    assert (comparison["changed"], comparison["deleted"]) == (0, 1)
    assert len(shop.search("*")) == MANY - 1


@pytest.mark.matrix
def test_rows_when_shown_with_a_url_of_their_own_then_a_search_has_it(shop: ShopProject) -> None:
    shop.edit('display = "https://shop.test/{city}?id={id}"')
    shop.crawl()
    first = {hit["url"] for hit in shop.search("*")}
    shop.put(2, city="Oslo")

    shop.crawl()

    assert first == {f"https://shop.test/Bergen?id={number}" for number in range(1, MANY + 1)}
    second = {hit["url"] for hit in shop.search("*")}
    assert second - first == {"https://shop.test/Oslo?id=2"}
    assert first - second == {"https://shop.test/Bergen?id=2"}


def test_rows_when_the_text_is_said_otherwise_then_all_are_read_again(shop: ShopProject) -> None:
    shop.crawl()
    shop.edit("")
    path = shop.folder / "sources" / "shop.toml"
    path.write_text(path.read_text("utf-8").replace('text = "text"', 'text = "{text} in {city}"'), "utf-8")

    counts = shop.crawl()

    assert counts["changed"] == MANY
    assert len(shop.search("bergen")) == MANY


def test_password_when_it_is_in_the_url_then_nothing_shows_it(shop: ShopProject) -> None:
    source = SOURCE.replace("sqlite:///shop.db", "postgresql+psycopg://reader:hush-hush-word@127.0.0.1:1/shop")
    (shop.folder / "sources" / "shop.toml").write_text(source, "utf-8")

    said = shop.command("sources", "show", "shop")
    ended = COMMANDS.run(shop.folder, "crawl", "shop", "--json")

    assert ended.returncode == 3
    assert f"reader:{HIDDEN}@127.0.0.1" in said
    files = [path for path in (shop.folder / "var").rglob("*") if path.is_file()]
    texts = [said, ended.stdout, ended.stderr, shop.command("status", "shop")]
    assert [text for text in texts if "hush-hush-word" in text] == []
    assert [str(path) for path in files if b"hush-hush-word" in path.read_bytes()] == []


@pytest.mark.matrix
def test_row_when_it_is_gone_at_its_reading_and_comes_back_as_it_was_then_so_does_its_document(
    shop: ShopProject,
) -> None:
    shop.edit('modified = "changed"\n[lifecycle]\nmax_delete_percent = 100')
    shop.crawl()
    shop.execute("DELETE FROM articles WHERE id = 2")
    shop.command("recrawl", "shop")

    gone = shop.crawl()
    shop.put(2)
    shop.edit('modified = "changed"\ncompare_hours = 0')
    shop.crawl()

    assert gone["deleted"] == 1
    assert len(shop.search("*")) == MANY


def test_sources_when_checked_then_what_the_database_has_not_is_named(shop: ShopProject) -> None:
    shop.edit('allow = ["readers"]')
    lacking = shop.command("sources", "check", code=4)
    shop.edit('[attributes]\n"column:City" = "city"\n"column:ciy" = "town"')
    mistyped = shop.command("sources", "check")
    shop.edit('[attributes]\n"column:City" = "city"')
    right = shop.command("sources", "check", "--list")
    (shop.folder / "shop.db").rename(shop.folder / "elsewhere.db")
    away = shop.command("sources", "check")

    assert "sources/shop.toml: table.allow: there is no column readers (there are id, name, text" in lacking
    assert "warning: sources/shop.toml: attributes.column:ciy: there is no column ciy (there are id, name" in mistyped
    assert "column:city" not in mistyped
    assert "warning" not in right
    assert f"shop: {MANY} documents in 1 folder or table" in right
    assert "warning: sources/shop.toml: table.url: the database could not be asked" in away


def test_row_when_tried_then_the_answer_is_that_of_a_crawl(shop: ShopProject) -> None:
    found = shop.command("test", "row://shop/articles/2", "--source", "shop")
    gone = shop.command("test", "row://shop/articles/1000", "--source", "shop")

    assert "Article 2" in found
    assert "number 2" in found
    assert "967" in gone


def test_attributes_when_edited_then_a_plan_needs_no_database(shop: ShopProject) -> None:
    shop.crawl()
    (shop.folder / "shop.db").rename(shop.folder / "elsewhere.db")
    shop.edit('[attributes]\n"column:city" = "city"')

    planned = json.loads(shop.command("plan", "shop", "--json"))
    shop.command("apply", planned["plan"])

    assert (planned["send"], planned["refetch"]) == (MANY, 0)
    assert len(shop.search("*", "--filter", "city:Bergen")) == MANY


def test_permissions_when_a_column_has_them_then_searches_as_a_user_keep_to_them(shop: ShopProject) -> None:
    shop.edit('allow = ["city"]')
    shop.execute("UPDATE articles SET city = NULL")
    shop.put(1, city="user:anna, group:staff")
    shop.put(2, city="everyone")
    shop.crawl()
    anna = {hit["url"] for hit in shop.search("*", "--as-user", "anna")}
    carl = {hit["url"] for hit in shop.search("*", "--as-user", "carl", "--groups", "staff")}
    shop.put(1, city="user:carl")

    counts = shop.crawl()

    assert (counts["changed"], counts["not_converted"]) == (1, 1)
    both = {"row://shop/articles/1", "row://shop/articles/2"}
    assert (anna, carl) == (both, both)
    assert {hit["url"] for hit in shop.search("*", "--as-user", "anna")} == {"row://shop/articles/2"}
    assert {hit["url"] for hit in shop.search("*", "--as-user", "carl")} == both


def test_bodies_when_columns_have_files_then_they_are_read_as_such(shop: ShopProject) -> None:
    shop.execute("CREATE TABLE files (name TEXT, data BLOB, kind TEXT)")
    rows = [
        ("a.pdf", make_pdf("pears in a portable format", title="Portable"), "application/pdf"),
        ("b", make_pdf("plums of an unknown type"), None),
        ("c", "<title>Marked</title><p>cherries <b>are</b> red", "text/html"),
        ("d", None, "application/pdf"),
        ("e", b"x" * 2000, "text/plain"),
    ]
    for row in rows:
        shop.execute("INSERT INTO files VALUES (?, ?, ?)", *row)
    text = 'type = "table"\n[table]\nurl = "sqlite:///shop.db"\ntable = "files"\nkey = ["name"]\nbody = "data"\n'
    (shop.folder / "sources" / "shop.toml").write_text(
        f'{text}body_type = "kind"\n[fetch]\nmax_bytes = 1999\n', encoding="utf-8"
    )

    shop.crawl()

    assert [hit["title"] for hit in shop.search("portable")] == ["Portable"]
    assert [hit["url"] for hit in shop.search("plums")] == ["row://shop/files/b"]
    assert [hit["title"] for hit in shop.search("cherries")] == ["Marked"]
    listed = (json.loads(line) for line in shop.command("urls", "shop", "--json").splitlines())
    codes = {row["url"].rpartition("/")[2]: row["code"] for row in listed}
    assert codes == {"a.pdf": 200, "b": 200, "c": 200, "d": 911, "e": 960}


def test_row_when_forgotten_then_it_leaves_and_is_not_read_any_more(shop: ShopProject) -> None:
    shop.crawl()
    shop.command("forget", "row://shop/articles/2")
    shop.put(2, text="plums are blue")

    counts = shop.crawl()

    assert counts.get("fetched", 0) == 0
    assert "row://shop/articles/2" not in {hit["url"] for hit in shop.search("*")}
    assert len(shop.search("*")) == MANY - 1
    assert "forgotten" in shop.command("explain", "row://shop/articles/2")
