"""The two ways in which a search goes wrong: it makes no sense, or the engine's database fails on it."""

from __future__ import annotations

from ovirt_simulator.http.search.patterns import escaped


class SearchError(ValueError):
    """A search that is not one; the engine answers it with 200 and an empty list."""


class SearchFailure(ValueError):
    """A search that the engine takes and then fails on; its text is the fault's detail."""

    def __init__(self, detail: str, status: int = 400) -> None:
        super().__init__(detail)
        self.status = status


def invalid(kind: str, value: str) -> SearchFailure:
    """Make the failure of a value that the database cannot read."""
    return SearchFailure(f'ERROR: invalid input syntax for type {kind}: "{escaped(value)}"')
