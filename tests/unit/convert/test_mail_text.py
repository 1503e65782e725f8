"""What is written in mails, as a library that gets them reads it."""

from __future__ import annotations

import base64
import quopri

import pytest

from searchcrawl.convert.document_converter import convert_document
from searchcrawl.convert.mail_text import simplify_mail
from searchcrawl.html.context import ConversionContext
from tests.office_files import make_message

HTML = "<html><style>p { color: teal }</style><p>Grüße</p><script>alert(1)</script><!-- hidden --></html>"
PARTS = b"Subject: s\r\nMIME-Version: 1.0\r\nContent-Type: multipart/%b; boundary=b\r\n\r\n%b--b--\r\n"


def text_of(mail: bytes, *, mimetype: str = "message/rfc822", default_charset: str = "windows-1252") -> str:
    context = ConversionContext(url="http://a.test/x", mimetype=mimetype, default_charset=default_charset)
    return convert_document(mail, context).text


def write_part(kind: str, content: bytes, *further: str) -> bytes:
    head = "\r\n".join(["--b", f"Content-Type: {kind}", *further, "", ""])
    return head.encode() + content + b"\r\n"


@pytest.mark.parametrize(
    ("further", "content"),
    [
        ("", HTML.encode()),
        ("Content-Transfer-Encoding: 8BIT\r\n", HTML.encode()),
        ("Content-Transfer-Encoding: base64\r\n", base64.encodebytes(HTML.encode()).rstrip(b"=\n")),
        ("Content-Transfer-Encoding: quoted-printable\r\n", quopri.encodestring(HTML.encode())),
    ],
)
def test_mail_when_it_is_html_then_is_read_as_a_page(further: str, content: bytes) -> None:
    head = f"Subject: s\r\nContent-Type: text/html;\r\n charset=utf-8\r\n{further}\r\n"

    assert text_of(head.encode() + content) == "Subject: s\nGrüße"


def test_mail_when_a_text_has_two_forms_then_the_plain_one_is_read() -> None:
    plain, html = write_part("text/plain", b"plain words"), write_part("text/html", HTML.encode())

    assert text_of(PARTS % (b"alternative", plain + html)) == "Subject: s\nplain words"
    assert text_of(PARTS % (b"alternative", write_part("text/plain", b"\r\n") + html)) == "Subject: s\nGrüße"
    assert text_of(PARTS % (b"mixed", plain + html)) == "Subject: s\nplain words\nGrüße"


def test_mail_when_the_other_form_has_an_attachment_then_that_is_read() -> None:
    inner = b"--c\r\nContent-Type: text/html\r\n\r\n<p>html words\r\n--c\r\nContent-Type: text/plain; name=a.txt\r\n"
    inner += b"Content-Disposition: attachment; filename=a.txt\r\n\r\nattached words\r\n--c--\r\n"
    parts = write_part("text/plain", b"plain words") + write_part("multipart/mixed; boundary=c", inner)

    text = text_of(PARTS % (b"alternative", parts))

    assert "plain words" in text
    assert "attached words" in text
    assert "html words" not in text


@pytest.mark.parametrize(
    ("head", "written", "default_charset"),
    [
        ("", "Grüße aus Köln".encode("cp1252"), "windows-1252"),
        ("", "Grüße aus Köln".encode(), "windows-1252"),
        ("", "Привет".encode("koi8-r"), "koi8-r"),
        ("Content-Type: text/plain; charset=us-ascii\r\n", "Grüße aus Köln".encode("cp1252"), "windows-1252"),
        ("Content-Type: text/html\r\n", '<meta charset="koi8-r"><p>Привет'.encode("koi8-r"), "windows-1252"),
        ("Content-Type: text/plain; charset=koi8-r\r\n", "Привет".encode("koi8-r"), "windows-1252"),
    ],
)
def test_mail_when_it_names_no_encoding_then_is_read_as_a_page_would_be(
    head: str, written: bytes, default_charset: str
) -> None:
    text = text_of(head.encode() + b"Subject: s\r\n\r\n" + written, default_charset=default_charset)

    assert text in {"Subject: s\nGrüße aus Köln", "Subject: s\nПривет"}


def test_mail_when_it_is_forwarded_then_its_texts_are_read_as_well() -> None:
    inner = b"From: y\r\nContent-Type: text/html\r\n\r\n" + "<style>teal</style><p>Grüße".encode("cp1252")

    text = text_of(PARTS % (b"mixed", write_part("text/plain", b"See below.") + write_part("message/rfc822", inner)))

    assert "Grüße" in text
    assert "teal" not in text


@pytest.mark.parametrize(
    "mail",
    [
        b"",
        b"Subject: s",
        b"Subject: s\n\nplain",
        b"Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nA",
        b"Content-Type: text/html\nContent-Transfer-Encoding: x-uuencode\n\nbegin",
        PARTS % (b"mixed", write_part("text/html", b"<p>", "Content-Disposition: attachment; filename=a.html")),
        b"Content-Type: multipart/mixed; boundary=b\n\nno part --b\n--bc\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 1_000,
    ],
)
def test_mail_when_it_has_nothing_to_mend_then_stays_as_it_is(mail: bytes) -> None:
    assert simplify_mail(mail, "windows-1252") == mail


def test_message_of_outlook_when_its_text_has_two_forms_then_the_plain_one_is_read() -> None:
    both = make_message(subject="s", sender="Ada", text="plain words", html=HTML)
    alone = make_message(subject="s", sender="Ada", text="", html=HTML)

    assert "plain words" in text_of(both, mimetype="application/vnd.ms-outlook")
    assert "teal" not in text_of(both, mimetype="application/vnd.ms-outlook")
    assert "Grüße" in text_of(alone, mimetype="application/vnd.ms-outlook")


FORWARDED = b"From: y\r\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\n\r\ninner words\r\n"


@pytest.mark.parametrize(
    "mail",
    [
        PARTS % (b"mixed", write_part("message/rfc822", FORWARDED)),
        PARTS % (b"mixed", write_part("message/rfc822", FORWARDED, "Content-Disposition: attachment; filename=a.eml")),
        PARTS % (b"digest", b"--b\r\n\r\n" + FORWARDED),
        b"Subject: s\r\nContent-Type: message/rfc822\r\n\r\n" + FORWARDED,
        b"Subject: s\r\nContent-Type: message/rfc822\r\n\r\n"
        + PARTS % (b"mixed", write_part("message/rfc822", FORWARDED)),
    ],
)
def test_mail_when_it_has_no_text_but_a_forwarded_mail_then_that_is_read(mail: bytes) -> None:
    lines = text_of(mail).splitlines()

    assert lines[0] == "Subject: s"
    assert [line for line in lines if line in {"Subject: Grüße", "inner words"}] == ["Subject: Grüße", "inner words"]


@pytest.mark.parametrize("subject", [b"=?x-none?B?!!?= b", b"=?utf-8?B?a?= b", b"=?utf-8?B?\xc3\xbc?= b"])
def test_mail_when_a_header_of_a_forwarded_one_is_broken_then_its_words_are_read(subject: bytes) -> None:
    forwarded = b"Subject: " + subject + b"\r\n\r\ninner words\r\n"

    text = text_of(PARTS % (b"mixed", write_part("message/rfc822", forwarded)))

    assert " b\ninner words" in text


def test_mail_when_its_headers_have_no_coding_then_are_read_as_its_text_is() -> None:
    mail = "From: Änne <a@a.test>\r\nSubject: Grüße aus Köln\r\n\r\nplain".encode("cp1252")

    assert text_of(mail) == "Subject: Grüße aus Köln\nFrom: Änne <a@a.test>\nplain"


def test_mail_when_its_lines_end_with_carriage_returns_then_is_read() -> None:
    assert text_of(b"From: x\rSubject: s\r\rplain\rwords") == "Subject: s\nFrom: x\nplain\nwords"


def test_mail_without_headers_when_its_text_has_no_encoding_then_is_read() -> None:
    assert text_of("\r\nGrüße".encode("cp1252")) == "Grüße"


@pytest.mark.parametrize(
    ("charset", "text"), [("cp932", "日本語 ①"), ("Shift_JIS", "①"), ("cp949", "공지"), ("cp950", "你好")]
)
def test_mail_when_its_encoding_has_another_name_then_is_read(charset: str, text: str) -> None:
    codec = "cp932" if charset == "Shift_JIS" else charset

    mail = f"Subject: s\r\nContent-Type: text/plain; charset={charset}\r\n\r\n".encode() + text.encode(codec)

    assert text_of(mail) == f"Subject: s\n{text}"


FOOTER = "____\nlist@a.test für alle\n"


@pytest.mark.parametrize("kind", ["", "text/plain; charset=utf-8", "text/plain; charset=shift_jis", "text/html"])
@pytest.mark.parametrize("words", ["Grüße aus Köln. " * 9, "plain words", "words" * 57, "words" * 12 + "xyz"])
@pytest.mark.parametrize("between", [b"\n", b"\r\n\r\n"])
def test_mail_in_base64_when_a_list_wrote_below_it_then_both_are_read(kind: str, words: str, between: bytes) -> None:
    words = words.replace("ü", "u").replace("ß", "s").replace("ö", "o") if "jis" in kind else words
    head = f"Content-Type: {kind}\r\n" if kind else ""
    coded = base64.encodebytes(words.encode()).rstrip(b"\n")

    text = text_of(
        f"Subject: s\r\n{head}Content-Transfer-Encoding: base64\r\n\r\n".encode()
        + coded
        + between
        + FOOTER.encode("cp1252")
    )

    assert [line for line in text.splitlines() if line] == ["Subject: s", words.strip(), *FOOTER.splitlines()]


@pytest.mark.parametrize("content", [b"plain words\nin a mail\n", b"d29y\n\nZHM=\n", b"d29yZHM"])
def test_mail_in_base64_when_nobody_wrote_below_it_then_stays_as_it_is(content: bytes) -> None:
    mail = b"Subject: s\r\nContent-Transfer-Encoding: base64\r\n\r\n" + content

    assert simplify_mail(mail, "windows-1252") == mail
