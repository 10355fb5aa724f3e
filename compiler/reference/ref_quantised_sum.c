/* SPDX-License-Identifier: MIT */
/* QLinearAdd and QLinearLeakyRelu: every step is rounded to f32, as in its formula. */
#include <math.h>

#include "reference/kernels.h"

enum { INPUT_A = 0, INPUT_B = 3, INPUT_C = 6 };

/* The scale and the zero point behind input `first`. */
typedef struct Steps {
  double scale, zero;
} Steps;

static Steps steps_at(const Node *node, const Tensor *const *inputs, int scale) {
  const Tensor *zero = optional_input(node, inputs, scale + 1);
  return (Steps){tensor_get(inputs[scale], 0), zero ? tensor_get(zero, 0) : 0};
}

static double rounded(double x) { return (float)x; }

static double in_floats(const Tensor *x, int64_t i, Steps steps) {
  return rounded((tensor_get(x, i) - steps.zero) * steps.scale);
}

const char *ref_qlinear_add(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *a = inputs[INPUT_A], *b = inputs[INPUT_B];
  Tensor *y = outputs[0];
  Steps of_a = steps_at(node, inputs, INPUT_A + 1), of_b = steps_at(node, inputs, INPUT_B + 1);
  Steps of_y = steps_at(node, inputs, INPUT_C);
  bool rounds_first = node_int(node, ATTR_rounds_first) != 0;
  double least = (double)dtype_min(y->dtype), most = (double)dtype_max(y->dtype);
  Walk walk = walk_over(y->rank, y->shape);
  if (!walk_add_broadcast(&walk, y) || !walk_add_broadcast(&walk, a) || !walk_add_broadcast(&walk, b))
    bug("the operands fitted before");
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk)) {
    double sum = rounded(in_floats(a, walk.offset[1], of_a) + in_floats(b, walk.offset[2], of_b));
    double quotient = rounded(sum / of_y.scale);
    double number = rounds_first ? rint(quotient) + of_y.zero : rint(rounded(quotient + of_y.zero));
    tensor_set(y, walk.offset[0], fmin(fmax(number, least), most));
  }
  return NULL;
}

const char *ref_qlinear_leaky_relu(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Tensor *y = outputs[0];
  Steps of_x = steps_at(node, inputs, 1), of_y = steps_at(node, inputs, 3);
  double least = (double)dtype_min(y->dtype), most = (double)dtype_max(y->dtype);
  double alpha = rounded(node_float(node, ATTR_alpha));
  for (int64_t i = 0; i < tensor_count(y); i++) {
    double x = in_floats(inputs[0], i, of_x), leaky = x < 0 ? rounded(alpha * x) : x;
    tensor_set(y, i, fmin(fmax(rint(rounded(leaky / of_y.scale)) + of_y.zero, least), most));
  }
  return NULL;
}
