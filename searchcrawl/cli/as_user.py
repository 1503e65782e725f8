"""The user for whom a command asks: ``--as-user`` and ``--groups``."""

from __future__ import annotations

import argparse
from typing import Final

from searchcrawl.cli.command import Option, UsageError
from searchcrawl.sources.principals import SearchUser, build_user

OPTIONS: Final = (
    Option("--as-user NAME", "only what this user may see"),
    Option("--groups A,B", "groups that this user is in, besides those that [principals] knows of"),
)


def read_user(opts: argparse.Namespace) -> SearchUser | None:
    """The user of a command line, None without one; raises UsageError."""
    if opts.as_user is None:
        if opts.groups is not None:
            raise UsageError("--groups: are those of a user: name him with --as-user NAME")
        return None
    groups = [group.strip() for group in (opts.groups or "").split(",")]
    try:
        return build_user(opts.as_user, [group for group in groups if group])
    except ValueError as error:
        raise UsageError(f"--as-user, --groups: {error}") from None
