"""A second reader of answers, next to the commands: a page over HTTP that knows no answer by name.

It finds things by the words of the address, asks the library a question, and shows the fields of its record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import msgspec

from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.document import find
from ovirt_placement.answers.groups.listing import groups_list
from ovirt_placement.answers.ha_check import ha_check
from ovirt_placement.answers.keys.change import StateWithKeys
from ovirt_placement.answers.keys.listing import keys_list
from ovirt_placement.answers.placement import where, why
from ovirt_placement.answers.plans.plan import plans_record
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.planner import make_plan

Question = Callable[[Snapshot, str], msgspec.Struct]

QUESTIONS: Mapping[str, Question] = {
    "why": lambda state, word: why(state, find(word, "VM", state.vms), state.hosts),
    "where": lambda state, word: where(state, find(word, "VM", state.vms)),
    "violations": lambda state, word: violations(state, state.clusters),
    "conflicts": lambda state, word: conflicts(state, state.clusters),
    "ha-check": lambda state, word: ha_check(state, state.clusters, reserving=False),
    "groups": lambda state, word: groups_list(state, state.clusters),
    "keys": lambda state, word: keys_list(StateWithKeys(state, {})),
    "plan": lambda state, word: plans_record((make_plan(state, one.id) for one in state.clusters), state),
}


@contextmanager
def page_of(state: Snapshot) -> Iterator[str]:
    """Serve pages about a state; yields the address that they begin with."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            question, _, word = unquote(self.path).strip("/").partition("/")
            body = _shown(msgspec.to_builtins(QUESTIONS[question](state, word))).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _shown(found: object) -> str:
    if isinstance(found, dict):
        return "<dl>" + "".join(f"<dt>{key}<dd>{_shown(value)}" for key, value in found.items()) + "</dl>"
    if isinstance(found, list | tuple):
        return "<ul>" + "".join(f"<li>{_shown(value)}" for value in found) + "</ul>"
    return escape(str(found))
