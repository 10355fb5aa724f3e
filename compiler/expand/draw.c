/* SPDX-License-Identifier: MIT */
#include "expand/draw.h"

#include "ir/family.h"
#include "ir/tensor.h"
#include "random.h"
#include "shapes/shape.h"

enum { DRAW_OF, DRAW_KEY }; /* its inputs */

/* Numbers of one block of random words: four for f32, two for f64. */
static int block_numbers(uint64_t key, uint64_t draw, uint64_t block, DType dtype, int law, double *numbers) {
  uint32_t word[RANDOM_WORDS];
  bool wide = dtype == RNNCC_F64;
  random_block(key, draw, block, word);
  if (wide)
    (law == DRAW_normal ? random_normal_doubles : random_uniform_doubles)(word, numbers);
  else
    (law == DRAW_normal ? random_normal_floats : random_uniform_floats)(word, numbers);
  return wide ? 2 : 4;
}

static const char *ref_draw(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  uint64_t draw = (uint64_t)tensor_get_int(inputs[DRAW_OF], 0), key = (uint64_t)tensor_get_int(inputs[DRAW_KEY], 0);
  double first = node_float(node, ATTR_start), step = node_float(node, ATTR_scale), numbers[RANDOM_WORDS];
  Tensor *y = outputs[0];
  for (int64_t at = 0, block = 0, n = tensor_count(y); at < n; block++) {
    int count = block_numbers(key, draw, (uint64_t)block, y->dtype, node_word(node, ATTR_mode), numbers);
    for (int i = 0; i < count && at < n; i++) tensor_set(y, at++, random_scaled(first, step, numbers[i]));
  }
  return NULL;
}

/* No rule has its shape: it is drawn in the one that is asked for. */
const OpInfo op_draw = {
    .kind = OP_Draw,
    .name = "Draw",
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .attributes = (const AttributeSpec[]){{.id = ATTR_mode,
                                           .kind = ATTRIBUTE_WORD,
                                           .required = true,
                                           .words = (const char *const[]){"uniform", "normal", NULL}},
                                          {.id = ATTR_start, .kind = ATTRIBUTE_FLOAT, .required = true},
                                          {.id = ATTR_scale, .kind = ATTRIBUTE_FLOAT, .required = true},
                                          {0}},
    .layout = LAYOUT_DEPENDENT,
    .reference = ref_draw,
    .family = &family_draw,
};

Value *drawn(const Formula *f, const Node *node, DrawLaw law, double first, double step, DType dtype, int rank,
             const Dim *const *shape) {
  Node *draw = graph_node(f->graph, &op_draw, f->name, op_draw.max_inputs, 1);
  draw->where = f->where;
  for (int i = 0; i < N_DRAW_INPUTS; i++) draw->inputs[i] = node->inputs[node->op->max_inputs + i];
  set_attribute(f->graph, draw, attribute_one_of(ATTR_mode, (int)law));
  set_attribute(f->graph, draw, attribute_float(ATTR_start, first));
  set_attribute(f->graph, draw, attribute_float(ATTR_scale, step));
  graph_set_output(draw, 0, graph_value(f->graph, f->name, f->where));
  draw->outputs[0]->dtype = dtype;
  set_shape(f->graph, draw, 0, rank, shape);
  return draw->outputs[0];
}
