"""Two receivers besides the index in a whole life: each may be away, paused, emptied, put back, or taken out for a while."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from searchcrawl import urls
from tests.acceptance.support_project import CrawlProject, absent_index
from tests.acceptance.support_receivers import AWAY, BOTH, CLASS, list_receivers, read_fields, read_lines, set_receivers
from tests.site.toml_text import to_toml
from tests.stored_rows import query

#: What may happen to them; the last brings them all back.
KINDS: Final = ("away", "pause", "empty", "save", "put back", "take out", "refill", "heal")
#: What a receiver has of a document as the index has it. Others, such as its depth, are of the moment at which it was sent.
_SAME: Final = ("title", "checksum", "content", "duplicates")


class LifeReceivers:
    """The receivers of a project, and what was done to them."""

    def __init__(self, project: CrawlProject) -> None:
        self._project = project
        self._is_out = False
        #: may have what it should not, until it is sent everything again
        self._is_doubtful = False
        (project.folder / "lines.py").write_text(CLASS.replace("IndexUnavailable", "IndexMisconfigured"), "utf-8")
        set_receivers(project, BOTH)

    def shake(self, kind: str) -> None:
        """Does one of KINDS."""
        project, folder = self._project, self._project.folder
        second, kept = folder / "var" / "receivers" / "second", folder / "kept-second"
        print("receivers:", kind)
        if kind == "away":
            (folder / AWAY).touch()
        elif kind == "pause":
            project.command("receivers", "pause", "lines")
        elif kind == "empty":
            shutil.rmtree(second, ignore_errors=True)
        elif kind == "save" and second.exists():
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(second, kept)
        elif kind == "put back" and kept.exists():
            shutil.rmtree(second, ignore_errors=True)
            shutil.move(kept, second)
        elif kind == "take out":
            self._is_out = not self._is_out
            set_receivers(project, {"lines": BOTH["lines"]} if self._is_out else BOTH)
        elif kind == "refill":
            self.refill()
        elif kind == "heal":
            (folder / AWAY).unlink(missing_ok=True)
            project.command("receivers", "resume", "lines")
            if self._is_out:
                self.shake("take out")

    @contextmanager
    def without_index(self) -> Iterator[None]:
        """The index cannot be reached meanwhile."""
        path = self._project.folder / "searchcrawl.toml"
        text = path.read_text("utf-8")
        gone = absent_index()
        path.write_text(to_toml({**tomllib.loads(text), "index": gone}), "utf-8")
        try:
            yield
        finally:
            path.write_text(text, "utf-8")

    def check_each_other(self) -> None:
        """After a run without the index: those that are there have the same."""
        told = {name: row["state"] for name, row in list_receivers(self._project).items()}
        if self._is_doubtful or self._is_out or set(told.values()) != {"active"}:
            return
        held = self._list_held()
        second = {
            key: self._show(each) for key, each in read_fields(self._project, "second").items() if key not in held
        }
        assert second == {key: shown for key, shown in self._read_lines().items() if key not in held}

    def doubt(self) -> None:
        """Notes that the store was put back: it does not know what receivers got since."""
        self._is_doubtful = True

    def refill(self) -> None:
        """Sends the embedded one everything again."""
        if not self._is_out:
            done = self._project.command("resend", "demo", "--receiver", "second", "--json")
            assert done.returncode in {0, 1}, done.stderr
            self._is_doubtful = False

    def check(self) -> None:
        """After a run: each that is there has what the index has."""
        if self._is_doubtful:
            return
        expected = self._read(None)
        if not self._is_out:
            found = self._read("second")
            for held in self._list_held():
                found.pop(held, None)
                expected.pop(held, None)
            assert found == expected, [each for each in (found | expected) if found.get(each) != expected.get(each)]
        told = list_receivers(self._project)
        if told["lines"]["state"] == "active":
            assert told["lines"]["waiting"] == 0, told
            held = self._list_held()
            lines = {key: shown for key, shown in self._read_lines().items() if key not in held}
            fields = {key: self._show(each) for key, each in read_fields(self._project).items() if key not in held}
            assert lines == fields

    def _list_held(self) -> list[str]:
        """Documents whose removal waits, or was rejected: an index that is sent everything again gets what they are now."""
        rows = query(
            self._project.folder,
            "SELECT urls.url FROM urls JOIN documents ON documents.url_id = urls.id WHERE documents.state <> 3 "
            "OR documents.code <> 200 OR documents.rejected_run IS NOT NULL",
        )
        return [urls.document_id("demo", url) for (url,) in rows]

    def _read(self, name: str | None) -> dict[str, dict[str, Any]]:
        found = read_fields(self._project, name)
        return {key: {field: fields.get(field) for field in _SAME} for key, fields in found.items()}

    def _show(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: fields.get(name) for name in ("url", "title")}

    def _read_lines(self) -> dict[str, dict[str, Any]]:
        return {key: self._show(line["fields"]) for key, line in read_lines(self._project).items()}
