"""All addresses of the page, as the application has them, and the views that most tests ask."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from starlette.routing import BaseRoute, Mount, Route

from ovirt_placement_web.application import routes


class Address(NamedTuple):
    """A method and a path below the root, with `{name}` where something is named."""

    method: str
    path: str

    def of(self, name: str) -> str:
        """The path with a name that is quoted already."""
        return re.sub(r"\{\w+(:\w+)?\}", lambda _: name, self.path)


def addresses() -> tuple[Address, ...]:
    """Each that the application serves, but for files."""
    return tuple(sorted(set(_below("", routes()))))


def _below(prefix: str, served: Iterable[BaseRoute]) -> Iterator[Address]:
    for one in served:
        if isinstance(one, Mount):
            yield from _below(prefix + one.path, one.routes)
        elif isinstance(one, Route):
            for method in {"GET", *(one.methods or ())} if one.methods is None else one.methods - {"HEAD"}:
                yield Address(method, prefix + one.path)


#: Views that ask the engine, and so are not shown while it is away.
ASKED = ["/plan/c1/now"]
VIEWS = [
    *("/", "/cluster/c1", "/map/c1", "/map/c1/table", "/ha/c1", "/ha/c1?host=h1", "/vm/a", "/host/h1"),
    *("/plan/c1", *ASKED, "/group/g1", "/group/g1/edit", "/cluster/c1/new-group", "/cluster/c1/rule"),
    *("/history", "/keys", "/health", "/search?q=db", "/vms", "/hosts", "/rules"),
    *("/cluster/c1/rules", "/cluster/c1/hosts", "/cluster/c1/history"),
]
