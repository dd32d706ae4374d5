"""Commands of the administrator: how they end, what they say, and that they know the host."""

from __future__ import annotations

import os
import sys

from ovirt_enforcer.maintenance.hooks import HookResult, Hooks

KEY = ("run", "host")


def _ended(hooks: Hooks) -> HookResult:
    (process, _) = hooks._running[KEY]
    process.wait()
    found = hooks.result(KEY)
    assert found is not None
    return found


def test_a_command_knows_the_host_and_its_last_line_is_kept() -> None:
    hooks = Hooks()
    assert hooks.result(KEY) is None
    code = "import os, sys; print('x' * 9000); print('for', os.environ['MAINTENANCE_HOST']); sys.exit(3)"
    hooks.start(KEY, f'{sys.executable} -c "{code}"', {**os.environ, "MAINTENANCE_HOST": "h1"})
    assert _ended(hooks) == HookResult(3, "for h1")
    hooks.forget(KEY)
    assert hooks.result(KEY) is None


def test_a_command_that_cannot_be_run_has_failed() -> None:
    hooks = Hooks()
    hooks.start(KEY, "/no/such/command", {})
    found = hooks.result(KEY)
    assert found is not None
    assert found.status == 127
    hooks.start(KEY, 'unbalanced "', {})
    assert hooks.result(KEY) is not None
