"""Buckets of a server that keeps them, checks signatures and tells keys in an order of its own: SeaweedFS (A1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.acceptance.support_files import FileProject
from tests.acceptance.support_s3 import PASSWORD, S3Project
from tests.seaweed_server import PartMissing, SeaweedServer

pytestmark = pytest.mark.soak

FILES: dict[str, str | bytes] = {
    "a.txt": "apples are red and good to eat",
    "b.html": "<title>Pears</title><p>pears are green and sweet",
    "c/d.txt": "plums are blue, and grow on trees",
    "c-1/x.txt": "medlars are brown and soft",
    "c/e/f.txt": "cherries are dark red, and small",
    "ä ö+ü/%20&.txt": "names with letters",
    ".hidden/x.txt": "hidden things",
    "x/y.txt.~1~": "an older version of it",
}


@pytest.fixture(scope="module")
def seaweed(
    part_missing: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SeaweedServer]:
    """A server of buckets."""
    try:
        server = SeaweedServer(tmp_path_factory.mktemp("seaweed"))
    except PartMissing as error:
        part_missing(str(error))
    with server:
        yield server


def test_bucket_when_a_server_keeps_it_then_is_found_as_a_local_tree_and_nothing_leaves_by_its_failures(
    seaweed: SeaweedServer, tmp_path: Path
) -> None:
    many = {f"many/{number % 7}-{number}.txt": f"this is number {number} of many" for number in range(1100)}
    seaweed.owner.create_bucket(Bucket="reports")
    project = S3Project(tmp_path, seaweed, "reports", prefix="2026/")
    local = FileProject(tmp_path / "local")
    project.put(FILES | many)
    local.fill(FILES | many)
    first, beside = project.crawl(), local.crawl()
    second = project.crawl()
    project.put({"new.txt": "a new object about quinces", "a.txt": "apples are yellow now"})
    project.delete("c/d.txt")
    third = project.crawl()

    assert (first["indexed"], first["new"]) == (beside["indexed"], beside["new"])
    assert (second["fetched"], second["indexed"], second["deleted"]) == (0, 0, 0)
    assert (third["new"], third["changed"], third["deleted"], third["fetched"]) == (1, 1, 1, 3)
    expected = {project.identify(name) for name in local.indexed()} | {project.identify("new.txt")}
    expected -= {project.identify("c/d.txt")}
    assert {f"{project.url}/{name}" for name in project.indexed()} == expected

    wrong = project.crawl(code=3, **{PASSWORD: "not-the-secret"})
    assert "SignatureDoesNotMatch" in project.command("status", "files")
    project.put({name: f"{text} and others" for name, text in many.items()})
    project.delete("b.html")
    ending = threading.Timer(2.0, seaweed.kill)
    ending.start()
    broken = project.crawl(code=3)
    ending.join()
    time.sleep(0.1)
    away = project.crawl(code=3)
    assert {*FILES} - {"c/d.txt", "b.html", ".hidden/x.txt", "x/y.txt.~1~"} <= {
        local.name(f"{local.url}/{name}") for name in project.indexed()
    }
    seaweed.start()
    project.crawl()

    assert wrong["deleted"] == away["deleted"] == 0
    assert broken["deleted"] <= 1
    assert {f"{project.url}/{name}" for name in project.indexed()} == expected - {project.identify("b.html")}
    assert len(project.found("others")) == 1000
