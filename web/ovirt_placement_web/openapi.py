"""Describes `/api/v1` for programs, out of the types of its answers."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import version
from typing import Any

import msgspec

from ovirt_placement_web.api_questions import Address, Problem, addresses

_REFUSALS = {
    "400": "a parameter is wrong",
    "401": "log in, or send a token of the engine",
    "403": "this needs an admin role in the engine",
    "404": "there is no such object",
    "429": "too many requests of this session, token or address are under way",
    "503": "nothing is known, the engine does not answer, or too much is asked",
}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**16 - 1}


def description(root: str) -> dict[str, Any]:
    """The OpenAPI document; `root` is where the page is."""
    asked = addresses()
    types = [one.answer for one in asked]
    _, components = msgspec.json.schema_components(
        [*types, Problem], ref_template="#/components/schemas/{name}"
    )
    for component in components.values():
        if "description" in component:
            component["description"] = inspect.cleandoc(component["description"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ovirt-placement",
            "version": version("ovirt-placement"),
            "description": "The documents that commands print with --json.",
        },
        "servers": [{"url": f"{root}/api/v1"}],
        "security": [{"engine": []}],
        "paths": {one.route.path: {"get": _operation(one)} for one in asked},
        "components": {
            "schemas": components,
            "securitySchemes": {"engine": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(asked: Address) -> dict[str, Any]:
    in_path = re.findall(r"\{(\w+)\}", asked.route.path)
    parameters = [_parameter(name, "path", "by name or id", required=True) for name in in_path]
    for name, (_, one, hint) in asked.keys.items():
        text, required = one.help or "", name in asked.route.required
        text = text.removesuffix("; else all") if required else text
        text += ", by name or id, with commas" if one.names is not None and one.names.many else ""
        parameter = _parameter(name, "query", text, required=required)
        parameters.append(parameter | ({"schema": _NUMBER} if hint is int else {}))
    refusals = {
        code: {"description": text, "content": {"application/json": {"schema": _reference(Problem)}}}
        for code, text in _REFUSALS.items()
    }
    answer = {
        "description": asked.summary,
        "content": {"application/json": {"schema": _reference(asked.answer)}},
    }
    return {
        "summary": asked.summary,
        "parameters": parameters,
        "responses": {"200": answer, **refusals},
    }


def _parameter(name: str, where: str, text: str, *, required: bool) -> dict[str, Any]:
    return {
        "name": name,
        "in": where,
        "required": required,
        "description": text,
        "schema": {"type": "string", "minLength": 1},
    }


def _reference(answer: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{answer.__name__}"}
