# SPDX-License-Identifier: MIT
"""Weights that the running module transforms for Winograd convolutions have the bits that the compiler gives to those that it
knows, for every form, on every ISA, shared by any number of workers."""
import pytest

from kernels.test_conv_winograd_kernels import FORM_KNOBS, FORMS
from support import kernel_builder

# groups, channels, kernels of one group: lanes and channels that are left over, and none
LAYERS = [(1, 16, 32), (2, 19, 37), (1, 1, 1), (3, 8, 20)]

CHECK = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv/winograd_weights.h"

static float *numbers(int64_t n, uint32_t seed) {
  float *list = malloc((size_t)n * sizeof *list);
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 1664525 + 1013904223;
    list[i] = (float)(int32_t)seed * 0x1p-31F;
  }
  return list;
}

/* ./program GROUPS CHANNELS KERNELS */
int main(int count, char **arguments) {
  if (count != 4) return 2;
  int64_t groups = atoi(arguments[1]), channels = atoi(arguments[2]), kernels = atoi(arguments[3]);
  WinogradWeights form = {{TILE_H, TILE_W, WINDOW_H, WINDOW_W}, LANES, OC_VECTORS, channels, kernels};
  int64_t floats = winograd_weights_floats(&form), all = groups * floats, slot = (POINTS * CHANNELS + TURNED) * LANES;
  float *w = numbers(groups * kernels * channels * TAPS, 1), *due = malloc((size_t)all * sizeof *due);
  for (int64_t group = 0; group < groups; group++)
    winograd_weights_pack(&form, w + group * kernels * channels * TAPS, due + group * floats);
  for (int size = 1; size <= 7; size += 3)
    for (int64_t slots = 1; slots <= 4; slots += 3) {
      float *packed = numbers(all, 2), *scratch = numbers(slots * slot, 3);
      for (int rank = size - 1; rank >= 0; rank--)
        winograd_weights(&(Team){.rank = rank, .size = size}, w, packed, scratch, groups, channels, kernels, slots, slot);
      if (memcmp(packed, due, (size_t)all * sizeof *due)) return 1;
      free(packed);
      free(scratch);
    }
  puts("the same bits");
  return 0;
}
"""


@pytest.mark.parametrize("isa", kernel_builder.isas("sve256", "rvv128"))
def test_the_module_transforms_as_the_compiler_does(isa, tmp_path):
    kernel_builder.emulator(isa)
    cases = kernel_builder.share_of([(form, 1 + i % 4) for i, form in enumerate(FORMS)], isa)
    for i, (form, vectors) in enumerate(cases):
        folder = tmp_path / str(i)
        folder.mkdir()
        text = kernel_builder.template("winograd_weights", **dict(zip(FORM_KNOBS, form)), OC_VECTORS=vectors)
        program = kernel_builder.build(folder, isa, {"check.c": text + CHECK, "compiler/kernels/conv/winograd_weights.c": None},
                                       optimised=isa in ("avx512", "avx2") and i == 0)
        for layer in LAYERS:
            done = kernel_builder.run(program, isa, *layer)
            assert (done.returncode, done.stdout) == (0, "the same bits\n"), (form, vectors, layer, done.stderr)
