#!/bin/bash
# SPDX-License-Identifier: MIT
# mutants.sh PROGRAM FOUND ROOT [OPTION...]: mutants of real models go through fuzz_mutants. The models: Debian's and the
# Python package's conformance suites, what the tests of PyTorch's exporters wrote, the models that come with rnncc, and
# those that were found once. By default 2,000 mutants, in long tests 20,000, of some models; or, with RNNCC_FUZZ_ALL=1,
# of all, for $RNNCC_FUZZ_SECONDS: then what is new stays in FOUND. Exit 1 if there is a finding: a crash, undefined
# behaviour, a leak, an internal error, 2 GB, or 100 s, which are ten of an rnncc without sanitizers.
set -eu
program=$1 found=$2 root=$3
shift 3
models=150 mutants=2000 most=64k
[ -z "${RNNCC_LONG_TESTS-}" ] || mutants=20000

all_models() {
  find "$root/build/conformance" /usr/share/libonnx-testdata -name model.onnx -size -$most 2>/dev/null
  find "$root/build/exported" -name '*.onnx' -size -$most 2>/dev/null
  find "$root/models" -maxdepth 1 -name '*.json' -size -$most
}
every=1 # of the models
[ -n "${RNNCC_FUZZ_ALL-}" ] || every=$(($(all_models | wc -l) / models + 1))

seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
all_models | sort | awk "NR % $every == 0" | while read -r model; do cp "$model" "$seeds/$(echo "$model" | tr / _)"; done
cp "$root"/tests/fuzz/corpus/{mutants,onnx_model,json_model}/* "$seeds"

if [ -n "${RNNCC_FUZZ_ALL-}" ]; then
  new=$found amount=-max_total_time=$RNNCC_FUZZ_SECONDS
else
  new=$seeds/new amount=-runs=$((mutants + $(find "$seeds" -type f | wc -l)))
fi
"$program" "$amount" -seed=1 -close_fd_mask=2 -create_missing_dirs=1 -max_len=100000 -timeout=100 -rss_limit_mb=3000 \
  -malloc_limit_mb=2000 -artifact_prefix="$(dirname "$found")/" "$@" "$new" "$seeds" || exit 1
