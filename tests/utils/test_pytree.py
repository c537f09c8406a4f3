"""Trees of containers: laws, types, errors."""

import pickle
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import flambeau as torch
from flambeau.utils import _pytree as tree

Point = namedtuple("Point", "x y")  # noqa: PYI024

TREES = [
    1,
    None,
    [],
    (),
    {},
    [1, (2, 3), {"a": [4], "b": None}],
    OrderedDict([("z", 1), ("a", [2])]),
    defaultdict(list, {"k": [1, 2]}),
    deque([1, [2]], maxlen=5),
    Point(1, [2, Point(3, 4)]),
]


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_flatten_and_rebuild(value):
    leaves, spec = tree.tree_flatten(value)
    again = tree.tree_unflatten(leaves, spec)
    assert again == value and type(again) is type(value)
    assert spec.num_leaves == len(leaves) and tree.tree_leaves(value) == leaves
    assert tree.tree_structure(again) == spec and hash(tree.tree_structure(again)) == hash(spec)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_leaves_come_from_left_to_right():
    assert tree.tree_leaves([1, {"b": 2, "a": (3,)}, None]) == [1, 2, 3, None]
    assert tree.tree_leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple)) == [1, (2, 3)]


def test_structured_sequences_and_unknown_types_are_leaves():
    now = time.localtime()
    assert tree.tree_leaves([now, {1}]) == [now, {1}]
    assert tree.is_structseq(now) and not tree.is_namedtuple(now)
    assert tree.is_namedtuple(Point(1, 2)) and tree.is_namedtuple_class(Point)


def test_map():
    assert tree.tree_map(lambda x: x + 1, {"a": [1, (2,)]}) == {"a": [2, (3,)]}
    got = tree.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"b": [3], "a": 4})
    assert got == {"a": (1, 4), "b": (2, [3])}
    with pytest.raises(ValueError, match="arity mismatch"):
        tree.tree_map(max, [1, 2], [1])
    with pytest.raises(ValueError, match="Type mismatch"):
        tree.tree_map(max, [1, 2], (1, 2))
    with pytest.raises(ValueError, match="keys mismatch"):
        tree.tree_map(max, {"a": 1}, {"b": 1})


def test_map_only_and_predicates():
    value = [1, "a", (2.0, "b")]
    assert tree.tree_map_only(str, str.upper, value) == [1, "A", (2.0, "B")]
    assert tree.tree_map_only((int, float), lambda x: -x, value) == [-1, "a", (-2.0, "b")]
    assert tree.tree_map_only(lambda x: x == 1, str, value) == ["1", "a", (2.0, "b")]
    assert tree.tree_map_only(int | float, lambda x: 0, value) == [0, "a", (0, "b")]
    seen = []
    assert tree.tree_map_(seen.append, value) is value and seen == [1, "a", 2.0, "b"]
    assert tree.tree_all(bool, value) and not tree.tree_any(lambda x: x == 5, value)
    assert tree.tree_all_only(str, str.islower, value)
    assert not tree.tree_any_only(float, lambda x: x > 2, value)


def test_paths():
    value = {"a": [1, Point(2, 3)]}
    paths = [(tree.keystr(p), x) for p, x in tree.tree_leaves_with_path(value)]
    assert paths == [("['a'][0]", 1), ("['a'][1].x", 2), ("['a'][1].y", 3)]
    assert all(tree.key_get(value, p) == x for p, x in tree.tree_leaves_with_path(value))
    named = tree.tree_map_with_path(lambda p, x: tree.keystr(p) + str(x), [5])
    assert named == ["[0]5"]


def test_registered_types():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    tree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda c, _: Box(*c))
    box = tree.tree_map(lambda x: x * 2, Box([1, 2]))
    assert isinstance(box, Box) and box.inside == [2, 4]
    with pytest.raises(ValueError, match="already registered"):
        tree.register_pytree_node(Box, None, None)
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        tree.tree_leaves_with_path(Box(1))
    del tree.SUPPORTED_NODES[Box]


def test_wrong_unflatten():
    spec = tree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that hol"):
        tree.tree_unflatten([1], spec)
    with pytest.raises(TypeError, match="instance of TreeSpec"):
        tree.tree_unflatten([1], "spec")


def test_specs_as_text():
    spec = tree.tree_structure({"a": [1, (2,)], "b": 3})
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec
    assert tree.treespec_pprint(spec) == "{'a': [*, (*,)], 'b': *}"
    assert repr(tree.tree_structure([1])) == "TreeSpec(list, None, [*])"
    with pytest.raises(NotImplementedError, match="names a Python object"):
        tree.treespec_dumps(tree.tree_structure(Point(1, 2)))
    with pytest.raises(ValueError, match="Unknown protocol 9"):
        tree.treespec_loads("[9, {}]")


def test_broadcast():
    spec = tree.tree_structure([1, (2, 3)])
    assert tree._broadcast_to_and_flatten(7, spec) == [7, 7, 7]
    assert tree._broadcast_to_and_flatten([7, 8], spec) == [7, 8, 8]
    assert tree._broadcast_to_and_flatten([7], spec) is None


def test_results_with_named_parts_are_nodes():
    x = torch.tensor([3.0, 1.0, 2.0])
    leaves, spec = tree.tree_flatten({"a": torch.sort(x)})
    assert [y.tolist() for y in leaves] == [[1.0, 2.0, 3.0], [1, 2, 0]]
    again = tree.tree_unflatten(leaves, spec)["a"]
    assert type(again) is type(torch.sort(x)) and again.indices is leaves[1]
    doubled = tree.tree_map(lambda y: y * 2, torch.max(x, 0))
    assert (doubled.values.item(), doubled.indices.item()) == (6.0, 0)
