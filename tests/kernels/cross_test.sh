#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a test program for AArch64 with NEON, or another ISA, and runs it under QEMU: cross_test.sh CLANG SOURCE ROOT [ISA].
# The ISA plain-TRIPLE is plain C.
# Prints SKIP if the cross libc or QEMU is missing.
clang=$1 source=$2 root=$3
skip() {
  echo "1..0 # SKIP not installed: $1"
  exit 0
}
# All functions at all floats would take hours under QEMU, so only a named function is tested at all floats.
[ "${RNNCC_EXHAUSTIVE-}" != 1 ] || unset RNNCC_EXHAUSTIVE
isa=${4-neon}
case $isa in
neon) triple=aarch64-linux-gnu package=libc6-dev-arm64-cross flags= emulator=qemu-aarch64 cpu= ;;
neon_*)
  triple=aarch64-linux-gnu package=libc6-dev-arm64-cross emulator=qemu-aarch64 cpu="-cpu max"
  flags="-march=armv8.2-a+$(echo "${isa#neon_}" | tr _ +)"
  ;;
sve*)
  bits=${isa#sve} triple=aarch64-linux-gnu package=libc6-dev-arm64-cross emulator=qemu-aarch64
  flags="-march=armv8.2-a+sve -msve-vector-bits=$bits" cpu="-cpu max,sve-max-vq=$((bits / 128))"
  ;;
plain-powerpc64le-linux-gnu) triple=${isa#plain-} package=libc6-dev-ppc64el-cross flags= emulator=qemu-ppc64le cpu= ;;
plain-arm-linux-gnueabihf) triple=${isa#plain-} package=libc6-dev-armhf-cross flags= emulator=qemu-arm cpu= ;;
rvv*)
  bits=${isa#rvv} triple=riscv64-linux-gnu package=libc6-dev-riscv64-cross emulator=qemu-riscv64
  flags="-march=rv64gcv_zvl${bits}b -mrvv-vector-bits=zvl" cpu="-cpu rv64,v=true,vext_spec=v1.0,vlen=$bits"
  ;;
esac
qemu=$(command -v $emulator || command -v $emulator-static) || skip $emulator
[ "$(uname -m)" = "${triple%%-*}" ] || [ -e /usr/$triple/lib/libc.a ] || skip $package
program=$(mktemp) || exit 1
trap 'rm -f "$program"' EXIT
# clang takes 10 s to optimise the vocabulary in vectors of 512 bits: it does in long tests.
level=-O2
[ -n "${RNNCC_LONG_TESTS-}" ] || [ "$isa $(basename "$source")" != "sve512 vocabulary.c" ] || level=-O0
macro=SIMD_$(echo "${isa%%[-_]*}" | tr '[:lower:]' '[:upper:]')
"$clang" --target=$triple $flags -static $level -std=gnu11 -DSTRIDE=65537 -DDRAWS=50000 -D_GNU_SOURCE -D"$macro" -fno-math-errno \
  -Wno-ignored-attributes -I"$root/templates" -I"$root/runtime" "$source" -lm -lpthread -o "$program" || exit 1
"$qemu" $cpu "$program"
