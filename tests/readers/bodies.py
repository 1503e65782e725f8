"""Readers of other bodies: robots files, sitemaps, answers of an index or a scrapyd; and of their codings."""

from __future__ import annotations

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.http.connector import MENDED_BYTES
from searchcrawl.http.content_coding import (
    BrokenCoding,
    DecodedTooLarge,
    decode_body,
    decode_in_pieces,
    decode_prefix,
    parse_codings,
)
from searchcrawl.http.head_mending import Unmendable, mend_head
from searchcrawl.index.solr.transport import SolrRefusal, check_answer, read_errors
from searchcrawl.kinds.web.sitemaps.formats import MAX_BYTES as MAX_SITEMAP
from searchcrawl.kinds.web.sitemaps.formats import NotASitemap, SitemapParser
from searchcrawl.robots.parser import MAX_BYTES as MAX_ROBOTS
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.scheduling.launching import ScrapydRefused
from searchcrawl.scheduling.scrapyd_client import MAX_BYTES as MAX_SCRAPYD
from searchcrawl.scheduling.scrapyd_client import read_answer
from searchcrawl.terminal import to_one_line
from tests.readers.declaring import BODY, ODD_BYTES, URL, declare


@declare(
    *(
        "user-agent: *\n",
        "user-agent: searchcrawl\n",
        "user-agent",
        "disallow: /",
        "allow: /index.html\n",
        "disallow: /*a$\n",
    ),
    *(
        "*",
        "$",
        "a",
        "*a",
        "%41",
        "%",
        "sitemap: /{n}.xml\n",
        "sitemap: http://[\n",
        "crawl-delay: 1\n",
        ":",
        " ",
        "#",
        "\n",
    ),
    *("\r", "é", "disallow: /{n}\n", "disallow: /*{n}\n", *ODD_BYTES),
    most=MAX_ROBOTS,
    grown=[
        lambda n: "user-agent: *\ndisallow: /" + "*a" * n + "b",
        lambda n: "user-agent: *\n" * n,
        lambda n: "user-agent: *\n" + "disallow: /*a$\n" * n,
        lambda n: "user-agent" + " " * n,
    ],
)
def robots(body: bytes) -> None:
    rules = RobotsFile.parse(body, "searchcrawl", url="http://a.test/robots.txt").prepare()
    rules.decide("http://a.test/" + "a" * 2_000)
    rules.refusals("http://a.test/index.html")


@declare(
    *(
        "<urlset>",
        "<sitemapindex>",
        "<rss>",
        "<feed xmlns='",
        "<url>",
        "<loc>",
        "</loc>",
        "</url>",
        "</urlset>",
        "<sitemap>",
    ),
    *(
        "<lastmod>2024-01-01",
        "<loc>http://a.test/{n}",
        "<x:loc>",
        "<item>",
        "<link>",
        "<guid>",
        "<entry><link href='",
        "' rel=",
    ),
    *(
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE x [",
        "]",
        ">",
        "<?xml ",
        "encoding='utf-8'",
        "?>",
        "&amp;",
        "&#{n};",
        "&",
    ),
    *(
        "http://a.test/{n}\n",
        " ",
        "\n",
        "<!x",
        "</a",
        "<",
        "é",
        "<pubDate>",
        "<updated>",
        b"\x1f\x8b\x08\0",
        *ODD_BYTES,
    ),
    most=MAX_SITEMAP,
    raises=(NotASitemap, BrokenCoding),
    grown=[
        lambda n: "<urlset>" + "<loc>" * n,
        lambda n: "<urlset>" + "<loc><!--" * n,
        lambda n: "<urlset>" + "<loc><![CDATA[" * n,
        lambda n: "<urlset>" + "<loc><!x" * n,
        lambda n: "<urlset>" + "<loc " * n,
        lambda n: "<urlset>" + "</a" * n,
        lambda n: "<urlset>" + "<a:" * n,
        lambda n: "<!DOCTYPE x [" + "] " * n,
        lambda n: "<?xml " + "encoding" * n,
        lambda n: "<!---->" * n,
        lambda n: "<feed>" + "<entry><link href='x" * n,
        lambda n: "<feed>" + "<entry><link a=" + "'>" * n,
        lambda n: "<feed><entry><link " + '="x>' * n,
        lambda n: "<feed xml:base='b" + "/b" * n + "'>" + "<entry xml:base=../><link href=x>" * n,
        lambda n: "http://a.test/ " * n,
    ],
)
def sitemap(body: bytes) -> None:
    for codings in ((), ("deflate",)):
        try:
            for _ in SitemapParser(body, url=URL, codings=codings).batches():
                pass
        except BrokenCoding:
            pass


@declare(
    *(
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
        b"x\x9c",
        b"\x03\0",
        b"\x28\xb5\x2f\xfd",
        b"\xff",
        b"\0",
        b"\x4b\x4c\x04\0",
        b"\x8b\x02\x80",
    ),
    *(b"x\x9cKL\x04\0\x01%\x00\xc3", b"\x28\xb5\x2f\xfd\x04\0\x01\0\0", b"\x01\0\0\xff\xff", b"PQRST"),
    most=BODY,
    raises=(BrokenCoding, DecodedTooLarge),
)
def coded(body: bytes) -> None:
    failed = None
    for name in parse_codings([b"gzip, deflate", b"br", b"zstd", body[:40]]):
        try:
            decode_prefix(body, [name], max_bytes=10_000)
            for _ in decode_in_pieces(body, name):
                pass
            decode_body(body, [name], max_bytes=1_000_000)
        except (BrokenCoding, DecodedTooLarge) as error:
            failed = error
    if failed is not None:
        raise failed


@declare(
    *(
        "HTTP/1.1 200 OK\r\n",
        "http/1.0 100\r\n",
        "HTTP/2 101 x\n",
        "\r\n",
        "\n",
        "\r",
        "A: b\r\n",
        "no colon\r\n",
        " folded\r\n",
    ),
    *(
        "Content-Length: 5\r\n",
        "content-length :5, 05\r\n",
        "Transfer-Encoding: chunked\r\n",
        ":",
        " ",
        "\t",
        ",",
        *ODD_BYTES,
    ),
    most=MENDED_BYTES,
    raises=(Unmendable,),
    grown=[
        lambda n: "HTTP/1.1 100 Continue\r\n\r\n" * n,
        lambda n: "HTTP/1.1 200" + " " * n,
        lambda n: "HTTP/1.1 200 OK\r\n" + "no colon\r\n" * n + "\r\n",
        lambda n: "HTTP/1.1 200 OK\r\n" + "a" * n + "\r\n\r\n",
        lambda n: "HTTP/1.1 200 OK\r\nContent-Length: " + "5," * n + "5\r\n\r\n",
        lambda n: "HTTP/1.1 200 OK\r\n" + " transfer-" * n + "\r\n\r\n",
    ],
)
def head_of_answer(received: bytes) -> None:
    mend_head(received)


@declare(
    *(
        '{"responseHeader":',
        '{"status":0',
        "}",
        ',"errors":[',
        '{"id":"a{n}","message":"b"}',
        "]",
        ",",
        '"error":{"msg":',
        '"x"',
    ),
    *("{", "[", "<html>", "null", "1e999", '"responseHeader":{"status":400}', '{"responseHeader":{"status":0}}'),
    most=BODY,
    raises=(SolrRefusal, IndexUnavailable, IndexMisconfigured),
)
def index_answer(body: bytes) -> None:
    import orjson

    for status in (200, 503):
        check_answer("http://solr.test", status, body[:20].decode("latin-1"), body)
        # Only what passed is looked at.
        list(read_errors(orjson.loads(body)))


@declare(
    *('{"status":', '"ok"', '"error"', ',"message":', ',"jobid":', ',"currstate":', '"x{n}"', "}", "[", "]", "{", ","),
    *(
        "<html>",
        "null",
        "1e999",
        "1{n}",
        '"\\u001b"',
        '"\\ud800"',
        "\n",
        '{"status":"error","message":"é{n}"}',
        *ODD_BYTES,
    ),
    most=MAX_SCRAPYD,
    raises=(ScrapydRefused,),
    grown=[
        lambda n: '{"status":"error","message":' + "[" * n + "]" * n + "}",
        lambda n: '{"status":"error","message":"' + "\\u001b" * n + '"}',
        lambda n: '{"status":"ok","jobid":' + "1" * n + "}",
        lambda n: '{"status":"ok",' + ",".join(f'"{number}":0' for number in range(n // 8)) + "}",
    ],
)
def scrapyd_answer(body: bytes) -> None:
    failed = None
    try:
        assert read_answer("http://127.0.0.1:6800", 200, body)["status"] == "ok"
    except ScrapydRefused as error:
        failed = error
    if failed is not None:
        # It is printed as it is.
        assert len(str(failed)) < 400
        assert to_one_line(str(failed)) == str(failed)
        raise failed
