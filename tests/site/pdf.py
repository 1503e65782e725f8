"""A tiny PDF writer: A4 pages of Helvetica, with extractable text and link annotations (ISO 32000-1)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_LINES_A_PAGE = 48
_COLUMNS = 84


def make_pdf(text: str, *, title: str = "", links: Sequence[str] = (), attached: bytes = b"") -> bytes:
    """A PDF of ``text`` (Latin-1; paragraphs by blank lines) whose first page links to ``links``; no page shows ``attached``."""
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), _COLUMNS), ""]
    sheets = [lines[start : start + _LINES_A_PAGE] for start in range(0, len(lines), _LINES_A_PAGE)]
    first_page = 4
    annotations = first_page + 2 * len(sheets)
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(sheets)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(sheets)} >>".encode("latin-1"),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, sheet in enumerate(sheets):
        own = " ".join(f"{annotations + link} 0 R" for link in range(len(links))) if number == 0 else ""
        objects += _sheet(sheet, first_page + 2 * number + 1, own)
    for number, link in enumerate(links):
        bottom = 60 + 20 * number
        objects.append(
            f"<< /Type /Annot /Subtype /Link /Rect [72 {bottom} 400 {bottom + 14}] /Border [0 0 0] "
            f"/A << /S /URI /URI ({_escape(link)}) >> >>".encode("latin-1")
        )
    if attached:
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(attached), attached))
    objects.append(f"<< /Title ({_escape(title)}) /Producer (acme) >>".encode("latin-1", "replace"))
    return _file(objects)


def make_pdf_of_pages(count: int) -> bytes:
    """A small file of so many empty pages: its tree names one of them again and again."""
    tree = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, b"3 0 R " * count)
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 10 10] >>"
    return _file([b"<< /Type /Catalog /Pages 2 0 R >>", tree, leaf])


def make_pdf_of_forms(levels: int, *, wide: int = 10) -> bytes:
    """A small file whose one page shows ``wide`` to the power of ``levels`` forms: each shows the next one so often."""
    first = 5

    def show(times: int, following: int) -> bytes:
        stream = b"/F Do " * times
        named = b"/Resources << /XObject << /F %d 0 R >> >>" % following
        form = b"<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] %s /Length %d >>" % (named, len(stream))
        return form + b"\nstream\n" + stream + b"\nendstream"

    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R " % first
    page += b"/Resources << /XObject << /F %d 0 R >> >> >>" % (first + 1)
    text = b"BT /F1 11 Tf 72 780 Td (word) Tj ET"
    last = b"<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
    last += b"/Length %d >>\nstream\n%s\nendstream" % (len(text), text)
    forms = [show(1, first + 1), *(show(wide, first + 2 + level) for level in range(levels)), last]
    tree = b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>"
    return _file([b"<< /Type /Catalog /Pages 2 0 R >>", tree, font, page, *forms, b"<< >>"])


def _sheet(lines: Sequence[str], content_number: int, annotations: str) -> list[bytes]:
    shown = "\n".join(f"({_escape(line)}) Tj T*" for line in lines)
    stream = f"BT /F1 11 Tf 15 TL 72 780 Td\n{shown}\nET".encode("latin-1", "replace")
    page = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {content_number} 0 R "
        f"/Resources << /Font << /F1 3 0 R >> >> /Annots [{annotations}] >>"
    )
    return [page.encode("latin-1"), b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)]


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _file(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
    out += b"startxref\n%d\n%%%%EOF\n" % table
    return bytes(out)
