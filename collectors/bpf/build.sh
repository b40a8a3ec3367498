#!/bin/sh
# Builds a BPF object that the wheel of tidegate-edge ships: build.sh OBJECT. PYTHON knows tidegate_edge.
# The source is the file beside this one that has the object's name. Needs clang, llvm and libbpf-dev, here only: a host
# loads the object without a compiler.
set -eu
object=$1
here=$(dirname "$0")
name=$(basename "$object" .o)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python}" "$here/row_header.py" >"$work/row.h"
arch=$(uname -m | sed -e 's/x86_64/x86/' -e 's/aarch64/arm64/')
# Registers that clang keeps on the stack are kept by eight bytes: why, says `union key` of steer.bpf.c.
case $name in steer.bpf) cpu=v2 ;; *) cpu=v3 ;; esac
# Debian keeps asm/types.h in a directory of the processor's name, which clang's BPF target does not look into.
clang -target bpf "-mcpu=$cpu" -O2 -g -Wall -Wextra -Werror "-D__TARGET_ARCH_$arch" "-I/usr/include/$(uname -m)-linux-gnu" \
    "-I$work" -c "$here/$name.c" -o "$work/$name.o"
# Without the lines of source that BTF does not need.
llvm-strip -g "$work/$name.o"
mv "$work/$name.o" "$object"
