"""Whether as many different hosts can be found as there are VMs that must not share one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def can_all_differ(choices: Sequence[Iterable[str]]) -> bool:
    """Whether one can be taken from each of the choices so that no two are the same.

    Augmenting paths, one for each set of choices, the narrowest first.
    """
    narrow_first = sorted((list(choice) for choice in choices), key=len)
    taken: dict[str, int] = {}
    return all(_find(number, narrow_first, taken) for number in range(len(narrow_first)))


def _find(start: int, choices: Sequence[Sequence[str]], taken: dict[str, int]) -> bool:
    """Give one more set of choices a place, moving those before it if need be."""
    came_from: dict[str, int] = {}
    waiting = [start]
    while waiting:
        number = waiting.pop()
        for place in choices[number]:
            if place in came_from:
                continue
            came_from[place] = number
            if place not in taken:
                _shift(place, start, came_from, taken)
                return True
            waiting.append(taken[place])
    return False


def _shift(place: str, start: int, came_from: dict[str, int], taken: dict[str, int]) -> None:
    """Follow the path back: each on it takes the place that it found."""
    held = {number: held_place for held_place, number in taken.items()}
    while True:
        number = came_from[place]
        taken[place] = number
        if number == start:
            return
        place = held[number]
