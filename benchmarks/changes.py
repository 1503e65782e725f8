"""What is sent when little changes: the site of ``make bench``, nothing changed, then one page of a hundred.

``python -m benchmarks.changes`` crawls a copy of the site three times, into the local index and into Solr. The second
run has to send nothing; before the third, every hundredth indexed page gets another sentence, and exactly these pages
have to be sent. Anything else ends it with exit code 1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from benchmarks.bench import WORK
from benchmarks.material import prepare_site
from benchmarks.nginx_server import Site, serving
from benchmarks.searchcrawl_project import Project
from tests.solr_server import start_solr

FOLDER: Final = WORK / "changes"
IN_FLIGHT: Final = 16
#: Of so many indexed pages one is changed.
EVERY: Final = 100
_SENTENCE: Final = b"<p>This sentence was added between two runs.</p>"


def main() -> int:
    """Prints a table of Markdown; 1 where a run sent other documents than it should have."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    pages = copy_site(prepare_site(WORK), FOLDER / "site")
    wrong = 0
    print("| index | run | pages | requests | sent | to be sent | CPU ms a page |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    with serving(pages, FOLDER / "nginx") as site, start_solr(FOLDER / "solr", core="pages") as solr:
        for index, core_url in (("local", None), ("Solr", solr.core_url("pages"))):
            project = Project.create(FOLDER / index, start_url=site.root_url, core_url=core_url, in_flight=IN_FLIGHT)
            for row in measure(site, project, pages):
                wrong += row[3] != row[4]
                print("| " + " | ".join(map(str, (index, *row))) + " |", flush=True)
    return int(wrong > 0)


def copy_site(site: Path, target: Path) -> Path:
    """The pages once more, as further names of the same files: who changes one writes it anew."""
    shutil.copytree(site, target, copy_function=os.link)
    return target


def measure(site: Site, project: Project, pages: Path) -> Iterator[tuple[Any, ...]]:
    """The rows of the table: run, pages, requests, documents sent and to be sent, CPU."""
    expected: int | None = None
    for name in ("first", "nothing changed", "1 % changed"):
        if name.startswith("1"):
            expected = change(pages, project)
        mark = site.mark() if site.log.exists() else 0
        crawled = project.crawl(project.folder / "crawl.out")
        counts, seconds = crawled.status["counts"], crawled.cost.cpu_seconds
        visited, sent = counts["fetched"], counts["new"] + counts["changed"]
        due = sent if expected is None else expected
        yield name, visited, len(site.asked_since(mark)), sent, due, f"{seconds / visited * 1000:.2f}"
        expected = 0


def change(pages: Path, project: Project) -> int:
    """Adds a sentence to every hundredth page that is indexed; how many these are."""
    indexed = sorted(row["url"] for row in project.list_urls() if row["state"] == "indexed")
    chosen = [file for url in indexed[::EVERY] if (file := file_of(pages, url)).is_file()]
    for file in chosen:
        text = file.read_bytes()
        file.unlink()
        at = text.rfind(b"</body>")
        file.write_bytes(text[:at] + _SENTENCE + text[at:] if at >= 0 else text + _SENTENCE)
    return len(chosen)


def file_of(pages: Path, url: str) -> Path:
    """The file that the web server answers with."""
    path = unquote(urlsplit(url).path).lstrip("/")
    return pages / path / "index.html" if not path or path.endswith("/") else pages / path


if __name__ == "__main__":
    raise SystemExit(main())
