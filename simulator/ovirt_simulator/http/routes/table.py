"""What answers each method of an address: the form of the tables next to this file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

Answering: TypeAlias = "Callable[..., Any]"


class Resource(msgspec.Struct, frozen=True):
    """What answers one method of an address: with its root element, its items, or a whole response."""

    answer: Answering
    #: The root element around the items of a list; None for what is no list.
    root: str | None = None


class Table(msgspec.Struct, frozen=True):
    """Addresses below /ovirt-engine/api with what answers them, by method."""

    #: GET of a collection: its root element, and what gives its items.
    lists: Mapping[str, tuple[str, Answering]] = {}
    #: GET of anything else.
    reads: Mapping[str, Answering] = {}
    posts: Mapping[str, Answering] = {}
    puts: Mapping[str, Answering] = {}
    deletes: Mapping[str, Answering] = {}

    def resources(self) -> Iterator[tuple[str, str, Resource]]:
        """Give method, address pattern and resource of each."""
        for pattern, (root, answer) in self.lists.items():
            yield "GET", pattern, Resource(answer, root)
        for method, answers in (
            ("GET", self.reads),
            ("POST", self.posts),
            ("PUT", self.puts),
            ("DELETE", self.deletes),
        ):
            for pattern, answer in answers.items():
                yield method, pattern, Resource(answer)
