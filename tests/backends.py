"""Which store and which index the projects of tests use.

``SEARCHCRAWL_TEST_STORE`` is ``sqlite`` (default) or ``postgresql``, ``SEARCHCRAWL_TEST_INDEX`` is ``local``
(default) or ``solr``. ``SEARCHCRAWL_TEST_MATRIX`` is a pair (``postgresql+solr``) with which the tests that are marked
``matrix`` run as well, in the same session. Each project gets a database and a core of its own on the servers of the
test session.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from searchcrawl.index.local import schema
from tests.site.toml_text import to_toml

if TYPE_CHECKING:
    # The demo writes projects too, and has neither.
    from tests.postgres_server import RunningPostgres
    from tests.solr_server import RunningSolr


STORE: Final = "SEARCHCRAWL_TEST_STORE"
INDEX: Final = "SEARCHCRAWL_TEST_INDEX"
MATRIX: Final = "SEARCHCRAWL_TEST_MATRIX"


@dataclass(slots=True)
class Backends:
    """The servers that projects use; none: an SQLite file and the embedded index, in the project's folder."""

    postgres: RunningPostgres | None = None
    solr: RunningSolr | None = None
    _databases: set[str] = field(default_factory=set)
    _cores: set[str] = field(default_factory=set)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def tables(self, folder: Path) -> dict[str, Any]:
        """What searchcrawl.toml says of store and index; database and core are made where they are not there yet."""
        name, found = _name(folder), {}
        with self._making:
            if self.postgres is not None:
                if name not in self._databases:
                    self.postgres.create_database(name)
                    self._databases.add(name)
                found["store"] = {"url": self.postgres.url(name)}
            if self.solr is not None:
                if name not in self._cores:
                    self.solr.create_core(name)
                    self._cores.add(name)
                found["index"] = {"type": "solr", "url": self.solr.core_url(name)}
        return found

    def copy(self, folder: Path, target: Path) -> Path:
        """Copies a project that no process uses, with its store and its index; ``target``."""
        shutil.copytree(folder, target)
        before, now = _name(folder), _name(target)
        changed: dict[str, Any] = {}
        with self._making:
            if self.postgres is not None and before in self._databases:
                changed["store"] = {"url": self.postgres.create_database(now, template=before)}
                self._databases.add(now)
            if self.solr is not None and before in self._cores:
                changed["index"] = {"type": "solr", "url": self.solr.copy_core(before, now)}
                self._cores.add(now)
        if changed:
            path = target / "searchcrawl.toml"
            path.write_text(to_toml({**tomllib.loads(path.read_text("utf-8")), **changed}), "utf-8")
        return target

    def remove(self, folder: Path) -> None:
        """Removes a project with its store and its index."""
        shutil.rmtree(folder)
        self._forget(_name(folder))

    def lose_index(self, folder: Path) -> None:
        """Takes a project its index, as if the disk had been lost."""
        name = _name(folder)
        if self.solr is None or name not in self._cores:
            if (folder / "var" / "index").exists():
                shutil.rmtree(folder / "var" / "index")
            return
        self.solr.delete_core(name)
        self.solr.create_core(name)

    def put_back(self, part: str, saved: Path, folder: Path) -> None:
        """Gives a project the ``index`` or the ``store`` of a copy that was made of it, which is not used any more."""
        on_server = self.solr if part == "index" else self.postgres
        if on_server is not None:
            path = folder / "searchcrawl.toml"
            older = tomllib.loads((saved / "searchcrawl.toml").read_text("utf-8"))[part]
            path.write_text(to_toml({**tomllib.loads(path.read_text("utf-8")), part: older}), "utf-8")
        elif part == "index":
            shutil.rmtree(folder / "var" / "index")
            shutil.copytree(saved / "var" / "index", folder / "var" / "index")
        else:
            for file in (folder / "var").glob("searchcrawl.db*"):
                file.unlink()
            for file in (saved / "var").glob("searchcrawl.db*"):
                shutil.copy(file, folder / "var")

    def empty_index(self, folder: Path, source: str) -> None:
        """Removes all documents of a source from a project's index; the index stays."""
        name = _name(folder)
        if self.solr is not None and name in self._cores:
            self.solr.delete_source(name, source)
            return
        index = schema.open_index(folder / "var" / "index")
        writer = index.writer()
        writer.delete_documents_by_term("source", source)
        writer.commit()
        writer.wait_merging_threads()

    def lose_store(self, folder: Path) -> None:
        """Takes a project its database."""
        name = _name(folder)
        if self.postgres is not None and name in self._databases:
            self.postgres.drop_database(name)
            self.postgres.create_database(name)
            return
        for path in (folder / "var").glob("searchcrawl.db*"):
            path.unlink()

    def close(self) -> None:
        """Removes all databases and cores."""
        for name in [*self._databases, *self._cores]:
            self._forget(name)

    def _forget(self, name: str) -> None:
        with self._making:
            if self.postgres is not None and name in self._databases:
                self.postgres.drop_database(name)
            if self.solr is not None and name in self._cores:
                self.solr.delete_core(name)
            self._databases.discard(name)
            self._cores.discard(name)


#: Those of this session; ``tests/conftest.py`` starts them.
current = Backends()


@contextmanager
def in_use(
    postgres: Callable[[], RunningPostgres], solr: Callable[[], RunningSolr], environment: Mapping[str, str]
) -> Iterator[None]:
    """Makes ``current`` what the environment asks for; the servers are started only where they are needed."""
    store = wanted(environment, STORE, ("sqlite", "postgresql"))
    index = wanted(environment, INDEX, ("local", "solr"))
    current.postgres = postgres() if store == "postgresql" else None
    current.solr = solr() if index == "solr" else None
    try:
        yield
    finally:
        current.close()
        current.postgres = current.solr = None


def wanted(environment: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """The value of a variable, the first where it is not set; ValueError for any other."""
    value = environment.get(name, values[0])
    if value not in values:
        raise ValueError(f"{name}: must be one of {', '.join(values)} (got {value})")
    return value


def of_pair(pair: str) -> dict[str, str]:
    """What the environment says where such a pair (``postgresql+solr``) is asked for."""
    store, _, index = pair.partition("+")
    return {STORE: store, INDEX: index}


def is_matrix() -> bool:
    """Whether the tests of now are those that run once more, with the pair of the matrix."""
    return MATRIX in os.environ and (current.postgres is not None or current.solr is not None)


def is_file(environment: Mapping[str, str]) -> bool:
    """Whether the store of projects is an SQLite file."""
    return wanted(environment, STORE, ("sqlite", "postgresql")) == "sqlite"


def asks_for_default(environment: Mapping[str, str]) -> bool:
    """Whether projects use an SQLite file and the embedded index."""
    return not {STORE, INDEX} & environment.keys()


def _name(folder: Path) -> str:
    return "p_" + hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:20]
