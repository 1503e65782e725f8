"""A project with a source of files that are in a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from searchcrawl.urls import escape_name
from tests.acceptance.support_files import FileProject
from tests.crawl_forks import COMMANDS
from tests.s3_server import KEY_ID, SECRET, S3Server

#: The variable of the environment that has the secret.
PASSWORD: Final = "S3_SECRET"


class S3Project(FileProject):
    """A project whose source ``files`` is the bucket of a server, or what begins with a prefix in it."""

    def __init__(self, folder: Path, server: S3Server, bucket: str, *, prefix: str = "", **tables: Any) -> None:
        self.server = server
        self.bucket = bucket
        self.prefix = prefix
        access = {"endpoint": server.url, "username": KEY_ID, "password": {"env": PASSWORD}}
        super().__init__(folder, served=f"s3://{bucket}/{prefix}".removesuffix("/"), access=access, **tables)

    def crawl(self, *options: str, code: int = 0, settled: bool = False, **variables: str) -> dict[str, int]:
        """The counters of a run, which has to end with ``code``."""
        return super().crawl(*options, code=code, settled=settled, **{PASSWORD: SECRET, **variables})

    def command(self, *arguments: str, code: int = 0) -> str:
        """What a command prints, which has to end with ``code``."""
        ended = COMMANDS.run(self.folder, *arguments, **{PASSWORD: SECRET})
        assert ended.returncode == code, (ended.returncode, ended.stdout, ended.stderr)
        return ended.stdout

    def put(self, objects: dict[str, bytes | str], **options: Any) -> None:
        """Writes objects by their keys below the root."""
        for key, body in objects.items():
            content = body if isinstance(body, bytes) else body.encode()
            self.server.owner.put_object(Bucket=self.bucket, Key=self.prefix + key, Body=content, **options)

    def delete(self, *keys: str) -> None:
        """Deletes objects."""
        for key in keys:
            self.server.owner.delete_object(Bucket=self.bucket, Key=self.prefix + key)

    def identify(self, name: str | bytes) -> str:
        """The identity of an object by its key below the root."""
        key = name.encode() if isinstance(name, str) else name
        return f"{self.url}/" + "/".join(escape_name(each) for each in key.split(b"/"))

    def name(self, url: str) -> str:
        """What the identity of an object has after that of the root."""
        return url.removeprefix(f"{self.url}/")
