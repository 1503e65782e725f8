"""What is in one open folder: files with their versions, folders, and what is left out with the rule. Nothing is kept of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from errno import EIO, ELOOP
from functools import partial
from typing import NamedTuple

from searchcrawl import clock
from searchcrawl.answer_headers import Level
from searchcrawl.kinds.file.local.folders import is_there
from searchcrawl.kinds.file.local.jail import Barred, Jail, is_absent
from searchcrawl.kinds.file.local.permissions import Levels
from searchcrawl.kinds.file.local.versions import Tokens
from searchcrawl.kinds.file.names import escape, show
from searchcrawl.kinds.file.scope import LEFT_OUT, MOST_CHARACTERS, TOO_LONG, Limits
from searchcrawl.kinds.file.selection import Ignoring, IsThere, Selection
from searchcrawl.listing.model import MOST_ENTRIES, Entry


class Child(NamedTuple):
    """A folder in a folder; ``refusal`` leaves it out with all in it, and ``is_linked`` says that a link leads to it."""

    name: bytes
    refusal: str | None
    is_linked: bool = False


class Folder(NamedTuple):
    """A folder that is read: its way from the root, its identity, and the rules that hold in it."""

    way: tuple[bytes, ...]
    url: str
    ignoring: Ignoring
    tokens: Tokens


class Scanner:
    """Reads folders below one root; ``above`` are the levels over it, None where permissions do not matter."""

    def __init__(
        self, jail: Jail, *, selection: Selection, limits: Limits, follow_links: bool, above: Sequence[Level] | None
    ) -> None:
        self._jail = jail
        self._above = above
        self._selection = selection
        self._limits = limits
        self._follows_links = follow_links

    def scan(self, folder: Folder, descriptor: int) -> Iterator[tuple[list[Entry], list[Child], OSError | None]]:
        """What is in an open folder, in parts, each with the first error so far of what is in it and cannot be looked at.

        Raises OSError where the folder cannot be read on. What is gone by the time that it is looked at is left out.
        """
        entries, children = list[Entry](), list[Child]()
        failure = None
        with os.scandir(descriptor) as found:
            now_ns, beside = clock.now_ms() * 1_000_000, partial(is_there, descriptor)
            for each in found:
                try:
                    thing = self._look(folder, beside, each, now_ns)
                except OSError as error:
                    if not is_absent(error):
                        failure = failure or _name(each.name, error)
                    continue
                if isinstance(thing, Entry):
                    entries.append(thing)
                else:
                    children.append(thing)
                if len(entries) + len(children) >= MOST_ENTRIES:
                    yield entries, children, failure
                    entries, children = [], []
                    now_ns = clock.now_ms() * 1_000_000
        yield entries, children, failure

    def _look(self, folder: Folder, beside: IsThere, each: os.DirEntry[str], now_ns: int) -> Entry | Child:
        name = os.fsencode(each.name)
        is_folder = each.is_dir(follow_symlinks=False)
        refusal = self._refuse_name(folder, beside, name, is_folder=is_folder)
        if is_folder:
            return Child(name, refusal)
        if refusal is not None:
            return _leave_out(folder, name, refusal)
        if each.is_symlink():
            return self._follow(folder, beside, name, now_ns)
        return self._build_entry(folder, name, each.stat(follow_symlinks=False), folder.tokens, now_ns)

    def _refuse_name(self, folder: Folder, beside: IsThere, name: bytes, *, is_folder: bool) -> str | None:
        refusal = self._selection.find_refusal(name, beside, is_folder=is_folder)
        return refusal or folder.ignoring.find_refusal(name, is_folder=is_folder)

    def _build_entry(self, folder: Folder, name: bytes, facts: os.stat_result, tokens: Tokens, now_ns: int) -> Entry:
        url = folder.url + escape(name)
        refusal = self._refuse_file(facts, now_ns) if len(url) <= MOST_CHARACTERS else TOO_LONG
        # A rule that depends on the day leaves out what is new alone.
        return Entry(url, tokens.build(facts, now_ns), refusal, tokens.describe(facts))

    def _refuse_file(self, facts: os.stat_result, now_ns: int) -> str | None:
        try:
            self._jail.check_file(facts)
        except Barred as barred:
            return describe_barred(barred)
        return self._limits.find_refusal(facts.st_size, facts.st_mtime_ns, now_ns)

    def _follow(self, folder: Folder, beside: IsThere, name: bytes, now_ns: int) -> Entry | Child:
        """What a link leads to, under the name of the link; raises OSError, as where it leads nowhere."""
        if not self._follows_links:
            return _leave_out(folder, name, "file.follow_links: follow_links = false")
        # Whoever reads it passes the folders of the link and those of the file.
        levels = None if self._above is None else Levels(self._above)
        try:
            with self._jail.locate([*folder.way, name], levels) as place:
                facts = place.facts
        except Barred as barred:
            return _leave_out(folder, name, describe_barred(barred))
        except OSError as error:
            if error.errno != ELOOP:
                raise
            return _leave_out(folder, name, "file.follow_links: leads in a circle")
        if stat.S_ISDIR(facts.st_mode):
            return Child(name, self._refuse_name(folder, beside, name, is_folder=True), is_linked=True)
        tokens = folder.tokens if levels is None else Tokens(self._jail.file_system, levels.found)
        return self._build_entry(folder, name, facts, tokens, now_ns)


def _leave_out(folder: Folder, name: bytes, refusal: str) -> Entry:
    return Entry(folder.url + escape(name), LEFT_OUT, refusal)


def _name(name: str, error: OSError) -> OSError:
    return OSError(error.errno or EIO, f"{show(os.fsencode(name))}: {error.strerror or error}")


def describe_barred(barred: Barred) -> str:
    """A refusal, as ``KEY: RULE``."""
    return f"file.{barred.key or 'roots'}: {barred.reason}"
