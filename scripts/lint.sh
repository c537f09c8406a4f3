#!/usr/bin/env bash
# All static checks. Runs each of them even when one before it has failed.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

failed=0
check() {
    say "${*:1:6}"
    "$@" || failed=1
}
check "$PY" -m ruff check .
check "$PY" -m ruff format --check .
check "$PY" -m mypy
if have clang-format; then
    mapfile -t sources < <(find csrc -name '*.cpp' -o -name '*.h' | grep -vxFf scripts/unformatted.txt)
    check clang-format --dry-run --Werror "${sources[@]}"
else
    say "clang-format is not installed: C++ formatting is not checked"
fi
check "$PY" -m pytest -q -p no:cacheprovider tests/test_style.py
exit "$failed"
