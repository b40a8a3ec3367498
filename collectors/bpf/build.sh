#!/bin/sh
# Builds the BPF object that the wheel of tidegate-edge ships: build.sh OBJECT. PYTHON knows tidegate_edge.
# Needs clang, llvm and libbpf-dev, here only: a host loads the object without a compiler.
set -eu
object=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python}" "$here/row_header.py" >"$work/row.h"
arch=$(uname -m | sed -e 's/x86_64/x86/' -e 's/aarch64/arm64/')
# Debian keeps asm/types.h in a directory of the processor's name, which clang's BPF target does not look into.
clang -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror "-D__TARGET_ARCH_$arch" "-I/usr/include/$(uname -m)-linux-gnu" \
    "-I$work" -c "$here/sockets.bpf.c" -o "$work/sockets.bpf.o"
# Without the lines of source that BTF does not need.
llvm-strip -g "$work/sockets.bpf.o"
mv "$work/sockets.bpf.o" "$object"
