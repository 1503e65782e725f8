"""Readers of bodies that become documents, or are a login form."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from searchcrawl.convert.html_converter import HTML, convert_html_again
from searchcrawl.convert.pdf_converter import convert_pdf
from searchcrawl.convert.registry import Registry
from searchcrawl.convert.text_converter import TEXT, convert_text
from searchcrawl.documents.digests import compute_body_digest, compute_fields_digest
from searchcrawl.exceptions import ConversionFailed, DocumentError
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.encoding import decode, describe_reading
from searchcrawl.html.page import expand_empty
from searchcrawl.html.raw_page import find_raw_refresh, has_password_field, has_scripts, needs_scripts, read_shell
from searchcrawl.http.unread_bodies import UnreadBodies
from searchcrawl.kinds.web.login.form import LoginFailed, fill_form
from searchcrawl.rules.lifecycle import digest_unread
from searchcrawl.sources.fetch_tables import Login
from tests.readers.declaring import BODY, ODD_BYTES, URL, declare

_CONTEXT: Final = ConversionContext(
    url=URL,
    headers=((b"Content-Type", b"text/html"),),
    user_agent="searchcrawl",
    attribute_origins=frozenset({"meta:keywords", "jsonld:name", "jsonld:author", "jsonld:a.a.a.a.b"}),
    text_rules=TextRules(main=True, keep=("[x]",), drop=("b, i", "[hidden]")),
)
#: What pages are made of, of all kinds that a parser treats in its own way.
MARKUP: Final = (
    *("<p>", "<p>x", "</p>", "<div>", "</div>", "<a href={n}>", "<a href='../x'>y</a>", "<b>", "<b a={n}>", "</b>"),
    *(
        "<font color={n}>",
        "<span>",
        "</span>",
        "<table>",
        "<tr>",
        "<td>",
        "</table>",
        "<select>",
        "<option>x",
        "</select>",
    ),
    *(
        "<form method=post>",
        "<input type=password name=p>",
        "<input name=u{n}>",
        "<textarea>",
        "</textarea>",
        "<title>",
        "x",
    ),
    *(
        "<meta name=robots content=noindex>",
        "<meta name=author content='",
        "<meta charset=",
        "<meta http-equiv=refresh ",
    ),
    *(
        "content='1;url=",
        "content='unavailable_after: ",
        "<base href=",
        "<link rel=canonical href=",
        "<script>",
        "</script>",
    ),
    *(
        "<script type='application/ld+json'>",
        '{"name":',
        '[{"author":"x"},',
        '{"a":[',
        '{"a.a":',
        '"@graph":[',
        "<style>",
        "<template>",
        "<noscript>",
    ),
    *(
        "<svg>",
        "<math>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!doctype html>",
        "<html a{n}>",
        "<body b{n}>",
        "<frameset>",
    ),
    *(
        "<li>",
        "<ul>",
        "</z>",
        "<x-y>",
        "<a",
        "<",
        ">",
        "/",
        "=",
        "'",
        '"',
        " ",
        "\n",
        "&amp;",
        "&#{n};",
        "&",
        "\0",
        "é",
    ),
    *("<nav>", "</nav>", "<main>", "</main>", "<header>", "<article>", "<div role=main>", "<div class='menu x{n}'>"),
    *(
        "<ul id=content>",
        "<p hidden>",
        "<p style='display:none'>",
        "<td data-nosnippet>",
        "<b x>",
        "<!--googleoff: all-->",
    ),
    *("<!--googleon: all-->", "\x02", "\x03", "\x04", "\x02\x10", "\x02\x13", " class=nav", " hidden"),
    *("<video>", "</video>", "<canvas>", "<datalist>", "<embed src={n}>", "<object data={n}>", "</title>", "<mi>"),
    *("</form>", "<fieldset disabled>", "<legend>", " form=f", "<form id=f>", "<button formaction=x>", " multiple"),
    *(" a{n}=1", " b='c'", "<iframe src={n}>", "<object>", "<button>", "\xa0", "\x0b", "あ", "\x01"),
    *("<div lang=de>", "<body LANG=fr>", "<td lang = 'x{n}'>", " lang=it"),
)


@declare(
    *("<p", "<br", "<title", "/>", ">", " a='", ' b="', "'", '"', "=", " ", "/", "<", "x", "</title>"),
    most=BODY,
    grown=[
        lambda n: "<a" * n + "/>",
        lambda n: "<a" + " b='>'" * n + "/>",
        lambda n: "<a b='" + "/>" * n,
        lambda n: "<a" + " " * n + "/>",
        lambda n: "<p a='x'" * n + "/>",
    ],
)
def xhtml(body: bytes) -> None:
    expand_empty(body.decode("latin-1"))


@declare(*MARKUP, *ODD_BYTES, most=BODY)
def page(body: bytes) -> None:
    converted = HTML.convert(body, _CONTEXT)
    again = convert_html_again(body, _CONTEXT, converted.text)
    head = replace(converted, links=(), malformed=(), whole="", whole_digest="", headings=(), naming=0, fallback=None)
    assert again in {None, head}
    HTML.choose_place(body)
    told = ((b"Content-Type", b"text/html; charset=koi8-r"), (b"Content-Language", body[:33]))
    reading = describe_reading(body, told, "text/html")
    compute_body_digest(body, robots_tags=converted.title, canonical=converted.canonical or "", reading=reading)
    compute_fields_digest(converted, known=body[:33])


@declare(*("a", " ", "\n", "\r\n", "\x0c", "\x85", "\u2028", "あ", "{n}\n", "\0"), *ODD_BYTES, most=BODY)
def plain_text(body: bytes) -> None:
    convert_text(body, _CONTEXT)
    TEXT.choose_place(body)


@declare(
    *(
        "%PDF-1.7\n",
        "{n} 0 obj<<",
        ">>endobj\n",
        "/Type/Catalog/Pages 2 0 R",
        "/Kids[{n} 0 R]",
        "stream\n",
        "endstream\n",
    ),
    *(
        "xref\n0 5\n",
        "0000000010 00000 n \n",
        "trailer<</Root 1 0 R>>",
        "startxref\n9\n%%EOF",
        "/Title(",
        ")",
        "[",
        "]",
    ),
    most=BODY,
    raises=(ConversionFailed,),
    linear=False,
)
def pdf(body: bytes) -> None:
    convert_pdf(body, _CONTEXT)


@declare(
    *(
        "<!---->",
        "<!-- -->\n",
        "<!--",
        "-->",
        "<?xml >",
        "<?xml ",
        " ",
        "<!doctype html>",
        "<html ",
        "<p>",
        "%PDF-",
        "{",
    ),
    *("PK\x03\x04", "\0", "x", b"\x1f\x8b", b"\xff\xfe"),
    most=BODY,
    raises=(DocumentError,),
    grown=[
        lambda n: "<!---->" * n + "x",
        lambda n: "<!-- -->\n" * n + "<p>",
        lambda n: "<!--" * n,
        lambda n: "<?xml >" * n + "x",
        lambda n: "<?xml " * n,
        lambda n: " " * n + "x",
        lambda n: "<!doctype " + " " * n,
        lambda n: ("<!---->" + "<?xml>") * n + "x",
        lambda n: "%PDF-1.4\n" + "1 0 ob" * n,
        lambda n: "{\\rtf1 " + "\0" * n + "x",
    ],
)
def beginning(body: bytes) -> None:
    registry = Registry()
    for url in ("", "http://a.test/x.rst"):
        registry.choose(registry.find_mimetype(body, (), url), body, ())
    headers = ((b"Content-Type", b"text/plain"),)
    # What the handler asks of the beginning of a body, and what is kept of one that nothing reads.
    if UnreadBodies(registry.reads_nothing).has(URL, headers, body):
        digest_unread(body)
    registry.choose(registry.find_mimetype(body, headers), body, headers)


@declare(
    *("<meta ", "charset", "=", "'", '"', "utf-8", "shift_jis", "euc-jp", "x-user-defined", "utf-16", "http-equiv="),
    *("content-type", " content='", "<!--", "-->", "<?xml ", " encoding=", "<a ", ">", "/", " ", "text/html;", "é"),
    *ODD_BYTES,
    most=BODY,
    grown=[
        lambda n: "<meta " * n + "charset",
        lambda n: "<meta charset=" + " " * n,
        lambda n: "<!--" * n + "charset",
        lambda n: "charset" + "<\xe9" * n,
        lambda n: "\xe9" + "<a" * n,
        lambda n: "<?xml " + "encoding " * n,
        lambda n: "<meta http-equiv=content-type content='" + "charset" * n + "'>",
        # UTF-8 as all but the header says, with a broken letter, and of few letters.
        lambda n: "\xe9\u2026" * n,
        lambda n: "\xc3\xa9" * 99 + "\xe9" * n,
        lambda n: "A\xc3\xa9" * n,
    ],
)
def encoding(body: bytes) -> None:
    for content_type in ("", "text/html; charset=iso-8859-1", "text/html; charset=utf-16", "text/html; charset=gbk"):
        decode(body, content_type=content_type, default_charset="windows-1252")


@declare(
    *("<input ", "<input", " type=password", "type", "=", " ", "'", '"', " name=", "p", ">", "password"),
    most=BODY,
    grown=[lambda n: "<input " * n, lambda n: "<input type" + " " * n],
)
def password(body: bytes) -> None:
    has_password_field(body)
    has_password_field(body, "p")


@declare(
    *(
        "<script",
        "</script>",
        "<noscript>",
        "javascript",
        "<!--",
        "-->",
        "<div id=root>",
        "</div>",
        "<app-root>",
        "<",
        ">",
    ),
    *("<svg>", "</svg", "/>", " ", "\n", "x", " id = ", "'app'", "<div id=root><!--"),
    most=BODY,
)
def shell(body: bytes) -> None:
    has_scripts(body)
    needs_scripts(body, "")
    read_shell(body)
    read_shell(body, enough=1500)


@declare(
    *("<meta ", " http-equiv=", "refresh", " content=", "1;url=", "'", '"', " ", "=", ">", "&amp;", "x"), most=BODY
)
def raw_refresh(body: bytes) -> None:
    find_raw_refresh(body)


@declare(
    *("<form method=post action=", "<form>", "</form>", "<input type=password name=p>", "<input name=u{n} value=x>"),
    *(
        "<select name=s{n}>",
        "<option value=1>",
        "<option selected>",
        "</select>",
        "<textarea name=t>",
        "<button name=b>",
    ),
    *("<base href=", "http://[", "x>", "<div>", "'", '"', ">", " ", "<label>", "<input type=checkbox checked name=c>"),
    most=BODY,
    raises=(LoginFailed,),
    # What is around each control, or each option, has many attributes, or long ones.
    grown=[
        lambda n: "<form method=post><fieldset a='" + "€" * (100 * n) + "'>" + "<input type=password name=p>" * n,
        lambda n: (
            f"<form method=post><input type=password name=p><select name=s><optgroup a='{'€' * (100 * n)}'>"
            + "<option>" * n
        ),
        lambda n: (
            "<form method=post><fieldset "
            + "".join(f"a{each} " for each in range(n))
            + ">"
            + "<input type=password name=p>" * n
        ),
    ],
)
def login_form(body: bytes) -> None:
    text, charset = decode(body, content_type="", default_charset="windows-1252")
    fill_form(text, url=URL, charset=charset, login=Login(username="u", password="p"))
