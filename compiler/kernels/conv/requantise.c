/* SPDX-License-Identifier: MIT */
#include "kernels/conv/requantise.h"

#include <math.h>

#include "ir/tensor.h"
#include "kernels/conv/second_step.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/numbers.h"
#include "template/specialise.h"

/* Fields of Finish in templates/requantise.h. */
enum { LEAST, MOST, ZERO, Y_FACTOR, RESIDUAL_FACTOR, ADDEND, DIVISOR, BEFORE_ROUNDING, FINISH_FIELDS };
/* STEP_* there. */
enum { STEP_NONE, STEP_BY_FACTORS, STEP_DIVIDED };

/* Inputs of QLinearAdd: each of a tensor, its scale and its zero point. */
enum { ADD_A = 0, ADD_B = 3, ADD_C = 6 };
/* y of QLinearLeakyRelu. */
enum { RELU_Y = 3 };

static bool is_signed(const Value *value) { return value->dtype == RNNCC_I8; }

/* A step adds w * (x - dot_zero), x as u8; of an i8 x that is 128 more. */
int step_zero(const Graph *graph, const Value *x) { return graph->config->target->dot_zero - (is_signed(x) ? 128 : 0); }

/* ---- constants ---- */

/* zero: the input whose products are to be zero. */
static void pack_start(Graph *graph, Node *node, const IntegerConv *numbers, int64_t zero) {
  int64_t padded = round_up(numbers->kernels, graph->config->target->lanes);
  int32_t *start = ARENA_ARRAY(graph->arena, int32_t, padded);
  for (int64_t k = 0; k < numbers->kernels; k++) {
    int64_t sum = 0;
    for (int64_t i = 0; i < numbers->depth; i++) sum += numbers->weights[k * numbers->depth + i];
    start[k] = (int32_t)(uint32_t)(uint64_t)(numbers->bias[k] - zero * sum);
  }
  graph_pack(graph, node, graph_constant(graph, "start", RNNCC_I32, 1, &padded, start));
}

static void pack_bias(Graph *graph, Node *node, const IntegerConv *numbers) {
  float *bias = ARENA_ARRAY(graph->arena, float, numbers->kernels);
  for (int64_t k = 0; k < numbers->kernels; k++) bias[k] = (float)numbers->bias[k];
  graph_pack(graph, node, channel_constant(graph, "start", bias, numbers->kernels, graph->config->target->lanes));
}

static void pack_scale(Graph *graph, Node *node, const IntegerConv *numbers) {
  int64_t lanes = graph->config->target->lanes;
  graph_pack(graph, node, channel_constant(graph, "scale", numbers->scale, numbers->kernels, lanes));
}

static float number_of(const Value *value) { return value ? (float)value_element(value, 0) : 0; }

/* What a step adds to numbers that it has rounded: its zero point, or 0. */
static float zero_behind(const Node *step) {
  if (is_op(step, OP_QLinearLeakyRelu)) return number_of(node_input(step, RELU_Y + 1));
  return node_int(step, ATTR_rounds_first) ? number_of(node_input(step, ADD_C + 1)) : 0;
}

static void add_residual(SecondStep *step, const Node *sum, float late) {
  Value *const *in = sum->inputs;
  step->has_residual = true;
  step->residual_zero = (int)number_of(in[ADD_B + 2]);
  step->residual_scale = number_of(in[ADD_B + 1]);
  step->scale = number_of(in[ADD_C]);
  step->before_rounding = number_of(node_input(sum, ADD_C + 1)) - late;
}

/* Of an epilogue. */
static SecondStep second_step_of(const Node *node) {
  const Node *taken = node->epilogue[0];
  DType type = node->outputs[0]->dtype;
  float late = zero_behind(taken);
  int least = (int)dtype_min(type), most = (int)dtype_max(type), zero = (int)number_of(node_input(taken, 2));
  SecondStep step = {.y_least = least - zero,
                     .y_most = most - zero,
                     .y_scale = number_of(taken->inputs[1]),
                     .residual_least = least,
                     .residual_most = most,
                     .least = least - (int)late,
                     .most = most - (int)late};
  if (is_op(taken, OP_QLinearAdd))
    add_residual(&step, taken, late);
  else
    step.scale = number_of(taken->inputs[RELU_Y]);
  return step;
}

static int step_kind(const Node *node) {
  SecondFactors factors;
  if (!node->n_epilogue) return STEP_NONE;
  SecondStep step = second_step_of(node);
  return second_step_factors(&step, &factors) ? STEP_BY_FACTORS : STEP_DIVIDED;
}

static void set_second_step(const Node *node, float *finish) {
  SecondFactors factors;
  SecondStep step = second_step_of(node);
  finish[ZERO] = zero_behind(node->epilogue[0]);
  if (second_step_factors(&step, &factors)) {
    finish[Y_FACTOR] = factors.of_y;
    finish[RESIDUAL_FACTOR] = factors.of_residual;
    finish[ADDEND] = factors.addend;
    return;
  }
  finish[Y_FACTOR] = step.y_scale;
  finish[RESIDUAL_FACTOR] = step.residual_scale;
  finish[ADDEND] = (float)step.residual_zero;
  finish[DIVISOR] = step.scale;
  finish[BEFORE_ROUNDING] = step.before_rounding;
}

static void pack_finish(Graph *graph, Node *node, const IntegerConv *numbers) {
  const int64_t fields = FINISH_FIELDS;
  DType type = node->outputs[0]->dtype;
  float *finish = ARENA_ARRAY(graph->arena, float, fields);
  finish[LEAST] = (float)dtype_min(type) - (float)numbers->y_zero;
  finish[MOST] = (float)dtype_max(type) - (float)numbers->y_zero;
  finish[ZERO] = (float)numbers->y_zero;
  if (node->n_epilogue) set_second_step(node, finish);
  graph_pack(graph, node, graph_constant(graph, "finish", RNNCC_F32, 1, &fields, finish));
}

void pack_requantise(Graph *graph, Node *node, const IntegerConv *numbers, StartOfSums start) {
  int64_t zero = numbers->x_zero;
  if (start == START_IN_FLOATS)
    pack_bias(graph, node, numbers);
  else
    pack_start(graph, node, numbers, start == START_OF_DOTS ? zero - step_zero(graph, node->inputs[0]) : zero);
  pack_scale(graph, node, numbers);
  pack_finish(graph, node, numbers);
}

/* ---- the call ---- */

static int x_zero_of(const Node *node) { return (int)number_of(node_input(node, integer_conv_inputs(node)->x_zero)); }

/* May a scaled sum leave what converts to i32? */
static bool needs_bounds(const Graph *graph, const Node *node) {
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  float most = 0;
  for (int64_t k = 0; k < numbers.kernels; k++) most = fmaxf(most, numbers.scale[k]);
  return integer_conv_reach(node) * most > 0x1p30;
}

void knobs_requantise(KernelSpec *spec, const Graph *graph, const Node *node) {
  kernel_knob(spec, "SIGNED_X", is_signed(node->inputs[0]));
  kernel_knob(spec, "SIGNED_Y", is_signed(node->outputs[0]));
  kernel_knob(spec, "BOUNDS", needs_bounds(graph, node));
  kernel_knob(spec, "STEP", step_kind(node));
  kernel_knob(spec, "RESIDUAL", requantise_residual(node) != NULL);
}

void knob_skips(KernelSpec *spec, const Node *node) { kernel_knob(spec, "SKIPS", x_zero_of(node) == 0); }

void operands_requantise(Call *call, const Graph *graph, const Node *node) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  operand_value(call, "x", conv->x, READ);
  operand_value(call, "w", node->packed[PACKED_WEIGHTS], READ);
  operand_value(call, "start", node->packed[PACKED_START], READ);
  operand_value(call, "scale", node->packed[PACKED_SCALE], READ);
  operand_value(call, "finish", node->packed[PACKED_FINISH], READ);
  operand_value(call, "residual", conv->residual, READ);
  operand_value(call, "y", conv->y, WRITE);
  operands_images(call, graph, conv);
  operand_integer(call, "x_zero", x_zero_of(node));
}

/* ---- the residual ---- */

static bool is_number(const Value *value) { return value && value->data && value_count(value) == 1; }

static bool has_constants(const Node *step, int but_for) {
  for (int i = 1; i < step->n_inputs; i++)
    if (i != but_for && step->inputs[i] && !is_number(step->inputs[i])) return false;
  return true;
}

/* As the formulas have it, y less this zero point is what was rounded. */
static bool continues(const Node *host, const Node *step) {
  return number_of(node_input(host, integer_conv_inputs(host)->y_zero)) == number_of(node_input(step, 2));
}

bool requantise_takes(const Node *host, const Node *step) {
  if (host->n_epilogue || !step->inputs[0] || !continues(host, step)) return false;
  if (is_op(step, OP_QLinearLeakyRelu)) return has_constants(step, 0) && number_of(step->inputs[RELU_Y]) != 0;
  if (!is_op(step, OP_QLinearAdd) || !has_constants(step, ADD_B)) return false;
  const Value *residual = step->inputs[ADD_B];
  return !residual->data && shapes_agree(residual, step->inputs[ADD_A]) && number_of(step->inputs[ADD_C]) != 0;
}

/* The step's inputs but its first stand behind the node's own. */
const Value *requantise_residual(const Node *node) {
  if (!node->n_epilogue || is_op(node->epilogue[0], OP_QLinearLeakyRelu)) return NULL;
  return node->inputs[node->op->max_inputs + ADD_B - 1];
}
