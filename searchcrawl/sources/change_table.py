"""The ``[change]`` of a source (D2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from searchcrawl.sources.values import LIST, Table, check_no_repeats


class Change(Table):
    """What makes a page changed (D2)."""

    condition: Annotated[tuple[Literal["date", "checksum", "etag"], ...], LIST, AfterValidator(check_no_repeats)] = (
        Field(("date", "checksum"), description="A page is changed if any of these differs from the last visit.")
    )
