"""What ``sources check`` says of the roots of a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.kinds.file.checking import find_wrong
from searchcrawl.listing.model import Finding
from tests.unit.kinds.file.support_listing import FileSource, fill


@pytest.mark.parametrize(
    ("root", "marker", "finding"),
    [
        ("full", None, None),
        ("full", "x", None),
        ("full", ".here", ("file.marker", "{tree}/full has no .here in it: is it mounted?", False)),
        ("empty", None, ("file.roots[0]", "{tree}/empty is empty: is it mounted?", False)),
        ("none", None, ("file.roots[0]", "{tree}/none cannot be read (No such file or directory)", False)),
        ("full/x", None, ("file.roots[0]", "{tree}/full/x cannot be read (Not a directory)", True)),
        ("project/sources", None, ("file.roots[0]", "belongs to the project, or to the system", True)),
        ("/proc", None, ("file.roots[0]", "belongs to the project, or to the system", True)),
    ],
)
def test_root_when_it_is_checked_then_says_what_is_wrong(
    tree: Path, root: str, marker: str | None, finding: tuple[str, str, bool] | None
) -> None:
    fill(tree, {"full/x": "1"})
    (tree / "empty").mkdir()
    table = {} if marker is None else {"marker": marker}
    source = FileSource(tree / "project", tree, roots=[str(tree / root)], **table)

    expected = [] if finding is None else [Finding(finding[0], finding[1].format(tree=tree), finding[2])]
    assert list(find_wrong(source.source, source.project)) == expected
