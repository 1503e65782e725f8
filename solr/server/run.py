"""A real Solr on this machine, for development and tests: builds lib/, makes a core, starts Java, waits.

    python solr/server/run.py [--port 8983] [--home DIR] [--core searchcrawl] [--memory 512m]

Runs in the foreground until Ctrl-C or SIGTERM. lib/ is made by Maven the first time; the home
(the index) stays between runs. Only this machine can reach it. Needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
CONFIGSET = HERE.parent / "configset"
LIB = HERE / "lib"
STAMP = LIB / ".made-from"


class SolrNotStarted(Exception):
    """The server cannot be built or started; the text says what to do."""


class PartMissing(SolrNotStarted):
    """Java or Maven is not installed."""


def build_lib() -> None:
    """Copies the jars of pom.xml to lib/ by Maven, once; processes that ask at the same time wait.

    Raises PartMissing without Maven, SolrNotStarted where it fails.
    """
    wanted = hashlib.sha256((HERE / "pom.xml").read_bytes()).hexdigest()
    with (HERE / "pom.xml").open("rb") as pom:
        fcntl.flock(pom, fcntl.LOCK_EX)
        if STAMP.is_file() and STAMP.read_text(encoding="ascii") == wanted:
            return
        maven = _tool("mvn", "maven")
        print("Fetching the jars of Solr with Maven (once, about 70 MB) ...", file=sys.stderr, flush=True)
        shutil.rmtree(LIB, ignore_errors=True)
        done = subprocess.run(
            [maven, "-q", "-B", "package"],
            check=False,
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        shutil.rmtree(HERE / "target", ignore_errors=True)
        if done.returncode != 0:
            raise SolrNotStarted(f"mvn package failed in {HERE.name}/:\n{done.stdout[-4000:]}")
        STAMP.write_text(wanted, encoding="ascii")


def prepare_home(home: Path, *, cores: Sequence[str] = ()) -> None:
    """Makes a Solr home with the configset as it is in the repository now, and the named cores."""
    home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / "solr.xml", home / "solr.xml")
    conf = home / "configsets" / "searchcrawl" / "conf"
    shutil.rmtree(conf, ignore_errors=True)
    shutil.copytree(CONFIGSET, conf)
    for core in cores:
        properties = home / core / "core.properties"
        if not properties.exists():
            properties.parent.mkdir(parents=True, exist_ok=True)
            properties.write_text(f"name={core}\nconfigSet=searchcrawl\n", encoding="ascii")


def launch(
    home: Path, port: int, *, memory: str = "512m", jvm_options: Sequence[str] = (), log: IO[Any] | None = None
) -> subprocess.Popen[bytes]:
    """Starts Java on 127.0.0.1:port and returns at once; raises PartMissing or SolrNotStarted."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise SolrNotStarted(f"port {port} is taken: another Solr may run; choose another by --port")
    java = _tool("java", "openjdk-17-jre-headless")
    command = [
        java,
        f"-Xmx{memory}",
        "-XX:+ExitOnOutOfMemoryError",
        *jvm_options,
        f"-Djetty.port={port}",
        f"-Dsolr.solr.home={home.resolve()}",
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}",
        f"-Dsolr.install.dir={home.resolve()}",
        f"-Dsolr.log.dir={home.resolve()}",
        "-Dsolr.enableRemoteStreaming=false",
        "-Dsolr.enableStreamBody=false",
        "-Ddisable.configEdit=true",
        "-cp",
        f"{LIB}/*",
        "org.eclipse.jetty.xml.XmlConfiguration",
        str(HERE / "jetty.xml"),
    ]
    return subprocess.Popen(command, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def wait_until_ready(home: Path, port: int, process: subprocess.Popen[bytes], *, seconds: float = 90) -> None:
    """Returns once each core of the home answers (its update log is replayed then).

    Raises SolrNotStarted with what the server says.
    """
    cores = sorted(properties.parent.name for properties in home.glob("*/core.properties"))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SolrNotStarted(f"Java ended with code {process.returncode}: is port {port} taken?")
        try:
            answer = admin(port, "cores?action=STATUS&indexInfo=false")
            if failures := answer.get("initFailures"):
                raise SolrNotStarted("; ".join(f"core {name}: {why}" for name, why in failures.items()))
            for core in cores:
                _get(port, f"{core}/admin/ping?wt=json")
        except (OSError, ValueError):
            time.sleep(0.1)
        else:
            return
    raise SolrNotStarted(f"Solr did not answer on port {port} within {seconds:g} s")


def admin(port: int, path: str) -> dict[str, Any]:
    """The answer of Solr's admin API; raises OSError (also for HTTP errors) or ValueError."""
    return _get(port, f"admin/{path}&wt=json")


def _get(port: int, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/solr/{path}", timeout=30) as answer:
        return dict(json.load(answer))


def stop(process: subprocess.Popen[bytes], *, seconds: float = 20) -> None:
    """Ends Java by SIGTERM, which commits, and by SIGKILL where that takes too long."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PartMissing(f"{name} is not installed (Debian: apt install {package})")
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Start a real Solr on 127.0.0.1 for development.")
    parser.add_argument("--port", type=int, default=8983)
    parser.add_argument("--home", type=Path, default=HERE / "home", help="where the index lives")
    parser.add_argument("--core", default="searchcrawl")
    parser.add_argument("--memory", default="512m", help="Java's heap, such as 2g")
    return parser.parse_args()


def main() -> int:
    """Starts the server of the command line and stays until it or we are stopped."""
    options = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process = None
    try:
        build_lib()
        prepare_home(options.home, cores=[options.core])
        process = launch(options.home, options.port, memory=options.memory)
        wait_until_ready(options.home, options.port, process)
        print(f"Solr answers at http://127.0.0.1:{options.port}/solr/{options.core} (Ctrl-C ends it)", flush=True)
        return process.wait()
    except SolrNotStarted as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        if process is not None:
            stop(process)


if __name__ == "__main__":
    sys.exit(main())
