"""What all tables share: the type of long row ids, and how indexes and keys are named; and the set of all tables."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Integer, MetaData

#: 64 bits in all databases; in SQLite still an alias of the rowid.
RowId = BigInteger().with_variant(Integer, "sqlite")

NAMES: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(naming_convention=NAMES)
