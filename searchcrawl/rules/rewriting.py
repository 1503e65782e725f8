"""How a URL that was found becomes the identity of a row: rewriters first, then what is stripped (K1; decision 5).

What comes out is still to be decided on by the boundary, so that no rewriter leads past it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import re2

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.items import Link
from searchcrawl.plugins import Rewritten, UrlRewriter
from searchcrawl.rules.decision import ALLOWED, Decision
from searchcrawl.rules.display import MAX_BYTES
from searchcrawl.rules.identity import Identity

logger = logging.getLogger(__name__)

#: Links repeat from page to page.
_MAX_REMEMBERED: Final = 20_000
#: Errors of one plug-in that are logged in a run; all are counted.
_MAX_LOGGED: Final = 20


class Named(NamedTuple):
    """What became of a URL that was found: its identity, and where a rewriter had a say, what of it.

    ``display`` and ``found_as`` are those of ``items.Link``. Where ``code`` is not 0 the link is
    discarded by the rule of ``decision``, and ``url`` is the identity of what was found.
    """

    url: str
    display: str | None = None
    found_as: str | None = None
    code: int = 0
    decision: Decision = ALLOWED
    error: str | None = None

    @property
    def link(self) -> Link:
        """The link to it."""
        return Link(self.url, False, self.display, self.found_as)


class Discarded(Exception):
    """A rewriter gives a link up, for the rule of ``decision``."""

    def __init__(self, decision: Decision, *, code: int = Code.OUTSIDE_BOUNDARY, error: str | None = None) -> None:
        self.decision = decision
        self.code = code
        self.error = error
        super().__init__(decision.rule)


class Rewriter(Protocol):
    """One ``[[rewrite]]``."""

    #: nothing but the URL decides what comes of it
    by_url_alone: bool

    def rewrite(self, url: str, referrer: str | None) -> Rewritten:
        """What becomes of a URL; raises Discarded."""

    def open(self, source: str) -> None:
        """A run begins; raises ConfigurationError."""

    def close(self) -> None:
        """The run is over."""


class PatternRewriter:
    """``match`` and ``replace``: each match of the expression, searched anywhere, gives way to the replacement."""

    by_url_alone = True

    def __init__(self, match: str, replace: str, *, file: str = "", key: str = "rewrite") -> None:
        self._search = re2.compile(match, expression_options())
        self._pieces = replacement(replace)
        self._decision = Decision(False, match, file, f"{key}.match")

    def rewrite(self, url: str, referrer: str | None) -> Rewritten:
        position = 0
        parts: list[str] = []
        for match in self._search.finditer(url):
            parts.append(url[position : match.start()])
            parts += [piece if isinstance(piece, str) else match.group(piece) or "" for piece in self._pieces]
            position = match.end()
        if not parts:
            return Rewritten(url)
        text = "".join(parts) + url[position:]
        if not text:
            raise Discarded(self._decision)
        try:
            return Rewritten(urls.resolve(text))
        except InvalidUrl as error:
            raise Discarded(self._decision, code=Code.MALFORMED_URL, error=f"rewritten to {error}") from error

    def open(self, source: str) -> None:
        """Nothing: an expression has no state."""

    def close(self) -> None:
        """Nothing."""


class PluginRewriter:
    """A class of a user's own; ``make`` is the class, ``name`` the ``module:Class`` of the source file."""

    by_url_alone = False

    def __init__(self, make: Callable[[], UrlRewriter], name: str, *, file: str = "", key: str = "rewrite") -> None:
        self._make = make
        self._name = name
        self._file = file
        self._key = f"{key}.plugin"
        self._discarding = Decision(False, f"discarded by plugin {name}", file, self._key)
        self._failing = Decision(False, f"error in plugin {name}", file, self._key)
        self._plugin: UrlRewriter | None = None
        # The reactor asks about redirects, the writer thread about links.
        self._one_at_a_time = threading.RLock()
        #: errors of this run
        self.errors = 0

    def open(self, source: str) -> None:
        try:
            self._plugin = self._make()
            self._plugin.open(source)
        except Exception as error:
            raise ConfigurationError(self._file, self._key, f"{self._name} cannot begin: {error!r}") from error

    def close(self) -> None:
        plugin, self._plugin = self._plugin, None
        if plugin is None:
            return
        if self.errors:
            logger.warning("plugin %s failed at %d links, which were discarded", self._name, self.errors)
        try:
            plugin.close()
        except Exception:
            logger.exception("plugin %s failed to close", self._name)

    def rewrite(self, url: str, referrer: str | None) -> Rewritten:
        try:
            with self._one_at_a_time:
                if self._plugin is None:
                    raise RuntimeError("the plug-in is closed")
                rewritten = self._plugin.rewrite(url, referrer=referrer)
            if rewritten is None:
                raise Discarded(self._discarding)
            return self._checked(rewritten)
        except Discarded:
            raise
        except InvalidUrl as error:
            raise Discarded(self._discarding, code=Code.MALFORMED_URL, error=f"rewritten to {error}") from error
        except Exception as error:
            self._failed(url, error)
            raise Discarded(self._failing, error=_one_line(f"{self._name}: {error!r}")) from error

    def _checked(self, rewritten: Any) -> Rewritten:
        access, display = rewritten.access_url, rewritten.display_url
        if not isinstance(access, str) or not isinstance(display, str | None):
            raise TypeError(f"access_url and display_url must be strings (got {access!r}, {display!r})")
        return Rewritten(urls.resolve(access), None if display == access else display or None)

    def _failed(self, url: str, error: Exception) -> None:
        self.errors += 1
        if self.errors <= _MAX_LOGGED:
            more = " (its further errors are counted only)" if self.errors == _MAX_LOGGED else ""
            logger.warning("plugin %s failed, %s is discarded: %r%s", self._name, url, error, more)


class Rewriting:
    """All rewriters of a source in the order of its file, each given what the one before made, and its Identity."""

    def __init__(self, rewriters: Sequence[Rewriter] = (), identity: Identity | None = None) -> None:
        self._rewriters = tuple(rewriters)
        self.identity = identity or Identity()
        self._by_url_alone = all(rewriter.by_url_alone for rewriter in rewriters)
        self._remembered: dict[str, Named] = {}

    @property
    def rewrites(self) -> bool:
        """Whether there is any rewriter."""
        return bool(self._rewriters)

    @property
    def displays(self) -> bool:
        """Whether a rewriter may set display URLs."""
        return not self._by_url_alone

    @property
    def plugin_errors(self) -> Counter[str]:
        """How many links each plug-in failed at in this run, by its name."""
        plugins = [rewriter for rewriter in self._rewriters if isinstance(rewriter, PluginRewriter)]
        return Counter({plugin._name: plugin.errors for plugin in plugins if plugin.errors})

    def open(self, source: str) -> None:
        """A run of ``source`` begins; raises ConfigurationError for a plug-in that cannot."""
        for number, rewriter in enumerate(self._rewriters):
            try:
                rewriter.open(source)
            except ConfigurationError:
                for opened in self._rewriters[:number]:
                    opened.close()
                raise

    def close(self) -> None:
        """The run is over; may be called twice."""
        for rewriter in self._rewriters:
            rewriter.close()

    def named(self, url: str, referrer: str | None = None) -> Named:
        """What becomes of a URL (one of ``urls.resolve``), found on the page ``referrer``."""
        if not self._rewriters:
            return Named(self.identity.of(url))
        if not self._by_url_alone:
            return self._named(url, referrer)
        named = self._remembered.get(url)
        if named is None:
            named = self._named(url, referrer)
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[url] = named
        return named

    def of_links(self, links: Iterable[Link], referrer: str | None = None) -> tuple[list[Link], list[Named]]:
        """What becomes of links, each target once and in their order; and those that are discarded.

        A target is nofollow only where each of its links is.
        """
        kept: dict[str, Link] = {}
        discarded: dict[str, Named] = {}
        for link in links:
            named = self.named(link.url, referrer)
            before = kept.get(named.url)
            if named.code:
                if not link.nofollow:
                    discarded.setdefault(named.url, named)
            elif before is None or (before.nofollow and not link.nofollow):
                kept[named.url] = Link(named.url, link.nofollow, named.display, named.found_as)
        return list(kept.values()), list(discarded.values())

    def _named(self, url: str, referrer: str | None) -> Named:
        access, shown = url, None
        try:
            for rewriter in self._rewriters:
                rewritten = rewriter.rewrite(access, referrer)
                access, shown = rewritten.access_url, rewritten.display_url or shown
        except Discarded as discarded:
            return Named(self.identity.of(url), None, None, discarded.code, discarded.decision, discarded.error)
        identity = self.identity.of(access)
        return Named(identity, _display(shown, identity), None if access == url else url)


def _display(shown: str | None, identity: str) -> str | None:
    """The display URL as the row keeps it; one that is none stays as it is, within limits (1010)."""
    if shown is None:
        return None
    try:
        resolved = urls.resolve(shown)
    except InvalidUrl:
        return shown.replace("\0", "\ufffd")[:1000].encode("utf-8", "replace").decode()
    return None if resolved == identity else resolved[: MAX_BYTES + 1]


def expression_options() -> re2.Options:
    """Options for users' expressions: what is wrong with them is said by us alone."""
    options = re2.Options()
    options.log_errors = False
    return options


def replacement(text: str) -> tuple[str | int, ...]:
    r"""The pieces of a ``replace``: texts, and groups for ``\0`` to ``\9``; ``\\`` is a backslash. Raises ValueError."""
    pieces: list[str | int] = []
    rest = iter(text)
    for character in rest:
        if character != "\\":
            pieces.append(character)
            continue
        following = next(rest, "")
        if following.isascii() and following.isdigit():
            pieces.append(int(following))
        elif following == "\\":
            pieces.append("\\")
        else:
            raise ValueError(f"\\{following}")
    return tuple(pieces)


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[:600]).split())[:300]
