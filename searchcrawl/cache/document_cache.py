"""The cached pages of one source: numbered segments in a folder, read by place."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from searchcrawl import failpoints
from searchcrawl.cache.segment import Place, SegmentWriter, StoredPage, decode_fields, decode_response
from searchcrawl.exceptions import CacheError, DamagedRecord

_SEGMENT_NAME = re.compile(r"(\d{8,})\.warc\.gz")
_MAX_OPEN_FILES = 8


class DocumentCache:
    """Reads pages by their place, also from the segment that is being written; safe for threads.

    The first writer makes the folder. A damaged record raises DamagedRecord, any other problem CacheError.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._files: OrderedDict[int, int] = OrderedDict()

    def open_writer(self, number: int, committed_bytes: int) -> SegmentWriter:
        """Opens a writer for segment ``number``, of which ``committed_bytes`` are committed in the table."""
        return SegmentWriter(self._build_path(number), committed_bytes=committed_bytes)

    def read_fields(self, place: Place, *, url: str | None = None) -> dict[str, Any]:
        """Reads the fields of a page; raises DamagedRecord where ``url`` is given and the record is of another page."""
        member = self.read_bytes(place.segment, place.offset + place.response_bytes, place.fields_bytes)
        try:
            found, fields = decode_fields(member)
            _expect(found, url)
        except DamagedRecord as error:
            raise self._add_place(place, error) from error
        return fields

    def read_page(self, place: Place, *, url: str | None = None) -> StoredPage:
        """Reads a whole page; raises DamagedRecord where ``url`` is given and the record is of another page."""
        members = self.read_bytes(place.segment, place.offset, place.response_bytes + place.fields_bytes)
        try:
            fields_url, fields = decode_fields(members[place.response_bytes :])
            page = decode_response(members[: place.response_bytes], fields=fields)
            _expect(fields_url, page.url)
            _expect(page.url, url)
        except DamagedRecord as error:
            raise self._add_place(place, error) from error
        return page

    def read_bytes(self, number: int, offset: int, length: int) -> bytes:
        """Reads the records of a page as they are; raises DamagedRecord where they are not all there."""
        path = self._build_path(number)
        try:
            # Under the lock: another thread must not close the file, whose number may then be another file's.
            with self._lock:
                data = os.pread(self._open_file(number), length, offset)
        except FileNotFoundError as error:
            raise DamagedRecord(f"{path}: the segment is missing") from error
        except OSError as error:
            # A bad sector damages the pages on it; other errors, such as a missing permission, concern all pages.
            kind = DamagedRecord if error.errno == errno.EIO else CacheError
            raise kind(f"{path}: {error.strerror or error}") from error
        if len(data) < length:
            raise DamagedRecord(f"{path}: ends before byte {offset + length}")
        return data

    def delete(self, number: int) -> None:
        """Deletes a segment, if it is there."""
        with self._lock:
            self._close_file(number)
        try:
            self._build_path(number).unlink(missing_ok=True)
            failpoints.reach("cache.freed")
        except OSError as error:
            raise CacheError(f"{self._build_path(number)}: {error.strerror or error}") from error

    def list_segments(self) -> Iterator[tuple[int, int]]:
        """Number and size in bytes of each segment, by rising number."""
        if not self.folder.is_dir():
            return
        numbers = (int(match[1]) for path in self.folder.iterdir() if (match := _SEGMENT_NAME.fullmatch(path.name)))
        for number in sorted(numbers):
            try:
                size = self._build_path(number).stat().st_size
            except FileNotFoundError:  # deleted since the folder was read
                continue
            yield number, size

    def close(self) -> None:
        """Closes the files that were kept open for reading; may be called twice."""
        with self._lock:
            for number in list(self._files):
                self._close_file(number)

    def _build_path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.warc.gz"

    def _open_file(self, number: int) -> int:
        if number in self._files:
            self._files.move_to_end(number)
            return self._files[number]
        file = os.open(self._build_path(number), os.O_RDONLY | os.O_CLOEXEC)
        self._files[number] = file
        if len(self._files) > _MAX_OPEN_FILES:
            self._close_file(next(iter(self._files)))
        return file

    def _close_file(self, number: int) -> None:
        file = self._files.pop(number, None)
        if file is not None:
            os.close(file)

    def _add_place(self, place: Place, error: DamagedRecord) -> DamagedRecord:
        return DamagedRecord(f"{self._build_path(place.segment)} at byte {place.offset}: {error}")


def _expect(found: str, wanted: str | None) -> None:
    if wanted is not None and found != wanted:
        raise DamagedRecord(f"holds {found} instead of {wanted}")
