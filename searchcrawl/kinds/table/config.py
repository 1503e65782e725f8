"""The table ``[table]``: which rows of a database are documents, and what of them."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field

from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    Amount,
    Check,
    ListOf,
    PublicText,
    Table,
    check_no_repeats,
    refuse,
    require,
)
from searchcrawl.sources.values import key as option

_DATABASE_FORM: Final = "must be the URL of a database, as postgresql+psycopg://USER:PASSWORD@HOST/DATABASE"


def _check_database_url(text: str) -> str:
    """Checks the form of a URL of SQLAlchemy; no message repeats its password."""
    # Imported here: most sources have none, and every command reads this module.
    from sqlalchemy import make_url  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        parsed = make_url(text)
    except (ArgumentError, ValueError):
        refuse(_DATABASE_FORM)
    if not parsed.database:
        refuse("must end in the name of a database, or in the path of a file after sqlite:///")
    if parsed.get_backend_name() == "sqlite" and (parsed.database == ":memory:" or parsed.query or parsed.host):
        refuse("must be sqlite:/// and the path of a file")
    if any("password" in name or name == "passfile" for name in parsed.query):
        refuse("the password belongs before the host: postgresql+psycopg://USER:PASSWORD@HOST/DATABASE")
    return text


class Template(NamedTuple):
    """A text with columns in it: pairs of a text, and the column that follows it."""

    parts: tuple[tuple[str, str | None], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, each once."""
        return tuple(dict.fromkeys(column for _, column in self.parts if column is not None))

    def fill(self, values: Mapping[str, str], *, escape: Callable[[str], str] | None = None) -> str:
        """The text with the values of its columns; ``escape`` changes those that do not stand at its beginning."""
        found: list[str] = []
        for text, column in self.parts:
            found.append(text)
            if column is not None:
                is_first = not any(found)
                found.append(values[column] if escape is None or is_first else escape(values[column]))
        return "".join(found)


def parse_template(text: str) -> Template:
    """Reads a text with ``{column}`` in it, and ``{{`` for a brace; raises ValueError."""
    parts = list[tuple[str, str | None]]()
    for before, column, form, conversion in string.Formatter().parse(text):
        if form or conversion or column == "":
            raise ValueError("a column stands in braces, as {name}, and a brace is written twice")
        parts.append((before, column))
    return Template(tuple(parts))


def read_text_rule(text: str) -> Template:
    """What ``table.text`` says: a template, or a column alone."""
    return parse_template(text) if "{" in text or "}" in text else Template((("", text),))


def _check_template(text: str) -> str:
    try:
        found = parse_template(text)
    except ValueError as error:
        refuse(f"not a template: {error}")
    if not found.columns:
        refuse("must name a column, as {id}")
    return text


def _check_text(text: str) -> str:
    return _check_template(text) if "{" in text or "}" in text else text


def _check_query(text: str) -> str:
    if text.rstrip().endswith(";"):
        refuse("must be one statement, without a semicolon at its end")
    return text


_check_name: Final = require(
    lambda text: text.isprintable() and text.strip() == text and text not in {".", ".."}, "not the name of a table"
)
#: As long as all databases can count.
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Column = PublicText
Columns = ListOf[Column]
TemplateText = Annotated[PublicText, Check(_check_template, "template")]


class TableTable(Table):
    """Rows of a table or query (A1, E9)."""

    url: Annotated[str, Privacy.SHOWN, Check(_check_database_url, "URL of a database")] | None = option(
        None,
        "The database, as a URL of SQLAlchemy: `postgresql+psycopg://USER:PASSWORD@HOST/DATABASE`, "
        "`mysql+pymysql://USER:PASSWORD@HOST/DATABASE` (MariaDB, too), or `sqlite:///` and the path of a file. Others work "
        "with the driver that SQLAlchemy names for them.",
    )
    table: Annotated[PublicText, Check(_check_name, "name")] | None = option(
        None, "The table or view whose rows are documents, also with its schema: `shop.articles`."
    )
    query: Annotated[PublicText, Check(_check_query, "query")] | None = option(
        None, "In its place one query, whose rows are the documents; it stands in a `FROM`, so that columns need names."
    )
    key: Annotated[Columns, AfterValidator(check_no_repeats)] | None = option(
        None, "The columns that tell one row from all others, never null; part of the URL of a row."
    )
    text: Annotated[PublicText, Check(_check_text, "column or template")] | None = option(
        None, "The column with the text of a document; or a template with columns in it: `{name}, {city}`."
    )
    title: Column | None = option(None, "The column with its title.")
    body: Column | None = option(
        None, "In the place of `text` a column with a file, which is converted as one of a web site is."
    )
    body_type: Column | None = option(
        None, "The media type of `body`, as `application/pdf`, or the column that has it; without it the bytes tell."
    )
    display: TemplateText | None = option(
        None,
        "The URL that a search shows for a row, with columns in it: `https://shop.example/article?id={id}`. Values are "
        "escaped, but for one at the very beginning.",
    )
    modified: Column | None = option(
        None,
        "The column with the time of the last change of a row (it may also be a number that rises). Then most runs read the "
        "rows that were changed since, and no others. Without it each run reads all rows, and compares them.",
    )
    compare_hours: Amount = option(
        24.0,
        "With `modified`: how long after such a reading a run reads the keys of all rows again, which finds rows that "
        "were deleted, or changed with an old time; 0 is in each run.",
    )
    lag_seconds: Amount = option(
        300.0,
        "With `modified`: how far before the newest change a reading begins again, for what is written late. PostgreSQL, "
        "and MariaDB where the user may see it, tell of open transactions that are older.",
    )
    statement_seconds: Seconds = option(
        60.0, "How long the database may take for a statement, or for the next rows of one that brings many."
    )
    allow: Columns = option(
        (),
        "Columns with the principals that may see a row (`user:anna`, `group:staff`, `everyone`): an array, or a text with "
        "commas between them. Where all are null nobody may. Without this key everyone may see all rows.",
    )
    deny: Columns = option((), "Columns with principals that may not, whatever `allow` says.")

    def _check_keys(self) -> None:
        if self.table is not None and self.query is not None:
            refuse("not together with query", key="table")
        if self.text is not None and self.body is not None:
            refuse("not together with body", key="text")
        if self.body_type is not None and self.body is None:
            refuse("only with body", key="body_type")
        if self.deny and not self.allow:
            refuse("only with allow", key="deny")

    def find_missing(self) -> str:
        """The first key that a source of the kind must have, and has not; empty where all are there."""
        if self.url is None:
            return "url"
        if self.table is None and self.query is None:
            return "table"
        if self.key is None:
            return "key"
        return "text" if self.text is None and self.body is None else ""

    def list_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that each key names, by key. ``body_type`` names one where it is no media type."""
        found: dict[str, tuple[str, ...]] = {"key": self.key or (), "allow": self.allow, "deny": self.deny}
        for name in ("title", "body", "modified"):
            column = getattr(self, name)
            found[name] = (column,) if column is not None else ()
        found["body_type"] = (self.body_type,) if self.body_type and "/" not in self.body_type else ()
        found["text"] = read_text_rule(self.text).columns if self.text is not None else ()
        found["display"] = parse_template(self.display).columns if self.display is not None else ()
        return found
