"""All sites on one server of 127.0.0.1, each on a host name of its own, and what wget reaches there."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.nginx_server import Site, serving
from benchmarks.wget_pages import ACCEPTED_EXIT_CODES

#: What is no page, and costs time: pictures, styles, scripts, fonts, archives.
_LEFT_OUT = (
    "css,js,png,gif,jpg,jpeg,svg,svgz,ico,woff,woff2,ttf,eot,gz,xz,zip,pdf,ps,midi,mid,ly,signature,map,epub,wav,mp3"
)


@contextmanager
def serving_hosts(work: Path, roots: Mapping[str, Path]) -> Iterator[Site]:
    """Serves the folder of each host name while the block runs."""
    hosts = work / "hosts"
    (hosts / "127.0.0.1").mkdir(parents=True, exist_ok=True)
    (hosts / "127.0.0.1" / "index.html").write_text("<title>Sites</title>\n", encoding="utf-8")
    for host, root in roots.items():
        link = hosts / host
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(root, hosts), target_is_directory=True)
    with serving(hosts, work / f"server-{os.getpid()}", by_host=True) as site:
        yield site


def reach_by_wget(site: Site, host: str, starts: Sequence[str]) -> list[str]:
    """The paths of the HTML pages of a host that wget reaches from its start pages, to any depth.

    The server is wget's proxy: so it asks for host names that no name server knows, without a port.
    """
    mark = site.mark()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "wget",
            "--quiet",
            "--recursive",
            "--level=inf",
            "--tries=2",
            f"--reject={_LEFT_OUT}",
            "-e",
            "robots=off",
        ]
        command += ["-e", f"http_proxy={site.root_url}", *(f"http://{host}/{path}" for path in starts)]
        code = subprocess.run(command, cwd=Path(folder), check=False).returncode
    if code not in ACCEPTED_EXIT_CODES:
        raise SystemExit(f"decisions: wget ended with {code} on {host}")
    asked = (one for one in site.asked_since(mark) if one.host == host and one.status == 200)
    pages = (_path_of(one.uri) for one in asked if one.mime_type in ("text/html", "application/xhtml+xml"))
    return sorted(set(pages))


def _path_of(uri: str) -> str:
    """The path of a request to a proxy, which names the host as well."""
    return "/" + uri.partition("://")[2].partition("/")[2] if uri.startswith("http://") else uri
