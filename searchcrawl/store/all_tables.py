"""All tables: for what needs each of them, whoever else declares one."""

from __future__ import annotations

from typing import Final

from searchcrawl.store import host_schema, log_schema, run_schema, schema, site_schema
from searchcrawl.store.schema import metadata

#: The modules that declare tables: they are in ``ALL_TABLES`` once these are imported.
DECLARED_IN: Final = (host_schema, log_schema, run_schema, schema, site_schema)
ALL_TABLES: Final = metadata
