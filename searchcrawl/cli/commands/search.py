"""Search the index."""

from __future__ import annotations

import argparse
import logging
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.padding import Padding

from searchcrawl.cli import as_user
from searchcrawl.cli.command import BaseCommand, Option, UsageError, whole_number
from searchcrawl.cli.output import console_for_answers, print_note, print_object, print_table, styled
from searchcrawl.index.receiver import HIT_END, HIT_START, SearchQuery
from searchcrawl.queries import search

if TYPE_CHECKING:
    from rich.text import Text

_MARKED: Final = re.compile(f"{HIT_START}(.*?){HIT_END}", re.DOTALL)


class Command(BaseCommand):
    arguments = (1, None)
    shown_arguments = "WORDS"
    # ``-word`` is a word of the query.
    option_form = re.compile(r"--\w")
    example = "searchcrawl search '\"a phrase\" word -without' --filter mimetype:application/pdf --sort=-last_modified"
    description = (
        'Search the index. All words are required; "a phrase", -word, OR, field:word, word*, field:from..to;'
        " * finds everything."
        " Put a query with quotes or a leading minus into single quotes, after -- where it begins with a minus."
    )
    options = (
        Option("--source NAME", "documents of this source only"),
        Option("--group NAME", "documents of sources of this group (may be repeated)", repeatable=True),
        Option("--offset N", "leave out so many of the first hits", kind=whole_number, default=0),
        Option("--language TAG", "the language of what facets show (that of the environment if it is not given)"),
        Option("--rows N", "so many hits (default 10, at most 1000)", kind=whole_number, default=10),
        Option("--sort NAME", "by an attribute; --sort=-NAME or 'NAME desc' begins with the largest"),
        Option("--filter NAME:VALUE", "exact value of an attribute (may be repeated)", repeatable=True),
        Option("--facet NAME", "count an attribute's values (may be repeated)", repeatable=True),
        *as_user.OPTIONS,
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.loglevel is not None and opts.loglevel.upper() not in logging.getLevelNamesMapping():
            # A word such as -London would be taken from the query without notice.
            raise UsageError(f"-L: not a log level; put -L{opts.loglevel} after -- to exclude that word")
        super().check_use(args, opts)
        try:
            search.check_page(opts.rows, opts.offset)
        except ValueError as error:
            raise UsageError(f"--{error}") from None
        opts.user = as_user.read_user(opts)
        opts.sort = _order(opts.sort)
        for text in opts.filter:
            if not all(text.partition(":")[::2]):
                raise UsageError(f"--filter: must be NAME:VALUE (got {text!r})")

    def execute(self, args: list[str], opts: argparse.Namespace) -> int | None:
        query = SearchQuery(
            words=" ".join(args),
            source=opts.source,
            filters=[text.partition(":")[::2] for text in opts.filter],
            groups=list(dict.fromkeys(opts.group)),
            rows=opts.rows,
            start=opts.offset,
            sort=opts.sort,
            facets=list(dict.fromkeys(opts.facet)),
        )
        found = search.ask(self.load_project(), query, language=opts.language or _read_language(), user=opts.user)
        if opts.json:
            print_object(search.remove_marks(found))
        else:
            _show(found, opts.offset)
            for note in found["notes"]:
                print_note(f"searchcrawl: {note}")
            if found["suggestion"] is not None:
                print_note(f"searchcrawl: try: {found['suggestion']}")
        return None


def _order(text: str | None) -> str | None:
    """``NAME``, ``-NAME``, ``NAME asc`` or ``NAME desc`` as ``NAME`` or ``-NAME``; raises UsageError."""
    if text is None:
        return None
    name, _, direction = text.strip().partition(" ")
    direction = direction.strip().lower()
    if not name.removeprefix("-") or direction not in {"", "asc", "desc"} or (direction and name.startswith("-")):
        raise UsageError(f"--sort: must be NAME, -NAME, 'NAME asc' or 'NAME desc' (got {text!r})")
    return f"-{name}" if direction == "desc" else name


def _read_language() -> str:
    """The language of the environment as a tag; empty where it has none (``C``)."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    tag = re.split("[.@]", named)[0].replace("_", "-").lower()
    return "" if tag in {"c", "posix"} else tag


def _show(found: dict[str, Any], offset: int) -> None:
    """Numbered hits with title, URL and snippet, then the facets."""
    console = console_for_answers()
    hits: Sequence[dict[str, Any]] = found["hits"]
    first = (
        f"the first {len(hits)}" if offset == 0 else f"{offset + 1} to {offset + len(hits)}" if hits else "none of them"
    )
    shown = "" if len(hits) == found["total"] else f", {first}"
    console.print(f"{found['total']} hit{'' if found['total'] == 1 else 's'}{shown}")
    for number, hit in enumerate(hits, start=offset + 1):
        console.print()
        console.print(styled(f"{number}. ") + styled(hit["title"] or "(no title)", style="bold"))
        # Soft wrapping, so that a URL can be copied in one piece.
        console.print(styled(f"   {hit['url']}", style="green"), soft_wrap=True)
        if hit["snippet"]:
            console.print(Padding(_highlighted(hit["snippet"]), (0, 0, 0, 3), expand=False))
        if hit["duplicates"]:
            console.print(styled(f"   also at {', '.join(hit['duplicates'])}"), soft_wrap=True)
    for name, counts in found["facets"].items():
        console.print()
        names = found["facet_names"][name]
        print_table((name, "documents"), [(names.get(value, value), count) for value, count in counts.items()])


def _highlighted(snippet: str) -> Text:
    """The snippet with its hits in bold."""
    text = styled("")
    for number, part in enumerate(_MARKED.split(snippet)):
        text += styled(part, style="bold" if number % 2 else "")
    return text
