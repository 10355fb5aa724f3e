#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh PROGRAM FOUND CORPUS [OPTION...]: a run from the corpus; new inputs go to FOUND, inputs that break the program
# beside it. Exit 1 if there is one: libFuzzer's own code for that, 77, means a skipped test for Meson.
set -eu
program=$1 found=$2 corpus=$3
shift 3
"$program" -max_total_time="${RNNCC_FUZZ_SECONDS:-2}" -seed=1 -close_fd_mask=2 -create_missing_dirs=1 \
  -artifact_prefix="$(dirname "$found")/" "$@" "$found" "$corpus" || exit 1
