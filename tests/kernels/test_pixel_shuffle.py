# SPDX-License-Identifier: MIT
"""The pixels of phases, which are blocks of channels, are put between each other, on every ISA, shared by any number of workers."""
import pytest

from support import kernel_builder

UPS = [(1, 2), (2, 2), (3, 1), (2, 5)]  # UP_H, UP_W

CHECK = """
#include <stdio.h>
#include <stdlib.h>

enum { N = 2, BLOCKS = 3, HEIGHT = 4, WIDTH = 5, GAP = 7 * LANES };
enum { X_IMAGE = UP_H * UP_W * BLOCKS * HEIGHT * WIDTH * LANES, Y_IMAGE = X_IMAGE + GAP };

static float x[N * X_IMAGE], y[N * Y_IMAGE];

/* What y has of channel k, row and column. */
static float due(int image, int k, int row, int column) {
  int phase = row % UP_H * UP_W + column % UP_W, block = phase * BLOCKS + k / LANES;
  int pixel = (block * HEIGHT + row / UP_H) * WIDTH + column / UP_W;
  return x[image * X_IMAGE + pixel * LANES + k % LANES];
}

static float found(int image, int k, int row, int column) {
  int pixel = (k / LANES * HEIGHT * UP_H + row) * WIDTH * UP_W + column;
  return y[image * Y_IMAGE + pixel * LANES + k % LANES];
}

int main(void) {
  for (int size = 1; size <= 7; size += 3) {
    for (int i = 0; i < N * X_IMAGE; i++) x[i] = (float)(i + size);
    for (int i = 0; i < N * Y_IMAGE; i++) y[i] = -1;
    for (int rank = size - 1; rank >= 0; rank--)
      pixel_shuffle(&(Team){.rank = rank, .size = size}, x, y, N, X_IMAGE, Y_IMAGE, BLOCKS, HEIGHT, WIDTH);
    for (int image = 0; image < N; image++) {
      for (int k = 0; k < BLOCKS * LANES; k++)
        for (int row = 0; row < HEIGHT * UP_H; row++)
          for (int column = 0; column < WIDTH * UP_W; column++)
            if (found(image, k, row, column) != due(image, k, row, column)) return 1;
      for (int i = X_IMAGE; i < Y_IMAGE; i++)
        if (y[image * Y_IMAGE + i] != -1) return 2;
    }
  }
  puts("in their places");
  return 0;
}
"""


@pytest.mark.parametrize("isa", kernel_builder.isas("sve256", "rvv128"))
def test_pixels_go_to_their_places(isa, tmp_path):
    kernel_builder.emulator(isa)
    for up_h, up_w in UPS:
        folder = tmp_path / f"{up_h}x{up_w}"
        folder.mkdir()
        text = kernel_builder.template("pixel_shuffle", UP_H=up_h, UP_W=up_w)
        done = kernel_builder.run(kernel_builder.build(folder, isa, {"check.c": text + CHECK}), isa)
        assert (done.returncode, done.stdout) == (0, "in their places\n"), (up_h, up_w, done.stderr)
