from __future__ import annotations

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert import pdf_converter
from searchcrawl.convert.pdf_converter import convert_pdf
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Page


def pdf_of(*pages: str, information: str = "", trailer: str = "") -> bytes:
    """A small PDF with a line of text a page."""
    first = 5
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< {information} >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td 14 TL {text} ET"
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        contents = f"/Contents {first + 2 * number + 1} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} {contents} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body = "%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R {trailer} >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode("latin-1")


def page_of(body: bytes, *, robots_headers: tuple[str, ...] = ()) -> Page:
    headers = tuple((b"X-Robots-Tag", value.encode()) for value in robots_headers)
    url = "http://example.com/files/annual%20report.pdf"
    return convert_pdf(body, ConversionContext(url=url, headers=headers, user_agent="searchcrawl"))


def test_pdf_when_converted_then_has_text_of_all_pages_and_information() -> None:
    body = pdf_of(
        "(First page) Tj", "(Second) Tj T* (line) Tj", information="/Title (The Title) /Author (N. N.) /Subject (S)"
    )

    assert page_of(body) == Page(
        title="The Title", author="N. N.", subject="S", text="First page\nSecond\nline", charset=""
    )


def test_pdf_when_without_title_then_takes_file_name() -> None:
    assert page_of(pdf_of("(x) Tj")).title == "annual report.pdf"


def test_pdf_when_header_forbids_indexing_then_page_says_so() -> None:
    assert page_of(pdf_of("(x) Tj"), robots_headers=("noindex",)).noindex


@pytest.mark.parametrize(
    "body",
    [b"", b"%PDF-1.7\nnonsense", pdf_of("(x) Tj", trailer="/Encrypt << /Filter /Standard /V 1 /R 2 >>")],
    ids=["empty", "broken", "encrypted"],
)
def test_pdf_when_unreadable_then_fails_with_903(body: bytes) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        page_of(body)


@pytest.mark.parametrize("limit", ["MAX_PAGES", "MAX_CHARACTERS"])
def test_pdf_when_over_a_limit_then_fails_with_904(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_converter, limit, 1)

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_LIMIT):
        page_of(pdf_of("(ab) Tj", "(cd) Tj"))
