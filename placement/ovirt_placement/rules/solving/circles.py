"""Circles in a directed graph: what reaches what and is reached by it, and the shortest way round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def components(follows: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """By node, a number that two nodes share if each leads to the other (Tarjan's, without recursion)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    component: dict[str, int] = {}
    open_nodes: list[str] = []
    for root in follows:
        path: list[tuple[str, Iterator[str]]] = []
        if root not in number:
            _enter(root, number, lowest, open_nodes)
            path.append((root, iter(follows[root])))
        while path:
            node, rest = path[-1]
            for following in rest:
                if following not in number:
                    _enter(following, number, lowest, open_nodes)
                    path.append((following, iter(follows.get(following, ()))))
                    break
                if following not in component:
                    lowest[node] = min(lowest[node], number[following])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    _close(node, component, open_nodes)
    return component


def _enter(node: str, number: dict[str, int], lowest: dict[str, int], open_nodes: list[str]) -> None:
    number[node] = lowest[node] = len(number)
    open_nodes.append(node)


def _close(node: str, component: dict[str, int], open_nodes: list[str]) -> None:
    identity = len(component)
    while node not in component:
        component[open_nodes.pop()] = identity


def shortest_circle(follows: Mapping[str, Sequence[str]], node: str) -> tuple[str, ...]:
    """A shortest way from a node back to it, without its end; empty if there is none."""
    came_from: dict[str, str] = {}
    ends = [node]
    while ends:
        found = []
        for end in ends:
            for following in follows.get(end, ()):
                if following == node:
                    return _way(came_from, node, end)
                if following not in came_from:
                    came_from[following] = end
                    found.append(following)
        ends = found
    return ()


def _way(came_from: Mapping[str, str], start: str, end: str) -> tuple[str, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
