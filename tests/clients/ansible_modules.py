"""Runs modules of ovirt.ovirt, unmodified, in this process: a hundred in the time of a playbook."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

from ansible.module_utils import basic

_MODULES = "ansible_collections.ovirt.ovirt.plugins.modules"


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Let modules ask again at once for what they wait for."""
    sleep = time.sleep
    with mock.patch("time.sleep", lambda seconds: sleep(min(seconds, 0.05))):
        yield


def run(module: str, engine: str, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run a module with these arguments, in check mode or for real; gives what it returns."""
    auth = {"url": engine, "username": "admin@internal", "password": "password"}
    given = {"auth": auth, "_ansible_check_mode": check, **arguments}
    printed = io.StringIO()
    with (
        mock.patch.object(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode()),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(f"{_MODULES}.{module}").main()
    returned: dict[str, Any] = json.loads(printed.getvalue())
    return returned
