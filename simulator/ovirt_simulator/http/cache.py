"""Markup that has been rendered once and still holds, so that reading a large engine stays cheap."""

from __future__ import annotations

from collections.abc import Callable


class RenderCache:
    """Rendered entities by address, each with what it was rendered from: immutable records, compared."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[tuple[object, ...], str]] = {}

    def get(self, address: str, source: tuple[object, ...], render: Callable[[], str]) -> str:
        """Give the markup of what is at the address, rendered again only if its source has changed."""
        held = self._held.get(address)
        if held is not None and held[0] == source:
            return held[1]
        rendered = render()
        self._held[address] = (source, rendered)
        return rendered
