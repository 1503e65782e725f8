"""A site of hundreds of hosts, as wildcard DNS gives them: no host costs anything once it was visited (X-T6)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.acceptance.support_project import new_project, run_apart
from tests.site.client import SiteProcess

_HOSTS: Final = 300
#: A crawl of one host opens fewer than half of them.
_OPEN_FILES: Final = 160
_LIMITED: Final = f'ulimit -n {_OPEN_FILES} && exec "$0" -m searchcrawl crawl demo'


def test_crawl_when_hosts_are_many_then_their_connections_do_not_take_all_files(
    site: SiteProcess, tmp_path: Path
) -> None:
    hosts = ["docs.acme.test", *(f"h{number}.acme.test" for number in range(_HOSTS))]
    urls = [site.url(host) for host in hosts]
    project = new_project(tmp_path, site, start={"urls": urls}, scope={"follow_links": False})

    ended = run_apart(project.folder, "/bin/sh", "-c", _LIMITED, sys.executable)

    requested = site.log(robots=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(entry["host"] for entry in requested) == sorted(hosts)
    assert sorted(project.codes().values()) == [200] + [404] * _HOSTS
