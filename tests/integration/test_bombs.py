"""Files that swell, nest or never end: each ends with a code, within 30 seconds and 512 MB of its worker (X-R15)."""

from __future__ import annotations

import base64
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert.conversion_pool import ConversionPool
from searchcrawl.convert.document_converter import BY_ENDING
from searchcrawl.convert.registry import Registry
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from tests.office_files import make_ole, make_zip, open_document
from tests.workers import list_workers

pytestmark = pytest.mark.extended

SECONDS: Final = 30
MEGABYTES: Final = 512
_MB: Final = 1 << 20
_LAUGHS: Final = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


def docx(document: bytes) -> bytes:
    types = (
        b'<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        b'wordprocessingml.document.main+xml"/></Types>'
    )
    return make_zip({"[Content_Types].xml": types, "word/document.xml": document})


def pdf_stream(unpacked: bytes) -> bytes:
    """A PDF of one page whose content is a packed stream."""
    packed = zlib.compress(unpacked, 1)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(packed), packed),
        # A font whose characters nobody can name.
        b"<</Type/Font/Subtype/Type0/BaseFont/None/Encoding/Identity-H/DescendantFonts[6 0 R]>>",
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/None/CIDSystemInfo<</Registry(A)/Ordering(B)/Supplement 0>>>>",
    ]
    body = b"%PDF-1.7\n" + b"".join(b"%d 0 obj%b\nendobj\n" % (number, text) for number, text in enumerate(objects, 1))
    return body + b"trailer<</Root 1 0 R>>\n%%EOF\n"


def forwarded(count: int) -> bytes:
    return b"Content-Type: message/rfc822\n\n" * count


def attached() -> bytes:
    packed = base64.encodebytes(make_zip({"a.txt": bytes(300 * _MB)}))
    head = b"Subject: bomb\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n"
    part = b"barometer\n--b\nContent-Type: application/zip\nContent-Transfer-Encoding: base64\n"
    return head + part + b"Content-Disposition: attachment; filename=x.zip\n\n" + packed + b"--b--\n"


#: The name of each file, what is in it, and what may become of it: codes, or 200 where nothing swells.
FILES: Final[dict[str, tuple[Callable[[], bytes], set[int]]]] = {
    "one-part.docx": (lambda: docx(b"<w>" + b"x" * (300 * _MB)), {904}),
    "deep.docx": (lambda: docx(b"<w:p>" * 1_000_000), {903, 904}),
    "entities.docx": (lambda: docx(f'<!DOCTYPE d [<!ENTITY e0 "lol">{_LAUGHS}]><w>&e9;</w>'.encode()), {200, 903, 904}),
    "large.odt": (lambda: open_document("text", "<text:p>words of pages</text:p>" * 6_000_000), {904}),
    "blanks.odt": (lambda: open_document("text", '<text:p>a<text:s text:c="2000000000"/>b</text:p>'), {200, 904}),
    "brackets.rst": (lambda: b"[" * (5 * _MB), {200, 904}),
    "nested.rtf": (lambda: b"{\\rtf1 " + b"{" * (20 * _MB), {200, 904}),
    "picture.rtf": (lambda: b"{\\rtf1 \\bin2000000000 x}", {200, 903}),
    "forwarded.eml": (lambda: forwarded(200_000), {200, 903, 904}),
    "attached.eml": (attached, {200}),
    "repeated.ods": (
        lambda: open_document(
            "spreadsheet",
            '<table:table table:name="a"><table:table-row table:number-rows-repeated="1000000">'
            '<table:table-cell office:value-type="string" table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell></table:table-row></table:table>',
        ),
        {904},
    ),
    "quotes.adoc": (lambda: b"* a_ " * (3 * _MB), {200, 904}),
    "deep.fb2": (lambda: b"<a>" * (5 * _MB), {903, 904}),
    "deep.xml": (lambda: b"<a>" * (9 * _MB), {903, 904}),
    "attribute.xml": (f'<!DOCTYPE a [<!ENTITY e0 "lol">{_LAUGHS}]><a b="&e9;"/>'.encode, {904}),
    "text.xml": (f'<!DOCTYPE a [<!ENTITY e0 "lol">{_LAUGHS}]><a>&e9;</a>'.encode, {200}),
    "deep.json": (lambda: b"[" * (30 * _MB), {903, 904}),
    "many.json": (lambda: b"[" + b"[]," * (10 * _MB) + b"1]", {200, 904}),
    "quote.csv": (lambda: b'a,"' + b"b,\n" * (10 * _MB), {200, 904}),
    "cells.csv": (lambda: b"a," * (15 * _MB), {200, 904}),
    "blanks.pdf": (lambda: pdf_stream(b" " * (500 * _MB)), {200, 904}),
    "deep.pdf": (lambda: pdf_stream(b"q " * (150 * _MB)), {200, 904}),
    "unmapped.pdf": (lambda: pdf_stream(b"BT/F 9 Tf 1 1 Td<00010002>Tj ET"), {200}),
    "broken.doc": (lambda: make_ole({"WordDocument": b"x" * 4_000}) + os.urandom(3 * _MB), {903}),
    "random.docx": (lambda: b"PK\x03\x04" + os.urandom(3 * _MB), {903}),
    "protected.docx": (lambda: make_ole({"EncryptionInfo": b"x", "EncryptedPackage": b"x"}), {903}),
    "empty.docx": (lambda: b"", {903}),
    "empty.xls": (lambda: b"", {903}),
}
#: These take seconds until they end.
SLOW: Final = frozenset({"brackets.rst", "quotes.adoc", "deep.xml"})


class Peak:
    """The most memory that a worker process has from now on, in bytes."""

    def __init__(self) -> None:
        self.bytes = 0
        self._known: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            for worker in list_workers():
                with suppress(OSError):
                    self._look_at(worker)

    def _look_at(self, worker: int) -> None:
        if worker not in self._known:
            self._known.add(worker)
            Path(f"/proc/{worker}/clear_refs").write_text("5", "ascii")
        lines = Path(f"/proc/{worker}/status").read_text("ascii", "replace").splitlines()
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
        self.bytes = max(self.bytes, *found, 0)


@pytest.fixture(scope="module")
def pool() -> Iterator[ConversionPool]:
    pool = ConversionPool()
    yield pool
    pool.close()


@pytest.mark.few(14)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] if name in SLOW else []) for name in FILES]
)
def test_r15_bomb_when_it_is_read_then_ends_within_its_limits(name: str, pool: ConversionPool) -> None:
    build, allowed = FILES[name]
    body, registry, url = build(), Registry(), f"http://a.test/{name}"
    headers = ((b"Content-Type", BY_ENDING[name.rpartition(".")[2]].encode()),)
    mimetype = registry.find_mimetype(body, headers, url)
    converter = registry.choose(mimetype, body, headers)
    watched, began = Peak(), time.monotonic()

    code = 200
    try:
        pool.submit(converter, body, ConversionContext(url=url, mimetype=mimetype)).result(120)
    except ConversionFailed as error:
        code = error.code
    watched.stop()
    print(name, mimetype, code, f"{time.monotonic() - began:.1f} s", f"{watched.bytes / _MB:.0f} MB")

    assert code in allowed
    assert time.monotonic() - began < SECONDS
    assert watched.bytes < MEGABYTES * _MB


def test_r15_worker_when_bombs_have_ended_it_then_the_next_file_is_read(pool: ConversionPool) -> None:
    converter = Registry().choose("application/rtf", b"", ())
    context = ConversionContext(url="http://a.test/x", mimetype="application/rtf")
    with pytest.raises(ConversionFailed) as caught:
        pool.submit(
            converter, forwarded(200_000), ConversionContext(url="http://a.test/x", mimetype="message/rfc822")
        ).result(60)

    assert caught.value.code == Code.CONVERSION_LIMIT
    assert pool.submit(converter, b"{\\rtf1 barometer}", context).result(60).text == "barometer"
