"""Update rules in NumPy, one entry at a time in spirit: the references of ``test_rules``.

Each function takes the parameter, its gradient, a state dict and the step number (from 1), and
returns the new parameter. Written from the papers, without a look at the package.
"""

import numpy as np


def sgd(p, g, s, t, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False):
    g = g + weight_decay * p
    if momentum:
        s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return p - lr * g


def _moments(g, s, beta1, beta2):
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g**2
    return s["m"], s["v"]


def adam(
    p,
    g,
    s,
    t,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    amsgrad=False,
    decoupled_weight_decay=False,
):
    if decoupled_weight_decay:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m, v = _moments(g, s, *betas)
    if amsgrad:
        v = s["top"] = np.maximum(s.get("top", 0), v)
    m_hat, v_hat = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
    return p - lr * m_hat / (np.sqrt(v_hat) + eps)


def adamw(p, g, s, t, weight_decay=1e-2, **kw):
    return adam(p, g, s, t, weight_decay=weight_decay, decoupled_weight_decay=True, **kw)


def nadam(p, g, s, t, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3):
    g = g + weight_decay * p
    m, v = _moments(g, s, *betas)
    mu = [betas[0] * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1)]
    s["prod"] = s.get("prod", 1.0) * mu[0]
    m_hat = mu[1] * m / (1 - s["prod"] * mu[1]) + (1 - mu[0]) * g / (1 - s["prod"])
    return p - lr * m_hat / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def radam(p, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    g = g + weight_decay * p
    m, v = _moments(g, s, *betas)
    m_hat = m / (1 - betas[0] ** t)
    rho_inf = 2 / (1 - betas[1]) - 1
    rho = rho_inf - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if rho <= 5:
        return p - lr * m_hat
    r = np.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return p - lr * m_hat * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)


def adamax(p, g, s, t, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    g = g + weight_decay * p
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["u"] = np.maximum(betas[1] * s.get("u", 0), np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * s["m"] / s["u"]


def adadelta(p, g, s, t, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0):
    g = g + weight_decay * p
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g**2
    u = np.sqrt(s.get("d", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * u**2
    return p - lr * u


def adagrad(
    p, g, s, t, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10
):
    g = g + weight_decay * p
    s["sum"] = s.get("sum", initial_accumulator_value) + g**2
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def rmsprop(p, g, s, t, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    g = g + weight_decay * p
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g**2
    v = s["v"]
    if centered:
        s["g"] = alpha * s.get("g", 0) + (1 - alpha) * g
        v = v - s["g"] ** 2
    step = g / (np.sqrt(v) + eps)
    if momentum:
        step = s["b"] = momentum * s.get("b", 0) + step
    return p - lr * step


def rprop(p, g, s, t, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    length, before = s.get("len", np.full_like(p, lr)), s.get("g", np.zeros_like(p))
    agree = np.sign(g * before)
    factor = np.where(agree > 0, etas[1], np.where(agree < 0, etas[0], 1.0))
    s["len"] = np.clip(length * factor, *step_sizes)
    s["g"] = np.where(agree < 0, 0.0, g)
    return p - s["len"] * np.sign(s["g"])


def asgd(p, g, s, t, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0):
    g = g + weight_decay * p
    eta, mu = s.get("eta", lr), s.get("mu", 1.0)
    p = p * (1 - lambd * eta) - eta * g
    s["ax"] = p.copy() if mu == 1 else s["ax"] + mu * (p - s["ax"])
    s["eta"] = lr / (1 + lambd * lr * t) ** alpha
    s["mu"] = 1 / max(1, t - t0)
    return p


def adafactor(p, g, s, t, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
    eps1 = np.finfo(p.dtype).eps if eps[0] is None else eps[0]
    rho, w = min(lr, 1 / np.sqrt(t)), float(t) ** beta2_decay
    alpha = max(eps[1], np.sqrt(np.mean(p**2))) * rho
    p = p * (1 - lr * weight_decay)
    if p.ndim > 1:
        s["r"] = (1 - w) * s.get("r", 0) + w * np.mean(g**2, axis=-1, keepdims=True)
        s["c"] = (1 - w) * s.get("c", 0) + w * np.mean(g**2, axis=-2, keepdims=True)
        v = s["r"] * s["c"] / np.maximum(s["r"].mean(axis=-2, keepdims=True), eps1)
    else:
        v = s["v"] = (1 - w) * s.get("v", 0) + w * g**2
    u = g / np.sqrt(np.maximum(v, eps1**2))
    return p - alpha * u / max(1.0, np.sqrt(np.mean(u**2)) / d)
