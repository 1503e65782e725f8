"""What an edit costs with ``plan`` and ``apply``: the site of ``make bench``, edits of the attributes and of a keep rule.

``python -m benchmarks.edits`` crawls the site into the local index and into Solr (as runs c and b), then edits the source
file three times, and plans and applies each edit. It prints the cost of each step and the requests that the web server
got in it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.bench import WORK
from benchmarks.material import prepare_site
from benchmarks.measured import PYTHON, run_measured
from benchmarks.nginx_server import Site, serving
from benchmarks.searchcrawl_project import SOURCE, Project
from tests.solr_server import start_solr

FOLDER: Final = WORK / "edits"
IN_FLIGHT: Final = 16
#: Pages of Sphinx and of DocBook name their generators; the others have no such attribute.
_ATTRIBUTES: Final = '[attributes]\n"meta:generator" = "{}"\n'
_KEEP: Final = "[keep]\nexclude_urls = [{}]\n"
EDITS: Final = {
    "attributes": _ATTRIBUTES.format("generator"),
    "keep": _ATTRIBUTES.format("generator") + _KEEP.format('"*/whatsnew/*"'),
    "attributes, keep": _ATTRIBUTES.format("made_with") + _KEEP.format('"*/whatsnew/*", "*/faq/*"'),
}


def main() -> int:
    """Prints a table of Markdown."""
    site_root = prepare_site(WORK)
    shutil.rmtree(FOLDER, ignore_errors=True)
    print("| index | step | pages | CPU ms a page | CPU s | seconds | requests | sent | removed |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with serving(site_root, FOLDER / "nginx") as site, start_solr(FOLDER / "solr", core="pages") as solr:
        for index, core_url in (("local", None), ("Solr", solr.core_url("pages"))):
            project = Project.create(FOLDER / index, start_url=site.root_url, core_url=core_url, in_flight=IN_FLIGHT)
            for row in measure(site, project):
                print("| " + " | ".join(str(cell) for cell in (index, *row)) + " |", flush=True)
    return 0


def measure(site: Site, project: Project) -> Iterator[tuple[Any, ...]]:
    """The rows of the table, a step each."""
    source = project.folder / "sources" / f"{SOURCE}.toml"
    written = source.read_text("utf-8")
    cost, counts = run(site, project, "crawl", SOURCE)
    pages = counts["counts"]["fetched"]
    yield ("first crawl", pages, *cost, counts["counts"]["indexed"], counts["counts"]["deleted"])
    for key, text in EDITS.items():
        source.write_text(f"{written}\n{text}", encoding="utf-8")
        cost, plan = run(site, project, "plan", SOURCE)
        yield (f"plan: [{key}]", plan["reprocess"], *cost, plan["send"], plan["leave"])
        cost, done = run(site, project, "apply", plan["plan"])
        yield (f"apply: [{key}]", plan["reprocess"], *cost, done["documents"], done["removed"])


def run(site: Site, project: Project, *arguments: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The cost of a command, as cells of the table, and what it printed."""
    output = project.folder / f"{arguments[0]}.out"
    mark = site.mark() if site.log.exists() else 0
    environment = {"PYTHONPATH": str(project.checkout)}
    cost = run_measured(
        [PYTHON, "-m", "searchcrawl", *arguments, "--json"], cwd=project.folder, output=output, env=environment
    )
    if cost.exit_code not in {0, 10}:
        raise SystemExit(f"edits: {arguments[0]} ended with {cost.exit_code}: {output.with_suffix('.err').read_text()}")
    printed = json.loads(output.read_text("utf-8"))
    pages = printed.get("reprocess") or printed.get("counts", {}).get("fetched") or project_pages(project)
    cells = (f"{cost.cpu_seconds / pages * 1000:.2f}", f"{cost.cpu_seconds:.1f}", f"{cost.wall_seconds:.1f}")
    return (*cells, len(site.asked_since(mark))), printed


def project_pages(project: Project) -> int:
    """How many pages the project knows."""
    return sum(row["state"] in {"indexed", "excluded", "duplicate"} for row in project.list_urls())


if __name__ == "__main__":
    raise SystemExit(main())
