"""What `torch` looks like: modules, their names, specs and versions, and patches of them.

Each test is a program of its own, run under the alias; what it asserts is PyTorch's behaviour.
"""

import subprocess
import sys
import textwrap

import pytest

PROGRAMS = {
    "modules are called as PyTorch's": """
        import torch.nn.functional as F
        import torch.nn.modules.linear, torch.optim.adam, torch.utils.data.dataloader
        from torch import nn
        assert torch.__name__ == torch.__spec__.name == torch.__package__ == "torch"
        assert torch.torch is torch and sys.modules["torch"] is torch
        for name in ("torch.nn", "torch.nn.functional", "torch.nn.modules.linear",
                     "torch.optim.adam", "torch.utils.data.dataloader", "torch.utils._pytree"):
            module = importlib.import_module(name)
            assert module.__name__ == module.__spec__.name == name, name
            assert module.__package__ == module.__spec__.parent
            assert importlib.util.find_spec(name) is module.__spec__
            assert sys.modules[name.replace("torch", "flambeau", 1)] is module
        assert nn.functional is F and nn.Linear is torch.nn.modules.linear.Linear
        assert nn.Linear.__module__ == "torch.nn.modules.linear"
        assert torch.optim.Adam.__module__ == "torch.optim.adam"
        assert F.relu.__module__.startswith("torch.nn.")
        assert torch.Tensor.__module__ == type(torch.ones(1)).__module__ == "torch"
        assert torch.FloatTensor.__module__ == "torch"
        assert repr(torch.float32) == "torch.float32" and repr(torch.Size([1])) == "torch.Size([1])"
    """,
    "types of the core are of PyTorch's modules": """
        import copy, copyreg, pickle
        homes = {"Size": "torch", "dtype": "torch", "device": "torch", "layout": "torch",
                 "memory_format": "torch", "finfo": "torch", "iinfo": "torch", "Tensor": "torch"}
        for name, home in homes.items():
            cls = getattr(torch, name)
            assert cls.__module__ == home, (name, cls.__module__)
            assert repr(cls) == f"<class '{home}.{name}'>"
        assert repr(torch.Generator) == "<class 'torch._C.Generator'>"
        assert repr(torch.UntypedStorage) == "<class 'torch.storage.UntypedStorage'>"
        assert repr(torch.nn.Parameter) == "<class 'torch.nn.parameter.Parameter'>"
        assert torch.float32.__module__ == torch.strided.__module__ == "torch"
        values = [torch.Size([1, 2]), torch.float32, torch.device("cpu"), torch.strided,
                  torch.channels_last, torch.finfo(torch.float32), torch.iinfo(torch.int8)]
        for value in values:
            for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
                assert type(again) is type(value) and again == value, value
            assert b"flambeau" not in pickle.dumps(value), value
        g = pickle.loads(pickle.dumps(torch.Generator().manual_seed(3)))
        assert type(g) is torch.Generator and g.initial_seed() == 3
        p = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2))))
        assert type(p) is torch.nn.Parameter and p.tolist() == [1, 1]
        copyreg.pickle(torch.device, lambda d: (torch.device, (str(d),)))
        assert pickle.loads(pickle.dumps(torch.device("meta"))) == torch.device("meta")
    """,
    "specs are found before anything is imported": """
        spec = importlib.util.find_spec("torch.optim.lr_scheduler")
        assert spec.name == "torch.optim.lr_scheduler" and spec.origin.endswith("lr_scheduler.py")
        assert importlib.util.find_spec("torch").submodule_search_locations
        assert importlib.util.find_spec("torch.nope") is None
        try: import torch.nope
        except ModuleNotFoundError as e: assert e.name == "torch.nope"
        else: assert False
    """,
    "the versions differ": """
        import flambeau, packaging.version
        assert importlib.metadata.version("torch") == torch.__version__ == "2.13.0+flambeau"
        assert torch.version.__version__ == torch.__version__ != flambeau.__version__
        assert flambeau.version.__version__ == flambeau.__version__
        v = torch.__version__
        assert isinstance(v, str) and v.split("+")[0] == "2.13.0"
        assert v >= (2, 1) and v >= "2.0" and v > "2.9.1" and v < "3" and not v < "2.13.0"
        assert v > "2.13.0rc1" and v > "2.13.0.dev20200101" and v < "2.14.0a0" and v < (3, 0)
        assert packaging.version.parse(v) >= packaging.version.parse("2.13")
        assert torch.version.cuda is None and torch.version.hip is None
        assert [d.version for d in importlib.metadata.distributions(name="torch")][0] == v
    """,
    "a function is not replaced by the module of its name": """
        import torch.nn.utils.weight_norm
        assert callable(torch.nn.utils.weight_norm)
        from torch.nn.utils.weight_norm import weight_norm
        assert torch.nn.utils.weight_norm is weight_norm
        import torch.autograd.gradcheck
        assert callable(torch.autograd.gradcheck)
        import torch.nn.utils.spectral_norm as s
        assert callable(s)
    """,
    "reloading does no harm": """
        before = torch.nn.Linear
        assert importlib.reload(torch.nn) is torch.nn and torch.nn.Linear is before
        assert importlib.reload(torch) is torch
        assert torch.nn.__spec__.name == "torch.nn"
    """,
    "inspection works": """
        import doctest, pkgutil, torch.nn.modules.linear
        L = torch.nn.Linear
        assert inspect.getmodule(L) is torch.nn.modules.linear
        assert inspect.getsource(L).startswith("@fields\\nclass Linear(")  # its fields are declared
        assert inspect.getsourcefile(L).endswith("linear.py")
        assert "weight" in inspect.getsource(L.forward)
        assert inspect.getmodule(torch.nn.functional.pad).__name__.startswith("torch.nn")
        assert "modules" in [m.name for m in pkgutil.iter_modules(torch.nn.__path__)]
        assert "relu" in dir(torch) and "nn" in dir(torch)
        assert "Linear" in torch.nn.__dict__ and "relu" in torch.__dict__
    """,
    "pickles and copies": """
        import copy, io, pickle
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert type(again[0]) is torch.nn.Linear
            assert torch.equal(again[0].weight, net[0].weight)
        for value in (torch.float32, torch.Size([2]), torch.device("cpu"), torch.nn.Linear,
                      torch.nn.functional.pad, torch.Tensor, torch.contiguous_format,
                      torch.float8_e4m3fn, torch.relu):
            assert pickle.loads(pickle.dumps(value)) == value
        f = io.BytesIO()
        torch.save({"a": torch.ones(2)}, f)
        f.seek(0)
        assert torch.load(f)["a"].tolist() == [1, 1]
    """,
    "a patch is seen by our own code, and taken back": """
        import unittest.mock as mock, flambeau
        F = torch.nn.functional
        with mock.patch("torch.nn.functional.linear", lambda *a: "patched"):
            assert torch.nn.Linear(1, 1)(torch.ones(1)) == "patched"
        assert torch.is_tensor(torch.nn.Linear(1, 1)(torch.ones(1)))
        with mock.patch.object(torch, "load", lambda *a: "patched"):
            assert torch.load(1) == flambeau.load(1) == "patched"
        assert torch.load is flambeau.load and torch.load is not None
        with mock.patch("torch.relu", lambda x: "patched"):
            assert flambeau.relu(1) == torch.relu(1) == "patched"
        assert torch.relu(torch.ones(1)).item() == flambeau.relu(torch.ones(1)).item() == 1
        torch.something_new = 3
        assert flambeau.something_new == 3
        del torch.something_new
        assert not hasattr(torch, "something_new") and not hasattr(flambeau, "something_new")
        torch.__version__ = "1"
        assert flambeau.__version__ != "1"
        torch.nn.init.zeros_, before = (lambda t: "mine"), torch.nn.init.zeros_
        assert sys.modules["flambeau.nn.init"].zeros_(1) == "mine"
        torch.nn.init.zeros_ = before
    """,
    "the compiler follows the alias": """
        import torch.nn.functional as F
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4)
            def forward(self, x):
                y = F.relu(self.a(x)) + torch.nn.functional.softmax(x, -1)
                if isinstance(x, torch.Tensor) and x.dtype == torch.float32 and torch.is_tensor(x):
                    y = y + torch.linalg.vector_norm(x) + torch.fft.fft(x).abs()
                torch._check(x.shape[0] == 2, lambda: "no")
                assert torch.__version__ >= "2.0"
                return torch.cat([y, torch.special.expit(x)]) * torch.finfo(x.dtype).eps
        net, x = Net(), torch.randn(2, 4)
        compiled = torch.compile(net, fullgraph=True)
        torch.testing.assert_close(compiled(x), net(x))
        net2 = torch.compile(net, fullgraph=True)
        compiled(x).sum().backward()
        assert net.a.weight.grad is not None
        @torch.compile(fullgraph=True)
        def optional(x):
            return hasattr(torch, "relu"), getattr(torch, "tanh")(x)
        assert optional(x)[0]
    """,
    "operations by the name of their library": """
        x = torch.ones(2)
        assert torch.ops.aten.add(x, 1).tolist() == [2, 2]
        assert torch.ops.aten.add.Tensor(x, x).tolist() == [2, 2]
        assert torch.ops.aten.add_(torch.ones(2), 2).tolist() == [3, 3]
        packet = torch.ops.aten._to_copy
        assert packet.default.overloadpacket is packet
        try: packet.default(x)
        except NotImplementedError as e: assert "torch.ops.aten._to_copy: Flambeau" in str(e)
        else: assert False
        assert not hasattr(torch.ops.torchvision, "nms") and not hasattr(torch.ops.aten, "nope")
        try: torch.ops.load_library("x.so")
        except OSError: pass
        import torch.ops
        @torch.library.custom_op("mine::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2
        assert torch.ops.mine.twice(x).tolist() == [2, 2]
        import flambeau.ops.reduction
        assert torch.ops.aten.add(x, 1).tolist() == [2, 2]
    """,
    "every module of ours can be imported under either name": """
        import pathlib, flambeau
        root = pathlib.Path(flambeau.__path__[0])
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[-1] == "__main__" or parts[0] in ("as_torch", "ops", "version", "_build"):
                continue
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if name:
                module = importlib.import_module(f"torch.{name}")
                assert module is importlib.import_module(f"flambeau.{name}"), name
                above, _, last = f"torch.{name}".rpartition(".")
                found = getattr(importlib.import_module(above), last)
                assert found is module or callable(found), name
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, run):
    start = "import importlib, importlib.metadata, importlib.util, inspect, sys, torch\n"
    run("-c", start + textwrap.dedent(PROGRAMS[name]))


def test_names_of_the_private_core_that_have_an_answer() -> None:
    code = textwrap.dedent("""
        import sys, torch
        seen = []
        def f(x):
            seen.append(torch._C._are_functorch_transforms_active())
            return x.sum()
        f(torch.ones(2)); torch.vmap(f)(torch.ones(2, 2)); torch.func.grad(f)(torch.ones(2))
        assert seen == [False, True, True]
        assert torch._C._nn._parse_to('cpu', torch.float64)[1] is torch.float64
        assert torch._C._get_tracing_state() is None and torch._C._get_default_device() == 'cpu'
        assert torch.Future is torch.futures.Future
        kind = torch._dynamo.eval_frame.OptimizedModule
        assert isinstance(torch.compile(torch.nn.Linear(1, 1)), kind)
    """)
    result = subprocess.run(
        [sys.executable, "-m", "flambeau.as_torch", "-c", code], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
