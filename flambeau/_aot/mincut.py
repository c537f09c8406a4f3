"""The least cut of a network: Dinic's algorithm. Knows nothing of graphs of tensors."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

Vertex = Hashable


class Network:
    """Directed edges with capacities."""

    def __init__(self) -> None:
        self.out: dict[Vertex, list[int]] = {}
        self.to: list[Vertex] = []
        self.room: list[float] = []

    def edge(self, a: Vertex, b: Vertex, capacity: float) -> None:
        """An edge, and its reverse without room."""
        for x, y, c in ((a, b, capacity), (b, a, 0.0)):
            self.out.setdefault(x, []).append(len(self.to))
            self.to.append(y)
            self.room.append(c)

    def _levels(self, source: Vertex) -> dict[Vertex, int]:
        level: dict[Vertex, int] = {source: 0}
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for e in self.out.get(a, ()):
                if self.room[e] > 0 and self.to[e] not in level:
                    level[self.to[e]] = level[a] + 1
                    queue.append(self.to[e])
        return level

    def _reaching(self, sink: Vertex) -> set[Vertex]:
        """The vertices from which the sink is reached by edges with room."""
        seen = {sink}
        pending = [sink]
        while pending:
            b = pending.pop()
            for e in self.out.get(b, ()):
                a = self.to[e]
                if self.room[e ^ 1] > 0 and a not in seen:
                    seen.add(a)
                    pending.append(a)
        return seen

    def _path(self, source: Vertex, sink: Vertex, level: dict[Vertex, int]) -> list[int]:
        """Edges of a path with room that goes down one level a step; empty: there is none."""
        path: list[int] = []
        at = source
        while at != sink:
            edges = self.out[at]
            while self.at[at] < len(edges):
                e = edges[self.at[at]]
                if self.room[e] > 0 and level.get(self.to[e]) == level[at] + 1:
                    break
                self.at[at] += 1
            else:
                if not path:
                    return []
                at = self.to[path.pop() ^ 1]
                self.at[at] += 1
                continue
            path.append(e)
            at = self.to[e]
        return path

    def cut(self, source: Vertex, sink: Vertex) -> set[Vertex]:
        """The source's side of the least cut that lies nearest to the sink.

        Raises:
            ValueError: an infinite flow reaches the sink.
        """
        while True:
            level = self._levels(source)
            if sink not in level:
                return self.out.keys() - self._reaching(sink)
            self.at: dict[Vertex, int] = dict.fromkeys(self.out, 0)
            while path := self._path(source, sink, level):
                flow = min(self.room[e] for e in path)
                if math.isinf(flow):
                    raise ValueError("mincut: an infinite flow reaches the sink")
                for e in path:
                    self.room[e] -= flow
                    self.room[e ^ 1] += flow
