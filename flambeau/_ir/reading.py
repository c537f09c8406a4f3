"""Functions of the IR read as statements and expressions, as their source was.

A node without a name for its one result, which another node takes, is an operand and stands inside
of the expression of its user; every other node is a statement. Joins (what leaves an `if`, what a
loop carries) give a variable no new value and read none. See Note [Variables] in `graph`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .graph import CHANGES, Arg, Block, Node, Value, values_of


def joins(node: Node) -> bool:
    """The results are variables that keep the values which nested statements gave them."""
    return node.target == "loop" or (node.target == "if" and not any(not v.name for v in node.outs))


def nested(node: Node) -> tuple[Block, ...]:
    """Blocks of statements."""
    if node.target == "loop":
        return node.blocks[-1:]
    return node.blocks if joins(node) else ()


def operands(node: Node) -> tuple[Arg, ...]:
    """What the node itself takes: arguments, outputs of blocks that are expressions."""
    if node.target in ("break", "continue"):
        return ()
    parts = node.args[1] if node.target == "loop" else node.args
    blocks = node.blocks[:-1] if node.target == "loop" else node.blocks
    if node.target == "loop" or not joins(node):
        parts += tuple(a for b in blocks for a in b.outputs)
    return tuple(parts)


class Reading:
    """The expressions of one function."""

    def __init__(self, function: Block | None = None) -> None:
        self.makers: dict[Value, Node] = {}
        self._names: dict[Node, set[str]] = {}
        used = {v for n in function.walk() for v in values_of(operands(n))} if function else set()
        for node in function.walk() if function else ():
            if len(node.outs) == 1 and not node.out.name and node.out in used:
                self.makers[node.out] = node

    def maker(self, a: Arg) -> Node | None:
        """The node that an operand is made by."""
        return self.makers.get(a) if isinstance(a, Value) else None

    def made_by(self, a: Arg, target: str) -> Node | None:
        """The node that an operand is made by, if it calls `target`."""
        node = self.maker(a)
        return node if node is not None and node.target == target else None

    def statements(self, block: Block) -> list[Node]:
        return [n for n in block.nodes if not (len(n.outs) == 1 and n.out in self.makers)]

    def all_statements(self, block: Block) -> Iterator[Node]:
        """Statements, those of nested blocks after their owner."""
        for s in self.statements(block):
            yield s
            for b in nested(s):
                yield from self.all_statements(b)

    def tree(self, node: Node) -> Iterator[Node]:
        """A statement and the operands that make its expressions."""
        yield node
        for v in values_of(operands(node)):
            if v in self.makers:
                yield from self.tree(self.makers[v])

    def below(self, a: Arg) -> set[str]:
        """Variables that an argument is made of."""
        if not isinstance(a, Value) or a.name:
            return {v.name for v in values_of(a)}
        return self.names(self.makers[a]) if a in self.makers else set()

    def names(self, node: Node) -> set[str]:
        """Variables that a statement reads."""
        found = self._names.get(node)
        if found is None:
            read = (v for n in self.tree(node) for v in values_of(operands(n)))
            found = self._names[node] = {v.name for v in read if v.name}
        return found

    def changed(self, node: Node) -> str:
        """Variable that a statement changes without assigning it ("" if none)."""
        for n in self.tree(node):
            if n.target in CHANGES and isinstance(n.args[0], Value):
                return n.args[0].name
        return ""


def assigned(node: Node) -> tuple[str, ...]:
    """Variables that a statement gives a value."""
    return () if joins(node) else tuple(v.name for v in node.outs if v.name)
