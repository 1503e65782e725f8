"""Make a spider in Python from a template, where the project finds it."""

from __future__ import annotations

import argparse

from scrapy.commands import genspider
from scrapy.exceptions import UsageError

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.files import SPIDERS_DIR, make_importable, make_spiders_folder
from searchcrawl.sources.loading import find_project


class Command(genspider.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            if len(args) == 2 and not opts.dump and not opts.list:
                self._choose_folder()
            super().run(args, opts)
        except ConfigurationError as error:
            # A broken file of a source of this name; Scrapy's command line would show a traceback.
            raise UsageError(str(error)) from error

    def _choose_folder(self) -> None:
        """Names the package for the new spider, where the settings do not; a project that Scrapy made has one."""
        if self.settings is None or self.settings["NEWSPIDER_MODULE"]:
            return
        try:
            root = find_project()
        except ConfigurationError:
            # Outside of a project the file is made in the working folder, as Scrapy does.
            return
        named = self.settings.getlist("SPIDER_MODULES")
        if not named:
            try:
                make_spiders_folder(root)
            except OSError as error:
                raise UsageError(f"the folder {SPIDERS_DIR} cannot be made: {error}") from error
        make_importable(root)
        self.settings.set("NEWSPIDER_MODULE", named[0] if named else SPIDERS_DIR, priority="project")
