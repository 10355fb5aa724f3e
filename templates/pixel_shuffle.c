/* SPDX-License-Identifier: MIT */
/*
 * Pixel shuffle of tensors blocked by channels (Shi et al., Real-time single image and video super-resolution using an
 * efficient sub-pixel convolutional neural network, 2016): y[n, k, h UP_H + u, w UP_W + v] =
 * x[n, (u UP_W + v) K + k, h, w]. K is a number of whole vectors, so that pixels move by vectors. A row of y is one
 * piece of work, and is written from left to right.
 */
#include "kernel.h"
#include "simd/simd.h"

/* Rows of y for one of x.
 * legal: 1..65536 */
enum { UP_H = 2 };
/* legal: 1..65536 */
enum { UP_W = 2 };

/* x: [n][UP_H UP_W blocks][height][width][LANES], y: [n][blocks][height UP_H][width UP_W][LANES], images x_image and
 * y_image floats apart. */
static void pixel_shuffle(const Team *team, const float *x, float *y, int64_t n, int64_t x_image, int64_t y_image,
                          int64_t blocks, int64_t height, int64_t width) {
  const int64_t plane = height * width * LANES;
  int64_t item, end;
  team_share(team, n * blocks * height * UP_H, &item, &end);
  for (; item < end; item++) {
    int64_t u = item % UP_H, row = item / UP_H % height, block = item / (UP_H * height) % blocks;
    int64_t image = item / (UP_H * height * blocks);
    const float *from = x + image * x_image + (u * UP_W * blocks + block) * plane + row * width * LANES;
    float *to = y + image * y_image + block * UP_H * UP_W * plane + (row * UP_H + u) * width * UP_W * LANES;
    for (int64_t w = 0; w < width; w++, from += LANES)
      for (int64_t v = 0; v < UP_W; v++, to += LANES) vstore(to, vload(from + v * blocks * plane));
  }
}
