"""Runs the migrations within the transaction that ``Database`` opened."""

from __future__ import annotations

from alembic import context

from searchcrawl.store.all_tables import ALL_TABLES

context.configure(
    connection=context.config.attributes["connection"], target_metadata=ALL_TABLES, transactional_ddl=False
)
context.run_migrations()
