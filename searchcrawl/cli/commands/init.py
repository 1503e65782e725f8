"""Make a new project with one commented source."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import searchcrawl
from searchcrawl.cli.command import BaseCommand, require_free
from searchcrawl.cli.output import print_answer
from searchcrawl.kind import KINDS, WEB
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

#: Where a kind of source has its commented example.
_SOURCE: Final = "sources/example.toml"
_KINDS: Final = Path(searchcrawl.__file__).parent / "kinds"


class Command(BaseCommand):
    requires_project = False
    shown_arguments = "DIR"
    example = "searchcrawl init intranet"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        kinds = [name for name in KINDS if _find_example(name).is_file()]
        parser.add_argument("--type", choices=kinds, default=WEB.name, help="the kind of source of the example")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        root = Path(args[0])
        require_free(root)
        kind = KINDS[opts.type]
        files = _list_files(_find_example(kind.name).read_text("utf-8"))
        write_files(root, files)
        lines = (
            f"Made a project in {root}: {', '.join(files)}",
            f"Next: put your contact into searchcrawl.toml, and your {kind.what} into {_SOURCE}.",
        )
        print_answer({"project": str(root.resolve()), "files": list(files)}, lines, as_json=opts.json)


def _find_example(kind: str) -> Path:
    return _KINDS / kind / "example.toml"


def _list_files(source: str) -> Mapping[str, str]:
    return {"scrapy.cfg": _SCRAPY_CFG, "searchcrawl.toml": _PROJECT, _SOURCE: source, ".gitignore": _GITIGNORE}


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Writes the files of a new project, by their paths in its folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
