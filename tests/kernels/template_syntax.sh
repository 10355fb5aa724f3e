#!/bin/sh
# SPDX-License-Identifier: MIT
# Every template compiles alone, without a warning, on two of the eight ISAs, in long tests on each: template_syntax.sh
# CLANG ROOT.
clang=$1 root=$2
n=0 failed=0 isas=0
every=4
[ -z "${RNNCC_LONG_TESTS-}" ] || every=1
precompiled=$(mktemp -d)
trap 'rm -rf "$precompiled"' EXIT
# Of templates/*.c every fourth, which one differs by ISA; in long tests all.
chosen() { ls "$root"/templates/*.c | awk "(NR + $isas) % $every == 0"; }
check() { # ISA, FLAGS...
  isa=$1
  shift
  isas=$((isas + 1))
  set -- -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-function "$@"
  "$clang" "$@" -Xclang -fno-pch-timestamp -x c-header "$root/tests/support/intrinsics.h" -o "$precompiled/$isa.pch"
  set -- -fsyntax-only "$@" -include-pch "$precompiled/$isa.pch" -I"$root/templates" -I"$root/runtime"
  "$clang" "$@" $(chosen) 2>/dev/null && all=right || all=wrong
  for template in $(chosen); do
    n=$((n + 1))
    result=ok
    [ $all = right ] || "$clang" "$@" "$template" || {
      result="not ok"
      failed=1
    }
    echo "$result $n - $(basename "$template" .c)_compiles_for_$isa"
  done
}
check avx512 --target=x86_64-linux-gnu -march=x86-64-v4 -mavx512bf16 -DSIMD_AVX512
check avx2 --target=x86_64-linux-gnu -march=x86-64-v3 -DSIMD_AVX2
check sse42 --target=x86_64-linux-gnu -march=x86-64-v2 -DSIMD_SSE42
if [ -e /usr/riscv64-linux-gnu/include/stdint.h ]; then
  check rvv256 --target=riscv64-linux-gnu -march=rv64gcv_zvl256b -mrvv-vector-bits=zvl -DSIMD_RVV256
else
  n=$((n + 1))
  echo "ok $n - templates_compile_for_rvv256 # SKIP not installed: libc6-dev-riscv64-cross"
fi
check plain -DSIMD_PLAIN -DSIMD_PLAIN_LANES=4
check wide_plain -DSIMD_PLAIN -DSIMD_PLAIN_LANES=16
if [ "$(uname -m)" = aarch64 ] || [ -e /usr/aarch64-linux-gnu/include/stdint.h ]; then
  check neon --target=aarch64-linux-gnu -DSIMD_NEON
  check sve256 --target=aarch64-linux-gnu -march=armv8.2-a+sve -msve-vector-bits=256 -DSIMD_SVE256
else
  n=$((n + 1))
  echo "ok $n - templates_compile_for_neon # SKIP not installed: libc6-dev-arm64-cross"
fi
echo "1..$n"
exit $failed
