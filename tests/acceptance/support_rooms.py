"""A project with something that a developer adds: the code blocks of a guide, and the lines that make it known."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.acceptance.support_project import environment
from tests.crawl_forks import PAUSE
from tests.site.client import ROOT

_BLOCK: Final = re.compile(r'^```\{code-block\} \w+\n:caption: "([^"]+)"\n\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Extended:
    """A folder with the files of a guide; ``lines`` are run before each command, as if they were in the product."""

    def __init__(self, folder: Path, guide: str, lines: str, **replaced: str) -> None:
        self.folder = folder
        text = (ROOT / guide).read_text("utf-8")
        for old, new in replaced.items():
            text = text.replace(f"/srv/{old}", new)
        for path, block in _BLOCK.findall(text):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(block, "utf-8")
        # Worker processes load it as well.
        start = "import sys\n\nfrom searchcrawl.__main__ import main\n\nif __name__ == '__main__':\n    sys.argv[0] = 'searchcrawl'\n    main()\n"
        (folder / "run.py").write_text(f"{lines}\n{start}", "utf-8")

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join((str(ROOT), str(self.folder)))
        return subprocess.run(
            [sys.executable, "run.py", *arguments],
            cwd=self.folder,
            env=environment(**{"PYTHONPATH": path, PAUSE: "0.01", **variables}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def crawl(self, name: str, **variables: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the counters of a run."""
        ended = self.command("crawl", name, "--json", **variables)
        assert ended.stdout, ended.stderr
        counts: dict[str, Any] = json.loads(ended.stdout)["counts"]
        return ended.returncode, counts

    def found(self, name: str, words: str) -> list[str]:
        """The URLs of the documents that a search finds, sorted."""
        ended = self.command("search", words, "--source", name, "--json")
        assert ended.returncode == 0, ended.stderr
        return sorted(hit["url"] for hit in json.loads(ended.stdout)["hits"])
