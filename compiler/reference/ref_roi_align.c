/* SPDX-License-Identifier: MIT */
/* RoiAlign: bins of a region, each the mean or the largest of points spread evenly over it. */
#include <math.h>

#include "reference/kernels.h"

typedef struct Bins {
  bool largest;
  double top, left, height, width; /* of the region's first bin, in pixels */
  int64_t samples_h, samples_w;
} Bins;

static Bins bins_of(const Node *node, const Tensor *rois, int64_t region) {
  double scale = node_float(node, ATTR_spatial_scale), edge[4];
  bool half_pixel = node_word(node, ATTR_coordinate_transformation_mode) == ROI_half_pixel;
  for (int k = 0; k < 4; k++) edge[k] = tensor_get(rois, region * 4 + k) * scale - (half_pixel ? 0.5 : 0);
  double least = half_pixel ? -INFINITY : 1; /* extent of a region */
  Bins bins = {.largest = node_word(node, ATTR_mode) == ROI_MODE_max, .left = edge[0], .top = edge[1]};
  bins.width = fmax(edge[2] - edge[0], least) / (double)node_int(node, ATTR_output_width);
  bins.height = fmax(edge[3] - edge[1], least) / (double)node_int(node, ATTR_output_height);
  int64_t samples = node_int(node, ATTR_sampling_ratio);
  bins.samples_h = samples ? samples : (int64_t)ceil(bins.height);
  bins.samples_w = samples ? samples : (int64_t)ceil(bins.width);
  return bins;
}

/* The four pixels around a point, weighted; nothing more than a pixel away from the image. */
static double point_of(const Tensor *x, int64_t plane, double y, double u, bool largest) {
  int64_t H = x->shape[2], W = x->shape[3];
  if (!(y >= -1 && y <= (double)H && u >= -1 && u <= (double)W)) return 0;
  y = fmin(fmax(y, 0), (double)(H - 1));
  u = fmin(fmax(u, 0), (double)(W - 1));
  int64_t top = (int64_t)y, left = (int64_t)u;
  double sum = 0, most = -INFINITY;
  for (int k = 0; k < 4; k++) {
    int64_t h = top + k / 2 < H ? top + k / 2 : H - 1, w = left + k % 2 < W ? left + k % 2 : W - 1;
    double v = y - (double)top, t = u - (double)left;
    double term = (k / 2 ? v : 1 - v) * (k % 2 ? t : 1 - t) * tensor_get(x, (plane * H + h) * W + w);
    sum += term;
    most = fmax(most, term);
  }
  return largest ? most : sum;
}

static double bin_of(const Tensor *x, int64_t plane, const Bins *bins, int64_t oh, int64_t ow) {
  double sum = 0, most = -INFINITY;
  for (int64_t i = 0; i < bins->samples_h; i++) {
    double y = bins->top + ((double)oh + ((double)i + 0.5) / (double)bins->samples_h) * bins->height;
    for (int64_t j = 0; j < bins->samples_w; j++) {
      double u = bins->left + ((double)ow + ((double)j + 0.5) / (double)bins->samples_w) * bins->width;
      double value = point_of(x, plane, y, u, bins->largest);
      sum += value;
      most = fmax(most, value);
    }
  }
  if (bins->samples_h < 1 || bins->samples_w < 1) return 0;
  return bins->largest ? most : sum / (double)(bins->samples_h * bins->samples_w);
}

const char *ref_roi_align(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *images = inputs[2];
  Tensor *y = outputs[0];
  int64_t C = x->shape[1], H = y->shape[2], W = y->shape[3];
  for (int64_t i = 0; i < tensor_count(y); i++) {
    int64_t region = i / (C * H * W), image = tensor_get_int(images, region);
    if (image < 0 || image >= x->shape[0]) return "an image is out of range";
    Bins bins = bins_of(node, inputs[1], region);
    tensor_set(y, i, bin_of(x, image * C + i / (H * W) % C, &bins, i / W % H, i % W));
  }
  return NULL;
}
