#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers, apart from the ordinary build, and runs
# the tests with it, or what is asked: asan.sh [pytest options], asan.sh fuzz [options of tools.fuzz],
# asan.sh python [arguments].

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder="$(package asan)"
# One instruction set is instrumented: all are compiled from the same sources.
nice -n 10 scripts/build.sh asan -DFLAMBEAU_SANITIZE=address,undefined -DFLAMBEAU_SANITIZED_ISA=v3 \
    "-DFLAMBEAU_PACKAGE=$folder/flambeau"
cd "$folder"

# The interpreter is not instrumented, so the runtimes have to be loaded before anything else.
runtimes="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so)"
runtimes+=":$(g++ -print-file-name=libstdc++.so)"
# Python itself leaks at exit; leaks of tensors are found by repeating calls (tools/fuzz.py).
# What takes instrumented code longer to fill than the fuzzer waits for an answer is refused.
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=0:allocator_may_return_null=1"
ASAN_OPTIONS+=":max_allocation_size_mb=1024:detect_stack_use_after_return=0"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
# Objects that are not instrumented fill vectors that others read.
ASAN_OPTIONS+=":detect_container_overflow=0:alloc_dealloc_mismatch=0"
export PYTHONMALLOC=malloc PYTHONPATH="$folder" OMP_NUM_THREADS=2 FLAMBEAU_ISA=v3
# Compiled functions are instrumented too, and kept apart in the cache by the name of their compiler.
export CXX="$ROOT/scripts/sanitized_cxx.sh"
run() { LD_PRELOAD="$runtimes" exec nice -n 10 "$PY" "$@"; }
case "${1:-}" in
    fuzz) run -m tools.fuzz "${@:2}" ;;
    python) run "${@:2}" ;;
    *) run -m pytest -q -p no:cacheprovider "$@" ;;
esac
