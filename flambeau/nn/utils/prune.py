"""Pruning: parameters multiplied by masks of zeros and ones.

A pruned parameter `weight` becomes the parameter `weight_orig` and the buffer `weight_mask`; the
attribute `weight` is their product, made before each forward by a hook, which is the method itself.
Methods applied one after another to one parameter are put together in a `PruningContainer`, where
each sees what those before it have left. Invariant: a mask never gives back what was pruned.

Source: LeCun, Denker and Solla, Optimal Brain Damage, 1990; Han et al., arXiv:1506.02626; Li et
al., arXiv:1608.08710 (channels).
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A way to choose what is pruned: subclasses say the mask, in `compute_mask`.

    `PRUNING_TYPE` is "unstructured" where single elements are chosen, "structured" where slices
    along the attribute `dim` are, "global" where it may be either.

    >>> class Negative(BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t >= 0)
    >>> layer = fb.nn.Linear(2, 1)
    >>> layer.weight = fb.nn.Parameter(fb.tensor([[-1.0, 2.0]]))
    >>> _ = Negative.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[0., 1.]])
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str = ""

    def __call__(self, module: Module, inputs: Any) -> None:
        """Make the pruned tensor anew; runs before each forward."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importances `t`, of their shape; zeros of `default_mask` stay zeros."""

    def apply_mask(self, module: Module) -> Tensor:
        """The product of the original parameter and its mask."""
        if not self._tensor_name:
            raise AssertionError(f"Module {module} has to be pruned")
        orig: Tensor = getattr(module, f"{self._tensor_name}_orig")
        mask: Tensor = getattr(module, f"{self._tensor_name}_mask")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Prune the parameter `name` of a module from now on.

        Args:
            module: owns the parameter, which has been pruned before or not.
            name: of the parameter.
            args, kwargs: of the method.
            importance_scores: tensor of the parameter's shape by which is chosen; None: itself.

        Returns:
            The method that prunes it: a `PruningContainer` where it was pruned before.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        found = [k for k, hook in _methods(module) if hook._tensor_name == name]
        before: BasePruningMethod | None = None
        if found:
            before = module._forward_pre_hooks[found[0]]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
        tensor = getattr(module, name)
        scores = tensor if importance_scores is None else importance_scores
        if scores.shape != tensor.shape:
            raise AssertionError(
                f"importance_scores: expected the shape {tuple(tensor.shape)} of {name}, got "
                f"{tuple(scores.shape)}"
            )
        if before is None:
            mask = method.compute_mask(scores, fb.ones_like(tensor))
            module.register_parameter(f"{name}_orig", tensor)
            del module._parameters[name]
        else:
            kept = getattr(module, f"{name}_mask").detach().clone()
            try:
                mask = method.compute_mask(scores, kept)
            except BaseException:
                if isinstance(before, PruningContainer):
                    before._pruning_methods = before._pruning_methods[:-1]
                raise
            del module._forward_pre_hooks[found[0]]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """The tensor with what this method chooses set to zero; no module has a part in it."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = fb.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Module) -> None:
        """Make the pruning final: the parameter is itself again, with zeros in it."""
        name = self._tensor_name
        if not name:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module).detach()
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(f"{name}_orig")
        assert orig is not None
        orig.data = pruned
        del module._buffers[f"{name}_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Methods that prune one parameter, in the order in which they were applied."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        given = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in given:
            if not self._tensor_name and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Append a method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with what the newest method chooses among what is left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = _dim(t, getattr(method, "dim", -1))
            others = [d for d in range(t.dim()) if d != dim]
            left = mask.sum(dim=others) != 0
            where = tuple(left if d == dim else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            where = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        out = mask.clone()
        out[where] = method.compute_mask(t[where], mask[where]).to(dtype=mask.dtype)
        return out


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones, for others to change."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        """See `identity`."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def count(self, of: int) -> int:
        """How many of so many are pruned."""
        n = self.amount
        chosen = int(n) if isinstance(n, numbers.Integral) else round(n * of)
        if chosen > of:
            raise ValueError(f"amount={n} should be smaller than the number of parameters {of}")
        return chosen


class RandomUnstructured(_Amount):
    """Elements drawn at random, each equally likely."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n, mask = self.count(t.numel()), default_mask.clone()
        if n:
            chosen = fb.rand_like(t).view(-1).topk(n).indices
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:  # type: ignore[override]
        """See `random_unstructured`."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """The elements with the least magnitudes."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n, mask = self.count(t.numel()), default_mask.clone(memory_format=fb.contiguous_format)
        if n:
            chosen = t.detach().abs().reshape(-1).topk(n, largest=False).indices
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
    ) -> Any:
        """See `l1_unstructured`."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(_Amount):
    """Slices along `dim` drawn at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _sliced(t, default_mask, self.dim, self.count, lambda n: fb.rand(n))

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, dim: int = -1
    ) -> Any:
        """See `random_structured`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Amount):
    """The slices along `dim` with the least norms of order `n`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        def norms(count: int) -> Tensor:
            dim = _dim(t, self.dim)
            rows = t.detach().movedim(dim, 0).reshape(count, -1)
            return fb.norm(rows, p=self.n, dim=1)

        return _sliced(t, default_mask, self.dim, self.count, norms)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, n: Any, dim: int,
        importance_scores: Tensor | None = None,
    ) -> Any:  # fmt: skip
        """See `ln_structured`."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """What a mask of the program's says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"mask: expected the shape {tuple(default_mask.shape)} of the parameter, got "
                f"{tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        """See `custom_from_mask`."""
        return super().apply(module, name, mask=mask)


def identity(module: Module, name: str) -> Module:
    """Give a parameter the form of a pruned one, with nothing pruned; returns the module.

    >>> layer = identity(fb.nn.Linear(2, 1), "bias")
    >>> layer.bias_mask
    tensor([1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune elements of a parameter drawn at random; returns the module.

    Args:
        module: owns the parameter.
        name: of the parameter.
        amount: how many elements (int), or which share of those left (float, 0 to 1).

    >>> layer = random_unstructured(fb.nn.Linear(2, 4), "weight", amount=3)
    >>> int(layer.weight_mask.sum())
    5
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a parameter with the least magnitudes; returns the module.

    Args:
        module: owns the parameter.
        name: of the parameter.
        amount: how many elements (int), or which share of those left (float, 0 to 1).
        importance_scores: tensor of the parameter's shape whose magnitudes count; None: its own.

    >>> layer = fb.nn.Linear(3, 1)
    >>> layer.weight = fb.nn.Parameter(fb.tensor([[0.1, -2.0, 0.3]]))
    >>> l1_unstructured(layer, "weight", amount=2).weight.detach()
    tensor([[ 0., -2.,  0.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune slices along a dim drawn at random; returns the module.

    Args:
        module: owns the parameter, of two dims or more.
        name: of the parameter.
        amount: how many slices (int), or which share of those left (float, 0 to 1).
        dim: the dim that numbers the slices.

    >>> layer = random_structured(fb.nn.Linear(5, 3), "weight", amount=2, dim=1)
    >>> int((layer.weight_mask.sum(0) == 0).sum())
    2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int,
    importance_scores: Tensor | None = None,
) -> Module:  # fmt: skip
    """Prune the slices along a dim with the least norms; returns the module.

    Args:
        module: owns the parameter, of two dims or more.
        name: of the parameter.
        amount: how many slices (int), or which share of those left (float, 0 to 1).
        n: order of the norm, as `torch.norm` takes it (1, 2, inf, -inf, "fro").
        dim: the dim that numbers the slices.
        importance_scores: tensor of the parameter's shape whose norms count; None: its own.

    >>> layer = fb.nn.Linear(2, 2)
    >>> layer.weight = fb.nn.Parameter(fb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> ln_structured(layer, "weight", amount=1, n=2, dim=0).weight.detach()
    tensor([[0., 0.],
            [3., 4.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune where a mask is zero; returns the module.

    Args:
        module: owns the parameter.
        name: of the parameter.
        mask: zeros and ones of the parameter's shape.

    >>> layer = custom_from_mask(fb.nn.Linear(2, 1), "bias", fb.tensor([0]))
    >>> layer.bias.detach()
    tensor([0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: Any,
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Prune elements chosen among those of several parameters together.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: an unstructured method's class, such as `L1Unstructured`.
        importance_scores: for pairs, tensors of the parameters' shapes that count in their place.
        kwargs: of the method: `amount`, of all elements together.

    >>> a, b = fb.nn.Linear(4, 1), fb.nn.Linear(4, 1)
    >>> global_unstructured([(a, "weight"), (b, "weight")], L1Unstructured, amount=0.5)
    >>> int(a.weight_mask.sum() + b.weight_mask.sum())
    4
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    if not pairs:
        raise ValueError("global_unstructured(): expected at least one parameter")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, Mapping):
        raise TypeError("global_unstructured(): importance_scores should be of type dict")
    tensors = [getattr(m, n) for m, n in pairs]
    scores = [given.get((m, n), t) for (m, n), t in zip(pairs, tensors, strict=True)]
    for (_, n), t, s in zip(pairs, tensors, scores, strict=True):
        if s.shape != t.shape:
            raise ValueError(
                f"global_unstructured(): importance_scores: expected the shape {tuple(t.shape)} of "
                f"{n}, got {tuple(s.shape)}"
            )
    masks = [
        getattr(m, f"{n}_mask", fb.ones_like(t)) for (m, n), t in zip(pairs, tensors, strict=True)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    container = PruningContainer(method)
    found = container.compute_mask(
        fb.cat([s.detach().reshape(-1) for s in scores]), fb.cat([m.reshape(-1) for m in masks])
    )
    for (m, n), part in zip(pairs, found.split([t.numel() for t in tensors]), strict=True):
        custom_from_mask(m, n, part.view_as(getattr(m, n)))


def remove(module: Module, name: str) -> Module:
    """Make the pruning of a parameter final; returns the module.

    The parameter is itself again, zeros where it was pruned; mask and hook are gone. What was
    pruned is not given back.

    Raises:
        ValueError: the parameter is not pruned.

    >>> layer = identity(fb.nn.Linear(2, 1), "weight")
    >>> sorted(dict(remove(layer, "weight").named_parameters()))
    ['bias', 'weight']
    """
    for key, hook in _methods(module):
        if hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of one inside of it is pruned.

    >>> is_pruned(fb.nn.Linear(2, 1))
    False
    """
    return any(True for m in module.modules() for _ in _methods(m))


def _methods(module: Module) -> list[tuple[int, BasePruningMethod]]:
    hooks = module._forward_pre_hooks.items()
    return [(k, h) for k, h in hooks if isinstance(h, BasePruningMethod)]


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _dim(t: Tensor, dim: int) -> int:
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {tuple(t.shape)}")
    return dim % t.dim()


def _sliced(t: Tensor, default_mask: Tensor, dim: int, count: Any, importance: Any) -> Tensor:
    """The mask without the slices of least importance."""
    if t.dim() < 2:
        raise ValueError(
            "Structured pruning can only be applied to a multidimensional tensor. Found tensor of "
            f"shape {tuple(t.shape)} with {t.dim()} dims"
        )
    at = _dim(t, dim)
    slices = t.shape[at]
    n = count(slices)
    if not n:
        return default_mask
    gone = importance(slices).topk(n, largest=False).indices
    kept = fb.ones(slices, dtype=default_mask.dtype, device=default_mask.device)
    kept[gone] = 0
    return default_mask * kept.view([slices if d == at else 1 for d in range(t.dim())])
