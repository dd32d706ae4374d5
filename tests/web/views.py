"""The views of the page that most tests ask."""

from __future__ import annotations

#: Views that ask the engine, and so are not shown while it is away.
ASKED = ["/plan/c1/now"]
VIEWS = [
    *("/", "/cluster/c1", "/map/c1", "/map/c1/table", "/ha/c1", "/ha/c1?host=h1", "/vm/a", "/host/h1"),
    "/plan/c1",
    *ASKED,
    *(
        "/group/g1",
        "/group/g1/edit",
        "/cluster/c1/new-group",
        "/cluster/c1/rule",
        "/history",
        "/keys",
        "/health",
        "/search?q=db",
    ),
    *("/vms", "/hosts", "/rules", "/cluster/c1/rules", "/cluster/c1/hosts", "/cluster/c1/history"),
]
