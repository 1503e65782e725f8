"""Answers that are wrong on purpose, by row of the fault list (X-R1-R16), and what each comes to.

An expectation is a code and whether it is tried again; None is the page, whole.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import Final

import brotli

from tests.hostile_server import PAGE, coded, head, redirect, whole

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Expected = tuple[int, bool] | None

_ZEROS: Final = bytes(60_000_000)
_CHUNKED: Final = "Transfer-Encoding: chunked"
_END: Final = b"0\r\n\r\n"
_LENGTH: Final = f"Content-Length: {len(PAGE)}"
_BROKEN: Final = (1006, True)
_CUT: Final = (958, True)
_LARGE: Final = (960, False)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _layers(number: int) -> bytes:
    body = PAGE
    for _ in range(number):
        body = gzip.compress(body, mtime=0)
    return body


_GZIP: Final = gzip.compress(PAGE, mtime=0)
_PAGE_IN_CHUNKS: Final = _chunk(PAGE) + _END

#: row → path → the answer, and what it comes to
ROWS: Final[dict[str, dict[str, tuple[bytes, Expected]]]] = {
    "r1": {
        "/r1-gzip": (coded("gzip", gzip.compress(_ZEROS, 1)), _LARGE),
        "/r1-deflate": (coded("deflate", zlib.compress(_ZEROS, 1)), _LARGE),
        "/r1-deflate-raw": (coded("deflate", zlib.compress(_ZEROS, 1, wbits=-15)), _LARGE),
        "/r1-br": (coded("br", brotli.compress(_ZEROS, quality=5)), _LARGE),
        "/r1-zstd": (coded("zstd", zstd.compress(_ZEROS)), _LARGE),
        "/r1-members": (coded("gzip", gzip.compress(b"", mtime=0) * 80_000), (958, False)),
        "/r1-frames": (coded("zstd", zstd.compress(b"") * 100_000), (958, False)),
    },
    "r2": {
        "/r2-twice": (coded("gzip, gzip", _layers(2)), None),
        "/r2-thrice": (coded("gzip, gzip, gzip", _layers(3)), (958, False)),
        "/r2-2000": (coded(", ".join(["gzip"] * 2000), _layers(20)), (958, False)),
        "/r2-bomb": (coded("gzip, gzip", gzip.compress(gzip.compress(_ZEROS, 1))), _LARGE),
        "/r2-mixed-bomb": (coded("br, zstd", zstd.compress(brotli.compress(_ZEROS, quality=5))), _LARGE),
        "/r2-unknown": (coded("rot13", PAGE), (958, False)),
        "/r2-no-coding": (coded("binary", PAGE), None),
        "/r2-charset": (coded("ISO-8859-1", PAGE), None),
        "/r2-aws-chunked": (coded("aws-chunked,gzip", _layers(1)), None),
        "/r2-long-name": (coded("gzip" * 1000, PAGE), (958, False)),
    },
    "r3": {
        "/r3-announced": (head("200 OK", "Content-Length: 999999999999"), _LARGE),
        "/r3-line": (head("200 OK", "X-Long: " + "x" * 5_000_000) + PAGE, _BROKEN),
        "/r3-lines": (head("200 OK", *(f"X-{n}: " + "x" * 15_000 for n in range(6))) + PAGE, _BROKEN),
        "/r3-many": (head("200 OK", *(f"X-{n}: y" for n in range(5000)), _LENGTH) + PAGE, _BROKEN),
        "/r3-cookies": (head("200 OK", *(f"Set-Cookie: a{n}=b" for n in range(50_000)), _LENGTH) + PAGE, _BROKEN),
        "/r3-cookies-few": (head("200 OK", *(f"Set-Cookie: a{n}=b" for n in range(150)), _LENGTH) + PAGE, None),
        "/r3-type": (head("200 OK", "Content-Type: text/html;" + "x" * 3_000_000, _LENGTH) + PAGE, _BROKEN),
        "/r3-reason": (head("404 " + "x" * 100_000, "Content-Length: 0"), _BROKEN),
        "/r3-trailers": (head("200 OK", _CHUNKED) + _chunk(PAGE) + b"0\r\n" + b"X-T: y\r\n" * 50_000 + b"\r\n", _CUT),
        "/r3-1xx": (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 300 + whole(), None),
    },
    "r5": {
        "/r5-long": (head("200 OK", "Content-Length: 9000") + PAGE, _CUT),
        # What is too much for its length is no answer of ours: the connection is not used again.
        "/r5-short": (head("200 OK", _LENGTH) + PAGE + b"more", None),
        "/r5-short-closed": (head("200 OK", "Connection: close", _LENGTH) + PAGE + b"more", None),
        # The length of the page before it was compressed.
        "/r5-gzip-length": (head("200 OK", "Content-Encoding: gzip", _LENGTH) + _GZIP, None),
        "/r5-gzip-other": (head("200 OK", "Content-Encoding: gzip", "Content-Length: 9000") + _GZIP, _CUT),
        "/r5-chunk-behind": (head("200 OK", _CHUNKED) + _PAGE_IN_CHUNKS + b"more", None),
        "/r5-chunk-cut": (head("200 OK", _CHUNKED) + b"10\r\n0123456789abcdef\r\n10\r\n0123", _CUT),
        "/r5-chunk-no-end": (head("200 OK", _CHUNKED) + _chunk(PAGE), _CUT),
        "/r5-chunk-half-end": (head("200 OK", _CHUNKED) + _chunk(PAGE) + b"0\r\n", _CUT),
        "/r5-chunk-no-size": (head("200 OK", _CHUNKED) + b"xyz\r\n0123\r\n" + _END, _CUT),
        "/r5-chunk-negative": (head("200 OK", _CHUNKED) + b"-5\r\nabcde\r\n" + _END, _CUT),
        "/r5-chunk-huge": (head("200 OK", _CHUNKED) + b"F" * 30 + b"\r\nabc", _CUT),
        "/r5-chunk-no-line": (head("200 OK", _CHUNKED) + b"5\r\nabcdeX5\r\nabcde\r\n" + _END, _CUT),
    },
    "r6": {
        "/r6-no-length": (head("200 OK", "Content-Type: text/html") + PAGE, None),
        "/r6-gzip": (coded("gzip", _GZIP), None),
        "/r6-gzip-cut": (coded("gzip", _GZIP[:-12]), _CUT),
        "/r6-gzip-crc": (coded("gzip", _GZIP[:-6] + bytes([_GZIP[-6] ^ 0xFF]) + _GZIP[-5:]), _CUT),
        "/r6-gzip-length": (coded("gzip", _GZIP[:-1] + b"\x55"), _CUT),
        "/r6-gzip-none": (coded("gzip", PAGE), _CUT),
        "/r6-gzip-behind": (coded("gzip", _GZIP + b"junk" * 50), None),
        "/r6-gzip-two": (coded("gzip", gzip.compress(PAGE[:500]) + gzip.compress(PAGE[500:])), None),
        "/r6-gzip-two-cut": (coded("gzip", _GZIP + _GZIP[:-9]), _CUT),
        "/r6-deflate-cut": (coded("deflate", zlib.compress(PAGE)[:-5]), _CUT),
        "/r6-deflate-sum": (coded("deflate", zlib.compress(PAGE)[:-1] + b"\x55"), _CUT),
        "/r6-deflate-raw": (coded("deflate", zlib.compress(PAGE, wbits=-15)), None),
        "/r6-br-cut": (coded("br", brotli.compress(PAGE)[:-5]), _CUT),
        "/r6-zstd-cut": (coded("zstd", zstd.compress(PAGE)[:-5]), _CUT),
    },
    "r7": {
        "/r7-length-nan": (head("200 OK", "Content-Length: abc") + PAGE, _BROKEN),
        "/r7-length-hex": (head("200 OK", "Content-Length: 0x10") + PAGE, _BROKEN),
        "/r7-length-plus": (head("200 OK", "Content-Length: +5") + PAGE, _BROKEN),
        "/r7-length-negative": (head("200 OK", "Content-Length: -5") + PAGE, _BROKEN),
        "/r7-length-empty": (head("200 OK", "Content-Length:") + PAGE, _BROKEN),
        "/r7-length-two": (head("200 OK", "Content-Length: 5", "Content-Length: 6") + b"012345", _BROKEN),
        "/r7-length-same": (head("200 OK", _LENGTH, _LENGTH) + PAGE, None),
        "/r7-length-list": (head("200 OK", f"{_LENGTH}, {len(PAGE)}") + PAGE, None),
        "/r7-length-huge": (head("200 OK", "Content-Length: " + "9" * 40) + PAGE, _BROKEN),
        "/r7-length-chunked": (head("200 OK", "Content-Length: 5", _CHUNKED) + _PAGE_IN_CHUNKS, None),
        "/r7-chunked-length": (head("200 OK", _CHUNKED, "Content-Length: 5") + _PAGE_IN_CHUNKS, None),
        "/r7-transfer": (head("200 OK", "Transfer-Encoding: xyzzy") + PAGE, _BROKEN),
        "/r7-transfer-gzip": (head("200 OK", "Transfer-Encoding: gzip, chunked") + _chunk(_GZIP) + _END, _BROKEN),
        "/r7-transfer-twice": (head("200 OK", _CHUNKED, "Transfer-Encoding: identity") + _PAGE_IN_CHUNKS, _BROKEN),
        "/r7-transfer-same": (head("200 OK", _CHUNKED, _CHUNKED) + _PAGE_IN_CHUNKS, None),
        "/r7-transfer-list": (head("200 OK", "Transfer-Encoding: chunked, Chunked") + _PAGE_IN_CHUNKS, None),
        "/r7-transfer-none": (head("200 OK", "Transfer-Encoding: identity, identity", _LENGTH) + PAGE, None),
        "/r7-transfer-empty": (head("200 OK", "Transfer-Encoding:") + PAGE, None),
        "/r7-transfer-half": (head("200 OK", "Transfer-Encoding: chunked,") + _PAGE_IN_CHUNKS, _BROKEN),
        "/r7-transfer-nothing": (head("200 OK", "Transfer-Encoding: identity") + PAGE, None),
        "/r7-http-0.9": (PAGE, _BROKEN),
        "/r7-icy": (b"ICY 200 OK\r\n\r\n" + PAGE, _BROKEN),
        "/r7-version": (b"HTTP/1.10000 200 OK\r\n\r\n" + PAGE, _BROKEN),
        "/r7-status-none": (b"HTTP/1.1\r\n\r\n" + PAGE, _BROKEN),
        "/r7-status-word": (head("abc OK") + PAGE, _BROKEN),
        "/r7-status-0": (head("0 OK", "Content-Length: 0"), _BROKEN),
        "/r7-status-99": (head("99 OK", "Content-Length: 0"), _BROKEN),
        "/r7-status-099": (head("099 OK", "Content-Length: 0"), _BROKEN),
        "/r7-status-1000": (head("1000 OK", "Content-Length: 0"), _BROKEN),
        "/r7-status-negative": (head("-12 OK", "Content-Length: 0"), _BROKEN),
        "/r7-status-100-digits": (head("2" * 100 + " OK", "Content-Length: 0"), _BROKEN),
        "/r7-status-101": (head("101 Switching", "Upgrade: x", "Connection: upgrade"), _BROKEN),
        "/r7-status-999": (whole(b"", "999 No"), (999, False)),
        "/r7-reason": (head("404 \x1b[31mN\xf6\x00", "Content-Length: 0"), (404, False)),
        "/r7-nul": (head("200 OK", "X-A: b\0c", _LENGTH) + PAGE, _BROKEN),
        "/r7-no-colon": (head("200 OK", "X-Anything", _LENGTH) + PAGE, None),
        "/r7-blank-name": (head("200 OK", "X A: b", _LENGTH) + PAGE, None),
        "/r7-no-name": (head("200 OK", ": b", _LENGTH) + PAGE, None),
        "/r7-control-name": (head("200 OK", "X\x01A: b", _LENGTH) + PAGE, None),
        "/r7-length-blank": (head("200 OK", f"Content-Length : {len(PAGE)}") + PAGE, None),
        "/r7-lower-case": (head("200 OK", _LENGTH).replace(b"HTTP", b"http") + PAGE, None),
        "/r7-no-reason": (head("200", _LENGTH) + PAGE, None),
        "/r7-blanks": (head(" 200 OK", _LENGTH) + PAGE, None),
        "/r7-mark": (b"\xef\xbb\xbf" + head("200 OK", _LENGTH) + PAGE, None),
        "/r7-http-2": (head("200 OK", _LENGTH).replace(b"HTTP/1.1", b"HTTP/2") + PAGE, None),
        "/r7-continue-1.0": (b"HTTP/1.0 100 Continue\r\n\r\n" + whole(), None),
        "/r7-return": (head("200 OK", "X-A: b\rc", _LENGTH) + PAGE, _BROKEN),
        "/r7-returns-only": (head("200 OK", _LENGTH).replace(b"\r\n", b"\r") + PAGE, _BROKEN),
        # RFC 9112 §2.2 and §5.2: a recipient may read these.
        "/r7-folded": (head("200 OK", "X-A: b\r\n folded", _LENGTH) + PAGE, None),
        "/r7-lines-only": (head("200 OK", _LENGTH).replace(b"\r\n", b"\n") + PAGE, None),
        "/r7-eight-bits": (head("200 OK", "X-A: \xfc\xa4", _LENGTH) + PAGE, None),
        "/r7-closed": (b"", (905, True)),
        "/r7-continue-closed": (b"HTTP/1.1 100 Continue\r\n\r\n", (905, True)),
    },
    "r8": {
        "/r8-none": (redirect("302 Found"), (1003, False)),
        "/r8-blank": (redirect("302 Found", " "), (1003, False)),
        "/r8-two": (redirect("302 Found", "/ok", "/gzip"), (1003, False)),
        "/r8-twice": (redirect("302 Found", "/ok", "/ok"), None),
        "/r8-bad": (redirect("302 Found", "http://[::1"), (1003, False)),
        "/r8-port": (redirect("302 Found", "http://127.0.0.1:99999/"), (1003, False)),
        "/r8-host": (redirect("302 Found", "//"), (1003, False)),
        "/r8-script": (redirect("302 Found", "javascript:alert(1)"), (1003, False)),
        "/r8-file": (redirect("302 Found", "file:///etc/passwd"), (1003, False)),
        "/r8-moved-bad": (redirect("301 Moved Permanently", "http://[::1"), (1003, False)),
        "/r8-long": (redirect("302 Found", "/" + "a" * 17_000), _BROKEN),
        "/r8-nul": (redirect("302 Found", "/o\0k"), _BROKEN),
        "/r8-control": (redirect("302 Found", "/o\x01k"), (404, False)),
        "/r8-tab": (redirect("302 Found", "/o\tk"), None),
        "/r8-lines": (redirect("302 Found", "/ok\r\nX-Injected: 1"), None),
        "/r8-bytes": (redirect("302 Found", "/\xf6"), (404, False)),
        "/r8-relative": (redirect("302 Found", "ok"), None),
        "/r8-dots": (redirect("307 Temporary Redirect", "../../x/../ok"), None),
        "/r8-query": (redirect("303 See Other", "?x=1"), (404, False)),
        "/r8-fragment": (redirect("302 Found", "#top"), (963, False)),
        "/r8-itself": (redirect("302 Found", "/r8-itself"), (963, False)),
        "/r8-moved-itself": (redirect("301 Moved Permanently", "/r8-moved-itself"), (963, False)),
        "/r8-circle": (redirect("302 Found", "/loop-b"), (963, False)),
        "/r8-chain": (redirect("302 Found", "/chain-0"), (963, False)),
        "/r8-300": (redirect("300 Multiple Choices", "/ok"), (300, False)),
        "/r8-305": (redirect("305 Use Proxy", "http://127.0.0.1:1/"), (305, False)),
        "/r8-306": (redirect("306 Unused", "/ok"), (306, False)),
        "/r8-201": (redirect("201 Created", "/ok"), (201, False)),
        "/r8-moved": (redirect("308 Permanent Redirect", "/ok"), (954, False)),
        "/r8-body": (head("302 Found", "Location: /ok", "Content-Length: 9000") + PAGE, None),
    },
    "r16": {
        "/r16-304": (head("304 Not Modified", 'ETag: "6"'), (304, True)),
        "/r16-304-body": (whole(PAGE, "304 Not Modified", 'ETag: "6"'), (304, True)),
        "/r16-204": (head("204 No Content"), (204, False)),
        "/r16-204-body": (whole(PAGE, "204 No Content"), (204, False)),
        "/r16-205": (whole(PAGE, "205 Reset Content"), (205, False)),
        "/r16-206": (whole(PAGE, "206 Partial Content", "Content-Range: bytes 0-99/200"), (206, False)),
        "/r16-226": (whole(PAGE, "226 IM Used"), (226, False)),
        "/r16-404": (whole(PAGE, "404 Not Found"), (404, False)),
        "/r16-404-gzip-cut": (whole(_GZIP[:-9], "404 Not Found", "Content-Encoding: gzip"), (404, False)),
        "/r16-503": (whole(b"", "503 Service Unavailable"), (503, True)),
    },
}
