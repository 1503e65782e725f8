"""Pages that declare neither charset nor language are found by their words and known by their language (C9, X-D5, D2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, Story, Tell, page, run, source
from tests.languages import TEXTS
from tests.site.client import SiteProcess
from tests.site.expected import short

HOST = "words.acme.test"
#: Charset, word that is looked for.
PAGES = {
    "ja": ("euc_jp", "図書館"),
    "ru": ("windows-1251", "библиотека"),
    "de": ("windows-1252", "Bibliothek"),
    "fr": ("utf-8", "bibliothèque"),
    "zh": ("gb18030", "图书馆"),
    "ko": ("euc_kr", "도서관"),
    "el": ("utf-8", "βιβλιοθήκη"),
    "pl": ("utf-8", "biblioteka"),
    "es": ("utf-8", "bibliotecas OR biblioteca"),
}
#: Words in another form than on the page, found because the language of the page was told.
FORMS = {
    "de": "Bibliotheken Feiertag", "fr": "bibliothèques férié", "es": "contratos puentes", "ru": "библиотеку договоры",
    "ja": "図書館で 契約書は", "zh": "图书馆开门", "ko": "도서관에서 공휴일을",
}  # fmt: skip
TOLD = "told.acme.test"
BYTES = "<html><title>Menu</title><body><p>café moules frites, {}</p></body></html>"
FOUND: dict[str, Any] = {}


def _undeclared(project: CrawlProject) -> list[Run]:
    site = project.site
    anchors = "".join(f"<a href=/{name}.html>{name}</a>" for name in [*PAGES, "declared", "header", "short"])
    site.set_page(HOST, "/", f"<p>{anchors}")
    for language, (charset, _) in PAGES.items():
        text = "".join(f"<p>{line}" for line in TEXTS[language] * 2)
        site.set_page(HOST, f"/{language}.html", f"<title>{TEXTS[language][0]}</title>{text}".encode(charset),
                      content_type="text/html")  # fmt: skip
    site.set_page(HOST, "/declared.html", f"<html lang=nl><p>{TEXTS['en'][0]}")
    site.set_page(HOST, "/header.html", f"<p>{TEXTS['en'][1]}", headers={"Content-Language": "sv-SE"})
    site.set_page(HOST, "/short.html", "<p>4711")
    project.edit(**source(site, HOST, default_language="fi"))
    first = run(project)
    FOUND["languages"] = {
        hit.fields["url"].rpartition("/")[2].partition(".")[0]: hit.fields.get("language") for hit in project.hits("*")
    }
    FOUND["words"] = {language: project.found(word) for language, (_, word) in PAGES.items()}
    FOUND["forms"] = {language: project.found(words) for language, words in FORMS.items()}
    return [first, run(project)]


def _several(project: CrawlProject) -> list[Run]:
    site = project.site
    site.set_page(HOST, "/", "<p>" + "".join(f"<a href=/{name}.html>{name}</a>" for name in ("both", "wrong", "part")))
    lines = {language: "".join(f"<p>{line}" for line in TEXTS[language] * 2) for language in TEXTS}
    site.set_page(HOST, "/both.html", f"<html lang=de-AT>{lines['ru']}{lines['de']}")
    site.set_page(HOST, "/wrong.html", f"<html lang=en>{lines['it']}")
    site.set_page(
        HOST, "/part.html", f"<html lang=en><body lang=pl>{lines['en']}<div lang=fr>{lines['fr']}</div>{lines['pl']}"
    )
    project.edit(**source(site, HOST))
    first = run(project)
    FOUND["several"] = {short(hit.fields["url"]): hit.fields.get("languages") for hit in project.hits("*")}
    FOUND["in both"] = {words: project.found(words) for words in ("Bibliotheken Feiertag", "библиотеку договоры")}
    FOUND["told by"] = {
        name: project.command("explain", f"{site.url(HOST, '/')}{name}.html").stdout for name in ("both", "wrong")
    }
    return [first, run(project)]


STORIES: dict[str, Story] = {"undeclared": _undeclared, "several": _several}


def test_c9_page_when_neither_charset_nor_language_is_declared_then_found_by_its_words(tell: Tell) -> None:
    first, again = tell("undeclared")

    assert FOUND["words"] == {language: [f"{HOST}/{language}.html"] for language in PAGES}
    assert FOUND["forms"] == {language: [f"{HOST}/{language}.html"] for language in FORMS}
    assert len(first.in_index) == len(PAGES) + 4
    assert again.counts["indexed"] == 0


def test_c9_language_when_declared_detected_or_neither_then_that_of_the_page_the_text_or_the_default(
    tell: Tell,
) -> None:
    tell("undeclared")

    assert {name: FOUND["languages"][name] for name in PAGES} == {name: name for name in PAGES}
    assert FOUND["languages"]["declared"] == "nl"
    assert FOUND["languages"]["header"] == "sv-se"
    assert FOUND["languages"]["short"] == "fi"


def test_c9_languages_when_a_page_has_two_or_declares_a_wrong_one_then_all_of_its_text_are_known(tell: Tell) -> None:
    _, again = tell("several")

    assert FOUND["several"] == {
        f"{HOST}/": None,
        f"{HOST}/both.html": ["de-at", "ru"],
        f"{HOST}/wrong.html": ["it"],
        f"{HOST}/part.html": ["pl", "fr", "en"],
    }
    assert FOUND["in both"] == {key: [f"{HOST}/both.html"] for key in FOUND["in both"]}
    assert 'language "de-at" (declared), also "ru"' in " ".join(FOUND["told by"]["both"].split())
    assert 'language "it" (by its text)' in " ".join(FOUND["told by"]["wrong"].split())
    assert again.counts["indexed"] == 0


def seen(project: CrawlProject) -> dict[str, tuple[bool, object, object]]:
    """By page: whether its text is found as it is, its language and its type."""
    found = set(project.found("café"))
    return {
        short(hit.fields["url"]).partition("/")[2]: (
            short(hit.fields["url"]) in found, hit.fields.get("language"), hit.fields["mimetype"]
        )
        for hit in project.hits("moules")
    }  # fmt: skip


def test_pages_when_only_headers_that_say_how_to_read_them_change_then_they_are_read_again_once(
    site: SiteProcess, tmp_path: Path
) -> None:
    names = ("charset", "language", "type")
    site.set_page(TOLD, "/", page("start", *(f"/{name}" for name in names)))
    for name in names:
        # UTF-8 would be read as what it is, whatever the header says.
        encoding, said = ("latin-1", "windows-1251") if name == "charset" else ("utf-8", "utf-8")
        kind, body = f"text/html; charset={said}", BYTES.format(name).encode(encoding)
        site.set_page(TOLD, f"/{name}", body, content_type=kind, etag=None, last_modified=None)
    project = new_project(tmp_path, site, **source(site, TOLD))
    run(project)
    before = seen(project)
    site.set_page(TOLD, "/charset", content_type="text/html; charset=iso-8859-1")
    site.set_page(TOLD, "/language", headers={"Content-Language": "ca"})
    site.set_page(TOLD, "/type", content_type="text/plain; charset=utf-8")
    second = run(project)
    after = seen(project)
    third = run(project)

    assert [before[name][0] for name in names] == [False, True, True]
    assert [after[name][0] for name in names] == [True, True, True]
    assert (before["language"][1] != "ca", after["language"][1]) == (True, "ca")
    assert (before["type"][2], after["type"][2]) == ("text/html", "text/plain")
    assert (second.counts["changed"], third.counts["changed"]) == (3, 0)
