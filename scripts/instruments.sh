#!/usr/bin/env bash
# Measures against PyTorch with the instruments of the folder TOOLS (a conformance suite and a ladder
# of benchmarks, which need PyTorch in the environment): instruments.sh bench|conformance [options].

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

what="$1"
shift
[ -n "${TOOLS:-}" ] || die "set TOOLS to the folder of the measuring instruments: make $what TOOLS=..."
"$PY" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' ||
    die "PyTorch is not installed in $VENV: $PY -m pip install torch expecttest psutil"
cd "$TOOLS"
case "$what" in
    bench) exec "$PY" ladder/ladder.py --a torch --b flambeau --foreground "$@" ;;
    conformance) exec "$PY" conformance/conformance.py --lib flambeau "$@" ;;
    *) die "unknown instrument $what" ;;
esac
