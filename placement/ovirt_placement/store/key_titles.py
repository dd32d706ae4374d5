"""Says which placement keys a change set and removed, for the record of who did it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ovirt_placement.model import PlacementKey


def by_id(key: PlacementKey) -> str:
    """Which key it is, where no names are known."""
    return f"{key.level} {key.resource}: {key.key_class} key {key.name}"


def changed(
    put: Iterable[PlacementKey], removed: Iterable[PlacementKey], title: Callable[[PlacementKey], str]
) -> Iterator[str]:
    """In words each what was set and removed."""
    for key in put:
        weight = "" if key.weight is None else f" (weight {_figure(key.weight)})"
        yield f"set {title(key)} to {_figure(key.value)}{weight}"
    yield from (f"removed {title(key)}" for key in removed)


def _figure(value: float | str) -> str:
    """A number with all its digits; whole ones without a fraction."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")
