"""Whether two objects are equal as a file should keep them, for either library.

Owns what counts: kinds, values, dtypes, strides, attributes, the order of keys, which objects are
one object and which tensors share which memory. It knows the library only as an argument.
"""

import math

import numpy as np

TOLERANCE = 1e-5  # of numbers that both libraries computed


def differences(torch, got, want, close=False):
    """What differs, as lines of text.

    Args:
        torch: the library that both objects are of.
        got: what a file gave.
        want: what it should give.
        close: whether floats may differ by rounding.
    """
    found = _Comparison(torch, close)
    found.objects(got, want, "")
    return found.lines


class _Comparison:
    def __init__(self, torch, close):
        self.torch, self.close = torch, close
        self.lines, self.seen, self.memory = [], {}, {}
        self.kept = []  # objects made on the way, whose ids must stay theirs

    def note(self, where, text):
        if len(self.lines) < 20:
            self.lines.append(f"{where or 'root'}: {text}"[:300])

    def once(self, got, want, where):
        """Whether a mutable object is met for the first time; notes one that should be another."""
        known = self.seen.get(id(want))
        if known is None:
            self.seen[id(want)] = got
            self.kept += [got, want]
            return True
        if known is not got:
            self.note(where, "should be the same object as before")
        return False

    def objects(self, got, want, where):
        torch = self.torch
        if isinstance(want, torch.UntypedStorage) and isinstance(got, torch.storage.TypedStorage):
            # PyTorch's reader gives a storage of bytes a type; ours does as it does.
            got = got.untyped()
        if type(got) is not type(want):
            return self.note(where, f"{type(got)} for {type(want)}")
        if isinstance(want, torch.Tensor):
            if self.once(got, want, where):
                self.tensors(got, want, where)
        elif isinstance(want, torch.nn.Module):
            if self.once(got, want, where):
                self.dicts(got.state_dict(), want.state_dict(), where)
                self.values(got.training == want.training, got, want, where)
        elif isinstance(want, torch.storage.TypedStorage):
            self.values(got.tolist() == want.tolist() and got.dtype == want.dtype, got, want, where)
        elif isinstance(want, torch.UntypedStorage):
            self.values(got.tolist() == want.tolist(), got, want, where)
        elif isinstance(want, dict):
            if self.once(got, want, where):
                self.dicts(got, want, where)
        elif isinstance(want, (list, tuple)):
            if isinstance(want, tuple) or self.once(got, want, where):
                if id(want) in self.seen and isinstance(want, tuple):
                    return None
                self.seen.setdefault(id(want), got)
                self.kept += [got, want]
                if len(got) != len(want):
                    return self.note(where, f"{len(got)} items for {len(want)}")
                for i, (a, b) in enumerate(zip(got, want, strict=True)):
                    self.objects(a, b, f"{where}[{i}]")
        elif isinstance(want, np.ndarray):
            self.arrays(got, want, where)
        elif isinstance(want, np.random.RandomState):
            self.objects(got.get_state(), want.get_state(), where)
        elif isinstance(want, np.random.Generator):
            self.objects(got.bit_generator.state, want.bit_generator.state, where)
        elif isinstance(want, float):
            self.values(self.same_number(got, want), got, want, where)
        elif hasattr(want, "__dict__") and not isinstance(want, type):
            if self.once(got, want, where):
                self.dicts(vars(got), vars(want), where)
        else:
            self.values(got == want, got, want, where)
        return None

    def values(self, same, got, want, where):
        if not same:
            self.note(where, f"{got!r} for {want!r}")

    def same_number(self, got, want):
        if self.close:
            return math.isclose(got, want, rel_tol=TOLERANCE, abs_tol=1e-9)
        return repr(got) == repr(want)

    def dicts(self, got, want, where):
        if list(got) != list(want):
            return self.note(where, f"keys {list(got)!r} for {list(want)!r}")
        for key in want:
            self.objects(got[key], want[key], f"{where}[{key!r}]")
        for name in ("_metadata", "default_factory"):
            a, b = getattr(got, name, None), getattr(want, name, None)
            self.values(a == b, a, b, f"{where}.{name}")
        return None

    def arrays(self, got, want, where):
        # NumPy turns small arrays of the other byte order round when it unpickles them.
        if got.dtype.newbyteorder("=") != want.dtype.newbyteorder("=") or got.shape != want.shape:
            return self.note(where, f"{got.dtype}{got.shape} for {want.dtype}{want.shape}")
        same = np.array_equal(got, want)
        if self.close and want.dtype.kind == "f":
            same = np.allclose(got, want, rtol=TOLERANCE, atol=1e-9)
        self.values(same, got, want, where)
        return None

    def tensors(self, got, want, where):
        for name in ("dtype", "shape", "device", "requires_grad", "is_leaf"):
            a, b = getattr(got, name), getattr(want, name)
            self.values(a == b, a, b, f"{where}.{name}")
        if got.shape != want.shape or got.dtype != want.dtype:
            return
        strides = got.stride(), want.stride()
        self.values(strides[0] == strides[1], *strides, f"{where}.stride()")
        self.dicts(vars(got), vars(want), f"{where}.__dict__")
        if want.device.type == "meta":
            return
        a, b = got.untyped_storage(), want.untyped_storage()
        offsets = got.storage_offset(), want.storage_offset()
        self.values(offsets[0] == offsets[1], *offsets, f"{where}.storage_offset()")
        if b.nbytes():
            self.kept += [a, b]
            shared = self.memory.setdefault(b.data_ptr(), a.data_ptr())
            if shared != a.data_ptr() or a.nbytes() != b.nbytes():
                self.note(where, "shares other memory than it should")
        if not self.same_elements(got, want):
            self.note(where, f"{got.tolist()} for {want.tolist()}")

    def same_elements(self, got, want):
        torch = self.torch
        got, want = got.detach().resolve_conj(), want.detach().resolve_conj()
        if not self.close or not want.is_floating_point():
            raw = [t.contiguous().reshape(-1).view(torch.uint8) for t in (got, want)]
            return raw[0].tolist() == raw[1].tolist()
        return torch.allclose(
            got.double(), want.double(), rtol=TOLERANCE, atol=1e-7, equal_nan=True
        )
