"""Write the configuration set of this release, from which a core of Solr is made."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from searchcrawl.cli.command import BaseCommand, UsageError, require_free
from searchcrawl.cli.output import print_answer
from searchcrawl.index.opening import find_configset


class Command(BaseCommand):
    requires_project = False
    shown_arguments = "configset DIR"
    example = "searchcrawl solr configset /var/solr/data/configsets/searchcrawl/conf"

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        action, folder = args[0], Path(args[1])
        if action != "configset":
            raise UsageError(f"unrecognized argument: {action}")
        require_free(folder)
        found = find_configset()
        shutil.copytree(found, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
        files = sorted(path.relative_to(found).as_posix() for path in found.rglob("*") if path.is_file())
        line = f"Wrote the configuration set to {folder}: {', '.join(files)}"
        print_answer({"configset": str(folder.resolve()), "files": files}, [line], as_json=opts.json)
