"""How well the main content of pages is found: `python -m benchmarks.main_text`.

The pages are of sixteen generators of documentation, from Debian packages or made here; the truth is the text of the
container in which each of them puts its content. Half of the generators were fixed as unseen before any rule was written.
Compared are words, with their numbers: F1 and recall of each page, their means over the pages of a generator and over the
generators. resiliparse and trafilatura are measured beside it where they are installed (the extra `bench`).
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.bench import WORK
from benchmarks.material import unpacked
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.page import parse_html

OUT: Final = WORK / "main_text"
_WORD: Final = re.compile(r"\w+")
_RULE: Final = re.compile(r"<hr[^>]*>", re.IGNORECASE)
_FEWEST_WORDS: Final = 10
_MOST_BYTES: Final = 400_000

Extract = Callable[[bytes], str]


class Generator(NamedTuple):
    """What makes pages: the packages with patterns of their files, and the selector of its content without some parts."""

    seen: bool
    files: Sequence[tuple[str, str]]
    content: str
    without: str = ""


_DOCBOOK: Final = (
    ".chapter, .sect1, .sect2, .section, .refentry, .part, .book, .appendix, .preface, .index, .glossary, .bibliography,"
    " .article, .set, .reference"
)
_LANG3: Final = "usr/share/doc/libcommons-lang3-java/api/org/**/*.html"
_RUST: Final = "usr/share/doc/rust-doc/html"
GENERATORS: Final[dict[str, Generator]] = {
    "Asciidoctor (git-doc)": Generator(True, [("git-doc", "usr/share/doc/git-doc/**/*.html")], "#content"),
    "DocBook": Generator(True, [("postgresql-doc-15", "**/*.html"), ("debian-reference-en", "**/*.html")], _DOCBOOK),
    "Javadoc": Generator(True, [("openjdk-17-doc", "**/*.html"), ("libcommons-lang3-java-doc", _LANG3)], "main"),
    "MkDocs": Generator(True, [("mkdocs-doc", "**/*.html")], "[role=main]"),
    "Texinfo": Generator(
        True,
        [("maxima-doc", "**/maxima_*.html"), ("zsh-doc", "**/*.html"), ("r-doc-html", "usr/share/doc/**/*.html")],
        "body",
        ".header, .nav-panel, .navigation",
    ),
    "XSLT (apache2-doc)": Generator(True, [("apache2-doc", "**/manual/en/**/*.html")], "#page-content"),
    "mdBook": Generator(True, [("rust-doc", f"{_RUST}/book/*.html"), ("rust-doc", f"{_RUST}/cargo/**/*.html")], "main"),
    "rustdoc": Generator(True, [("rust-doc", f"{_RUST}/std/**/*.html")], "#main-content"),
    "a blog (Pelican)": Generator(False, [("blog", "**/*.html")], "#content"),
    "Doxygen": Generator(False, [("libeigen3-doc", "**/*.html")], ".contents"),
    "man2html": Generator(False, [("man2html", "*.html")], ""),
    "Sphinx": Generator(False, [("python3.11-doc", "**/*.html"), ("cmake-doc", "**/*.html")], "[role=main]"),
    "a wiki (ikiwiki)": Generator(False, [("ikiwiki", "**/*.html")], "#pagebody"),
    "gtk-doc": Generator(False, [("libglib2.0-doc", "**/*.html")], "body", "table.navigation, .footer"),
    "QDoc": Generator(False, [("qtbase5-doc-html", "**/*.html")], ".mainContent", ".sidebar"),
    "scripts (sqlite3-doc)": Generator(False, [("sqlite3-doc", "**/*.html")], "body", ".nosearch, .searchmenu, .menu"),
}


def main() -> int:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.main_text", description="See benchmarks/main_text.py.")
    parser.add_argument("--pages", type=int, default=60, help="of each generator (60)")
    arguments = parser.parse_args()
    extractors = _list_extractors()
    print(f"| generator | pages | {' | '.join(f'{name} F1, recall' for name in extractors)} |")
    print(f"| --- | ---: |{' ---: |' * len(extractors)}")
    means: dict[bool, list[list[Score]]] = {True: [], False: []}
    for name, generator in GENERATORS.items():
        pages = list(_find_pages(generator, arguments.pages))
        if not pages:
            print(f"main_text: no pages of {name}", file=sys.stderr)
            continue
        scores = [_mean([score(extract(body), truth) for body, truth in pages]) for extract in extractors.values()]
        means[generator.seen].append(scores)
        print(f"| {name} | {len(pages)} | {' | '.join(map(str, scores))} |", flush=True)
    for seen, rows in means.items():
        columns = [_mean(column) for column in zip(*rows, strict=True)]
        print(f"| **{'seen' if seen else 'unseen'}: mean** | | {' | '.join(map(str, columns))} |")
    return 0


class Score(NamedTuple):
    """How well the words of a text are those of the truth."""

    f1: float
    recall: float

    def __str__(self) -> str:
        return f"{self.f1:.3f}, {self.recall:.3f}"


def score(text: str, truth: Counter[str]) -> Score:
    """The score of a text; each word counts as often as it comes."""
    found = count_words(text)
    common = (found & truth).total()
    return Score(2 * common / max(1, found.total() + truth.total()), common / truth.total())


def count_words(text: str) -> Counter[str]:
    """The words of a text, without regard to case."""
    return Counter(word.lower() for word in _WORD.findall(text))


def _mean(scores: Sequence[Score]) -> Score:
    return Score(fmean(one.f1 for one in scores), fmean(one.recall for one in scores))


def _list_extractors() -> dict[str, Extract]:
    found: dict[str, Extract] = {"main": _ours(main=True), "all": _ours(main=False)}
    if importlib.util.find_spec("resiliparse"):
        from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  # it may be missing

        found["resiliparse"] = lambda body: str(extract_plain_text(body.decode("utf-8", "replace"), main_content=True))
    if importlib.util.find_spec("trafilatura"):
        import trafilatura  # noqa: PLC0415  # it may be missing

        found["trafilatura"] = lambda body: (
            trafilatura.extract(body.decode("utf-8", "replace"), favor_recall=True) or ""
        )
    return found


def _ours(*, main: bool) -> Extract:
    rules = TextRules(main=main)

    def extract(body: bytes) -> str:
        page = parse_html(
            body,
            ConversionContext(
                url="http://docs.test/page",
                headers=((b"Content-Type", b"text/html"),),
                default_charset="utf-8",
                user_agent="bench",
                text_rules=rules,
            ),
        )
        return page.text

    return extract


def _find_pages(generator: Generator, most: int) -> Iterator[tuple[bytes, Counter[str]]]:
    """Some pages of a generator, each with the words of its content; the same in each run."""
    made = {"blog": _make_blog, "man2html": _make_manuals}
    for package, pattern in generator.files:
        root = made[package]() if package in made else unpacked(OUT, package)
        files = sorted(path for path in root.glob(pattern) if path.is_file() and not path.is_symlink())
        random.Random(7).shuffle(files)
        left = most / len(generator.files)
        for path in files:
            if left <= 0:
                break
            body = path.read_bytes()
            truth = count_words(_read_content(body, generator)) if len(body) <= _MOST_BYTES else Counter[str]()
            if truth.total() >= _FEWEST_WORDS:
                left -= 1
                yield body, truth


def _read_content(body: bytes, generator: Generator) -> str:
    """The text of the container of the content; of a page of man2html, what is between its first two rules."""
    if not generator.content:
        parts = _RULE.split(body.decode("utf-8", "replace"))
        body = b"" if len(parts) < 3 else parts[1].encode()
    parser = LexborHTMLParser(body, scripting=True)
    for silent in ("script", "style", "template", "noscript", *filter(None, [generator.without])):
        for node in parser.css(silent):
            node.decompose()
    found = parser.css(generator.content or "body")
    ids = {node.mem_id for node in found}
    return " ".join(node.text(separator=" ") for node in found if not _is_within(node, ids))


def _is_within(node: LexborNode, ids: set[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in ids:
            return True
        parent = parent.parent
    return False


def _make_manuals() -> Path:
    """Manual pages as man2html writes them."""
    folder = OUT / "man2html"
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        program = unpacked(OUT, "man2html-base") / "usr/bin/man2html"
        manuals = sorted(unpacked(OUT, "manpages").glob("usr/share/man/man*/*.gz"))
        for path in manuals[::3][:80]:
            source = gzip.decompress(path.read_bytes())
            page = subprocess.run([program, "-r"], input=source, capture_output=True, check=True).stdout
            (partial / f"{path.stem}.html").write_bytes(page.partition(b"\n\n")[2])
        partial.rename(folder)
    return folder


def _make_blog() -> Path:
    """A blog of release notes, with the theme that Pelican has by default."""
    folder, notes = OUT / "blog", sorted(Path("/usr/share/doc/git/RelNotes").glob("*"))
    if folder.is_dir() or not notes or not importlib.util.find_spec("pelican"):
        return folder
    source = OUT / "blog-source"
    (source / "content").mkdir(parents=True, exist_ok=True)
    random.Random(1).shuffle(notes)
    for number, path in enumerate(notes[:70]):
        raw = path.read_bytes()
        title, *lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace").splitlines()
        head = (
            f"Title: {title.strip() or path.stem}\nDate: 2020-{number % 12 + 1:02d}-{number % 27 + 1:02d}\n"
            f"Category: {('Releases', 'Fixes', 'News')[number % 3]}\nTags: git, release{number % 5}\nAuthor: A{number % 4}\n\n"
        )
        (source / "content" / f"{number}.md").write_text(head + "\n".join(lines[1:]), encoding="utf-8")
    (source / "pelicanconf.py").write_text(_PELICAN, encoding="utf-8")
    command = [sys.executable, "-m", "pelican", str(source / "content"), "-o", str(folder)]
    subprocess.run([*command, "-s", str(source / "pelicanconf.py")], check=True, capture_output=True)
    return folder


_PELICAN: Final = """\
AUTHOR = "A"
SITENAME = "Notes of a release manager"
SITEURL = ""
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
FEED_ALL_ATOM = CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = None
LINKS = (("Pelican", "http://pelican.test/"), ("Python", "http://python.test/"), ("A friend", "http://friend.test/"))
SOCIAL = (("mastodon", "http://m.test"), ("github", "http://g.test"))
"""


if __name__ == "__main__":
    sys.exit(main())
