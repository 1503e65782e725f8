"""What ``sources check`` looks at: whether the roots of a source are there, and can be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from errno import ENOENT

from searchcrawl.kinds.file.local.jail import Barred, RootLost
from searchcrawl.kinds.file.roots import find_barred, has_something, list_paths, open_root
from searchcrawl.listing.model import Finding
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project


def find_wrong(source: Source, project: Project) -> Iterator[Finding]:
    """What is wrong with each root; one that is not there, or is empty, may be there when it is crawled."""
    barred = find_barred(project)
    for number, path in enumerate(list_paths(source)):
        key = f"file.roots[{number}]"
        try:
            with closing(open_root(source, path, barred)) as root:
                if not has_something(root):
                    yield Finding(key, "is empty: is it mounted?", is_error=False)
        except Barred as error:
            yield Finding(key, error.reason)
        except RootLost as error:
            yield Finding("file.marker", str(error), is_error=False)
        except OSError as error:
            yield Finding(key, f"cannot be read ({error.strerror})", is_error=error.errno != ENOENT)
