"""Collation: from a list of samples to one batch.

Owns ``default_collate`` and ``default_convert`` and the map from sample types to functions.
Containers are rebuilt with their own type where that works, tuples become lists. NumPy is never
imported from here: its types join the map once it is loaded.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor

CollateMap = dict[Any, Callable[..., Any]]

#: letters of the NumPy dtypes that hold text, bytes or objects
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def _is_text_or_object(dtype: Any) -> bool:
    """Whether a NumPy dtype holds strings or Python objects, which no tensor can."""
    return np_str_obj_array_pattern.search(dtype.str) is not None


def _unsupported(what: Any) -> TypeError:
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {what}"
    )


def _rebuild_mapping(original: Mapping[Any, Any], items: dict[str, Any]) -> Mapping[Any, Any]:
    """A mapping of the type of ``original`` with new values (a plain dict where that fails)."""
    try:
        if isinstance(original, MutableMapping):
            # A copy keeps what the type holds beside its items, such as a default factory.
            clone = copy.copy(original)
            clone.update(items)
            return clone
        return type(original)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def _rebuild_sequence(original: Sequence[Any], values: list[Any]) -> Sequence[Any]:
    """A sequence of the type of ``original`` with new values (a list where that fails)."""
    try:
        if isinstance(original, MutableSequence):
            clone = copy.copy(original)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(original)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def default_convert(data: Any) -> Any:
    """Turns NumPy arrays and scalars inside ``data`` into tensors; the rest stays as it is.

    This is the collate function of a loader without batching.

    Args:
        data: one sample: any nesting of mappings, sequences and leaves.

    Example:
        >>> default_convert({"a": 1, "b": (2, "x")})
        {'a': 1, 'b': [2, 'x']}
    """
    if isinstance(data, Tensor):
        return data
    cls = type(data)
    if cls.__module__ == "numpy" and cls.__name__ not in ("str_", "bytes_"):
        if cls.__name__ == "ndarray" and _is_text_or_object(data.dtype):
            return data
        return fb.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return cls(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(value) for value in data])
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collates ``batch`` by the type of its first sample.

    Args:
        batch: a non-empty sequence of samples of one structure.
        collate_fn_map: functions ``f(batch, *, collate_fn_map)`` by sample type. The exact type is
            looked up first, then the first entry that the sample is an instance of. Containers that
            match none are taken apart.

    Raises:
        RuntimeError: sequences of different lengths.
        TypeError: a sample type that nothing handles.
    """
    first = batch[0]
    cls = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(cls) or next(
            (f for kind, f in collate_fn_map.items() if isinstance(first, kind)), None
        )
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    def column(values: Iterable[Any]) -> Any:
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _rebuild_mapping(first, {key: column([d[key] for d in batch]) for key in first})
    if _is_namedtuple(first):
        return cls(*(column(values) for values in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [column(values) for values in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _rebuild_sequence(first, columns)
    raise _unsupported(cls)


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Stacks tensors along a new first dimension."""
    return fb.stack(tuple(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Converts arrays to tensors and collates these."""
    if _is_text_or_object(batch[0].dtype):
        raise _unsupported(batch[0].dtype)
    return collate([fb.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Gathers NumPy scalars into a tensor of their dtype."""
    return fb.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Gathers Python floats, whose precision is kept."""
    return fb.tensor(batch, dtype=fb.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Gathers Python ints or bools."""
    return fb.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Leaves text as it is."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _know_numpy() -> None:
    """Puts NumPy's types into the default map once NumPy is there."""
    np = sys.modules.get("numpy")
    if np is None or not hasattr(np, "ndarray") or np.ndarray in default_collate_fn_map:
        return
    default_collate_fn_map[np.ndarray] = collate_numpy_array_fn
    default_collate_fn_map[(np.bool_, np.number, np.object_)] = collate_numpy_scalar_fn


def default_collate(batch: Any) -> Any:
    """Puts samples together into a batch with a new first dimension.

    Tensors, arrays and numbers become tensors (floats of double precision), text stays a list,
    mappings and sequences are collated member by member, tuples give lists. This is the collate
    function of a loader with batching.

    Args:
        batch: a non-empty list of samples of one structure.

    Raises:
        RuntimeError: sequences of different lengths, or tensors of different shapes.
        TypeError: a sample type that cannot be collated; give the loader a ``collate_fn``.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    _know_numpy()
    return collate(batch, collate_fn_map=default_collate_fn_map)
