"""Readers of files that are no pages: archives, office files, XML, data."""

from __future__ import annotations

import os
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from searchcrawl.bodies import LargeBody
from searchcrawl.convert.archive_reader import convert_archive, find_archive, read_names, try_unpack
from searchcrawl.convert.detection import find_ole_type, find_zip_type
from searchcrawl.convert.document_converter import DOCUMENTS, convert_document, read_ole_properties, read_rtf_properties
from searchcrawl.convert.mail_text import hide_html, simplify_mail
from searchcrawl.convert.text_converter import convert_csv, convert_json, convert_large_csv
from searchcrawl.convert.xml_converter import convert_large_xml, convert_xml
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.kinds.file.ignoring import IgnoreFile
from searchcrawl.kinds.file.local.folders import is_there
from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.kinds.file.remote.multistatus import BrokenMultistatus, MultistatusReader
from searchcrawl.kinds.file.remote.s3_pages import Ahead, BrokenPage, group, read_page
from searchcrawl.kinds.file.remote.smb_descriptors import READ, find_level, find_owner, parse
from searchcrawl.kinds.file.remote.smb_structures import (
    read_closed,
    read_controlled,
    read_entries,
    read_opened,
    read_piece,
    read_queried,
)
from searchcrawl.kinds.file.remote.webdav_resources import build_thing, locate, parse_date
from searchcrawl.kinds.file.selection import Ignoring, Selection
from searchcrawl.rules.archives import is_called_archive, list_archives, split_path
from tests.readers.declaring import BODY, ODD_BYTES, URL, declare

_CONTEXT: Final = ConversionContext(url=URL, user_agent="searchcrawl")


def _put_down(body: bytes) -> LargeBody:
    """The body as a file."""
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.flush()
        return LargeBody.take(os.dup(file.fileno()), len(body))


@declare(
    *("PK\x03\x04", "PK\x01\x02", "PK\x05\x06", "mimetype", "[Content_Types].xml", "word/document.xml", "\0\0\0\0"),
    *('ContentType="application/vnd.a.main+xml"', b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\xfe\xff\xff\xff", b"\x09\0"),
    most=BODY,
    grown=[
        lambda n: "PK\x03\x04" + "PK\x01\x02" * n + "PK\x05\x06" + "\0" * 18,
        lambda n: "PK\x05\x06" * n,
        lambda n: 'ContentType="application/vnd.' * n,
    ],
)
def container(body: bytes) -> None:
    find_zip_type(body)
    find_ole_type(body)


@declare(
    *("Content-Type: multipart/alternative; boundary=b\n", "Content-Type: text/html\n", "Content-Type: text/plain\n"),
    *("Content-Type: message/rfc822\n", "Content-Transfer-Encoding: base64\n", "Content-Disposition: attachment\n"),
    *("Content-Transfer-Encoding: quoted-printable\n", "boundary*1*=utf-8''b", "\n\n", "\n--b\n", "\n--b--\n", "\r\n"),
    *("=FC=\n", "YWJj\n", "____\n", "<style>", "__substg1.0_10130102\0".encode("utf-16-le"), *ODD_BYTES),
    most=BODY,
    grown=[
        lambda n: "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\n\nx\n" * n,
        lambda n: "Content-Type: multipart/mixed; boundary=b\n\n--b\n" * n,
        lambda n: "Content-Type: multipart/mixed; boundary=b\n\n" + "--b" * n,
        lambda n: "Content-Type: message/rfc822\n\n" * n,
        lambda n: "Content-Type: text/html\n " + "\n " * n,
        lambda n: "Content-Type: text/html" + ';a="b\\' * n,
        lambda n: "Content-Type: text/html\n" * n,
        lambda n: "Content-Transfer-Encoding: base64\n\n" + "YWJj\n" * n + "----",
        lambda n: "__substg1.0_10130102\0" * n,
    ],
)
def mail(body: bytes) -> None:
    simplify_mail(body, "windows-1252")
    hide_html(body)


@declare(
    *(
        "PK\x03\x04",
        "PK\x01\x02",
        "PK\x05\x06",
        "a.txt",
        "../b",
        "\0\0\0\0",
        "ustar\x0000",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
    ),
    *("BZh91AY&SY", b"\xfd7zXZ\x00", "0000644\0", "\0" * 100, "{n}"),
    most=BODY,
    raises=(ConversionFailed,),
    grown=[
        lambda n: "PK\x03\x04" + "PK\x01\x02" * n + "PK\x05\x06" + "\0" * 18,
        lambda n: "a.txt" + "\0" * 95 + "0000644\0" * n,
    ],
)
def archive(body: bytes) -> None:
    convert_archive(body, replace(_CONTEXT, url="http://a.test/a.gz"))
    with tempfile.TemporaryDirectory() as folder:
        try_unpack(body, "a.gz", folder)
    find_archive(body[:2_000].decode("latin-1"))
    is_called_archive(body[:2_000].decode("latin-1"))
    list_archives(body.decode("latin-1"))
    split_path(body.decode("latin-1"))


@declare(
    *("a.txt\n", "\n", b"gr\x94\xe1e\n", b"up\x09\0\x01{n}", b"\0\0\0\0", b"\x83e\x83X", *ODD_BYTES),
    most=BODY,
    grown=[lambda n: "größe\n" * n, lambda n: "up\0\0" * n, lambda n: "größe" * n, lambda n: "\n" * n],
)
def names_of_zip(body: bytes) -> None:
    members = [zipfile.ZipInfo(line.decode("cp437")) for line in body.split(b"\n")]
    for member in members[:2]:
        member.extra = body
    read_names(members)


@declare(
    *('{"title":"x",', '"a{n}":', "[", "]", "{", "}", "1", "null", '"b"', ",", "\n", "1e9999", '"\\ud800"', "tru"),
    *ODD_BYTES,
    most=BODY,
    raises=(ConversionFailed,),
    grown=[lambda n: "[" + '{"a":"b"},' * n + "1]", lambda n: "{}\n" * n, lambda n: '{"a":' * 200 + "[1" + ",1" * n],
)
def json_text(body: bytes) -> None:
    convert_json(body, _CONTEXT)


@declare(
    *("a,", "b;", '"', '""', "\n", "\r\n", "\t", "|", "{n},", "\0"),
    *ODD_BYTES,
    most=BODY,
    grown=[lambda n: "a,b\n" * n, lambda n: '"' + "a,\n" * n, lambda n: '""' * n],
)
def table(body: bytes) -> None:
    convert_csv(body, _CONTEXT)
    convert_large_csv(_put_down(body), _CONTEXT)


@declare(
    *(
        "<?xml version='1.0'?>",
        "<rss>",
        "<feed>",
        "<channel>",
        "<item>",
        "<entry>",
        "</item>",
        "</rss>",
        "<title>",
        "</title>",
    ),
    *("<link>http://a.test/{n}</link>", "<link href='{n}'/>", "<description>", "&lt;p>", "&amp;", "&nbsp;", "&e{n};"),
    *(
        "<!DOCTYPE a [",
        "<!ENTITY e{n} 'x'>",
        "<!ENTITY e{n} '&e;&e;'>",
        "]>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<a:b a{n}='x'>",
    ),
    *("</a:b>", "<outline text='x'/>", "xmlns:x{n}='http://a.test/'", *ODD_BYTES),
    most=BODY,
    raises=(ConversionFailed,),
    grown=[
        lambda n: "<rss><item><description>" + "&lt;p>words " * n + "</description></item></rss>",
        lambda n: "<a>" * n + "x" + "</a>" * n,
        lambda n: "<feed>" + "<entry><link href='x'/><title>a</title></entry>" * n + "</feed>",
        lambda n: "<a " + " ".join(f"b{number}='x'" for number in range(n)) + "/>",
        lambda n: "<!DOCTYPE a [<!ENTITY e 'words'>]><a>" + "&e;" * n + "</a>",
        lambda n: (
            "<!DOCTYPE a [<!ENTITY e0 'x'>" + "".join(f"<!ENTITY e{k} '&e{k - 1};&e{k - 1};'>" for k in range(1, n))
        ),
        lambda n: "<a xmlns='" + "x" * n + "'>" + "<b/>" * n + "</a>",
    ],
)
def xml_document(body: bytes) -> None:
    convert_xml(body, _CONTEXT)
    convert_large_xml(_put_down(body), _CONTEXT)


@declare(
    *(
        "{\\rtf1",
        "\\ansicpg1252",
        "{\\title ",
        "{\\author ",
        "\\u252 ",
        "\\'fc",
        "?",
        "}",
        "{",
        "x",
        "\\b0 ",
        "\\u-10179",
    ),
    most=BODY,
    grown=[
        lambda n: "{\\title " * n,
        lambda n: "{\\title " + "\\'fc" * n + "}",
        lambda n: "{\\title " + "\\u252 ?" * n + "}",
    ],
)
def properties(body: bytes) -> None:
    read_rtf_properties(body)
    read_ole_properties(body)


@declare(
    *(
        "# x\n",
        "* a\n",
        "[a](b)",
        "`",
        "```\n",
        "> ",
        "|a|b|\n",
        "|-|-|\n",
        "<b>",
        "&amp;",
        "\n",
        "---\ntitle: x\n---\n",
    ),
    *ODD_BYTES,
    most=BODY,
    raises=(ConversionFailed,),
    grown=[lambda n: "# words\n\n- of *lists*\n" * n],
    # What a library reads runs in a worker process, where time and memory are limited.
    linear=False,
)
def document(body: bytes) -> None:
    for mimetype in ("text/markdown", "application/rtf", "message/rfc822"):
        convert_document(body, replace(_CONTEXT, mimetype=mimetype))
    DOCUMENTS.choose_place(body)


@declare(
    *(
        "*",
        "**",
        "**/",
        "/**",
        "?",
        "/",
        "\n",
        "!",
        "#",
        "[",
        "]",
        "[a-",
        "[!",
        "z]",
        "\\",
        " ",
        "\r\n",
        "a",
        "ä",
        "\xff",
        "{n}",
    ),
    most=20_000,
    raises=(OSError,),
    grown=[lambda size: "*a" * size, lambda size: "[" * size, lambda size: "**/" * size, lambda size: "?*\n" * size],
)
def ignore_file(given: bytes) -> None:
    rules = IgnoreFile(given, b"/srv")
    Ignoring().enter(given, b"/srv").enter(None, b"/srv/a", b"a").find_refusal(given[:255], is_folder=True)
    for way in (given[:4000].split(b"/"), [b"a" * 250] * 16):
        rules.decide(way, is_folder=False)
        rules.decide(way, is_folder=True)


@declare(
    "#", "~", ".", ".~1~", ".~", "{n}", "@GMT-2024.01.02-03.04.05", "x", "\xff", most=255, raises=(OSError, ValueError)
)
def names_of_files(given: bytes) -> None:
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for is_folder in (False, True):
            Selection(hidden=True, versions=False).find_refusal(given, partial(is_there, folder), is_folder=is_folder)
    finally:
        os.close(folder)


@declare(
    *(
        "<?xml version='1.0'?>",
        "<multistatus xmlns='DAV:'>",
        "<response>",
        "</response>",
        "<href>/a/%e9{n}</href>",
        "<a>",
        "</a>",
    ),
    *(
        "<status>HTTP/1.1 403 no</status>",
        "<propstat>",
        "</propstat>",
        "<prop>",
        "</prop>",
        "<resourcetype>",
        "</resourcetype>",
    ),
    *(
        "<getetag>W/&quot;1",
        "</getetag>",
        "<getlastmodified>",
        "Mon, 04 May 2026 11:00:00 GMT",
        "<collection/>",
        "http://h//../",
    ),
    *(
        "<!DOCTYPE a [",
        "<!ENTITY e 'x'>",
        "&e;",
        "&amp;",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "xmlns:x{n}='x'",
        *ODD_BYTES,
    ),
    most=BODY,
    raises=(BrokenMultistatus, RemoteFailure),
    grown=[
        lambda n: _MULTISTATUS + "<response><href>/a</href></response>" * n + "</multistatus>",
        lambda n: _MULTISTATUS + "<response>" + "<href>/a</href>" * n,
        lambda n: _MULTISTATUS + "<response>" + "<propstat/>" * n,
        lambda n: _MULTISTATUS + "<a>" * n,
        lambda n: _MULTISTATUS + "<!--" + "-" * n,
        lambda n: _MULTISTATUS + "<a " + " ".join(f"b{number}='x'" for number in range(n)),
        lambda n: f"<a xmlns='{'x' * n}'>" + "<b/>" * n,
        lambda n: _MULTISTATUS + "<response><href>" + "/" * n + "</href></response>",
    ],
)
def multistatus(body: bytes) -> None:
    reader = MultistatusReader()
    for place in range(0, len(body), 65_536):
        for resource in reader.feed(body[place : place + 65_536]):
            locate(resource.href, (b"a",))
            build_thing(resource, b"a", 1_777_000_000_000)
    reader.end()


_MULTISTATUS: Final = "<multistatus xmlns='DAV:'>"


@declare(
    "Mon, 04 May 2026 11:00:00 GMT",
    "2026",
    " ",
    "/../%2e",
    "http://",
    "\0",
    "a",
    "%e9",
    "\xff",
    raises=(RemoteFailure,),
)
def places_and_dates(given: bytes) -> None:
    parse_date(given.decode("latin-1"))
    locate(given.decode("latin-1"), (b"a",))


@declare(
    *(
        "<ListBucketResult>",
        "</ListBucketResult>",
        "<IsTruncated>false</IsTruncated>",
        "<IsTruncated>true</IsTruncated>",
    ),
    *(
        "<NextContinuationToken>",
        "</NextContinuationToken>",
        "<EncodingType>url</EncodingType>",
        "<Contents>",
        "</Contents>",
    ),
    *("<CommonPrefixes>", "</CommonPrefixes>", "<Prefix>a/b{n}/</Prefix>", "<Key>a/b{n}</Key>", "<Key>a/%FF/{n}</Key>"),
    *(
        "<Size>{n}</Size>",
        "<Size>-1</Size>",
        "<LastModified>2026-10-12T17:50:30.000Z</LastModified>",
        "<ETag>",
        "</ETag>",
    ),
    *(
        "<LastModified>0001-01-01T00:00:00+23:59</LastModified>",
        "<!DOCTYPE a [",
        "<!ENTITY e 'x'>",
        "&e;",
        "&#0;",
        "<a:Key>",
    ),
    *("<?xml version='1.0' encoding='utf-16'?>", "<?xml version='1.0' encoding='x'?>", "<![CDATA[", "]]>", *ODD_BYTES),
    most=BODY,
    raises=(BrokenPage,),
    grown=[
        lambda n: _LISTED + "<Contents><Key>a/b</Key><Size>1</Size></Contents>" * n + "</ListBucketResult>",
        lambda n: (
            _LISTED
            + "".join(f"<Contents><Key>a/{each}</Key><Size>1</Size></Contents>" for each in range(n))
            + "</ListBucketResult>"
        ),
        lambda n: _LISTED + "<CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes>" * n + "</ListBucketResult>",
        lambda n: _LISTED + "<Contents><Size>" + "9" * n + "</Size></Contents></ListBucketResult>",
        lambda n: _LISTED + "<Contents><Key>" + "/" * n + "</Key><Size>1</Size></Contents></ListBucketResult>",
        lambda n: _LISTED + "<Contents><Key>" + "&amp;" * n + "</Key></Contents></ListBucketResult>",
        lambda n: _LISTED + "<a>" * n,
        lambda n: _LISTED + "<!--" + "-" * n,
        lambda n: _LISTED + "<a " + " ".join(f"b{number}='x'" for number in range(n)),
        lambda n: f"<ListBucketResult xmlns='{'x' * n}'>" + "<b/>" * n,
    ],
)
def bucket_page(body: bytes) -> None:
    page = read_page(body)
    group(page.objects, page.folders, b"")
    ahead = Ahead(page.objects, b"", is_last=True)
    ahead.take(b"a/")
    ahead.take(b"a/b/")


_LISTED: Final = "<ListBucketResult><IsTruncated>false</IsTruncated>"

_WORLD: Final = b"\x01\x01\0\0\0\0\0\x01\0\0\0\0"
_DESCRIPTOR: Final = "\x01\0\x04\x80" + "\0" * 12 + "\x14\0\0\0" + "\x02\0\xff\xff\xff\xff\0\0"
#: A file with a name of two letters.
_LISTED: Final = "\x54" + "\0" * 55 + "\x20\0\0\0" + "\x04" + "\0" * 19 + "a\0b\0"


@declare(
    *(
        b"\x01\0\x04\x80\0\0\0\0\0\0\0\0\0\0\0\0\x14\0\0\0",
        b"\x02\0\xff\xff\xff\x01\0\0",
        b"\0\0\x14\0\x89\0\x12\0",
        _WORLD,
    ),
    *(
        b"\x01\x10\x14\0\x89\0\x12\0",
        b"\x06\0\x34\0\x89\0\x12\0\x03\0\0\0",
        b"\x01\x0f\0\0\0\0\0\x05",
        b"\x01\xff\0\0\0\0\0\x05",
    ),
    most=65_536,
    raises=(ValueError,),
    grown=[lambda n: _DESCRIPTOR + ("\0\0\x14\0\x89\0\x12\0" + _WORLD.decode("latin-1")) * n],
)
def security_descriptor(body: bytes) -> None:
    find_level(body, READ)
    find_owner(body)
    parse(body)


@declare(
    *(
        _LISTED.encode("latin-1"),
        b"\x58\0\0\0",
        b"\0" * 8,
        b"\x09\0\x48\0\x10\0\0\0",
    ),
    *(b"\0\xd8", b"/\0", b"\xff\xff\xff\xff", b"\x11\0\x50\0\x10\0\0\0"),
    most=262_144,
    raises=(ValueError,),
    grown=[
        lambda n: _LISTED * n,
        # Each name would reach to the end.
        lambda n: _LISTED.replace("\x20\0\0\0\x04\0\0", "\x20\0\0\0\0\xff\0") * n,
    ],
)
def share_folder(body: bytes) -> None:
    for read in (read_queried, read_piece, read_controlled, read_opened, read_closed):
        with suppress(ValueError):
            read(body)
    list(read_entries(body))
