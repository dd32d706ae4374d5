"""All tables together, and the version of the schema that a store has."""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, Table

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))
