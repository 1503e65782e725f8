"""Runs the migrations within the transaction that ``Database`` opened."""

from __future__ import annotations

from alembic import context

from searchcrawl.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
