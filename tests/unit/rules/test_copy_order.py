"""Which of several copies is better, by their URLs and what they have in common (F2)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from searchcrawl.rules.copy_order import CopyOrder, build_order, describe_preference, find_fit, rank
from tests import growth

SITE = "http://a.test"


def order(url: str, *, language: str = "en", title: str = "", text: str = "", redirected: bool = False) -> CopyOrder:
    url = url if "://" in url else SITE + url
    return build_order(url, redirected=redirected, url_fit=find_fit(url, language=language, title=title, text=text))


def test_rank_when_urls_differ_then_no_query_few_segments_short_and_first_by_alphabet() -> None:
    ordered = ["http://a.test/a.html", "http://a.test/b.html", "http://a.test/longer.html", "http://a.test/deep/a.html"]

    assert sorted(["http://a.test/x?id=1", *ordered[::-1]], key=rank) == [*ordered, "http://a.test/x?id=1"]


@pytest.mark.parametrize(
    ("language", "urls"),
    [
        # Its own folder, no folder of a language, that of another one.
        ("en", ["/long/way/en/page.html", "/a.html", "/cs/a.html"]),
        ("cs", ["/cs/page.html", "/a.html", "/en/a.html"]),
        ("pt-br", ["/pt_BR/a.html", "/pt/a.html", "/a.html", "/en/a.html"]),
        ("pt", ["/pt/a.html", "/pt-BR/a.html", "/a.html", "/en-us/a.html"]),
        ("zh-cn", ["/zh_CN/a", "/zh-tw/a", "/b/a", "/ja/a"]),
        ("zh", ["/cn/b", "/ab/b", "/jp/b"]),
        ("sr", ["/sr@latin/a.html", "/a.html", "/hr/a.html"]),
        ("nb", ["/no/a", "/b/a", "/sv/a"]),
        # A language that no list has, and words that are of none.
        ("ast", ["/ast/a", "/man/a", "/es/a"]),
        # Hosts, but for their domains.
        ("de", ["http://de.a.test/page", "http://www.a.test/page", "http://fr.a.test/a"]),
        ("de", ["http://b.fr/page", "http://a.test/page"]),
        # Names of files; .pl is Perl.
        ("en", ["/index.en.html", "/index.html", "/index.cs.html"]),
        ("fr", ["/page.html.fr", "/page.html", "/page.html.de"]),
        ("en", ["/page.pl", "/page.cgi"]),
        ("en", ["/en", "/eng", "/de"]),
        # Ends of names, but for words.
        ("en", ["/guide-en/a", "/guide-it/a", "/guide-de/a"]),
        ("pt-br", ["/readme_pt_BR.html", "/readme.html", "/readme-en.html"]),
        ("en", ["/user-id", "/user-ids", "/user-de"]),
        ("it", ["/guide-it/b", "/guide/a", "/guide-en/a"]),
        # Parameters that tell it.
        ("en", ["/a?lang=en", "/a?id=cs", "/a?lang=cs"]),
        # Both: its own one counts.
        ("en", ["/en/cs/lecture", "/cs/lecture", "/de/cs/lecture"]),
    ],
)
def test_copies_when_urls_name_languages_then_that_of_the_text_is_better_than_none_and_none_than_another(
    language: str, urls: list[str]
) -> None:
    orders = [order(url, language=language) for url in urls]

    assert all(better < worse for better, worse in pairwise(orders))


def test_copies_when_their_language_is_not_known_then_the_languages_of_urls_say_nothing() -> None:
    assert order("/cs/a", language="") < order("/en/a", language="")


@pytest.mark.parametrize(
    ("title", "text", "urls"),
    [
        ("Postfix manual - smtp(8)", "SMTP(8)\nsmtp, lmtp", ["/smtp.8.html", "/lmtp.8.html"]),
        ("Postfix manual - sendmail(1)", "", ["/sendmail.1.html", "/mailq.1.html"]),
        ("ACME", "Getting started with pumps\nmore", ["/long/getting-started.html", "/a.html"]),
        # The title before the first line, and both before nothing.
        ("Pumps", "Pumps and valves", ["/all/pumps", "/valves", "/a"]),
        ("Pumpen für Öl", "", ["/pumpen-f%C3%BCr-%C3%B6l.html", "/1234.html"]),
        # A folder is what its index is, and a print version of a page is not the page.
        ("Pumps - ACME", "", ["/pumps/", "/pumps/index.html", "/print"]),
        ("Pumps", "", ["/shop/pumps/", "/shop/pumps/print.html"]),
        # The start page of a host needs no name.
        ("Welcome to ACME", "", ["/", "/index.html", "/welcome-to-acme"]),
        # Letters and numbers alone are no names.
        ("Part 1 of a book", "", ["/1", "/2", "/a"]),
    ],
)
def test_copies_when_the_name_of_one_is_in_the_title_then_it_is_better(title: str, text: str, urls: list[str]) -> None:
    orders = [order(url, title=title, text=text) for url in urls]

    assert all(better < worse for better, worse in pairwise(orders))


def test_copies_when_all_differ_then_it_is_said_why_one_stands_for_the_other() -> None:
    asked = [
        (order("/long/way"), order("/a", redirected=True)),
        (order("/en/page"), order("/cs/page")),
        (order("/way/pumps", text="pumps"), order("/a", text="pumps")),
        (order("/smtp", title="smtp"), order("/lmtp", title="smtp")),
        (order("/b/c"), order("/a?b")),
        (order("/bbbb"), order("/a/a")),
        (order("/b"), order("/aa")),
        (order("/a"), order("/b")),
        (build_order("/a", redirected=False, url_fit=8, place=-1), build_order("/a", redirected=False, url_fit=8)),
        (order("/b"), order("/a")),
    ]

    assert [describe_preference(better, worse) for better, worse in asked] == [
        "it redirects, and that one answers itself",
        "its URL names another language than that of the text, that one exactly the language of the text",
        "the first line of the text has the name of that URL, and not of its own",
        "the title has the name of that URL, and not of its own",
        "its URL has a query",
        "its URL has more segments",
        "its URL is longer",
        "that URL is the first by alphabet",
        "the source of that one is the first by name",
        None,
    ]


@pytest.mark.parametrize("piece", ["/en", ".en", "-en", "_e", "en.", "&lang=en", "%41", "a b"])
def test_fit_when_url_title_and_text_are_long_then_it_takes_time_that_grows_with_them_alone(piece: str) -> None:
    growth.assert_linear(
        lambda text: find_fit(f"{SITE}/{text}", language="de", title=text, text=text),
        lambda size: piece * size,
        smallest=1_000,
        largest=64_000,
        factor=4,
    )


def test_start_page_when_a_folder_names_its_language_then_it_stands_for_that() -> None:
    text = "Welcome to the harbour of a small town by the sea"

    start, folder = (
        find_fit(url, language="en", title="Welcome", text=text) for url in ("http://a.test/", "http://a.test/en/")
    )

    assert start <= folder
