"""The same text in four languages and many formats: made by LibreOffice and other tools, once for each state of this file.

They are kept in a folder of the user's cache, because LibreOffice takes a second for each format.
"""

from __future__ import annotations

import email.message
import email.policy
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from tests.office_files import make_message

SECONDS: Final = 300


class Text(NamedTuple):
    """What each file says."""

    title: str
    author: str
    subject: str
    lines: tuple[str, ...]


TEXTS: Final[Mapping[str, Text]] = {
    "en": Text(
        "The barometer of the harbour",
        "Ada Lovelace",
        "Weather instruments",
        (
            "A barometer measures the pressure of the air.",
            "Falling quicksilver announces a storm within hours.",
            "The harbour master reads it every morning and writes the value down.",
        ),
    ),
    "de": Text(
        "Das Barometer im Hafen",
        "Jürgen Müller",
        "Wetterinstrumente",
        (
            "Ein Barometer misst den Luftdruck über dem Meer.",
            "Fallendes Quecksilber kündigt binnen Stunden Stürme an.",
            "Der Hafenmeister liest es täglich früh ab und schreibt die Größe auf.",
        ),
    ),
    "ja": Text(
        "港の気圧計",
        "山田太郎",
        "気象観測機器",
        (
            "気圧計は空気の圧力を測定します。",
            "水銀の低下は数時間以内の嵐を予告します。",
            "港長は毎朝それを読み、値を記録します。",
        ),
    ),
    "ar": Text(
        "مقياس الضغط في الميناء",
        "أحمد علي",
        "أدوات الطقس",
        (
            "يقيس البارومتر ضغط الهواء فوق البحر.",
            "ينذر انخفاض الزئبق بقدوم عاصفة خلال ساعات.",
            "يقرأ مدير الميناء القيمة كل صباح ويكتبها.",
        ),
    ),
}
#: What LibreOffice makes of a text, a table and slides.
_TARGETS: Final[Mapping[str, Sequence[str]]] = {
    "fodt": ("docx", "dotx", "odt", "ott", "rtf", "doc", "epub", "pdf", "html", "txt:Text (encoded):UTF8"),
    "fods": ("ods", "ots", "xlsx", "xls", "csv:Text - txt - csv (StarCalc):44,34,76,1"),
    "fodp": ("odp", "otp", "pptx", "potx", "ppt"),
}
_OASIS: Final = "urn:oasis:names:tc:opendocument:xmlns"
_NAMES: Final = (
    " ".join(
        f'xmlns:{prefix}="{_OASIS}:{name}:1.0"'
        for prefix, name in {
            "office": "office",
            "text": "text",
            "table": "table",
            "draw": "drawing",
            "svg": "svg-compatible",
            "meta": "meta",
            "style": "style",
            "fo": "xsl-fo-compatible",
        }.items()
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)


class OfficeMissing(Exception):
    """LibreOffice is not installed; the text says what to install."""


def open_corpus() -> Path:
    """The folder of the files, ``LANGUAGE.FORMAT`` or ``LANGUAGE-slides.FORMAT``; raises OfficeMissing."""
    program = shutil.which("soffice")
    if program is None:
        raise OfficeMissing("LibreOffice is not installed (scripts/bootstrap office)")
    own = Path(__file__).read_bytes() + Path(__file__).with_name("office_files.py").read_bytes()
    version = subprocess.run([program, "--version"], capture_output=True, check=True, timeout=SECONDS).stdout
    above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "searchcrawl-tests"
    folder = above / f"office-{hashlib.sha256(own + version).hexdigest()[:16]}"
    if not folder.is_dir():
        above.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=above) as made:
            _make(Path(made), program)
            try:
                Path(made).rename(folder)
            except OSError:
                # Another process was faster.
                assert folder.is_dir()
            else:
                Path(made).mkdir()
    return folder


def _make(folder: Path, program: str) -> None:
    for language, text in TEXTS.items():
        for name, content in _write_others(text, language).items():
            (folder / f"{language}.{name}").write_bytes(content if isinstance(content, bytes) else content.encode())
        for ending, body in _write_flat(text).items():
            (folder / f"{language}.{ending}").write_text(body, "utf-8")
    with tempfile.TemporaryDirectory() as profile:
        for ending, targets in _TARGETS.items():
            files = [str(path) for path in sorted(folder.glob(f"*.{ending}"))]
            for target in targets:
                subprocess.run(
                    [program, "--headless", f"-env:UserInstallation=file://{profile}", "--convert-to", target,
                     "--outdir", str(folder), *files],
                    check=True, capture_output=True, timeout=SECONDS,
                )  # fmt: skip


def _write_flat(text: Text) -> dict[str, str]:
    """What LibreOffice is given: a text with a table, a sheet, and slides."""
    lines = [text.title, *text.lines]
    paragraphs = "".join(f"<text:p>{escape(line)}</text:p>" for line in text.lines)
    rows = "".join(
        f'<table:table-row><table:table-cell office:value-type="string"><text:p>{escape(line)}</text:p></table:table-cell>'
        f'<table:table-cell office:value-type="float" office:value="{1000 + number}"><text:p>{1000 + number}</text:p>'
        "</table:table-cell></table:table-row>"
        for number, line in enumerate(lines)
    )
    frame = '<draw:frame svg:width="20cm" svg:height="5cm" svg:x="1cm" svg:y="1cm">'
    slides = "".join(
        f'<draw:page draw:name="p{number}" draw:master-page-name="D">{frame}<draw:text-box><text:p>{escape(line)}</text:p>'
        "</draw:text-box></draw:frame></draw:page>"
        for number, line in enumerate(lines)
    )
    master = (
        '<office:automatic-styles><style:page-layout style:name="L"><style:page-layout-properties fo:page-width="28cm" '
        'fo:page-height="21cm"/></style:page-layout></office:automatic-styles><office:master-styles>'
        '<style:master-page style:name="D" style:page-layout-name="L"/></office:master-styles>'
    )
    columns = '<table:table-column table:number-columns-repeated="2"/>'
    heading = f'<text:h text:outline-level="1">{escape(text.title)}</text:h>'
    table = f'<table:table table:name="T">{columns}{rows}</table:table>'
    return {
        "fodt": _flat(text, "text", f"{heading}{paragraphs}{table}"),
        "fods": _flat(text, "spreadsheet", table),
        "fodp": _flat(text, "presentation", slides, master),
    }


def _flat(text: Text, kind: str, body: str, styles: str = "") -> str:
    about = (
        f"<office:meta><dc:title>{text.title}</dc:title><dc:subject>{text.subject}</dc:subject>"
        f"<meta:initial-creator>{text.author}</meta:initial-creator><dc:creator>{text.author}</dc:creator>"
        "<meta:creation-date>2024-03-05T10:00:00</meta:creation-date><dc:date>2024-03-06T11:00:00</dc:date></office:meta>"
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {_NAMES} office:version="1.3" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}">{about}{styles}'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>"
    )


def _write_others(text: Text, language: str) -> dict[str, str | bytes]:
    """What other tools write."""
    title, author, _, lines = text
    paragraphs = "\n\n".join(lines)
    xml = '<?xml version="1.0" encoding="UTF-8"?>'
    inner = "".join(f"<p>{line}</p>" for line in lines)
    items = "".join(f"<item><title>{line}</title><description>&lt;p>{line}</description></item>" for line in lines)
    entries = "".join(f'<entry><title>{line}</title><content type="text">{line}</content></entry>' for line in lines)
    cells: list[Any] = [{"cell_type": "markdown", "metadata": {}, "source": [f"# {title}\n", "\n", paragraphs]}]
    return {
        "md": f"# {title}\n\n*{lines[0]}* [link](http://x.test/)\n\n- {lines[1]}\n\n| a | b |\n|---|---|\n| {lines[2]} | 2 |\n",
        "rst": f"{'=' * 60}\n{title}\n{'=' * 60}\n\n{paragraphs}\n",
        "org": f"#+TITLE: {title}\n#+AUTHOR: {author}\n\n* {title}\n\n{paragraphs}\n",
        "adoc": f"= {title}\n{author}\n\n{paragraphs}\n",
        "typ": f'#set document(title: "{title}")\n= {title}\n\n{paragraphs}\n',
        "ipynb": json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}),
        "json": json.dumps({"title": title, "lines": list(lines)}, ensure_ascii=False),
        "jsonl": "\n".join(json.dumps({"line": line}) for line in (title, *lines)),
        "tsv": "\n".join(f"{number}\t{line}" for number, line in enumerate((title, *lines))),
        "yaml": f"title: {title}\nlines:\n" + "".join(f"  - {line}\n" for line in lines),
        "xml": f"{xml}<instrument><title>{title}</title>{inner}</instrument>",
        "docbook": f'{xml}<article xmlns="http://docbook.org/ns/docbook" version="5.0"><info><title>{title}</title></info>'
        + "".join(f"<para>{line}</para>" for line in lines)
        + "</article>",
        "fb2": f'{xml}<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><description><title-info><author>'
        f"<first-name>{author}</first-name></author><book-title>{title}</book-title><lang>{language}</lang></title-info>"
        f"</description><body><section><title><p>{title}</p></title>{inner}</section></body></FictionBook>",
        "rss": f'{xml}<rss version="2.0"><channel><title>{title}</title>{items}</channel></rss>',
        "atom": f'{xml}<feed xmlns="http://www.w3.org/2005/Atom"><title>{title}</title>{entries}</feed>',
        "opml": f'{xml}<opml version="2.0"><head><title>{title}</title></head><body>'
        + "".join(f'<outline text="{line}"/>' for line in lines)
        + "</body></opml>",
        "eml": _write_mail(text, charset="iso-2022-jp" if language == "ja" else "utf-8"),
        "msg": make_message(subject=title, sender=author, text=paragraphs),
    }


def _write_mail(text: Text, *, charset: str) -> bytes:
    mail = email.message.EmailMessage(policy=email.policy.SMTP)
    mail["Subject"], mail["From"], mail["To"] = text.title, f"{text.author} <a@x.test>", "b@x.test"
    mail["Date"] = "Tue, 05 Mar 2024 10:00:00 +0000"
    mail.set_content("\n".join(text.lines), charset=charset)
    mail.add_alternative("".join(f"<p>{line}</p>" for line in text.lines), subtype="html")
    return mail.as_bytes()
