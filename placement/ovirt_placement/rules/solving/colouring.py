"""Gives each vertex one of its colors so that no two in a clique have the same: VMs and hosts, say."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.rules.solving.budget import Budget
from ovirt_placement.rules.solving.matching import can_all_differ
from ovirt_placement.rules.verdict import Struct


class Vertex(Struct, frozen=True):
    """Its colors, and the names of the cliques that it is in."""

    colors: frozenset[str]
    cliques: frozenset[str]


def can_be_colored(vertices: Sequence[Vertex], budget: Budget) -> bool:
    """Whether all vertices can be colored at once; exact.

    A vertex with more colors than neighbours can always be colored last and is set aside. What is
    left is searched, the vertex with the fewest colors first, and given up where a clique has too
    few colors. Raises `BudgetSpentError`.
    """
    if not all(vertex.colors for vertex in vertices):
        return False
    neighbours = _neighbours(vertices)
    core = _core(vertices, neighbours)
    colors = {number: set(vertices[number].colors) for number in core}
    cliques = _cliques(vertices, core)
    return _search(colors, neighbours, cliques, budget)


def _neighbours(vertices: Sequence[Vertex]) -> list[set[int]]:
    by_clique = _cliques(vertices, range(len(vertices)))
    neighbours: list[set[int]] = [set() for _ in vertices]
    for clique in by_clique:
        for number in clique:
            neighbours[number].update(clique)
    for number, near in enumerate(neighbours):
        near.discard(number)
    return neighbours


def _cliques(vertices: Sequence[Vertex], numbers: Sequence[int] | range) -> list[list[int]]:
    by_name: dict[str, list[int]] = {}
    for number in numbers:
        for name in vertices[number].cliques:
            by_name.setdefault(name, []).append(number)
    return [by_name[name] for name in sorted(by_name)]


def _core(vertices: Sequence[Vertex], neighbours: Sequence[set[int]]) -> list[int]:
    """The vertices that are left when those that can always be colored are taken away, in turn."""
    near = [len(others) for others in neighbours]
    left = set(range(len(vertices)))
    easy = [number for number in left if near[number] < len(vertices[number].colors)]
    while easy:
        number = easy.pop()
        if number in left:
            left.discard(number)
            for other in neighbours[number]:
                near[other] -= 1
                if other in left and near[other] < len(vertices[other].colors):
                    easy.append(other)
    return sorted(left)


def _search(
    colors: dict[int, set[str]], neighbours: Sequence[set[int]], cliques: list[list[int]], budget: Budget
) -> bool:
    """Try every way to color what is left; each step colors one vertex and narrows its neighbours."""
    waiting = [colors]
    while waiting:
        open_colors = waiting.pop()
        budget.spend(1 + len(open_colors))
        if not open_colors:
            return True
        if not _cliques_suffice(open_colors, cliques):
            continue
        number = min(open_colors, key=lambda one: (len(open_colors[one]), one))
        for color in sorted(open_colors[number], reverse=True):
            rest = {
                other: left - {color} if other in neighbours[number] else left
                for other, left in open_colors.items()
                if other != number
            }
            if all(rest.values()):
                waiting.append(rest)
    return False


def _cliques_suffice(open_colors: dict[int, set[str]], cliques: list[list[int]]) -> bool:
    return all(
        can_all_differ([open_colors[number] for number in clique if number in open_colors])
        for clique in cliques
    )
