"""Graph nets, Gaussian processes, flows, differential equations, equivariant nets, inference."""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case


def ring(nodes: int = 8) -> Any:
    at = torch.arange(nodes)
    return torch.stack((torch.cat((at, at)), torch.cat(((at + 1) % nodes, (at + 3) % nodes))))


GRAPHS = (
    "GCNConv SAGEConv GATConv GATv2Conv GINConv GraphConv TAGConv ARMAConv ChebConv LEConv SGConv "
    "TransformerConv EdgeConv FeaStConv MFConv ResGatedGraphConv ClusterGCNConv SuperGATConv "
    "FiLMConv GatedGraphConv APPNP"
).split()
for _name in GRAPHS:

    @case("torch_geometric", _name, compiled=_name in ("GCNConv", "GATConv", "SAGEConv"))
    def graph(name: str = _name) -> Program:
        import torch_geometric.nn as gnn

        kind = getattr(gnn, name)
        inner = torch.nn.Linear(16 if name == "EdgeConv" else 8, 8)
        options: tuple[Any, ...] = (8, 8)
        if name in ("GINConv", "EdgeConv"):
            options = (inner,)
        elif name == "ChebConv":
            options = (8, 8, 3)
        elif name in ("GatedGraphConv", "APPNP"):
            options = (8, 2) if name == "GatedGraphConv" else (3, 0.1)

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = kind(*options), torch.nn.Linear(8, 3)

            def forward(self, x: Any, edges: Any) -> Any:
                x = self.first(x, edges).relu()
                pooled = gnn.global_mean_pool(x, torch.tensor([0] * 4 + [1] * 4))
                return self.second(pooled), gnn.global_max_pool(x, None)

        return Program(Net(), (torch.randn(8, 8), ring()))


@case("torch_geometric", "batch", train=False, compiled=False)
def graph_batch() -> Program:
    from torch_geometric.data import Batch, Data
    from torch_geometric.utils import add_self_loops, degree, softmax, to_dense_adj

    graphs = [Data(x=torch.randn(n, 4), edge_index=ring(n)) for n in (5, 6)]

    def call() -> Any:
        batch = Batch.from_data_list(graphs)
        edges, _ = add_self_loops(batch.edge_index)
        return [
            batch.x, batch.edge_index, batch.batch, degree(edges[0]), to_dense_adj(edges),
            softmax(batch.x[edges[0]], edges[1]),
        ]  # fmt: skip

    return Program(call)


KERNELS = "RBF Matern Periodic RQ Linear Polynomial Cosine".split()
for _name in KERNELS:

    @case("gpytorch", f"exact.{_name}", compiled=False)
    def gaussian_process(name: str = _name) -> Program:
        import gpytorch

        x = torch.linspace(0, 1, 12)
        y = torch.sin(6 * x)
        kind = getattr(gpytorch.kernels, f"{name}Kernel")
        kernel = kind(power=2) if name == "Polynomial" else kind()

        class Model(gpytorch.models.ExactGP):
            def __init__(self) -> None:
                super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
                self.mean_module = gpytorch.means.ConstantMean()
                self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

            def forward(self, x: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(
                    self.mean_module(x), self.covar_module(x)
                )

        model = Model()
        score = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

        class Scored(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, x: Any) -> Any:
                return self.model(x)

        return Program(
            Scored(), (x,), loss=lambda found: -score(found, y),
            outputs=lambda found: (found.mean, found.variance),
        )  # fmt: skip


@case("botorch", "acquisition", train=False, compiled=False)
def acquisition() -> Program:
    from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
    from botorch.models import SingleTaskGP

    x = torch.rand(8, 2)
    y = (x.sum(-1, keepdim=True) * 3).sin()
    model = SingleTaskGP(x, y)
    ask = torch.rand(5, 1, 2)

    def call() -> Any:
        return LogExpectedImprovement(model, y.max())(ask), UpperConfidenceBound(model, 0.2)(ask)

    return Program(call)


@case("nflows", "masked_autoregressive", compiled=False)
def masked_autoregressive() -> Program:
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation

    parts = []
    for _ in range(2):
        parts += [ReversePermutation(4), MaskedAffineAutoregressiveTransform(4, 12)]
    flow = Flow(CompositeTransform(parts), StandardNormal([4]))

    class Score(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flow = flow

        def forward(self, x: Any) -> Any:
            return self.flow.log_prob(x)

    return Program(Score(), (torch.randn(6, 4),), loss=lambda found: -found.mean())


@case("nflows", "spline_coupling", compiled=False)
def spline_coupling() -> Program:
    from nflows.nn.nets import ResidualNet
    from nflows.transforms.coupling import PiecewiseRationalQuadraticCouplingTransform

    model = PiecewiseRationalQuadraticCouplingTransform(
        torch.tensor([1, 0, 1, 0]),
        lambda i, o: ResidualNet(i, o, 8),
        tails="linear",
        tail_bound=3.0,
    )
    return Program(model, (torch.randn(6, 4),))


METHODS = "euler midpoint rk4 dopri5 bosh3 adaptive_heun explicit_adams implicit_adams".split()
for _name in METHODS:

    @case("torchdiffeq", _name, compiled=False, quick=_name in ("dopri5", "rk4"))
    def equation(name: str = _name) -> Program:
        from torchdiffeq import odeint

        class Flow(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = torch.nn.Sequential(
                    torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
                )

            def forward(self, start: Any, times: Any) -> Any:
                return odeint(lambda t, y: self.net(y) * t, start, times, method=name)

        return Program(Flow(), (torch.randn(4, 3), torch.linspace(0, 1, 5)))


@case("torchdiffeq", "adjoint", compiled=False)
def adjoint() -> Program:
    from torchdiffeq import odeint_adjoint

    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

    class Right(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y)

    class Flow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.right = Right()

        def forward(self, start: Any, times: Any) -> Any:
            return odeint_adjoint(self.right, start, times, rtol=1e-6, atol=1e-8)

    return Program(Flow(), (torch.randn(4, 3), torch.linspace(0, 1, 3)))


@case("torchsde", "stochastic", compiled=False)
def stochastic() -> Program:
    import torchsde

    class Equation(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self) -> None:
            super().__init__()
            self.drift, self.spread = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def f(self, t: Any, y: Any) -> Any:
            return self.drift(y)

        def g(self, t: Any, y: Any) -> Any:
            return self.spread(y).sigmoid() * 0.1

        def forward(self, start: Any) -> Any:
            noise = torchsde.BrownianInterval(
                t0=0.0, t1=1.0, size=(4, 3), entropy=5, levy_area_approximation="space-time"
            )
            return torchsde.sdeint(self, start, torch.linspace(0, 1, 3), dt=0.25, bm=noise)

    return Program(Equation(), (torch.randn(4, 3),))


@case("geotorch", "manifolds")
def manifolds() -> Program:
    import geotorch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.turn, self.low = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
            geotorch.orthogonal(self.turn, "weight")
            geotorch.low_rank(self.low, "weight", 2)

        def forward(self, x: Any) -> Any:
            return self.low(self.turn(x))

    return Program(Net(), (torch.randn(4, 6),))


@case("e3nn", "tensor_products", compiled=False)
def tensor_products() -> Program:
    from e3nn import o3

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.product = o3.FullyConnectedTensorProduct("4x0e+2x1o", "0e+1o", "3x0e+2x1o")
            self.linear = o3.Linear("3x0e+2x1o", "2x0e")

        def forward(self, x: Any, points: Any) -> Any:
            waves = o3.spherical_harmonics("0e+1o", points, normalize=True)
            return self.linear(self.product(x, waves))

    return Program(Net(), (torch.randn(5, 10), torch.randn(5, 3)))


@case("e3nn", "harmonics", compiled=False)
def harmonics() -> Program:
    from e3nn import o3

    points = torch.randn(5, 3, requires_grad=True)

    def call(points: Any) -> Any:
        return [o3.spherical_harmonics(d, points, normalize=True) for d in range(5)]

    return Program(call, (points,))


@case("pyro", "svi", train=False, compiled=False)
def svi() -> Program:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoNormal

    data = torch.randn(20) + 3

    def model(data: Any) -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 10.0))
        scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
        with pyro.plate("data", len(data)):
            pyro.sample("seen", dist.Normal(mean, scale), obs=data)

    def call() -> Any:
        pyro.clear_param_store()
        with torch.enable_grad():
            steps = SVI(model, AutoNormal(model), pyro.optim.Adam({"lr": 0.02}), Trace_ELBO())
            losses = [steps.step(data) for _ in range(5)]
        return losses, {k: v.detach() for k, v in pyro.get_param_store().items()}

    return Program(call)


@case("pyro", "mcmc", train=False, compiled=False)
def mcmc() -> Program:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import MCMC, NUTS

    def model() -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        pyro.sample("seen", dist.Normal(mean, 0.5), obs=torch.tensor([1.0, 1.2]))

    def call() -> Any:
        with torch.enable_grad():
            chain = MCMC(NUTS(model), num_samples=8, warmup_steps=4, disable_progbar=True)
            chain.run()
        return chain.get_samples()

    return Program(call)


@case("opacus", "private_training", train=False, compiled=False)
def private_training() -> Program:
    from opacus.grad_sample import GradSampleModule

    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model = GradSampleModule(net)
    x = torch.randn(5, 6)

    def call() -> Any:
        with torch.enable_grad():
            model.zero_grad()
            model(x).square().sum().backward()
        return [p.grad_sample for p in model.parameters()]

    return Program(call)


@case("captum", "attribution", train=False, compiled=False)
def attribution() -> Program:
    from captum.attr import (
        DeepLift,
        FeatureAblation,
        GradientShap,
        InputXGradient,
        IntegratedGradients,
        Saliency,
    )  # fmt: skip

    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    x = torch.randn(4, 6, requires_grad=True)

    def call() -> Any:
        with torch.enable_grad():
            return [
                IntegratedGradients(model).attribute(x, target=1, n_steps=8).detach(),
                Saliency(model).attribute(x, target=1),
                InputXGradient(model).attribute(x, target=1).detach(),
                DeepLift(model).attribute(x, target=1).detach(),
                FeatureAblation(model).attribute(x, target=1).detach(),
                GradientShap(model).attribute(x, baselines=x * 0, target=1, n_samples=3).detach(),
            ]

    return Program(call)
