#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a test program for AArch64 with NEON and runs it under QEMU: cross_test.sh CLANG SOURCE ROOT.
# Prints SKIP if the cross libc or QEMU is missing.
clang=$1 source=$2 root=$3
skip() {
  echo "1..0 # SKIP not installed: $1"
  exit 0
}
# All functions at all floats would take hours under QEMU, so only a named function is tested at all floats.
[ "${RNNCC_EXHAUSTIVE-}" != 1 ] || unset RNNCC_EXHAUSTIVE
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip qemu-aarch64
[ "$(uname -m)" = aarch64 ] || [ -e /usr/aarch64-linux-gnu/lib/libc.a ] || skip libc6-dev-arm64-cross
program=$(mktemp) || exit 1
trap 'rm -f "$program"' EXIT
"$clang" --target=aarch64-linux-gnu -static -O2 -std=gnu11 -DSTRIDE=65537 -DDRAWS=50000 -D_GNU_SOURCE -DSIMD_NEON -fno-math-errno \
  -Wno-ignored-attributes -I"$root/templates" -I"$root/runtime" "$source" -lm -lpthread -o "$program" || exit 1
"$qemu" "$program"
