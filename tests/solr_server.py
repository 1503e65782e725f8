"""Starts and stops a real Solr of its own, for tests, benchmarks and the demo.

with start_solr(folder) as solr:
    solr.create_core("pages")      # http://127.0.0.1:PORT/solr/pages

Java is needed, and Maven the first time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Self
from urllib.parse import quote

#: Java starts sooner and stays slower: for tests, not for measuring.
QUICK_START = ("-XX:TieredStopAtLevel=1",)
ROOT = Path(__file__).resolve().parent.parent


def _load_launcher() -> ModuleType:
    """solr/server/run.py as a module; it is a script, in no package."""
    spec = importlib.util.spec_from_file_location("solr_server_run", ROOT / "solr" / "server" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


launcher = _load_launcher()
#: Java or Maven is missing; the text names the package.
PartMissing: type[Exception] = launcher.PartMissing
SolrNotStarted: type[Exception] = launcher.SolrNotStarted


class RunningSolr:
    """One Solr process with its home, its port and its log (``home/solr.log``)."""

    def __init__(self, home: Path, *, port: int, memory: str, jvm_options: Sequence[str]) -> None:
        self.home = home
        self.memory = memory
        self.jvm_options = jvm_options
        self.port = port
        self.process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """The address of the server, without a core."""
        return f"http://127.0.0.1:{self.port}/solr"

    def core_url(self, name: str) -> str:
        """What ``index.url`` names."""
        return f"{self.url}/{name}"

    def start(self) -> None:
        """Starts Java on this home, on the port it had before or a free one, and waits for it."""
        tries = 3 if self.port == 0 else 1
        for attempt in range(1, tries + 1):
            port = self.port or free_port()
            try:
                self._start_on(port)
            except SolrNotStarted:
                # Another process may have taken the port in between.
                if attempt == tries:
                    raise
            else:
                self.port = port
                return

    def _start_on(self, port: int) -> None:
        with (self.home / "solr.log").open("ab") as log:
            self.process = launcher.launch(self.home, port, memory=self.memory, jvm_options=self.jvm_options, log=log)
        try:
            launcher.wait_until_ready(self.home, port, self.process)
        except BaseException:
            launcher.stop(self.process)
            raise

    def create_core(self, name: str) -> str:
        """Makes an empty core of the repository's configset; its URL."""
        try:
            launcher.admin(self.port, f"cores?action=CREATE&configSet=searchcrawl&name={quote(name)}")
        except urllib.error.HTTPError as error:
            raise SolrNotStarted(f"core {name}: {error.read().decode()}") from error
        return self.core_url(name)

    def copy_core(self, name: str, target: str) -> str:
        """Makes a core with the documents that another has committed; its URL."""
        index = self.home / name / "data" / "index"
        shutil.copytree(index, self.home / target / "data" / "index", ignore=shutil.ignore_patterns("write.lock"))
        return self.create_core(target)

    def delete_core(self, name: str) -> None:
        """Removes a core with its files."""
        launcher.admin(self.port, f"cores?action=UNLOAD&core={quote(name)}&deleteInstanceDir=true&deleteDataDir=true")

    def delete_source(self, name: str, source: str) -> None:
        """Removes all documents of a source from a core, without tombstones."""
        request = urllib.request.Request(
            f"{self.core_url(name)}/update?commit=true",
            data=json.dumps({"delete": {"query": f"source:{source}"}}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=30).close()

    def kill(self) -> None:
        """``kill -9``; ``start`` brings it back on the same home and port."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """Stops the process without ending it (SIGSTOP): it accepts connections and answers nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Ends a pause."""
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ends the process; the home stays."""
        launcher.stop(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_solr(
    folder: Path, *, core: str | None = None, port: int = 0, memory: str = "512m", jvm_options: Sequence[str] = ()
) -> RunningSolr:
    """Starts a Solr whose home is ``folder`` (made where missing), with one core where it is named.

    ``port`` 0 takes a free one. ``QUICK_START`` as ``jvm_options`` suits short tests. Raises PartMissing or SolrNotStarted.
    """
    launcher.build_lib()
    launcher.prepare_home(folder, cores=[] if core is None else [core])
    solr = RunningSolr(folder, port=port, memory=memory, jvm_options=jvm_options)
    solr.start()
    return solr


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tools_missing() -> str | None:
    """What has to be installed before ``start_solr`` can work, or None."""
    needed = ["java"] if launcher.STAMP.is_file() else ["java", "mvn"]
    missing = [name for name in needed if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None
