#!/usr/bin/env bash
# Builds all programs of tests/cpp with the address and undefined-behaviour sanitizers, then with the thread sanitizer,
# and runs them: cppsan.sh [address|thread] [pytest options]. Instrumented are the programs and what they compile of the
# headers; the library is the ordinary build, whose own code `make asan` instruments under Python's tests. The readers of
# files are instrumented too, and given 20,000 damaged ones.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
    address | thread) kinds="$1" && shift ;;
    *) kinds="address thread" ;;
esac
# The library keeps what lives as long as the process.
export ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1" TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
# Of what is not instrumented the sanitizer sees the locks, but not what threads of OpenMP wait by.
TSAN_OPTIONS+=":ignore_noninstrumented_modules=1"
export OMP_NUM_THREADS=1
for kind in $kinds; do
    flags="${kind/address/address,undefined}"
    say "programs of tests/cpp: $flags"
    export FLAMBEAU_CPP_FLAGS="-fsanitize=$flags -fno-sanitize-recover=all -g1 -O1 -w"
    # Extension modules are loaded by an interpreter that is not instrumented.
    [ "$kind" = thread ] || "$PY" -m tools.file_mutations --sanitized --count 20000
    nice -n 10 "$PY" -m pytest -q -p no:cacheprovider tests/cpp --ignore tests/cpp/test_extension.py "$@"
done
