"""Who may see what: permissions and named values that a source says beside its documents, from its answer to a search as a user."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

import searchcrawl
from searchcrawl.answer_headers import Level, Permissions, encode_permissions, encode_value
from searchcrawl.api.values import Answer
from searchcrawl.exceptions import ConfigurationError
from tests.acceptance.support_project import new_project
from tests.acceptance.support_rooms import Extended
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

LINES: Final = "import memos\nfrom searchcrawl import kind\n\nkind.KINDS['memo'] = memos.MEMO\n"
#: A memo has its headers in a file beside it. They are part of its ETag; every request is noted.
HANDLER: Final = """
import hashlib
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scrapy.http import Response

TYPES = {".txt": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8", ".zip": "application/zip"}


class MemoHandler:
    lazy = True

    def __init__(self, folder):
        self._folder = folder

    @classmethod
    def from_crawler(cls, crawler):
        return cls(Path(crawler.settings["MEMO_FOLDER"]))

    async def download_request(self, request):
        name = unquote(urlsplit(request.url).path[1:])
        with (self._folder.parent / "asked").open("a") as asked:
            asked.write(name + chr(10))
        if not name:
            return Response(request.url, headers={"Content-Type": "text/plain"}, request=request)
        path = self._folder / name
        if not path.is_file():
            return Response(request.url, status=404, request=request)
        denial = self._folder.parent / f"{name}.denied"
        if denial.exists():
            return Response(request.url, status=int(denial.read_text()), request=request)
        said = self._folder.parent / f"{name}.said"
        beside = json.loads(said.read_text()) if said.exists() else []
        etag = '"' + hashlib.sha256(path.read_bytes() + repr(beside).encode()).hexdigest() + '"'
        if request.headers.get("If-None-Match") == etag.encode():
            return Response(request.url, status=304, headers={"ETag": etag}, request=request)
        response = Response(request.url, body=path.read_bytes(), request=request)
        for header, value in [("Content-Type", TYPES[path.suffix]), ("ETag", etag), *beside]:
            response.headers.appendlist(header, value)
        return response

    async def close(self):
        pass
"""
SPIDER: Final = """
from pathlib import Path

from searchcrawl.spiders.web_spider import WebSpider


class MemoSpider(WebSpider):
    def list_start_urls(self):
        folder = Path(self.run.source.settings["MEMO_FOLDER"])
        return [f"memo://box/{path.name}" for path in sorted(folder.iterdir())]
"""
HR: Final = Permissions(("user:root", "group:hr"))
ANYBODY: Final = Permissions(("everyone",))


class Memos(Extended):
    """A project with a source whose answers say who may see them, and the folder that it reads."""

    def __init__(self, folder: Path, *, attributes: str = "", project: str = "") -> None:
        self.box = folder / "box"
        self.box.mkdir()
        super().__init__(folder, "docs/how-to/add-kind.md", LINES, notes=str(self.box))
        (folder / "memos" / "handler.py").write_text(HANDLER, "utf-8")
        (folder / "memos" / "spider.py").write_text(SPIDER, "utf-8")
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        (folder / "searchcrawl.toml").write_text(f'contact = "https://example.com/"\n{project}', "utf-8")
        self.edit(attributes)

    def edit(self, attributes: str) -> None:
        file = self.folder / "sources" / "notes.toml"
        text = file.read_text("utf-8").partition("[attributes]")[0].rstrip()
        file.write_text(f"{text}\n\n[attributes]\n{attributes}\n", "utf-8")

    def put(self, name: str, content: str | bytes, permissions: Permissions | None = None, **values: str) -> None:
        path = self.box / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        headers = [] if permissions is None else [*encode_permissions(permissions)]
        modified = values.pop("Last-Modified", None)
        headers += [encode_value("column", column, value) for column, value in values.items()]
        headers += [(b"Last-Modified", modified.encode())] if modified else []
        said = json.dumps([[header.decode(), value.decode()] for header, value in headers])
        (self.folder / f"{name}.said").write_text(said, "utf-8")

    def asked(self) -> list[str]:
        """The names that were asked for since the last call."""
        file = self.folder / "asked"
        names = file.read_text("utf-8").split("\n") if file.exists() else []
        file.unlink(missing_ok=True)
        return sorted(filter(None, names))

    def ask(self, words: str, user: str | None = None, *groups: str, facets: Sequence[str] = ()) -> Answer:
        project = searchcrawl.open_project(self.folder)
        return project.search(words, rows=100, as_user=user, user_groups=groups, facets=facets)

    def sees(self, words: str, user: str | None = None, *groups: str) -> list[str]:
        """The names of the memos that a search finds, and those of their copies."""
        hits = self.ask(words, user, *groups).hits
        return sorted(url.removeprefix("memo://box/") for hit in hits for url in (hit.url, *hit.duplicates))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Memos:
    """A crawled project."""
    memos = Memos(tmp_path_factory.mktemp("told"))
    memos.put("free.txt", "apples for all")
    memos.put("hr.txt", "apples and salaries", HR)
    memos.put("denied.txt", "apples not for bob", Permissions(("everyone",), ("user:bob",)))
    memos.put(
        "below.txt",
        "apples below a folder",
        Permissions(("everyone",), (), (Level(("group:hr",)), Level(("user:anna", "user:eve")))),
    )
    memos.put("lost.txt", "apples unread", Permissions(("nobody",)))
    # The same text, which others may see.
    for name, permissions in {"one": None, "two": HR, "three": HR, "four": ANYBODY}.items():
        memos.put(f"{name}.txt", "the same pears", permissions)
    with zipfile.ZipFile(memos.folder / "packed.zip", "w") as packed:
        packed.writestr("inner.txt", "plums in an archive")
    memos.put("packed.zip", (memos.folder / "packed.zip").read_bytes(), HR)
    # It links to a public one, and names it as the canonical one.
    memos.put(
        "linking.html",
        '<link rel="canonical" href="/free.txt"><p>quinces <a href="/free.txt">zeppelin takeover</a> quinces',
        HR,
    )
    ended, _ = memos.crawl("notes")
    assert ended == 0
    return memos


@pytest.mark.parametrize(
    ("user", "groups", "names"),
    [
        (None, (), ["below", "denied", "free", "hr", "lost"]),
        ("mia", (), ["denied", "free"]),
        ("bob", (), ["free"]),
        ("bob", ("hr",), ["free", "hr"]),
        ("anna", ("hr",), ["below", "denied", "free", "hr"]),
        ("anna", (), ["denied", "free"]),
        ("root", (), ["denied", "free", "hr"]),
        # A name is a name.
        ("group:hr", (), ["denied", "free"]),
        ("mia", ("user:root",), ["denied", "free"]),
        ("nobody", ("nobody",), ["denied", "free"]),
    ],
)
def test_search_when_it_is_made_as_a_user_then_it_finds_what_he_may_see(
    told: Memos, user: str | None, groups: Sequence[str], names: list[str]
) -> None:
    assert told.sees("apples", user, *groups) == [f"{name}.txt" for name in names]
    assert told.ask("apples", user, *groups).total == len(names)


def test_search_when_a_command_makes_it_as_a_user_then_it_finds_what_he_may_see(told: Memos) -> None:
    named = ("--as-user", "bob", "--groups", "other, hr")
    ended = told.command("search", "apples", "--json", *named)

    assert ended.returncode == 0, ended.stderr
    assert {hit["url"] for hit in json.loads(ended.stdout)["hits"]} == {"memo://box/free.txt", "memo://box/hr.txt"}


def test_copies_when_others_may_see_them_then_they_are_none_of_each_other(told: Memos) -> None:
    assert told.ask("pears").total == 2
    assert told.sees("pears", "mia") == ["four.txt", "one.txt"]
    assert told.sees("pears", "mia", "hr") == ["four.txt", "one.txt", "three.txt", "two.txt"]


def test_archive_when_few_may_see_it_then_so_it_is_with_its_files(told: Memos) -> None:
    assert told.sees("plums") == ["packed.zip!/inner.txt"]
    assert told.sees("plums", "mia") == []
    assert told.sees("plums", "mia", "hr") == ["packed.zip!/inner.txt"]


def test_document_when_few_may_see_it_then_it_says_nothing_of_others(told: Memos) -> None:
    # Its text for a link, and which one it names as canonical.
    assert told.sees("takeover", "mia") == []
    assert told.sees("quinces", "mia") == []
    assert told.sees("free", "mia") == told.sees("free", "root") == ["free.txt"]
    assert told.sees("quinces", "root") == ["linking.html"]


@pytest.mark.parametrize(
    ("name", "options", "outcome", "detail"),
    [
        ("hr.txt", (), "restricted", "allowed to group:hr, user:root"),
        ("hr.txt", ("--as-user", "mia"), "hidden", "allowed to group:hr, user:root only"),
        ("hr.txt", ("--as-user", "mia", "--groups", "hr,x"), "seen", "allowed to group:hr"),
        ("denied.txt", ("--as-user", "bob"), "hidden", "denied to user:bob"),
        ("free.txt", ("--as-user", "bob"), "seen", "everyone may see it"),
        (
            "below.txt",
            ("--as-user", "bob", "--groups", "hr"),
            "hidden",
            "a level above it lets only user:anna, user:eve pass",
        ),
        ("nothing.txt", ("--as-user", "bob"), "unknown", "it has no document"),
    ],
)
def test_explain_when_it_is_asked_for_a_user_then_it_says_whether_he_may_see_it_and_why(
    told: Memos, name: str, options: Sequence[str], outcome: str, detail: str
) -> None:
    ended = told.command("explain", f"memo://box/{name}", "--json", *options)

    assert ended.returncode == 0, ended.stderr
    steps = [step for step in json.loads(ended.stdout)["steps"] if step["step"] == "permissions"]
    assert [(step["outcome"], step["detail"]) for step in steps] == [(outcome, detail)]


def test_permissions_when_they_alone_change_then_one_document_is_sent_and_searches_follow(tmp_path: Path) -> None:
    memos = Memos(tmp_path)
    memos.put("a.txt", "apples", HR)
    memos.put("b.txt", "apples too", HR)
    memos.crawl("notes")
    assert memos.sees("apples", "mia") == []

    memos.put("a.txt", "apples")
    ended, counts = memos.crawl("notes")
    assert (ended, counts["new"], counts["changed"], counts["deleted"], counts["unchanged"]) == (0, 0, 1, 0, 0)
    assert memos.sees("apples", "mia") == ["a.txt"]

    memos.put("a.txt", "apples", Permissions(("everyone",), ("user:mia",)))
    memos.crawl("notes")
    assert memos.sees("apples", "mia") == []
    assert memos.sees("apples", "bob") == ["a.txt"]


def test_document_when_it_may_not_be_read_any_more_then_no_user_sees_it_until_it_was_read_again(tmp_path: Path) -> None:
    memos = Memos(tmp_path)
    memos.put("a.txt", "apples")
    memos.put("b.txt", "apples too", HR)
    memos.crawl("notes")
    assert memos.sees("apples", "mia", "hr") == ["a.txt", "b.txt"]

    # Denied, then out of reach.
    for status in ("403", "503"):
        for name in "ab":
            (tmp_path / f"{name}.txt.denied").write_text(status, "utf-8")
        memos.crawl("notes")
        assert memos.sees("apples", "mia", "hr") == []
        assert memos.sees("apples") == ["a.txt", "b.txt"]
    explained = memos.command("explain", "memo://box/a.txt", "--as-user", "mia")
    assert "allowed to nobody only" in explained.stdout

    for name in "ab":
        (tmp_path / f"{name}.txt.denied").unlink()
    memos.crawl("notes")
    assert memos.sees("apples", "mia") == ["a.txt"]
    assert memos.sees("apples", "mia", "hr") == ["a.txt", "b.txt"]


def test_permissions_when_they_change_and_the_date_does_not_then_the_condition_of_changes_does_not_matter(
    tmp_path: Path,
) -> None:
    memos = Memos(tmp_path, attributes='[change]\ncondition = ["date"]')
    memos.put("a.txt", "apples", **{"Last-Modified": "Mon, 30 Nov 2026 05:00:00 GMT"})
    memos.crawl("notes")
    assert memos.sees("apples", "mia") == ["a.txt"]

    memos.put("a.txt", "apples", HR, **{"Last-Modified": "Mon, 30 Nov 2026 05:00:00 GMT"})
    memos.crawl("notes")
    assert memos.sees("apples", "mia") == []


def test_values_when_attributes_map_them_then_they_are_found_also_from_the_cache(tmp_path: Path) -> None:
    memos = Memos(tmp_path, attributes='"column:Price" = "price"\n[attributes.types]\nprice = "number"')
    memos.put("a.txt", "apples", Price="12", Größe="L")
    memos.put("b.txt", "apples too", Price="7", Größe="M")
    memos.crawl("notes")
    assert memos.sees("price:10..20") == ["a.txt"]
    memos.asked()

    memos.edit('"column:größe" = "size"')
    plan = memos.command("plan", "notes", "--json")
    applied = memos.command("apply", json.loads(plan.stdout)["plan"])

    assert (applied.returncode, memos.asked()) == (0, [])
    assert memos.ask("*", facets=["size"]).facets["size"] == {"L": 1, "M": 1}


def test_web_server_when_it_says_who_may_see_its_pages_then_nobody_listens(tmp_path: Path) -> None:
    with SiteProcess() as site:
        pages(site, "a.acme.test", one=page("apples"))
        hostile = {
            "Searchcrawl-Deny": "everyone",
            "SEARCHCRAWL-ALLOW": "nobody",
            "Searchcrawl-Value": "column:owner=eve",
        }
        site.set_page("a.acme.test", "/one.html", headers=hostile)
        project = new_project(tmp_path, site, **source(site, "a.acme.test"), attributes={"column:owner": "owner"})
        assert project.crawl().exit_code == 0

    opened = searchcrawl.open_project(project.folder)
    answer = opened.search("apples", as_user="mia", facets=["owner"])
    assert (answer.total, answer.facets["owner"]) == (1, {})
    (document,) = (each for each in opened.documents("demo") if each.title == "apples")
    assert document.fields["acl_allow"] == ["everyone"]


GROUPS: Final = """user,group
anna,hr-berlin
group:hr-berlin,hr
group:hr,group:hr-berlin
bob,sid:S-1-5-32-544
authenticated,sid:S-1-5-32-545
"""
EXPANDING: Final = """
class Groups:
    def expand(self, user):
        if user == "broken":
            raise LookupError("the directory is away")
        return ["hr"] if user == "carl" else []
"""


def test_principals_when_the_project_says_who_is_in_which_group_then_searches_know(tmp_path: Path) -> None:
    table = '[principals]\nfile = "groups.csv"\nclass = "groups:Groups"\nsystem = true\n'
    memos = Memos(tmp_path, project=f"require_user = true\n{table}")
    (tmp_path / "groups.csv").write_text(GROUPS, "utf-8")
    (tmp_path / "groups.py").write_text(EXPANDING, "utf-8")
    memos.put("hr.txt", "apples", HR)
    memos.put("admin.txt", "apples of the admin", Permissions(("sid:S-1-5-32-544",)))
    memos.put("uid.txt", "apples of root", Permissions(("uid:0",)))
    memos.put("users.txt", "pears of all users", Permissions(("sid:S-1-5-32-545",)))
    memos.crawl("notes")

    assert memos.sees("apples", "anna") == memos.sees("apples", "carl") == ["hr.txt"]
    assert memos.sees("pears", "mia") == ["users.txt"]
    assert memos.sees("apples", "bob") == memos.sees("apples", "mia", "sid:S-1-5-32-544") == ["admin.txt"]
    assert memos.sees("apples", "mia") == []
    assert memos.sees("apples", "root") == ["hr.txt", "uid.txt"]

    refused = memos.command("search", "apples")
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "searchcrawl.toml: require_user: a search must say as which user it is made" in refused.stderr
    with pytest.raises(ConfigurationError, match="require_user"):
        searchcrawl.open_project(tmp_path).search("apples")
    broken = memos.command("search", "apples", "--as-user", "broken")
    assert broken.returncode == 4
    assert 'principals.class: expand failed: LookupError: the directory is away (got "groups:Groups")' in broken.stderr
    (tmp_path / "groups.csv").write_text("anna\n", "utf-8")
    assert memos.command("search", "apples", "--as-user", "anna").returncode == 4
    assert "groups.csv: line 1: must be USER,GROUP" in memos.command("sources", "check").stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--groups", "a,b"), "--groups: are those of a user: name him with --as-user NAME"),
        (("--as-user", ""), "must be a name, without control characters (got '')"),
        (("--as-user", "a\nb"), "must be a name, without control characters"),
    ],
)
def test_search_when_a_user_has_no_name_then_it_is_refused(told: Memos, options: Sequence[str], message: str) -> None:
    ended = told.command("search", "apples", *options)

    assert ended.returncode == 2
    assert message in ended.stderr
