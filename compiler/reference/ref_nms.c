/* SPDX-License-Identifier: MIT */
#include "reference/kernels.h"

typedef struct Box {
  double x1, y1, x2, y2;
} Box;

static Box box_of(const Tensor *boxes, int64_t at, bool centred) {
  double v[4];
  for (int i = 0; i < 4; i++) v[i] = tensor_get(boxes, 4 * at + i);
  Box box = {v[1], v[0], v[3], v[2]};
  if (centred) box = (Box){v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
  if (box.x1 > box.x2) box = (Box){box.x2, box.y1, box.x1, box.y2};
  if (box.y1 > box.y2) box = (Box){box.x1, box.y2, box.x2, box.y1};
  return box;
}

static double area_of(Box b) { return (b.x2 - b.x1) * (b.y2 - b.y1); }

static double overlap_of(Box a, Box b) {
  double width = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
  double height = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
  double all = area_of(a) + area_of(b) - width * height;
  if (width <= 0 || height <= 0 || area_of(a) <= 0 || area_of(b) <= 0 || all <= 0) return 0;
  return width * height / all;
}

typedef struct Suppression {
  const Tensor *boxes, *scores;
  Tensor *y;
  int64_t found, n, limit;
  double overlap, least;
  bool has_least, centred;
} Suppression;

/* Is the box out: taken, too low, or over one that was taken since `first`? */
static bool is_out(const Suppression *s, int64_t image, int64_t row, int64_t i, int64_t first) {
  if (s->has_least && !(tensor_get(s->scores, row * s->n + i) > s->least)) return true;
  for (int64_t k = first; k < s->found; k++) {
    int64_t taken = tensor_get_int(s->y, 3 * k + 2);
    if (taken == i) return true;
    Box a = box_of(s->boxes, image * s->n + taken, s->centred), b = box_of(s->boxes, image * s->n + i, s->centred);
    if (overlap_of(a, b) > s->overlap) return true;
  }
  return false;
}

static void suppress(Suppression *s, int64_t image, int64_t of_class, int64_t row) {
  int64_t first = s->found;
  while (s->found - first < s->limit) {
    int64_t best = -1;
    for (int64_t i = 0; i < s->n; i++) {
      bool better = best < 0 || tensor_get(s->scores, row * s->n + i) > tensor_get(s->scores, row * s->n + best);
      if (better && !is_out(s, image, row, i, first)) best = i;
    }
    if (best < 0) return;
    tensor_set_int(s->y, 3 * s->found, image);
    tensor_set_int(s->y, 3 * s->found + 1, of_class);
    tensor_set_int(s->y, 3 * s->found++ + 2, best);
  }
}

const char *ref_nms(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *limit = optional_input(node, inputs, 2), *overlap = optional_input(node, inputs, 3);
  const Tensor *least = optional_input(node, inputs, 4);
  Suppression s = {.boxes = inputs[0], .scores = inputs[1], .y = outputs[0], .n = inputs[0]->shape[1]};
  s.limit = limit ? tensor_get_int(limit, 0) : 0;
  s.overlap = overlap ? tensor_get(overlap, 0) : 0;
  s.has_least = least != NULL;
  s.least = least ? tensor_get(least, 0) : 0;
  s.centred = node_int(node, ATTR_center_point_box) != 0;
  int64_t classes = s.scores->shape[1];
  for (int64_t row = 0; row < s.scores->shape[0] * classes; row++) suppress(&s, row / classes, row % classes, row);
  s.y->shape[0] = s.found;
  return NULL;
}
