"""Buckets of S3 and of servers that speak its protocol (docs.aws.amazon.com/AmazonS3/latest/API): folders are what ends in a slash.

Requests are made by botocore, as keys are whatever somebody made them: with empty names, with dots between slashes, with control
characters. Of a version that is not the current one, and of a mark that something was deleted, a listing says nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import urllib3
import xxhash
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from botocore.session import Session
from urllib3.exceptions import InsecureRequestWarning

from searchcrawl.bodies import Body, Spool, hold
from searchcrawl.codes import Code
from searchcrawl.http.content_coding import BrokenCoding, DecodedTooLarge, decode_large, parse_codings
from searchcrawl.kinds.file import names
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.remote.model import RemoteFailure, RemoteFile, Thing, TooLarge, Way
from searchcrawl.kinds.file.remote.s3_failures import describe, is_absent
from searchcrawl.kinds.file.remote.s3_pages import Ahead, BrokenPage, Page, build_token, find_barrier, group, read_page
from searchcrawl.kinds.file.remote.s3_sending import limit_answers
from searchcrawl.listing.model import MOST_ENTRIES
from searchcrawl.sources.config import Source

#: So often a request is made that fails in a way that may pass: of a folder of a million objects it is one of a thousand.
_ATTEMPTS: Final = 3
_CONNECT_SECONDS: Final = 10
#: Of servers that have regions, and do not say in which one a bucket is.
_REGION: Final = "us-east-1"
_PIECE_BYTES: Final = 1 << 20
_PAGE: Final = "SearchcrawlPage"
_EMPTY_PAGE: Final = b"<ListBucketResult/>"
#: Objects are in the order of their keys where servers say this of themselves, but in buckets whose names end so.
_OF_AMAZON: Final = "AmazonS3"
_UNORDERED: Final = "--x-s3"
_BEFORE_SLASH: Final = b"." + chr(sys.maxunicode).encode()
#: What is taken over of an answer.
_HEADERS: Final = (b"Content-Type", b"Last-Modified")
_NO_CREDENTIALS: Final = 401
_NOT_FOUND: Final = 404
#: ValueError: a date or a number that is none.
_ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError, ValueError)


class S3Connection:
    """A bucket, or what begins with a prefix in it, as a root (``remote.model.Connection``)."""

    def __init__(self, source: Source, root: str, *, user_agent: str) -> None:
        _, self._bucket, way = names.split_remote(root)
        self._prefix = b"".join(name + b"/" for name in way)
        table: FileTable = source.own
        if (table.username is None) != (table.password is None):
            raise RemoteFailure(
                "file.username and file.password: one is of no use without the other", code=_NO_CREDENTIALS
            )
        try:
            session = Session()
            self._is_signed = table.username is not None or session.get_credentials() is not None
            self._client = _build_client(session, source, user_agent, is_signed=self._is_signed)
        except BotoCoreError as error:
            raise describe(error, self._show(self._prefix)) from error
        limit_answers(self._client)
        self._client.meta.events.register("before-parse.s3.ListObjectsV2", _keep_page)
        self._client.meta.events.register("before-call.s3.HeadBucket", _ask_once)
        self._is_ordered = False
        self._ahead = Ahead((), b"", is_last=False)
        try:
            self.look(())
        except BaseException:
            self.close()
            raise

    def list_folder(self, way: Way) -> Iterator[Sequence[Thing]]:
        """What is in a folder, a page of the server's at a time; a page that comes again is a failure, as it has no end."""
        folder = self._prefix + b"".join(name + b"/" for name in way)
        known = self._look_ahead(folder)
        if known is not None:
            yield known
            return
        seen, asked, following = set[int](), set[str](), ""
        while True:
            page = self._list(folder, ContinuationToken=following)
            digest = _hash(page)
            if digest in seen or page.next in asked:
                reason = "the server says a page of its listing again"
                raise RemoteFailure(f"{self._show(folder)}: {reason}", code=Code.READ_ERROR, transient=True)
            seen |= {digest} if page.objects or page.folders else set()
            with self._describing(folder):
                things = group(page.objects, page.folders, folder)
            # A server may say more than it is asked for.
            for start in range(0, max(1, len(things)), MOST_ENTRIES):
                yield things[start : start + MOST_ENTRIES]
            if not page.next:
                return
            asked.add(page.next)
            following = page.next

    def _look_ahead(self, folder: bytes) -> list[Thing] | None:
        """What is in a folder, where that is known without a request of its own; None where it is not.

        Where objects are told in the order of their keys, one request brings those of many small folders.
        """
        if not self._is_ordered:
            return None
        with self._describing(folder):
            known = self._ahead.take(folder)
            if known is None:
                # The last key before those of the folder, but for some that nobody has.
                after = folder[:-1] + _BEFORE_SLASH if folder != self._prefix else b""
                page = self._list(self._prefix, Delimiter="", StartAfter=after.decode())
                self._ahead = Ahead(page.objects, after, is_last=not page.next)
                known = self._ahead.take(folder)
        return known

    def look(self, way: Way) -> Thing:
        """What is at the end of a way: an object where there is one, else the folder that it is the beginning of."""
        key, name = self._find_key(way), way[-1] if way else b""
        if way:
            try:
                head = self._client.head_object(Bucket=self._bucket, Key=key.decode())
                return _describe_head(name, head)
            except _ERRORS as error:
                if not is_absent(error):
                    raise self._describe(error, key) from error
        folder = self._prefix + b"".join(name + b"/" for name in way)
        # Says as well whether the bucket is still there, which the answer before does not.
        page = self._list(folder, MaxKeys=1)
        if folder and not page.objects and not page.folders:
            reason = "there is no such object, and none in such a folder"
            raise RemoteFailure(f"{self._show(folder)}: {reason}", code=_NOT_FOUND, is_absent=True)
        return Thing(name, is_folder=True, node=folder)

    def read(self, way: Way, most_bytes: int, new_spool: Callable[[], Spool] = hold) -> RemoteFile:
        """What an object holds: one answer is one version of it."""
        key = self._find_key(way)
        with self._describing(key):
            answer = self._client.get_object(Bucket=self._bucket, Key=key.decode())
            with closing(answer["Body"]) as stream:
                if answer.get("ContentLength", 0) > most_bytes:
                    raise TooLarge
                body = _read_body(stream, most_bytes, new_spool())
        try:
            codings = parse_codings([answer.get("ContentEncoding", "").encode("latin-1", "replace")])
            body = decode_large(body, codings, max_bytes=most_bytes, new_spool=new_spool)
            return RemoteFile(body=body, headers=_build_headers(answer))
        except DecodedTooLarge as error:
            raise TooLarge from error
        except BrokenCoding as error:
            raise RemoteFailure(f"{self._show(key)}: {error}", code=Code.READ_ERROR) from error

    def close(self) -> None:
        """Closes the connections to the server."""
        self._client.close()

    def _find_key(self, way: Way) -> bytes:
        key = self._prefix + b"/".join(way)
        barrier = find_barrier(key)
        if barrier:
            raise RemoteFailure(f"{self._show(key)}: {barrier}", code=_NOT_FOUND, is_absent=True)
        return key

    def _list(self, folder: bytes, **options: Any) -> Page:
        asked = {"Delimiter": "/", "EncodingType": "url", "MaxKeys": MOST_ENTRIES, **options}
        with self._describing(folder):
            answer = self._client.list_objects_v2(
                Bucket=self._bucket, Prefix=folder.decode(), **{name: value for name, value in asked.items() if value}
            )
            said = answer["ResponseMetadata"]["HTTPHeaders"].get("server")
            self._is_ordered = said == _OF_AMAZON and not self._bucket.endswith(_UNORDERED)
            return read_page(answer[_PAGE])

    @contextmanager
    def _describing(self, key: bytes) -> Iterator[None]:
        """Makes failures of what goes wrong with a request about a key."""
        try:
            yield
        except BrokenPage as error:
            reason = f"this is no listing as S3 has it: {error}"
            raise RemoteFailure(f"{self._show(key)}: {reason}", code=Code.READ_ERROR, transient=True) from error
        except _ERRORS as error:
            raise self._describe(error, key) from error

    def _describe(self, error: Exception, key: bytes) -> RemoteFailure:
        if is_absent(error):
            return RemoteFailure(f"{self._show(key)}: there is no such object", code=_NOT_FOUND, is_absent=True)
        return describe(error, self._show(key), is_signed=self._is_signed)

    def _show(self, key: bytes) -> str:
        return f"s3://{self._bucket}/{names.escape(key)}"


def _build_client(session: Session, source: Source, user_agent: str, *, is_signed: bool) -> Any:
    """A client of botocore; requests are not signed where there is no key, as public buckets let everyone read."""
    table: FileTable = source.own
    fetch = source.fetch
    proxies = {"http": fetch.proxy, "https": fetch.proxy} if fetch.proxy else {}
    tls = fetch.tls_files(source.folder)
    verify: str | bool | None = str(tls.ca_file) if tls.ca_file else None
    if not fetch.verify_certificates:
        # The owner has said so.
        verify = False
        urllib3.disable_warnings(InsecureRequestWarning)
    certificate = [str(path) for path in (tls.client_certificate, tls.client_key) if path]
    return session.create_client(
        "s3",
        region_name=session.get_config_variable("region") or _REGION,
        endpoint_url=table.endpoint,
        verify=verify,
        aws_access_key_id=table.username,
        aws_secret_access_key=table.password,
        config=Config(
            signature_version=None if is_signed else UNSIGNED,
            user_agent=user_agent,
            connect_timeout=min(_CONNECT_SECONDS, fetch.timeout_seconds),
            read_timeout=fetch.timeout_seconds,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            proxies=proxies,
            client_cert=tuple(certificate) if len(certificate) > 1 else next(iter(certificate), None),
        ),
    )


def _describe_head(name: bytes, head: Any) -> Thing:
    size, modified = head.get("ContentLength", 0), head.get("LastModified")
    modified_ms = None if modified is None else round(modified.timestamp() * 1000)
    token = build_token(head.get("ETag", ""), size, modified_ms)
    return Thing(name, is_folder=False, size=size, modified_ms=modified_ms, token=token)


def _keep_page(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Keeps the page of a listing as it came: botocore takes eight times as long to read one, and loses what is not UTF-8."""
    if response_dict["status_code"] < 300:
        customized_response_dict[_PAGE] = response_dict["body"]
        response_dict["body"] = _EMPTY_PAGE


def _ask_once(context: dict[str, Any], **_: Any) -> None:
    """Keeps botocore from asking for the region of a bucket by a request that asks for it: a server may redirect that as well."""
    context.get("s3_redirect", {})["redirected"] = True


def _hash(page: Page) -> int:
    keys = (*(each.key for each in page.objects), *page.folders)
    return xxhash.xxh3_64_intdigest(b"\0".join(keys))


def _read_body(stream: Any, most_bytes: int, spool: Spool) -> Body:
    """What a stream holds to its end, which is checked by its length and its checksum; raises TooLarge."""
    while piece := stream.read(_PIECE_BYTES):
        spool.write(piece)
        if spool.size > most_bytes:
            raise TooLarge
    return spool.finish()


def _build_headers(answer: Any) -> tuple[tuple[bytes, bytes], ...]:
    said = answer["ResponseMetadata"]["HTTPHeaders"]
    found = ((name, said.get(name.decode("ascii").lower(), "")) for name in _HEADERS)
    return tuple((name, value.encode("latin-1", "replace")) for name, value in found if value)
