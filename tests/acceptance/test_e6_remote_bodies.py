"""A large file on a server is on the disk as soon as it comes, whatever the protocol: its size is none of the memory (E6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tests import smb_server, webdav_server
from tests.acceptance.support_files import FileProject
from tests.acceptance.support_large import MOST_MORE_MEGABYTES, run_measured, write_large_zip
from tests.acceptance.support_s3 import PASSWORD, S3Project
from tests.acceptance.support_smb import SmbProject
from tests.crawl_forks import Forks
from tests.s3_server import SECRET, S3Server
from tests.sftp_server import RunningSftp

pytestmark = pytest.mark.soak

_NAME: Final = "b.zip"
_FETCH: Final = {"max_bytes": 1 << 30, "timeout_seconds": 300}
Make = Callable[[Path], FileProject]


@contextmanager
def serve_sftp(request: pytest.FixtureRequest) -> Iterator[Make]:
    server: RunningSftp = request.getfixturevalue("sftp")
    access = {"key_file": str(server.key_file), "known_hosts": str(server.known_hosts), "username": server.user}
    yield lambda folder: FileProject(folder, served=server.url(folder / "root"), access=access, fetch=_FETCH)


@contextmanager
def serve_smb(request: pytest.FixtureRequest) -> Iterator[Make]:
    with smb_server.start_smb(users=(smb_server.USER, "root")) as server:
        yield lambda folder: SmbProject(folder, server, below=folder.name, fetch=_FETCH)


@contextmanager
def serve_webdav(request: pytest.FixtureRequest) -> Iterator[Make]:
    with webdav_server.start_apache() as server:

        def make(folder: Path) -> FileProject:
            return FileProject(server.root / folder.name, served=f"{server.url}/{folder.name}/root", fetch=_FETCH)

        yield make


@contextmanager
def serve_s3(request: pytest.FixtureRequest) -> Iterator[Make]:
    with S3Server() as server:

        def make(folder: Path) -> FileProject:
            bucket = f"of-{folder.name}-megabytes"
            server.owner.create_bucket(Bucket=bucket)
            return S3Project(folder, server, bucket, fetch=_FETCH)

        yield make


def fill(files: FileProject, megabytes: int) -> None:
    write_large_zip(files.root / _NAME, "what an archive says of medlars", megabytes)
    if isinstance(files, S3Project):
        files.put({_NAME: (files.root / _NAME).read_bytes()})


@pytest.mark.parametrize("serve", [serve_sftp, serve_smb, serve_webdav, serve_s3])
def test_e6_file_when_it_has_200_mb_on_a_server_then_no_process_takes_memory_of_its_size(
    tmp_path: Path,
    forks: Forks,
    request: pytest.FixtureRequest,
    serve: Callable[[pytest.FixtureRequest], AbstractContextManager[Make]],
    part_missing: Callable[[str], NoReturn],
) -> None:
    peaks = {}
    try:
        with serve(request) as make:
            for megabytes in (1, 200):
                files = make(tmp_path / str(megabytes))
                fill(files, megabytes)
                files.settle()
                peaks[megabytes] = run_measured(forks, files.folder, "crawl", "files", **{PASSWORD: SECRET})
                assert files.found("medlars") == [f"{_NAME}!/inner.txt"], files.rows()
    except (smb_server.PartMissing, webdav_server.PartMissing) as error:
        part_missing(str(error))

    for process, megabytes in peaks[200].items():
        assert megabytes < peaks[1][process] + MOST_MORE_MEGABYTES, peaks
