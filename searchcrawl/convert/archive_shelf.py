"""Keeps the archives whose files are being visited: fetched once a run, unpacked once, in a temporary folder."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from searchcrawl.answer_headers import list_permissions
from searchcrawl.bodies import Body, digest_body, list_pieces, read_body
from searchcrawl.codes import Code, is_retried
from searchcrawl.convert.archive_reader import ARCHIVE, Kept, find_archive, try_unpack
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES
from searchcrawl.convert.registry import Registry
from searchcrawl.exceptions import ConversionFailed, DiskFull
from searchcrawl.html.file_name import find_file_name
from searchcrawl.items import ARCHIVE_ETAG, Headers
from searchcrawl.temporary_files import PrivateFolder
from searchcrawl.worker_pool import WorkerPool

#: So many bytes are kept of archives that were seen, and of those that were unpacked; and so many answers are known.
_MAX_KEPT_BYTES: Final = 1 << 30
_MAX_KNOWN: Final = 10_000
#: A small archive counts as so many: it takes a folder, and its headers take memory.
_LEAST_BYTES: Final = 16 << 10
#: What the smallest file takes on a disk.
_BLOCK_BYTES: Final = 4096
_KIND: Final = "archives"
_DIGEST_CHARACTERS: Final = 32
_ROBOTS: Final = b"x-robots-tag"


T = TypeVar("T")


class Fetched(NamedTuple):
    """An answer: its status, its headers, and its decoded body. ``is_within``: it is what an archive says, no server."""

    status: int
    headers: Headers
    body: Body
    is_within: bool = False


class Unpacked(NamedTuple):
    """An archive that was unpacked: the headers that hold for its files, what is at each path, and their bytes."""

    headers: Headers
    folder: Path
    kept: dict[str, Kept]
    size: int

    def read(self, path: str) -> Body | None:
        """The content of a file; None where it cannot be read. Raises KeyError where there is none."""
        number = self.kept[path].number
        return None if number is None else read_body(self.folder / str(number))

    def measure(self, path: str) -> int | None:
        """The size of a file; None where it cannot be read. Raises KeyError where there is none."""
        number = self.kept[path].number
        return None if number is None else (self.folder / str(number)).stat().st_size

    def list_headers(self, path: str) -> Headers:
        """The headers of a file: its own date, and the validator of the archive."""
        modified = self.kept[path].modified
        return (*self.headers, (b"Last-Modified", modified.encode())) if modified else self.headers


class _Seen(NamedTuple):
    """An archive that was an answer of this run: its headers, and the file with its body, once that is written."""

    headers: Headers
    written: Future[Path]


class _Row(Generic[T]):
    """Values by URL, the one that was not used for longest first, and the sum of their sizes."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._bytes = 0

    def is_full(self) -> bool:
        return self._bytes > _MAX_KEPT_BYTES

    def put(self, url: str, value: T, size: int) -> None:
        size = max(size, _LEAST_BYTES)
        self._values[url] = value, size
        self._bytes += size

    def use(self, url: str) -> None:
        if url in self._values:
            self._values.move_to_end(url)

    def pop(self, url: str) -> T | None:
        value, size = self._values.pop(url, (None, 0))
        self._bytes -= size
        return value

    def pop_oldest(self) -> tuple[str, T]:
        url, (value, size) = self._values.popitem(last=False)
        self._bytes -= size
        return url, value


class ArchiveShelf:
    """The archives of a run, by URL; for the event loop.

    ``fetch`` requests one; what it raises, and an answer that is no archive, is remembered for the run, unless it may be
    another one the next time.
    """

    def __init__(self, fetch: Callable[[str], Awaitable[Fetched]]) -> None:
        self._fetch = fetch
        self._registry = Registry()
        self._opened: OrderedDict[str, asyncio.Future[Unpacked | Fetched]] = OrderedDict()
        #: those of them that are on the disk
        self._unpacked = _Row[Unpacked]()
        self._seen = _Row[_Seen]()
        self._pool = WorkerPool(max_memory_bytes=MAX_FILE_MEMORY_BYTES)
        # One thread: what is deleted was written before. The event loop waits for no disk.
        self._files = ThreadPoolExecutor(1, thread_name_prefix="archives")
        self._folder: PrivateFolder | None = None
        self._count = 0
        self._closed = False

    def note(self, url: str, headers: Headers, body: Body) -> None:
        """Keeps the body of an answer, if it is that of an archive, so that it need not be fetched once more."""
        if self._closed or not self._is_archive(url, headers, body):
            return
        self._forget(url)
        self._seen.put(url, _Seen(headers, self._files.submit(self._write, body)), len(body))
        while self._seen.is_full():
            self._delete_later(_delete_written, self._seen.pop_oldest()[1].written)

    async def open(self, url: str, outermost: str | None = None) -> Unpacked | Fetched:
        """The archive with this URL, or the answer in its place.

        ``outermost`` is the one that is requested for it: by default what stands before the first mark. Raises what
        fetching or unpacking it did, and DiskFull where its files cannot be written.
        """
        opened = self._opened.get(url)
        if opened is None:
            opened = self._opened[url] = asyncio.ensure_future(self._open(url, outermost))
            opened.add_done_callback(lambda done: self._settle(url, done))
            self._drop_oldest()
        else:
            self._opened.move_to_end(url)
            self._unpacked.use(url)
        return await asyncio.shield(opened)

    async def close(self) -> None:
        """Deletes all that is kept."""
        self._closed = True
        await asyncio.to_thread(self._pool.close)
        await asyncio.to_thread(self._files.shutdown)
        if self._folder is not None:
            await asyncio.to_thread(self._folder.remove)

    async def _open(self, url: str, outermost: str | None) -> Unpacked | Fetched:
        fetched = await self._get(url, outermost)
        if fetched.status != HTTPStatus.OK or not self._is_archive(url, fetched.headers, fetched.body):
            return fetched._replace(body=b"")
        try:
            folder = await asyncio.wrap_future(self._files.submit(self._make_folder))
        except OSError as error:
            raise _build_full(error) from error
        name = find_file_name(fetched.headers, url)
        try:
            unpacked = await asyncio.wrap_future(self._pool.submit(try_unpack, fetched.body, name, str(folder)))
            if isinstance(unpacked, OSError):
                raise _build_full(unpacked)
        except BaseException:
            await asyncio.to_thread(_delete_tree, folder)
            raise
        kept, size = unpacked
        return Unpacked(await asyncio.to_thread(_inherit, fetched.headers, fetched.body), folder, kept, size)

    async def _get(self, url: str, outermost: str | None) -> Fetched:
        if (seen := self._seen.pop(url)) is not None:
            with suppress(OSError):  # It could not be written or read: it is fetched once more.
                file = await asyncio.wrap_future(seen.written)
                body = await asyncio.to_thread(read_body, file)
                self._delete_later(_delete_tree, file.parent)
                return Fetched(HTTPStatus.OK, seen.headers, body)
        inner = find_archive(url) if url != outermost else None
        if inner is None:
            return await self._fetch(url)
        outer = await self.open(inner[0], outermost)
        if isinstance(outer, Fetched):
            return outer
        if inner[1] not in outer.kept:
            return Fetched(404, outer.headers, b"", is_within=True)
        found = await asyncio.to_thread(outer.read, inner[1])
        if found is None:
            raise ConversionFailed("the archive in an archive cannot be unpacked", code=Code.CONVERSION_FAILED)
        return Fetched(HTTPStatus.OK, outer.headers, found, is_within=True)

    def _is_archive(self, url: str, headers: Headers, body: Body) -> bool:
        return self._registry.find_mimetype(body, headers, url) in ARCHIVE.mime_types

    def _write(self, body: Body) -> Path:
        file = self._make_folder() / "body"
        try:
            with file.open("wb") as written:
                written.writelines(list_pieces(body))
        except OSError:
            _delete_tree(file.parent)
            raise
        return file

    def _make_folder(self) -> Path:
        """A new folder; for the thread of the files."""
        if self._folder is None:
            self._folder = PrivateFolder(_KIND)
        self._count += 1
        folder = self._folder.path / str(self._count)
        folder.mkdir()
        return folder

    def _forget(self, url: str) -> None:
        opened = self._opened.get(url)
        if opened is not None and opened.done():
            self._drop(url, opened)
        if (seen := self._seen.pop(url)) is not None:
            self._delete_later(_delete_written, seen.written)

    def _settle(self, url: str, opened: asyncio.Future[Unpacked | Fetched]) -> None:
        """Notes what is on the disk, and lets the next file ask once more after a failure that may be over then."""
        if self._opened.get(url) is not opened:
            return
        if _may_pass(opened):
            del self._opened[url]
        elif (found := _find_files(opened)) is not None:
            self._unpacked.put(url, found, found.size + _BLOCK_BYTES * len(found.kept))

    def _drop_oldest(self) -> None:
        """Deletes archives that were not used for longest, so that few are on the disk; failures are small."""
        while self._unpacked.is_full():
            url, found = self._unpacked.pop_oldest()
            del self._opened[url]
            self._delete_later(_delete_tree, found.folder)
        while len(self._opened) > _MAX_KNOWN:
            url, oldest = next(iter(self._opened.items()))
            if not oldest.done():
                # It is waited for: others go with the next one.
                self._opened.move_to_end(url)
                break
            self._drop(url, oldest)

    def _drop(self, url: str, opened: asyncio.Future[Unpacked | Fetched]) -> None:
        del self._opened[url]
        self._unpacked.pop(url)
        if (found := _find_files(opened)) is not None:
            self._delete_later(_delete_tree, found.folder)

    def _delete_later(self, delete: Callable[[T], None], what: T) -> None:
        # At the end the folder of all goes.
        if not self._closed:
            self._files.submit(delete, what)


def _find_files(opened: asyncio.Future[Unpacked | Fetched]) -> Unpacked | None:
    """What was unpacked; None while it is not, and where there was nothing."""
    if not opened.done() or opened.cancelled() or opened.exception() is not None:
        return None
    found = opened.result()
    return found if isinstance(found, Unpacked) else None


def _build_full(error: OSError) -> DiskFull:
    return DiskFull(f"{tempfile.gettempdir()}: archives cannot be unpacked there: {error.strerror or error}")


def _may_pass(opened: asyncio.Future[Unpacked | Fetched]) -> bool:
    if opened.cancelled():
        return True
    error = opened.exception()
    if error is not None:
        # A process that ended may do better the next time; what an archive is stays the same.
        return not isinstance(error, ConversionFailed) and getattr(error, "transient", True)
    found = opened.result()
    return isinstance(found, Fetched) and is_retried(found.status)


def _delete_written(written: Future[Path]) -> None:
    """Deletes the folder of a file; for the thread that has written it before."""
    if written.exception() is None:
        _delete_tree(written.result().parent)


def _delete_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _inherit(headers: Headers, body: Body) -> Headers:
    """The headers of an archive that hold for its files; its validator is theirs, marked as that of an archive."""
    sent = {name.lower(): value for name, value in headers}
    validator = sent.get(b"etag") or sent.get(b"last-modified") or body
    robots = [(name, value) for name, value in headers if name.lower() == _ROBOTS]
    # Who may see the archive may see its files; with other permissions they are other files.
    permissions = list_permissions(headers)
    digest = digest_body(validator)
    if permissions:
        digest.update(repr(permissions).encode())
    digits = digest.hexdigest()[:_DIGEST_CHARACTERS]
    return (*robots, *permissions, (b"ETag", f'{ARCHIVE_ETAG}{digits}"'.encode()))
