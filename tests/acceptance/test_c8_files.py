"""Files of many formats on a site: one document for each, and for each file in an archive; bad ones cost only themselves (C8)."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.office_files import make_message, make_ole, make_zip
from tests.site.client import SiteProcess
from tests.site.pdf import make_pdf

HOST: Final = "files.acme.test"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
#: A class of the user's own that is hung by one file, and ended by another.
NOTES: Final = """
import os, time
from searchcrawl.plugins import Converted

class Notes:
    def convert(self, body, *, url, mimetype):
        if body == b"die":
            os._exit(1)
        if body == b"raise":
            raise LookupError("no such note")
        return Converted(text=body.decode(), title="A note", values={"modified": "2024-03-05"})
"""


def docx(text: str) -> bytes:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    kind = "http://schemas.openxmlformats.org"
    link = f'<w:hyperlink w:anchor="x"><w:r><w:t>http://{HOST}/in-docx.html</w:t></w:r></w:hyperlink>'
    return make_zip({
        "[Content_Types].xml": (
            f'<Types xmlns="{kind}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.'
            'openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType='
            f'"{DOCX}.main+xml"/></Types>'
        ).encode(),
        "_rels/.rels": (
            f'<Relationships xmlns="{kind}/package/2006/relationships"><Relationship Id="r" Type="{kind}/officeDocument/'
            '2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
        ).encode(),
        "word/document.xml": (
            f"<w:document {space}><w:body><w:p><w:r><w:t>{text} and </w:t></w:r>{link}</w:p></w:body></w:document>"
        ).encode(),
    })  # fmt: skip


def tgz(members: dict[str, bytes]) -> bytes:
    return gzip.compress(tar(members))


def tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def encrypted(archive: bytes) -> bytes:
    """As if its first member needed a password."""
    at = archive.index(b"PK\x01\x02") + 8
    return archive[:at] + b"\x01" + archive[at + 1 :]


def nested(depth: int) -> bytes:
    body = b"deepest barometer"
    for level in range(depth):
        body = make_zip({"inner.zip" if level else "deep.txt": body})
    return body


RSS: Final = (
    '<?xml version="1.0"?><rss><channel><title>News</title><item><title>zephyr</title>'
    "<link>/of-feed.html</link></item></channel></rss>"
)
#: Path, content and type, and the word by which it is found.
GOOD: Final[dict[str, tuple[bytes, str, str]]] = {
    "/plan.docx": (docx("quicksilver plan"), DOCX, "quicksilver"),
    "/lying.doc": (docx("turmeric lies"), "application/msword", "turmeric"),
    "/unsaid.docx": (docx("saffron silence"), "application/octet-stream", "saffron"),
    "/as-doc.doc": (make_pdf("cardamom in a PDF"), "application/msword", "cardamom"),
    "/letter.msg": (
        make_message(subject="Letter", sender="Ada", text="cinnamon"),
        "application/vnd.ms-outlook",
        "cinnamon",
    ),
    "/letter.rtf": (rb"{\rtf1{\info{\title Rich}}Caraway seeds}", "text/rtf", "caraway"),
    "/table.csv": (b"a;b\nfennel;2\n", "text/csv", "fennel"),
    "/data.json": (b'{"title": "Data", "spice": "nutmeg"}', "application/json", "nutmeg"),
    "/feed.xml": (RSS.encode(), "application/rss+xml", "zephyr"),
    "/read.note": (b"paprika", "application/x-note", "paprika"),
}
#: Bombs are made when they are served: each process of the tests loads this file.
BAD: Final[dict[str, tuple[bytes | Callable[[], bytes], str, int]]] = {
    "/cut.docx": (docx("cut")[:200], DOCX, 903),
    "/protected.docx": (make_ole({"EncryptedPackage": b"x"}), DOCX, 903),
    "/bomb.docx": (lambda: make_zip({"[Content_Types].xml": b"<Types/>", "word/document.xml": bytes(300_000_000)}), DOCX, 904),
    "/empty.docx": (b"", DOCX, 903),
    "/picture.png": (b"\x89PNG\r\n\x1a\n", "image/png", 908),
    "/picture.pdf": (make_pdf(""), "application/pdf", 911),
    "/docx.html": (docx("no page"), "text/html", 1009),
    "/broken.xml": (b"<a><b></a>", "application/xml", 903),
    "/laughs.xml": (b'<!DOCTYPE a [<!ENTITY e0 "lol">' + "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10)
    ).encode() + b']><a b="&e9;"/>', "application/xml", 904),
    "/raise.note": (b"raise", "application/x-note", 903),
    "/die.note": (b"die", "application/x-note", 904),
    "/broken.zip": (b"PK\x03\x04" + bytes(300), "application/zip", 903),
    "/bomb.zip": (lambda: make_zip({"a.txt": bytes(300_000_000)}), "application/zip", 904),
    "/large.txt": (b"words " * 400_000, "text/plain", 960),
}  # fmt: skip
ARCHIVES: Final[dict[str, tuple[bytes, str]]] = {
    "/pack.zip": (
        make_zip({
            "one.txt": b"juniper",
            "folder/two words.html": b"<title>Two</title><p>coriander <a href=/of-member.html>x</a>",
            "three.docx": docx("marjoram"),
            "../escape.txt": b"escaped",
            "picture.png": b"\x89PNG\r\n\x1a\n",
            "inner.zip": make_zip({"four.txt": b"tarragon"}),
        }),
        "application/zip",
    ),
    "/pack.tar.gz": (tgz({"a/five.txt": b"oregano", "./six.txt": b"chervil"}), "application/gzip"),
    "/single.txt.gz": (gzip.compress(b"lovage"), "application/gzip"),
    "/locked.zip": (encrypted(make_zip({"secret.txt": b"secret", "open.txt": b"savory"})), "application/zip"),
    "/nested.zip": (nested(5), "application/zip"),
    "/download/5": (make_zip({"u.txt": b"sumac"}), "application/octet-stream"),
    "/plain.tar": (tar({"p.txt": b"perilla"}), "application/x-tar"),
    "/go.zip": (make_zip({"g.txt": b"galangal"}), "application/zip"),
    "/moved.zip": (make_zip({"m.txt": b"mastic"}), "application/zip"),
}  # fmt: skip
#: The files in archives: what each is found by, or its code.
MEMBERS: Final[dict[str, str | int]] = {
    "/pack.zip!/one.txt": "juniper",
    "/pack.zip!/folder/two%20words.html": "coriander",
    "/pack.zip!/three.docx": "marjoram",
    "/pack.zip!/picture.png": 908,
    "/pack.zip!/inner.zip": 911,
    "/pack.zip!/inner.zip!/four.txt": "tarragon",
    "/pack.tar.gz!/a/five.txt": "oregano",
    "/pack.tar.gz!/six.txt": "chervil",
    "/single.txt.gz!/single.txt": "lovage",
    "/locked.zip!/secret.txt": 903,
    "/locked.zip!/open.txt": "savory",
    "/download/5!/u.txt": "sumac",
    "/plain.tar!/p.txt": "perilla",
    "/go.zip!/g.txt": "galangal",
    "/moved.zip!/m.txt": "mastic",
    "/elsewhere.zip!/e.txt": "epazote",
    "/nested.zip!/inner.zip": 911,
    "/nested.zip!/inner.zip!/inner.zip": 911,
    "/nested.zip!/inner.zip!/inner.zip!/inner.zip": 904,
}
#: Made like the URL of a file in an archive, and none.
ODD: Final = "/folder!/page.html"
#: The same, below what only others may read.
ODD_TOO: Final = "/app!/page.html"
#: A host outside the boundary, which forbids some of what redirects lead to.
OTHER: Final = "other.acme.test"


class Run(NamedTuple):
    """What a run left."""

    exit_code: int
    codes: dict[str, int]
    found: dict[str, list[str]]
    titles: dict[str, str]
    dates: dict[str, str]
    requested: list[str]
    versions: dict[str, int]
    #: in the folder for temporary files
    left: list[str]


class Seen(NamedTuple):
    first: Run
    again: Run
    edited: Run
    gone: Run
    repaired: Run
    excluded: Run
    log: str
    rows: dict[str, dict[str, Any]]


def build(site: SiteProcess) -> None:
    links = [*GOOD, *BAD, *ARCHIVES, ODD, ODD_TOO, "/elsewhere.zip"]
    site.set_page(HOST, "/", page("start", *links, text="the folder"))
    for files in (GOOD, BAD, ARCHIVES):
        for path, (body, content_type, *_) in files.items():
            site.set_page(HOST, path, body() if callable(body) else body, content_type=content_type)
    for path in ("/read.note", "/table.csv"):
        site.set_page(HOST, path, last_modified=None)
    site.set_page(HOST, "/app", "", status=403)
    to_other = {"Location": site.url(OTHER, "/open.zip")}
    site.set_page(HOST, "/elsewhere.zip", "", status=302, headers=to_other)
    site.set_page(OTHER, "/open.zip", make_zip({"e.txt": b"epazote"}), content_type="application/zip")
    site.set_page(OTHER, "/evil.zip", make_zip({"g.txt": b"galangal evil"}), content_type="application/zip")
    site.set_page(OTHER, "/robots.txt", "User-agent: *\nDisallow: /evil\n", content_type="text/plain")
    for path in ("/of-feed.html", "/of-member.html", ODD, ODD_TOO):
        site.set_page(HOST, path, page("linked", text=f"page {path}"))


def crawled(project: CrawlProject) -> Run:
    project.site.clear_log()
    temporary = project.folder / "temporary"
    temporary.mkdir(exist_ok=True)
    code = project.crawl(TMPDIR=str(temporary)).exit_code
    words = [word for *_, word in GOOD.values()] + [each for each in MEMBERS.values() if isinstance(each, str)]
    hits = {word: project.hits(word) for word in (*words, "escaped", "secret", "estragon")}
    return Run(
        code,
        {url.removeprefix(HOST): each for url, each in project.codes().items()},
        {
            word: [str(hit.fields["url"]).partition(HOST)[2].partition("/")[2] for hit in each]
            for word, each in hits.items()
        },
        {word: str(each[0].fields.get("title")) for word, each in hits.items() if each},
        {word: str(each[0].fields.get("last_modified")) for word, each in hits.items() if each},
        [each["path"] for each in project.site.log()],
        project.versions(),
        [path.name for path in temporary.iterdir()],
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with SiteProcess() as site:
        build(site)
        project = new_project(tmp_path_factory.mktemp("files"), site, **source(site, HOST, max_bytes=2_000_000))
        (project.folder / "notes_of_site.py").write_text(NOTES, "utf-8")
        config = project.folder / "searchcrawl.toml"
        config.write_text(f'{config.read_text("utf-8")}\n[converters]\n"application/x-note" = "notes_of_site:Notes"\n')
        first = crawled(project)
        rows = {url.removeprefix(HOST): row for url, row in project.rows().items()}
        again = crawled(project)
        changed = make_zip({"one.txt": b"estragon", "three.docx": docx("marjoram")})
        site.set_page(HOST, "/pack.zip", changed, content_type="application/zip")
        edited = crawled(project)
        site.set_page(HOST, "/pack.tar.gz", "", status=404)
        gone = crawled(project)
        site.set_page(HOST, "/download/5", page("repairs", text="come back later"), content_type="text/html")
        site.set_page(HOST, "/go.zip", "", status=302, headers={"Location": site.url(OTHER, "/evil.zip")})
        site.set_page(HOST, "/new.zip", ARCHIVES["/moved.zip"][0], content_type="application/zip")
        site.set_page(HOST, "/moved.zip", "", status=301, headers={"Location": "new.zip"})
        site.set_page(HOST, "/pack.zip", page("repairs", text="come back later"), content_type="text/html")
        repaired = crawled(project)
        project.edit(**source(site, HOST, scope={"exclude_urls": ["*.gz"]}, max_bytes=2_000_000))
        excluded = crawled(project)
        yield Seen(first, again, edited, gone, repaired, excluded, project.log(), rows)


def test_c8_files_when_crawled_then_each_is_one_document_that_is_found(seen: Seen) -> None:
    assert seen.first.exit_code == 0
    assert {path: seen.first.codes[path] for path in GOOD} == dict.fromkeys(GOOD, 200)
    assert {word: seen.first.found[word] for *_, word in GOOD.values()} == {
        word: [path[1:]] for path, (*_, word) in GOOD.items()
    }
    assert [seen.first.titles[word] for word in ("cinnamon", "caraway", "nutmeg", "zephyr", "paprika", "quicksilver")] == [
        "Letter", "Rich", "Data", "News", "A note", "plan.docx",
    ]  # fmt: skip
    # Of these the server names no date, and one says it itself.
    assert (seen.first.dates["paprika"][:10], seen.first.dates["fennel"]) == ("2024-03-05", "None")


def test_c8_links_when_they_are_in_files_then_only_those_of_feeds_are_followed(seen: Seen) -> None:
    assert seen.first.codes["/of-feed.html"] == 200
    assert not any("in-docx" in path for path in (*seen.first.codes, *seen.first.requested))


def test_c8_files_when_they_are_bad_then_each_has_a_code_and_a_line(seen: Seen) -> None:
    assert {path: seen.first.codes[path] for path in BAD} == {path: code for path, (*_, code) in BAD.items()}
    for path, (*_, code) in BAD.items():
        if code in {903, 904, 908, 1009}:
            assert f"{code}: " in seen.log
            assert path in seen.log
            assert seen.rows[path]["error"]
    assert "needs a password" in seen.rows["/protected.docx"]["error"]
    assert seen.rows["/die.note"]["error"].startswith("notes_of_site:Notes: the process died")
    assert seen.rows["/raise.note"]["error"].startswith("notes_of_site:Notes: LookupError: no such note")


def test_c8_archives_when_crawled_then_each_file_in_them_is_one_document(seen: Seen) -> None:
    codes = {path: 200 if isinstance(each, str) else each for path, each in MEMBERS.items()}
    words = {each: path for path, each in MEMBERS.items() if isinstance(each, str)}

    assert {path: seen.first.codes.get(path) for path in MEMBERS} == codes
    assert {path: seen.first.codes[path] for path in ARCHIVES} == dict.fromkeys(ARCHIVES, 911)
    assert {word: seen.first.found[word] for word in words} == {word: [path[1:]] for word, path in words.items()}
    assert seen.first.titles["coriander"] == "Two"
    assert seen.first.codes["/of-member.html"] == 200
    # Nothing leads out of an archive, and what only its password opens stays closed.
    assert not seen.first.found["escaped"]
    assert not seen.first.found["secret"]
    assert seen.first.codes[ODD] == 200
    assert seen.first.codes[ODD_TOO] == 200


def test_c8_archives_when_crawled_then_no_file_in_them_is_requested(seen: Seen) -> None:
    archives = [path for path in seen.first.requested if path in ARCHIVES]

    assert sorted(archives) == sorted(ARCHIVES)
    # The host may be asked for a page beside one of these that it cannot have.
    asked = [path for path in seen.first.requested if "!/" in path and not re.fullmatch(r"/\w+!/[a-z]{20}\.html", path)]
    assert sorted(asked) == [ODD_TOO, ODD]
    assert seen.first.requested.count("/open.zip") == 1


def test_d1_archives_when_nothing_changed_then_nothing_is_sent(seen: Seen) -> None:
    assert seen.again.versions == seen.first.versions
    assert seen.again.exit_code == 0


def test_d4_archive_when_it_changed_then_its_files_change_and_go_with_it(seen: Seen) -> None:
    assert seen.edited.found["estragon"] == ["pack.zip!/one.txt"]
    assert seen.edited.found["juniper"] == []
    assert seen.edited.found["marjoram"] == ["pack.zip!/three.docx"]
    assert seen.edited.codes["/pack.zip!/folder/two%20words.html"] == 404
    assert seen.edited.found["coriander"] == []
    assert seen.edited.found["tarragon"] == []
    unchanged = f"{HOST}/pack.zip!/three.docx"
    assert {seen.first.versions[url] for url in seen.first.versions if unchanged in url} == {
        seen.edited.versions[url] for url in seen.edited.versions if unchanged in url
    }


def test_d4_archive_when_it_is_gone_then_its_files_are(seen: Seen) -> None:
    assert seen.gone.codes["/pack.tar.gz!/a/five.txt"] == 404
    assert (seen.gone.found["oregano"], seen.gone.found["chervil"]) == ([], [])
    assert seen.gone.found["lovage"] == ["single.txt.gz!/single.txt"]


def test_d5_archive_when_a_page_is_in_its_place_then_its_files_stay(seen: Seen) -> None:
    assert seen.repaired.codes["/pack.zip!/three.docx"] == 903
    assert seen.repaired.found["marjoram"] == ["pack.zip!/three.docx"]
    assert seen.repaired.codes["/download/5!/u.txt"] == 903
    assert seen.repaired.found["sumac"] == ["download/5!/u.txt"]
    assert [path for path in seen.repaired.requested if "!/" in path and path not in {ODD, ODD_TOO}] == []


def test_c5_archive_when_it_redirects_to_what_robots_forbids_then_nothing_is_requested_there(seen: Seen) -> None:
    assert seen.repaired.codes["/go.zip"] == 951
    assert seen.repaired.codes["/go.zip!/g.txt"] == 951
    assert "/evil.zip" not in seen.repaired.requested


def test_c6_archive_when_it_moved_for_good_then_so_did_its_files(seen: Seen) -> None:
    assert seen.repaired.codes["/moved.zip"] == 954
    assert seen.repaired.codes["/moved.zip!/m.txt"] == 954
    assert seen.repaired.found["mastic"] == ["new.zip!/m.txt"]


def test_b6_archive_when_a_rule_excludes_it_then_its_files_go_and_nothing_is_requested(seen: Seen) -> None:
    assert seen.excluded.codes["/single.txt.gz!/single.txt"] == 955
    assert seen.excluded.found["lovage"] == []
    assert [path for path in seen.excluded.requested if ".gz" in path] == []
    assert seen.excluded.found["savory"] == ["locked.zip!/open.txt"]


def test_archives_when_the_crawl_is_over_then_no_folder_of_them_is_left(seen: Seen) -> None:
    assert [run.left for run in seen if isinstance(run, Run)] == [[]] * 6


# Archives whose own URL has the mark in its path, and those whose URL does not say that they are one.

MARKS: Final = "marks.acme.test"
JAR: Final = "/jar!/x/pack.zip"
PLAIN: Final = "/download/5"
INNER: Final = make_zip({"b.txt": b"tarragon"})
IN_JAR: Final = (f"{MARKS}{JAR}!/a.txt", f"{MARKS}{JAR}!/in.zip!/b.txt")
IN_PLAIN: Final = f"{MARKS}{PLAIN}!/in.zip!/c.txt"


def put(project: CrawlProject, path: str, **files: bytes) -> None:
    project.site.set_page(MARKS, path, make_zip(files), content_type="application/zip")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        made = new_project(tmp_path, site, **source(site, MARKS))
        site.set_page(MARKS, "/", page("start", JAR, PLAIN))
        put(made, JAR, **{"a.txt": b"juniper", "in.zip": INNER})
        put(made, PLAIN, **{"in.zip": make_zip({"c.txt": b"sumac"})})
        yield made


def test_c8_archive_when_its_own_path_has_the_mark_then_its_files_are_indexed(project: CrawlProject) -> None:
    first, second = run(project), run(project)

    assert [project.found(word) for word in ("juniper", "tarragon", "sumac")] == [
        [each] for each in (*IN_JAR, IN_PLAIN)
    ]
    assert [each.ended.exit_code for each in (first, second)] == [0, 0]
    assert (first.versions, first.requested.count(f"{MARKS}{JAR}")) == (second.versions, 1)
    # Whether the part before the mark is an archive is asked, and nothing in one ever is.
    assert {url for url in first.requested + second.requested if "!/" in url} == {f"{MARKS}{JAR}"}


def test_d4_archive_when_its_own_path_has_the_mark_then_its_files_change_and_go_with_it(project: CrawlProject) -> None:
    run(project)
    put(project, JAR, **{"a.txt": b"estragon"})
    run(project)
    changed = [project.found(word) for word in ("estragon", "tarragon")]
    project.site.set_page(MARKS, JAR, "", status=404)

    gone = run(project)

    assert changed == [[IN_JAR[0]], []]
    assert (project.found("estragon"), gone.codes[IN_JAR[0]]) == ([], 404)
    assert project.found("sumac") == [IN_PLAIN]


@pytest.mark.parametrize(("status", "code", "stays"), [(200, 903, True), (403, 903, True), (404, 404, False)])
def test_d5_archive_when_it_is_not_called_like_one_then_files_of_inner_ones_go_with_evidence_only(
    project: CrawlProject, status: int, code: int, stays: bool
) -> None:
    run(project)
    project.site.set_page(MARKS, PLAIN, page("repairs", text="come back later"), status=status)

    second = run(project)

    assert (second.codes[IN_PLAIN], project.found("sumac") == [IN_PLAIN]) == (code, stays)
    assert [project.found(word) for word in ("juniper", "tarragon")] == [[each] for each in IN_JAR]


def test_l8_archive_when_its_files_are_alike_but_for_numbers_then_all_are_indexed(project: CrawlProject) -> None:
    words = " ".join(f"boilerplate{number}" for number in range(60))
    put(project, "/inv.zip", **{f"invoice-{number:03}.txt": f"{words} no {number}".encode() for number in range(60)})
    project.site.set_page(MARKS, "/", page("start", "/inv.zip"))
    project.edit(**source(project.site, MARKS, scope={"trap_after": 20, "max_urls_per_pattern": 30}))

    first = run(project)

    assert sum("!/invoice-" in url for url in first.versions) == 60
    assert (first.ended.exit_code, 961 in first.codes.values()) == (0, False)


def test_c8_archive_when_files_are_called_like_parameters_then_each_is_a_document(project: CrawlProject) -> None:
    put(project, "/get?f=pack.zip", **{"a&utm_source=1.txt": b"lovage", "a;jsessionid=2.txt": b"savory"})
    project.site.set_page(MARKS, "/", page("start", "/get?f=pack.zip"))

    run(project)

    assert [project.found(word) for word in ("lovage", "savory")] == [
        [f"{MARKS}/get?f=pack.zip!/a&utm_source=1.txt"],
        [f"{MARKS}/get?f=pack.zip!/a;jsessionid=2.txt"],
    ]
