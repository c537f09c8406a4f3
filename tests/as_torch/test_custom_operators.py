"""Programs with operators of their own, as they are written for PyTorch, under the alias.

Each is a program of its own; what it asserts is PyTorch's behaviour.
"""

import textwrap

import pytest

PROGRAMS = {
    "a function of NumPy with everything registered": """
        @torch.library.custom_op("mylib::numpy_cube", mutates_args=())
        def numpy_cube(x: Tensor) -> tuple[Tensor, Tensor]:
            array = x.cpu().numpy()
            return torch.tensor(array**3), torch.tensor(3 * array**2)

        @numpy_cube.register_fake
        def _(x):
            return torch.empty_like(x), torch.empty_like(x)

        def setup_context(ctx, inputs, output):
            (x,), (cube, dx) = inputs, output
            ctx.save_for_backward(x, dx)

        def backward(ctx, grad_output, grad_dx):
            x, dx = ctx.saved_tensors
            return numpy_mul(grad_output, dx) + 6 * numpy_mul(grad_dx, x)

        numpy_cube.register_autograd(backward, setup_context=setup_context)

        @torch.library.custom_op("mylib::numpy_mul", mutates_args=())
        def numpy_mul(x: Tensor, y: Tensor) -> Tensor:
            return torch.tensor(x.cpu().numpy() * y.cpu().numpy(), device=x.device)

        @numpy_mul.register_fake
        def _(x, y):
            assert x.device == y.device
            return (x * y).contiguous()

        def keep(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        def mul_backward(ctx, grad):
            x, y = ctx.saved_tensors
            gx = numpy_mul(grad, y) if ctx.needs_input_grad[0] else None
            return gx, numpy_mul(grad, x) if ctx.needs_input_grad[1] else None

        torch.library.register_autograd("mylib::numpy_mul", mul_backward, setup_context=keep)

        @torch.library.register_vmap("mylib::numpy_mul")
        def numpy_mul_vmap(info, in_dims, x, y):
            x, y = (t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0)
                    for t, d in zip((x, y), in_dims))
            return numpy_mul(x, y), 0

        x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        y = torch.randn(3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(numpy_cube, x)
        assert torch.autograd.gradgradcheck(numpy_cube, x)
        assert torch.autograd.gradcheck(numpy_mul, (x, y))
        batched = torch.vmap(numpy_mul, in_dims=(1, None))(torch.ones(3, 2).double(), y.detach())
        assert torch.equal(batched, y.detach().expand(2, 3))
        torch.library.opcheck(numpy_cube, (x,))
        torch.library.opcheck(torch.ops.mylib.numpy_mul.default, (x, y))
        compiled = torch.compile(lambda x, y: numpy_mul(numpy_cube(x)[0], y).sum(), fullgraph=True)
        grads = torch.autograd.grad(compiled(x, y), (x, y))
        assert torch.allclose(grads[0], 3 * x**2 * y) and torch.allclose(grads[1], x**3)
    """,
    "operators that write to what they are given": """
        @torch.library.custom_op("mylib::fill_", mutates_args={"x"}, tags=torch.Tag.inplace)
        def fill_(x: Tensor, value: float) -> Tensor:
            x.numpy().fill(value)
            return x

        @torch.library.custom_op("mylib::sin_out", mutates_args={"out"}, device_types="cpu",
                                 tags=torch.Tag.out)
        def sin_out(x: Tensor, *, out: Tensor) -> Tensor:
            np.sin(x.numpy(), out=out.numpy())
            return out

        x = torch.ones(3)
        assert fill_(x, 2.0) is x and x.tolist() == [2, 2, 2]
        out = torch.empty(3)
        assert sin_out(x, out=out) is out and torch.allclose(out, x.sin())
        try: sin_out.register_autograd(lambda ctx, g: g)
        except RuntimeError as e: assert "non-functional operator" in str(e)
        else: raise AssertionError
        def f(x):
            y = fill_(x.clone(), 3.0)
            return sin_out(y, out=torch.empty_like(y)) + y
        assert torch.allclose(torch.compile(f, fullgraph=True)(x), f(x))
    """,
    "a library with a schema": """
        lib = torch.library.Library("mylib", "DEF")
        lib.define("add_scaled(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor")

        @torch.library.impl(lib, "add_scaled", "CompositeExplicitAutograd")
        def add_scaled(x, y, *, alpha=1.0):
            return x.detach() + alpha * y.detach()

        @torch.library.register_fake("mylib::add_scaled", lib=lib)
        def _(x, y, *, alpha=1.0):
            torch._check(x.shape == y.shape)
            return torch.empty_like(x)

        class AddScaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y, alpha):
                ctx.alpha = alpha
                with torch._C._AutoDispatchBelowAutograd():
                    return torch.ops.mylib.add_scaled(x, y, alpha=alpha)
            @staticmethod
            def backward(ctx, g):
                return g, ctx.alpha * g, None

        @torch.library.impl(lib, "add_scaled", "Autograd")
        def _(x, y, *, alpha=1.0):
            return AddScaled.apply(x, y, alpha)

        x = torch.ones(2, requires_grad=True)
        op = torch.ops.mylib.add_scaled
        op(x, x, alpha=3.0).sum().backward()
        assert x.grad.tolist() == [4, 4]
        assert isinstance(op.default, torch._ops.OpOverload)
        assert isinstance(op.default._schema, torch._C.FunctionSchema)
        assert str(op.default._schema) == (
            "mylib::add_scaled(Tensor x, Tensor y, *, float alpha=1.) -> Tensor")
        assert [a.name for a in op.default._schema.arguments] == ["x", "y", "alpha"]
        assert op.default.name() == "mylib::add_scaled"
        assert str(op.default) == "mylib.add_scaled.default"
        assert op.overloads() == ["default"] and op.default.overloadpacket is op
    """,
    "sizes that the data tell run between graphs": """
        @torch.library.custom_op("mylib::nonzero", mutates_args=())
        def nonzero(x: Tensor) -> Tensor:
            return torch.tensor(np.stack(np.nonzero(x.numpy()), axis=1))

        @nonzero.register_fake
        def _(x):
            nnz = torch.library.get_ctx().new_dynamic_size()
            return x.new_empty([nnz, x.dim()], dtype=torch.int64)

        x = torch.tensor([0.0, 1.0, 2.0])
        assert torch.compile(lambda x: nonzero(x * 2) + 1)(x).tolist() == [[2], [3]]
    """,
    "traces and graphs of modules hold them": """
        from torch import fx
        @torch.library.custom_op("mylib::double", mutates_args=())
        def double(x: Tensor) -> Tensor:
            return x + x
        double.register_fake(torch.empty_like)
        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.ops.mylib.double(x) + 1
        graph = fx.symbolic_trace(Net())
        targets = [n.target for n in graph.graph.nodes]
        assert torch.ops.mylib.double in targets or torch.ops.mylib.double.default in targets
        assert graph(torch.ones(2)).tolist() == [3, 3]
        traced = torch.jit.trace(Net(), torch.ones(2))
        assert traced(torch.zeros(3)).tolist() == [1, 1, 1]
    """,
    "scripts call them": """
        import io
        @torch.library.custom_op("mylib::scaled", mutates_args=())
        def scaled(x: Tensor, n: int = 2) -> Tensor:
            return torch.tensor(x.numpy() * n)
        def keep(ctx, inputs, output):
            ctx.n = inputs[1]
        scaled.register_autograd(lambda ctx, g: (g * ctx.n, None), setup_context=keep)
        @torch.library.custom_op("mylib::into", mutates_args={"y"})
        def into(x: Tensor, y: Tensor) -> None:
            y.copy_(x)
        @torch.library.custom_op("mylib::plus_one", mutates_args=())
        def plus_one(xs: list[Tensor]) -> list[Tensor]:
            return [x + 1 for x in xs]
        @torch.library.custom_op("mylib::measured", mutates_args=())
        def measured(x: Tensor) -> tuple[Tensor, float]:
            return x * 1, float(x.sum())

        @torch.jit.script
        def f(x: Tensor):
            y = torch.zeros_like(x)
            torch.ops.mylib.into(scaled(x, n=3), y)
            parts = torch.ops.mylib.plus_one([x, y])
            z, total = torch.ops.mylib.measured.default(y)
            return torch.ops.mylib.scaled(y) + parts[1], z * total
        file = io.BytesIO()
        torch.jit.save(f, file)
        file.seek(0)
        for g in (f, torch.jit.load(file)):
            a, b = g(torch.ones(2))
            assert a.tolist() == [10, 10] and b.tolist() == [18, 18]
        assert "torch.ops.mylib.into(torch.ops.mylib.scaled(x, 3), y)" in f.code

        @torch.jit.script
        def h(x: Tensor):
            return torch.ops.mylib.scaled(x, 5)
        x = torch.ones(2, requires_grad=True)
        h(x).sum().backward()
        assert x.grad.tolist() == [5, 5]
        def wrong(x: Tensor):
            return torch.ops.mylib.scaled(x, "a")
        try: torch.jit.script(wrong)
        except RuntimeError as e: assert "'n' is int, got str" in str(e), e
        else: raise AssertionError
    """,
    "autocast": """
        @torch.library.custom_op("mylib::product", mutates_args=())
        def product(x: Tensor, y: Tensor) -> Tensor:
            return torch.tensor((x.float().numpy() @ y.float().numpy())).to(x.dtype)
        torch.library.register_autocast("mylib::product", "cpu", torch.bfloat16)
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            assert product(x, x).dtype == torch.bfloat16
        assert product(x, x).dtype == torch.float32
        torch.library.register_fake("mylib::product", lambda x, y: x @ y)
        compiled = torch.compile(lambda x: product(x, x) * 2, fullgraph=True)
        with torch.autocast("cpu"):
            assert compiled(x).dtype == torch.bfloat16
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, run, tmp_path):
    program = tmp_path / "program.py"  # scripts look at their source
    start = "import numpy as np, torch\nfrom torch import Tensor\n"
    program.write_text(start + textwrap.dedent(PROGRAMS[name]))
    run(program)


SAVES = """
    import sys, torch
    if len(sys.argv) > 2:
        @torch.library.custom_op("mylib::double", mutates_args=())
        def double(x: torch.Tensor) -> torch.Tensor:
            return x + x
    if sys.argv[2:] == ["save"]:
        def f(x: torch.Tensor):
            return torch.ops.mylib.double(x) + 1
        torch.jit.save(torch.jit.script(f), sys.argv[1])
    print(torch.jit.load(sys.argv[1])(torch.ones(2)).tolist())
"""


def test_files_name_operators(run, tmp_path):
    program, file = tmp_path / "program.py", tmp_path / "f.pt"
    program.write_text(textwrap.dedent(SAVES))
    assert run(program, file, "save") == run(program, file, "defined") == "[3.0, 3.0]\n"
    done = run(program, file, check=False)
    words = "RuntimeError: jit.load: the file calls the operator mylib::double, which is not there"
    assert done.returncode == 1 and words in done.stderr
