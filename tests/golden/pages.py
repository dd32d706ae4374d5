"""The page's views and the answers of its API, of the state that most tests of the page ask."""

import re
from collections.abc import Iterator
from pathlib import Path

from ovirt_placement.model import Snapshot
from tests.golden.recorded import Answer
from tests.web.running import paged

#: Views, and below `/api/v1` documents, with what is wrong in them too.
VIEWS = (
    *("/", "/summary", "/cluster/c1", "/cluster/c2", "/cluster/none", "/map/c1", "/map/c1/table", "/ha"),
    *("/ha/c1", "/ha/c1?host=h1", "/vm/db-1", "/vm/too-large", "/vm/nobody", "/vm/too-large/room"),
    *("/host/alpha", "/vm/db-1/keys", "/plan/c1", "/plan/c1/now", "/plan/c1/undo", "/maintenance/c1"),
    *("/maintenance/c1?hosts=alpha", "/group/g1", "/group/g1/edit", "/cluster/c1/new-group"),
    *("/cluster/c1/rule", "/history", "/keys", "/keys/set", "/keys/hosts", "/doctor", "/search?q=db"),
    *("/search?q=%20", "/portal", "/history?unknown=1", "/unheard-of", "/api/v1/status"),
    *("/api/v1/violations", "/api/v1/violations?cluster=c2", "/api/v1/conflicts", "/api/v1/groups"),
    *("/api/v1/ha-check", "/api/v1/ha-check?cluster=c1", "/api/v1/vms/db-1/why"),
    *("/api/v1/ha-check?cluster=c1&hosts=alpha,beta", "/api/v1/vms/too-large/why"),
    *("/api/v1/vms/db-1/where", "/api/v1/vms/db-1/keys", "/api/v1/hosts/alpha/keys"),
    *("/api/v1/clusters/c1/map", "/api/v1/keys", "/api/v1/clusters/c1/map/changes", "/api/v1/doctor"),
    *("/api/v1/vms/nobody/why", "/api/v1/openapi.json"),
)
_CSRF = re.compile(r'(name="(?:csrf|was)" value=")[^"]*')


def answers(folder: Path, state: Snapshot) -> Iterator[tuple[str, Answer]]:
    """What each view answers, with the name of the file that it stands in."""
    with paged(folder, state) as page:
        cookie = page.session()
        for path in VIEWS:
            found = page.ask(path, cookie=cookie)
            name = "page-api" if path.startswith("/api/") else "page"
            yield name, Answer(path, found.status, _CSRF.sub(r"\1SECRET", found.text))
        for path in ("/", "/api/v1/status", "/log-in"):
            found = page.ask(path)
            yield "page", Answer(f"{path} without a session", found.status, found.text)
