#!/bin/sh
# The compiler of generated code under the sanitizers (asan.sh): the last option of a kind is the one
# that counts. The compiler itself runs without the runtimes that the interpreter has preloaded.

unset LD_PRELOAD
exec g++ "$@" -w -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
