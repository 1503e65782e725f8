"""List the sources that can be crawled."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_line, print_objects, print_warnings
from searchcrawl.sources.loading import has_project_file
from searchcrawl.spiders.spider_loader import SourceSpiderLoader


class Command(BaseCommand):
    uses_settings = True
    example = "searchcrawl list"

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Prints a name a line, good ones only: scrapyd schedules nothing where this fails."""
        loader = SourceSpiderLoader.from_settings(self.load_settings())
        names, errors = sorted(loader.list()), loader.errors
        if loader.project_error is not None:
            if not names or has_project_file():
                print_warnings(loader.spider_errors)
                raise loader.project_error
            # A project of Scrapy that has no source yet.
            errors = tuple(loader.spider_errors)
        print_warnings(errors)
        if opts.json:
            print_objects({"name": name} for name in names)
        else:
            for name in names:
                print_line(name)
