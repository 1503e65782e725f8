"""Make a new project with one commented source."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from searchcrawl.cli.command import BaseCommand, require_free
from searchcrawl.cli.output import print_answer
from searchcrawl.sources.project import PLACEHOLDER_CONTACT

_SCRAPY_CFG: Final = """\
[settings]
default = searchcrawl.settings
"""

_GITIGNORE: Final = """\
/var/
"""

_PROJECT: Final = f"""\
# What all sources of this project share.

# Whom the owner of a crawled site may ask: a URL or a mail address, sent with each request.
# Put yours here before you crawl.
contact = "{PLACEHOLDER_CONTACT}"

# The first word of the User-Agent, and the name that robots.txt rules are looked up for.
# user_agent = "searchcrawl"

[index]
# "local" keeps the index in var/index. For Solr, name its core or collection:
type = "local"
# type = "solr"
# url = "http://127.0.0.1:8983/solr/searchcrawl"

[cache]
# Fetched pages are kept, so that they can be sent again without asking the sites.
# preserve = true
# max_gb = 20

# Values for all sources that don't have their own; any table of a source file.
# [defaults.fetch]
# delay_seconds = 1.0

# A set of values for the sources that name it: parameters = "slow". It goes before the defaults.
# Passwords come from the environment or from a file, never from here: {{env = "NAME"}}, {{file = "PATH"}}.
# [parameters.slow.fetch]
# delay_seconds = 10
# headers = {{Authorization = {{env = "INTRANET_TOKEN"}}}}
"""

_SOURCE: Final = """\
# One file is one source; its name (example) is what "searchcrawl crawl example" asks for.
type = "web"
title = "An example"

[start]
# Where to begin; these must lie within the scope.
urls = ["https://example.org/"]

[scope]
# "example.org" is that host and every host below it; "=example.org" is that host alone.
include_hosts = ["example.org"]
# exclude_hosts = ["old.example.org"]
# Globs against the whole URL; "re:..." is a regular expression. Exclude always wins.
# exclude_urls = ["*/print/*", 're:[?&]sort=']
# Clicks from a start URL; 0 is any number.
# depth = 0

# Paths and ports of single hosts:
# [[scope.host]]
# host = "docs.example.org"
# include_paths = ["/en/"]

[fetch]
# Seconds between two requests to a host. Less than 1 needs its owner's leave.
delay_seconds = 1.0
# Slower in office hours, in the time zone of this machine or of timezone = "Europe/Berlin":
# windows = [{days = "mon-fri", from = "08:00", to = "18:00", delay_seconds = 5}]
# Through a proxy; a password comes from the environment: proxy = {env = "PROXY_URL"}
# proxy = "http://proxy.example.org:3128"
# Hosts of your own network are not reached unless listed:
# private_networks = ["10.0.0.0/8"]

[lifecycle]
# A page is due again after so many hours; 0 is in each run.
# recrawl_every_hours = 24
# When a run would remove more than this, it asks first (searchcrawl quarantine).
# max_delete_percent = 10
"""

_FILES: Final[Mapping[str, str]] = {
    "scrapy.cfg": _SCRAPY_CFG,
    "searchcrawl.toml": _PROJECT,
    "sources/example.toml": _SOURCE,
    ".gitignore": _GITIGNORE,
}


class Command(BaseCommand):
    requires_project = False
    shown_arguments = "DIR"
    example = "searchcrawl init intranet"

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        root = Path(args[0])
        require_free(root)
        write_files(root, _FILES)
        lines = (
            f"Made a project in {root}: {', '.join(_FILES)}",
            "Next: put your contact into searchcrawl.toml, and your site into sources/example.toml.",
        )
        print_answer({"project": str(root.resolve()), "files": list(_FILES)}, lines, as_json=opts.json)


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Writes the files of a new project, by their paths in its folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
