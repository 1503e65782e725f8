"""C12: a host's address is looked up once, however many connections are made to it."""

from __future__ import annotations

import json
from typing import Any

from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer


def test_c12_dns_when_many_pages_of_hosts_are_fetched_then_each_host_is_looked_up_once() -> None:
    # Each answer of theirs ends its connection.
    with HostileServer() as one, HostileServer() as two:
        ports = (one.port, two.port)
        paths = [f"/ok?{number}" for number in range(6)]
        for path in paths:
            one.answers[path] = two.answers[path] = one.answers["/ok"]
        urls = [f"http://{host}:{port}{path}" for host in ("a.test", "b.test") for port in ports for path in paths]
        job: dict[str, Any] = {
            "urls": urls,
            "resolve_first": True,
            "dns": {"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]},
            "fetch": {"private_networks": ["127.0.0.1/32"], "timeout_seconds": 5},
        }

        done = COMMANDS.fetch(job)
        connections = len(one.requests) + len(two.requests)

    answer = json.loads(done.stdout)
    assert [visit["code"] for visit in answer["visits"]] == [200] * len(urls)
    # And a robots.txt for each host and port.
    assert connections == len(urls) + 4
    assert {host: answer["lookups"].get(host) for host in ("a.test", "b.test")} == {"a.test": 1, "b.test": 1}
