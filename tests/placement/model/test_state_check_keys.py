"""A state file's placement keys stand somewhere, and once; a mistaken key does not make it unreadable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ovirt_placement.model import state_file
from ovirt_service.errors import UserError
from tests.placement.model.full_state import full_state


def loaded(**fields: Any) -> Any:
    state = full_state()
    state["placement_keys"][0].update(fields)
    return state_file.loads(json.dumps(state).encode()).placement_keys[0]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"level": "sever"}, 'level: unknown level "sever"; did you mean "server"?'),
        ({"level": "server_sticky"}, 'level: unknown level "server_sticky"; did you mean "server"?'),
        ({"resource": "x"}, 'resource: no host "x"'),
        ({"level": "server"}, 'resource: no VM "h"'),
        ({"level": "cluster"}, 'resource: no cluster "h"'),
        ({"class": "user"}, 'class: "user" is not one of system, be, customer'),
    ],
)
def test_key_that_stands_nowhere_is_refused(fields: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        loaded(**fields)
    assert str(refusal.value) == f"placement_keys[0].{complaint}"


def test_name_that_is_set_twice_is_refused() -> None:
    state = full_state()
    state["placement_keys"].append({**state["placement_keys"][0], "value": 5})
    with pytest.raises(
        UserError, match=r'^placement_keys\[1\]\.name: "k" is set there by placement_keys\[0\]'
    ):
        state_file.loads(json.dumps(state).encode())


@pytest.mark.parametrize("fields", [{"value": "gold"}, {"name": "#RAM"}, {"weight": None, "sticky": True}])
def test_mistaken_key_is_read_and_written_as_it_is(fields: dict[str, Any]) -> None:
    key = loaded(**fields)
    assert all(getattr(key, name) == value for name, value in fields.items())
