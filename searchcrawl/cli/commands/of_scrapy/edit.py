"""Edit the file of a source, or of a spider in Python."""

from __future__ import annotations

import argparse
import shlex
import subprocess

from scrapy.commands import edit
from scrapy.exceptions import UsageError

from searchcrawl.cli.scrapy_commands import find_source_file


class Command(edit.Command):
    def long_desc(self) -> str:
        return f"{super().long_desc()}. Of a source it is the file in sources/."

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        file = find_source_file(args[0]) if len(args) == 1 else None
        if file is None or self.settings is None:
            super().run(args, opts)
            return
        editor = shlex.split(self.settings["EDITOR"])
        try:
            self.exitcode = subprocess.call([*editor, str(file)])  # noqa: S603  # the user's own editor
        except OSError as error:
            raise UsageError(f"the editor cannot be started: {error} (EDITOR)") from error
