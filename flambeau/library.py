"""Operators written by users: `custom_op`, `Library`, and what can be registered for either.

An operator is a descriptor of the core, as those of the table are (docs/custom_operators.md). Owns
libraries: which operators and kernels one has defined, and that they go when it goes.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from flambeau import _C
from flambeau._library import schemas
from flambeau._library.checks import opcheck
from flambeau._library.custom_op import (
    CustomOpDef,
    as_list,
    custom_op,
    refuse_torch_dispatch,
    register_fake,
    set_autocast,
    set_autograd,
    set_fake,
    set_kernel,
    set_vmap,
    undefine,
)
from flambeau._library.custom_op import (
    define as _define,
)
from flambeau._library.fakes import get_ctx
from flambeau._library.operators import OpOverload, overload_of
from flambeau._library.schemas import infer_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

#: PyTorch's keys of kernels -> the core's kinds. Devices that cannot be here have None: their
#: kernels are never called
_KINDS = {
    "CPU": "CPU",
    "CUDA": "CUDA",
    "Meta": "Meta",
    "CompositeExplicitAutograd": "AnyDevice",
    "CompositeExplicitAutogradNonFunctional": "AnyDevice",
    "CompositeImplicitAutograd": "Composite",
    "Autograd": "Autograd",
    "AutogradCPU": "Autograd",
    "AutocastCPU": "Autocast",
    **dict.fromkeys(
        "XPU MPS HPU XLA IPU MTIA Lazy Vulkan PrivateUse1 PrivateUse2 PrivateUse3 SparseCUDA "
        "AutogradCUDA AutogradXPU AutogradMPS AutogradHPU AutogradXLA AutogradPrivateUse1 "
        "AutocastCUDA AutocastXPU AutocastMPS AutocastPrivateUse1 AutogradMeta".split()
    ),
}
_INSTEAD = {
    "FuncTorchBatched": "register_vmap",
    "Functionalize": "mutates_args, or a schema that says what is written to",
    "ADInplaceOrView": "a schema that says what is written to: versions are counted by it",
    "Python": "__torch_function__ of a class",
    "BackendSelect": "a kernel for CompositeExplicitAutograd",
}
_DEVICES = {"default": "CompositeExplicitAutograd", "cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
_defined: set[str] = set()  # namespaces of libraries of kind DEF
_kept: list[Library] = []  # of the functions that are given none


def fallthrough_kernel() -> None:
    """Stands for a kernel in `Library.impl`: calls go on as if there were none."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A namespace's operators. What it defined goes when nothing refers to it any more.

    Args:
        ns: the namespace.
        kind: "DEF" (one for a namespace), "FRAGMENT" (any number) or "IMPL" (kernels alone).
        dispatch_key: what `impl` is for, unless it says.

    >>> lib = torch.library.Library("docs_library", "FRAGMENT")
    >>> lib.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> lib.impl("twice", lambda x: 2 * x)
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("aten", "prim", "prims"):
            raise NotImplementedError(
                f"Library({ns!r}): our own operations have no kernels that programs replace; "
                "define an operator in a namespace of your own, or patch the function"
            )
        if kind == "DEF":
            if ns in _defined:
                raise RuntimeError(
                    f"Only a single Library of kind DEF can be used for the namespace {ns}; use "
                    "FRAGMENT for more of them"
                )
            _defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._ops: list[OpOverload] = []
        self._impls: list[tuple[OpOverload, str]] = []
        self._ended = weakref.finalize(
            self, _end, ns if kind == "DEF" else None, self._ops, self._impls
        )
        self._ended.atexit = False

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its signature, such as `"twice(Tensor x) -> Tensor"`.

        Args:
            schema: the text; `(a!)` behind a type says that the argument is written to.
            alias_analysis: "", "FROM_SCHEMA" or "CONSERVATIVE"; memory is as the schema says.
            tags: what else is known of it.

        Returns:
            The operator's name.

        Raises:
            RuntimeError: the text is no schema, or there is an operator of the name.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                "Library.define: expected a library of kind DEF or FRAGMENT, got IMPL"
            )
        parsed = schemas.parse(schema)
        space, colons, name = parsed.name.rpartition("::")
        if colons and space != self.ns:
            raise RuntimeError(
                f"Library.define: expected an operator of namespace {self.ns}, got {parsed.name}"
            )
        op = _define(str(parsed) if colons else f"{self.ns}::{parsed}", tags)
        self._ops.append(op)
        return f"{name}.{parsed.overload_name}" if parsed.overload_name else name

    def _named(self, op_name: Any) -> OpOverload:
        if isinstance(op_name, str):
            op_name = f"{self.ns}::{op_name.removeprefix(f'{self.ns}::')}"
        found = overload_of(op_name)
        if found.namespace != self.ns:
            raise RuntimeError(
                f"Library.impl: expected an operator of namespace {self.ns}, got {found._uid}"
            )
        return found

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Give an operator's function.

        Args:
            op_name: the name or overload.
            fn: the function; `fallthrough_kernel`: none.
            dispatch_key: "CPU", "Meta", "Autograd", "AutocastCPU", "CompositeExplicitAutograd" (any
                device) or "CompositeImplicitAutograd" (operations that are recorded as they are).
            with_keyset: refused: there are no sets of keys to be handed over.
            allow_override: False refuses where there is one already.
        """
        if with_keyset:
            raise NotImplementedError(
                "Library.impl: with_keyset=True; there are no keys to hand over"
            )
        if not callable(fn):
            raise TypeError(f"Library.impl: expected a function, got {type(fn).__name__}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        op = self._named(op_name)
        if key not in _KINDS:
            words = f"; use {_INSTEAD[key]}" if key in _INSTEAD else ""
            raise NotImplementedError(
                f"Library.impl: expected one of {', '.join(k for k, v in _KINDS.items() if v)}, "
                f"got {key}{words}"
            )
        kind = _KINDS[key]
        if kind is None:
            return
        if not allow_override and _C._op_has_kernel(op._uid, kind):
            raise RuntimeError(f"Library.impl: {op._uid} has a kernel for {key} already")
        function = None if fn is fallthrough_kernel else fn
        if kind == "Meta":
            set_fake(op, function)
        else:
            set_kernel(op, kind, function)
        self._impls.append((op, kind))

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Refuse: there is no kernel for all operators of a namespace."""
        raise NotImplementedError(
            "Library.fallback: give each operator its kernel with Library.impl"
        )

    def _register_fake(self, op_name: Any, fn: Any, *_: Any, **options: Any) -> None:
        set_fake(self._named(op_name), fn)

    def _destroy(self) -> None:
        self._ended()


def _end(ns: str | None, ops: list[OpOverload], impls: list[tuple[OpOverload, str]]) -> None:
    """Takes away what a library has defined."""
    for op, kind in impls:
        if op not in ops and op._uid in _C._ops_added():
            set_fake(op, None) if kind == "Meta" else set_kernel(op, kind, None)
    for op in ops:
        undefine(op)
    ops.clear()
    impls.clear()
    _defined.discard(ns or "")


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for a block."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def _kept_library(ns: str) -> Library:
    lib = Library(ns, "FRAGMENT")
    _kept.append(lib)
    return lib


def define(
    qualname: Any, schema: str, *args: Any, lib: Library | None = None, tags: Any = ()
) -> Any:
    """Name an operator, whose function follows.

    Args:
        qualname: "namespace::name".
        schema: its signature without the name, "(Tensor x) -> Tensor".
        args: for the other form, `define(lib, schema)`, a decorator of the function.
        lib: the library that the operator belongs to; None: it stays.
        tags: what else is known of it.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, *args)

        def give(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, function)
            return function

        return give
    if not isinstance(qualname, str):
        raise ValueError(f"define: expected a qualname of type str, got {type(qualname).__name__}")
    ns, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"define: expected a name like 'space::name', got {qualname!r}")
    if not schema.startswith("("):
        raise ValueError(f"define: expected a schema like '(Tensor x) -> Tensor', got {schema!r}")
    (lib or _kept_library(ns)).define(name + schema, tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Give an operator's function; also a decorator.

    Args:
        qualname: the operator's name.
        types: kinds of devices, "cpu" or "default" (all of them).
        func: the function.
        lib: the library that the function belongs to; None: it stays.
    """
    if isinstance(qualname, Library):  # impl(lib, name, dispatch_key)
        keys, name, target = [func or ""], types, qualname
        func = None
    else:
        keys, name = [_DEVICES.get(t, t.upper()) for t in as_list(types)], qualname
        target = lib or _kept_library(overload_of(qualname).namespace)

    def give(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            target.impl(name, function, key)
        return function

    if func is None:
        return give
    give(func)
    return None


def impl_abstract(qualname: Any, func: Any = None, *, lib: Any = None) -> Any:
    """What `register_fake` was called before."""
    return register_fake(qualname, func, lib=lib)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an operator's function for kinds of devices, or for all (None); also a decorator."""
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    return impl(overload_of(op)._uid, device_types or "default", func, lib=lib)


def register_autograd(
    op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None
) -> None:
    """Give an operator's derivative.

    Args:
        op: the operator or its name.
        backward: `backward(ctx, *grads)` returns one gradient, or None, per positional argument.
        setup_context: `setup_context(ctx, inputs, output)` keeps what backward needs.
        lib: has no influence.
    """
    set_autograd(overload_of(op), backward, setup_context, op)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an operator's batching rule, `func(info, in_dims, *args)`; also a decorator.

    Args:
        op: the operator or its name.
        func: returns the results and the dims that their batches are in.
        lib: has no influence.
    """

    def register(function: Callable[..., Any]) -> None:
        set_vmap(overload_of(op), function)

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Have an operator run in the dtype `cast_inputs` where autocast is on for the device."""
    set_autocast(overload_of(op), device_type, cast_inputs)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None
) -> Any:
    """Refuse: classes with `__torch_dispatch__` are not built."""
    refuse_torch_dispatch(torch_dispatch_class)


class _Kernel:
    """One kernel of an operator."""

    def __init__(self, op: OpOverload, kind: str) -> None:
        self._op, self._kind = op, kind

    def call_boxed(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it; the keys say nothing here."""
        return _C._op_call_kernel(self._op._uid, self._kind, tuple(self._op.bind(args, kwargs)))


def get_kernel(op: Any, dispatch_key: str) -> _Kernel:
    """The kernel that an operator has for a key.

    Raises:
        RuntimeError: there is none.
    """
    found, key = overload_of(op), str(getattr(dispatch_key, "name", dispatch_key))
    kind = _KINDS.get(key)
    if kind is None or not _C._op_has_kernel(found._uid, kind):
        raise RuntimeError(f"get_kernel: {found._uid} has no kernel for {key}")
    return _Kernel(found, kind)


def triton_op(name: str, fn: Any = None, /, **options: Any) -> Any:
    """Refuse: kernels of Triton are not called from graphs."""
    raise NotImplementedError(
        f"library.triton_op({name!r}): kernels of Triton are not looked into; make the operator "
        "with custom_op, whose function may launch them"
    )


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Refuse: kernels of Triton are not called from graphs."""
    raise NotImplementedError(
        "library.wrap_triton: kernels of Triton are not looked into; launch the kernel in the "
        "function of a custom_op"
    )
