"""No name and no id is longer than any of the engine's: each is logged and recorded with the call."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_scheduler_proxy.xmlrpc import Fault, read_question

LONG, LONGER = "x" * 1000, "x" * 1001
TEXTS = {
    "runFilters": [["{}"], ["{}"], "{}", {"{}": "v"}],
    "runCostFunctions": [[["{}", 1]], ["{}"], "{}", {"{}": "v"}],
    "runLoadBalancing": ["{}", ["{}"], {"{}": "v"}],
}


def filled(given: Any, texts: list[str]) -> Any:
    """The arguments, with the next of the texts in each place."""
    if isinstance(given, list):
        return [filled(one, texts) for one in given]
    if isinstance(given, dict):
        return {filled(name, texts): value for name, value in given.items()}
    return texts.pop(0) if given == "{}" else given


@pytest.mark.parametrize("method", TEXTS)
def test_what_is_longer_than_the_engines_is_a_fault(method: str) -> None:
    count = str(TEXTS[method]).count("{}")
    assert read_question(method, filled(TEXTS[method], [LONG] * count))
    for place in range(count):
        texts = ["short"] * place + [LONGER] + ["short"] * (count - place - 1)
        with pytest.raises(Fault) as fault:
            read_question(method, filled(TEXTS[method], texts))
        assert "expected text of length <= 1000" in fault.value.sentence
        assert len(fault.value.sentence) < 200


@pytest.mark.parametrize(("size", "fits"), [(100_000, True), (100_001, False)])
def test_the_value_of_a_property_may_be_long(size: int, fits: bool) -> None:
    given = [["unit"], ["host"], "vm", {"name": "v" * size}]
    if fits:
        assert read_question("runFilters", given).properties == given[3]
    else:
        with pytest.raises(Fault):
            read_question("runFilters", given)
