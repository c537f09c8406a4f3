"""Programs that are to be one graph: sizes that depend on data. See `programs_whole_python`. Those
with a number as a size (`SIZED`) go on in a second graph where the number becomes one."""

import flambeau as torch
from flambeau import nn

WHOLE, REFUSED = [], []


def whole(f):
    WHOLE.append(f)
    return f


def refused(message):
    def file(f):
        REFUSED.append((f, message))
        return f

    return file


lin = nn.Linear(4, 2)


@whole
def mask(x):
    return x[x > 0]


@whole
def mask_sum(x):
    return (x[x > 0] * 2).sum()


@whole
def nonzero_(x):
    return torch.nonzero(x > 0)


@whole
def nonzero_tuple(x):
    return torch.nonzero(x > 0, as_tuple=True)[0]


@whole
def where1(x):
    i, j = torch.where(x > 0)
    return x[i, j] * 2


@whole
def argwhere(x):
    return torch.argwhere(x > 0) + 1


@whole
def masked_select(x):
    return torch.masked_select(x, x > 0).exp()


@whole
def repeat_interleave(x):
    return x.repeat_interleave((x[:, 0] > 0).long() + 1, dim=0)


@whole
def unique(x):
    return torch.unique((x > 0).long())


@whole
def unique_counts(x):
    u, i, c = torch.unique((x * 2).long(), return_inverse=True, return_counts=True)
    return u.sum() + c.sum() + i.sum()


@whole
def unique_consecutive(x):
    return torch.unique_consecutive((x > 0).long().flatten())


@whole
def mask_set(x):
    y = x.clone()
    y[x > 0] = 5.0
    return y


@whole
def mask_set_tensor(x):
    y = x.clone()
    m = x > 0
    y[m] = x[m] * 2
    return y


@whole
def mask_set_1(x):
    y = x.clone()
    y[x > 0] = torch.tensor(2.0)
    return y


@whole
def masked_scatter(x):
    y = x.clone()
    return y.masked_scatter(x > 0, x.exp())


@whole
def item_size(x):
    n = (x > 0).sum().item()
    torch._check(n >= 0)
    return torch.ones(n) * 2


@whole
def item_size_check_is_size(x):
    n = (x > 0).sum().item()
    torch._check_is_size(n)
    torch._check(n <= 12)
    return torch.zeros(n, 2).sum() + x


@whole
def item_slice(x):
    n = (x[:, 0] > 0).sum().item()
    torch._check(n >= 0)
    torch._check(n <= x.size(0))
    return x[:n] * 2


@whole
def item_narrow(x):
    n = (x[:, 0] > 0).sum().item()
    torch._check(n >= 0)
    torch._check(n <= x.size(0))
    return x.narrow(0, 0, n)


@whole
def item_arange(x):
    n = (x > 0).sum().item()
    torch._check(n >= 0)
    return torch.arange(n)


@whole
def item_split(x):
    n = (x[:, 0] > 9).sum().item()
    torch._check(n >= 0)
    a, c = x.split([n, 3 - n])
    return c * 2 + a.sum()


@whole
def item_view(x):
    n = (x[:, 0] > -99).sum().item()
    torch._check(n == 3)
    return x.view(n, -1) + 1


@whole
def item_expand(x):
    n = (x[:, 0] > -99).sum().item()
    torch._check(n >= 0)
    return x[0].expand(n, 4) * x.sum()


@whole
def item_repeat(x):
    n = (x[:, 0] > 0).sum().item()
    torch._check(n >= 0)
    return x.repeat(n, 1)


@whole
def len_(x):
    y = x[x > 0]
    return y / y.shape[0]


@whole
def numel(x):
    y = x[x > 0]
    return y.sum() / y.numel()


@whole
def cat(x):
    return torch.cat([x[x > 0], x[x <= 0]]) * 2


@whole
def mm(x):
    r = x[x[:, 0] > 0]
    return r @ x.T


@whole
def linear(x):
    r = x[x[:, 0] > 0]
    return lin(r).relu()


@whole
def index_put(x):
    y = torch.zeros(3, 4)
    i = torch.nonzero(x[:, 0] > 0)[:, 0]
    y[i] = x[i] * 2
    return y


@whole
def index_add(x):
    i = torch.nonzero(x[:, 0] > 0)[:, 0]
    return torch.zeros(3, 4).index_add(0, i, x[i])


@whole
def softmax(x):
    return x[x > 0].softmax(0)


@whole
def bincount(x):
    return torch.bincount((x > 0).long().flatten())


@whole
def branch_len(x):
    y = x[x > 0]
    return torch.nn.functional.pad(y, (0, 2))


@whole
def zeros_like(x):
    y = x[x > 0]
    return torch.zeros_like(y) + torch.ones(y.shape)


@whole
def moe(x):
    out = torch.zeros_like(x)
    e = (x[:, 0] > 0).long()
    for k in range(2):
        idx = torch.where(e == k)[0]
        out.index_add_(0, idx, x[idx] * (k + 2))
    return out


@whole
def topk_item(x):
    return x.flatten().topk(2)[0]


@refused("item\\(\\): the value of a traced tensor is known only when it runs")
def one_hot(x):
    return torch.nn.functional.one_hot((x > 0).long())


@refused("the value of n0 depends on n0, which only the run tells")
def combinations(x):
    return torch.combinations(x[0][x[0] > -99])


@refused("the value of a traced tensor is known only when it runs")
def tensor_split(x):
    return torch.tensor_split(x, torch.tensor([1, 2]))[1]


@whole
def scattered(x):
    return torch.zeros(3).scatter_add(0, torch.nonzero(x > 0)[:, 0], x[x > 0])


@whole
def cut(x):
    return x[x > 0][:3]


@refused("the value of n0 - 3 depends on n0, which only the run tells")
def branch(x):
    y = x[x > 0]
    return y if y.shape[0] > 2 else x


@refused("depends on n0, which only the run tells")
def text(x):
    return x, str(x[x > 0].shape[0])


SIZED = [f for f in WHOLE if f.__name__.startswith("item_")]
WHOLE = [f for f in WHOLE if f not in SIZED]


@whole
def operations_on_numbers_alone(x):
    rows = torch.div(x.size(0) * 4, 2, rounding_mode="trunc")
    y = x.repeat(2, 1).view(rows, x.size(1))
    return y.new_zeros(rows, 2) + torch.add(1, 2), torch.mul(2, 3.5), y.reshape((rows, -1))


@whole
def sizes_by_name(x):
    n = torch.div(8, 2, rounding_mode="floor")
    return torch.nn.functional.interpolate(x[None], size=(n * 2,)), x.as_strided(
        size=(n, 1), stride=(1, 1)
    )


@whole
def as_tensor_on_a_device(x):
    a = torch.as_tensor(x, device=x.device)
    b = torch.as_tensor(2, device="cpu") + torch.asarray([1.0], dtype=torch.float64, device="cpu")
    return a + b, torch.as_tensor(x, dtype=torch.float64, device="cpu")


LINEAR = torch.nn.Linear(4, 4)


@whole
def modules_that_stay_as_they_are(x):
    return LINEAR.to(torch.float32).to("cpu")(x) + LINEAR.float()(x) + LINEAR.cpu()(x)


@refused("parameters of a module are converted")
def modules_that_are_converted(x):
    return torch.nn.Linear.double(torch.nn.Sequential(LINEAR))[0](x.double())
