"""Every fuzzer for a moment: what it finds, hypothesis repeats by its seed."""

import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.endurance.fuzzing import FUZZERS
from tests.examples import examples

#: Inputs that each example makes, so that most of the time goes into the reader.
BATCH = 50


@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_breaks_the_reader(name: str) -> None:
    attempt = FUZZERS[name]

    @settings(
        max_examples=examples(60),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**63))
    def attack(first: int) -> None:
        for seed in range(first, first + BATCH):
            attempt(random.Random(seed))

    attack()
