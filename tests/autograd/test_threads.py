"""Several Python threads that use autograd at once."""

import threading

import flambeau as torch


def run(threads, work):
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=guarded, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


def test_one_leaf_many_threads():
    x = torch.ones(8, dtype=torch.float64, requires_grad=True)

    def work(i):
        for _ in range(200):
            (x * 2).sum().backward()

    run(8, work)
    assert x.grad.tolist() == [8 * 200 * 2.0] * 8


def test_shared_graph():
    x = torch.ones(8, dtype=torch.float64, requires_grad=True)
    shared = x * x

    def work(i):
        for _ in range(100):
            (shared * 3).sum().backward(retain_graph=True)

    run(6, work)
    assert x.grad.tolist() == [6 * 100 * 6.0] * 8


def test_graph_made_here_and_run_there():
    x = torch.ones(1, requires_grad=True)
    losses = [(x * i).sum() for i in range(10)]
    run(10, lambda i: losses[i].backward())
    assert x.grad.item() == sum(range(10))


def test_hooks_run_in_the_thread_of_backward():
    seen = []
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda g: seen.append(threading.get_ident()))

    def work(i):
        (x * 2).sum().backward()
        assert threading.get_ident() in seen

    run(4, work)
    assert len(seen) == 4


def test_modes_are_of_the_thread():
    with torch.no_grad():
        inside = []
        run(1, lambda i: inside.append(torch.is_grad_enabled()))
    assert inside == [True]


def test_hooks_come_and_go_during_backward():
    x = torch.ones(1, requires_grad=True)
    stop = threading.Event()

    def churn(i):
        if i == 0:
            for _ in range(300):
                (x * 2).sum().backward()
            stop.set()
        else:
            while not stop.is_set():
                x.register_hook(lambda g: None).remove()

    run(3, churn)
    assert x.grad.item() == 600.0
