#!/usr/bin/env bash
# Checks emitted Triton with Triton itself: in its interpreter, then compiled for a GPU that need not
# be there. Triton goes into an environment of its own, as the project does without it.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

OWN="$ROOT/build/triton"
[ -x "$OWN/bin/python" ] || "$PY" -m venv "$OWN"
# The interpreter of Triton 3.5 takes arrays of one element for numbers, as NumPy does before 2.4.
"$OWN/bin/python" -m pip install -qq --disable-pip-version-check \
    triton==3.5.0 "numpy<2.4" scipy pytest setuptools
export PYTHONPATH="$ROOT"
TRITON_INTERPRET=1 "$OWN/bin/python" -m pytest -q "$@" tests/triton
exec "$OWN/bin/python" -m pytest -q "$@" tests/triton
