"""`python -m flambeau.distributed.run`, or `torchrun`: a program in several processes.

Owns the command line, PyTorch's. Starting, watching and ending processes is `_launch`'s.

    torchrun --nproc-per-node 2 train.py --epochs 3
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from datetime import timedelta

from flambeau._C._distributed import DistError

from ._launch import ERR, OUT, Plan, Stopped, launch
from ._nodes import Meeting, OtherNodeFailed
from .elastic.multiprocessing.errors import ChildFailedError

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_STATIC_PORT, _C10D_PORT = 29500, 29400
_RUN_PATH = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"


def _flag(parser: argparse._ActionsContainer, name: str, *short: str, **options: object) -> None:
    """An option that is spelled with dashes or with underscores."""
    parser.add_argument(*short, name, "--" + name[2:].replace("-", "_"), **options)  # type: ignore[arg-type]


def get_args_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="torchrun", description="Runs a program in processes of one machine or several."
    )
    _flag(parser, "--nnodes", default="1:1", help="number of machines")
    _flag(parser, "--nproc-per-node", default="1", help="how many processes: a number, auto or cpu")
    _flag(parser, "--standalone", action="store_true", help="meet on a free port of this machine")
    _flag(parser, "--master-addr", default="127.0.0.1", help="where processes meet")
    _flag(parser, "--master-port", type=int, default=None, help="by default a free one")
    _flag(parser, "--node-rank", type=int, default=0, help="number of this machine")
    _flag(parser, "--local-addr", default=None, help="address of this machine, for --master-addr")
    _flag(parser, "--rdzv-backend", default="static", choices=["static", "c10d"])
    _flag(parser, "--rdzv-endpoint", default="", help="host:port where processes meet")
    _flag(parser, "--rdzv-id", default="none", help="name of the run, TORCHELASTIC_RUN_ID")
    _flag(parser, "--rdzv-conf", default="", help="timeout=SECONDS, join_timeout=SECONDS")
    _flag(parser, "--max-restarts", type=int, default=0, help="starts after a failure")
    _flag(parser, "--monitor-interval", type=float, default=0.1, help="ends are seen at once")
    _flag(parser, "--start-method", default="spawn", choices=["spawn"])
    _flag(parser, "--role", default="default", help="name of the processes, ROLE_NAME")
    _flag(parser, "--shutdown-timeout", type=float, default=None, help="seconds before SIGKILL: 30")
    _flag(parser, "--signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT")
    _flag(parser, "--log-dir", default=None, help="folder for output")
    _flag(
        parser,
        "--redirects",
        "-r",
        default="0",
        help="to files: 1 stdout, 2 stderr, 3 both; 0:1,1:3",
    )
    _flag(parser, "--tee", "-t", default="0", help="to files and the console, as --redirects")
    _flag(parser, "--local-ranks-filter", default="", help="ranks whose output is shown: 0,1")
    kind = parser.add_mutually_exclusive_group()
    _flag(kind, "--module", "-m", action="store_true", help="the program is a module")
    _flag(kind, "--no-python", action="store_true", help="the program is no Python script")
    _flag(kind, "--run-path", action="store_true", help="run the program with runpy.run_path")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The command line's values."""
    return get_args_parser().parse_args(args)


def _processes(text: str) -> int:
    if text in ("auto", "cpu"):
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--nproc-per-node: expected a number from 1, auto or cpu, got {text!r}")
    return int(text)


def _streams(option: str, text: str, processes: int) -> dict[int, int]:
    """By local rank, which streams: "3", or "0:1,1:3"."""
    if text.isdecimal() and int(text) <= OUT | ERR:
        return dict.fromkeys(range(processes), int(text))
    found = {}
    for part in text.split(","):
        rank, colon, value = part.partition(":")
        if not (colon and rank.isdecimal() and value.isdecimal() and int(value) <= OUT | ERR):
            raise ValueError(f"{option}: expected 0 to 3, or rank:0 to 3, ..., got {text!r}")
        found[int(rank)] = int(value)
    return found


def _nodes(text: str) -> int:
    low, colon, high = text.partition(":")
    if not low.isdecimal() or (colon and not high.isdecimal()) or int(low) < 1:
        raise ValueError(f"--nnodes: expected a number from 1, got {text!r}")
    if colon and high != low:
        raise ValueError(
            f"--nnodes: expected one number of machines, got {text}; machines that come and go in "
            "a run are not built yet"
        )
    return int(low)


def _meeting(args: argparse.Namespace) -> Meeting | None:
    """Where launchers meet; None where there is one."""
    count = _nodes(args.nnodes)
    conf = _conf(args.rdzv_conf)
    if not 0 <= args.node_rank < count:
        raise ValueError(f"--node-rank: expected 0 to {count - 1}, got {args.node_rank}")
    if count == 1:
        return None
    for option in ("standalone", "local_addr"):
        if getattr(args, option):
            why = {
                "standalone": "they meet at --master-addr or --rdzv-endpoint",
                "local_addr": "GLOO_SOCKET_IFNAME chooses the interface",
            }[option]
            raise ValueError(f"--{option.replace('_', '-')}: not with {count} machines; {why}")
    static = args.rdzv_backend == "static"
    host, port = args.master_addr, args.master_port or _STATIC_PORT
    if args.rdzv_endpoint or not static:
        host, colon, number = args.rdzv_endpoint.rpartition(":")
        if not colon:
            host, number = number, str(_STATIC_PORT if static else _C10D_PORT)
        if not host or not number.isdecimal() or not 0 < int(number) < 65536:
            raise ValueError(f"--rdzv-endpoint: expected host:port, got {args.rdzv_endpoint!r}")
        port = int(number)
    rank = args.node_rank if static else None
    return Meeting(count, rank, host, port, rank == 0 if static else None, timedelta(seconds=conf))


def _conf(text: str) -> float:
    """How long to wait for other machines, in seconds."""
    time = 600.0
    for part in text.split(",") if text else ():
        name, _, value = part.partition("=")
        try:
            if name not in ("timeout", "join_timeout"):
                raise ValueError
            time = float(value)
        except ValueError:
            raise ValueError(
                f"--rdzv-conf: expected timeout=SECONDS or join_timeout=SECONDS, got {part!r}"
            ) from None
    return time


def _plan(args: argparse.Namespace) -> Plan:
    meeting = _meeting(args)
    host, port = args.local_addr or args.master_addr, args.master_port or 0
    run_id = args.rdzv_id
    if meeting is not None:
        host, port = meeting.host, meeting.port
    elif args.standalone:
        host, port, run_id = "localhost", 0, str(uuid.uuid4())
    elif args.rdzv_endpoint:
        host, _, number = args.rdzv_endpoint.partition(":")
        port = int(number or 0)
    script = [args.training_script, *args.training_script_args]
    python = [sys.executable, "-u"]
    if args.no_python:
        command = script
    elif args.run_path:
        command = [*python, "-c", _RUN_PATH, *script]
    else:
        command = [*python, "-m", *script] if args.module else [*python, *script]
    processes = _processes(args.nproc_per_node)
    shown = {int(r) for r in args.local_ranks_filter.split(",") if r}
    timeout = args.shutdown_timeout
    if timeout is None:
        timeout = float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
    return Plan(
        command,
        processes,
        args.training_script,
        host,
        port,
        run_id,
        args.role,
        args.max_restarts,
        timeout,
        args.log_dir,
        _streams("--redirects", args.redirects, processes),
        _streams("--tee", args.tee, processes),
        shown or None,
        [signal.Signals[name] for name in args.signals_to_handle.split(",") if name],
        meeting,
    )


def run(args: argparse.Namespace) -> None:
    """Launch what the command line says.

    Raises:
        ValueError: an option that is not possible.
        ChildFailedError: a process failed; the others were ended.
        OtherNodeFailed: one on another machine.
    """
    launch(_plan(args))


def main(args: Sequence[str] | None = None) -> None:
    """The command; ends with status 1 after a failure, 128 and the signal's number after one."""
    parsed = parse_args(args)
    try:
        run(parsed)
    except ValueError as error:
        sys.exit(f"torchrun: error: {error}")
    except ChildFailedError as error:
        sys.exit(str(error))
    except (OtherNodeFailed, DistError) as error:
        sys.exit(f"torchrun: {error}")
    except Stopped as error:
        sys.stderr.write(f"torchrun: {error}\n")
        sys.exit(128 + error.number)


if __name__ == "__main__":
    main()
