/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/activation_body.h"

#include <strings.h>

#include "ir/op.h"

/* In a body, $a and $b are alpha and beta. Their defaults are those of the ONNX operator of the same name; Affine and
 * ScaledTanh have none, and get 0 as in ONNX Runtime. NaN gives NaN as in ONNX Runtime: except in ThresholdedRelu. */
static const struct Row {
  const char *name;
  bool takes_alpha, takes_beta;
  float alpha, beta;
  const char *body;
} rows[] = {
    {"Affine", true, true, 0, 0, "return vfma($b, $a, x);"},
    {"Elu", true, false, 1, 0, "return vselect(vlt(x, vzero()), vmul($a, vexpm1(x)), x);"},
    {"HardSigmoid", true, true, 0.2f, 0.5f, "return vmax_bound(vmin_bound(vfma($b, $a, x), vset(1)), vzero());"},
    {"LeakyRelu", true, false, 0.01f, 0, "return vselect(vlt(x, vzero()), vmul($a, x), x);"},
    {"Relu", false, false, 0, 0, "return vmax_bound(x, vzero());"},
    {"ScaledTanh", true, true, 0, 0, "return vmul($a, vtanh(vmul($b, x)));"},
    {"Sigmoid", false, false, 0, 0, "return vsigmoid(x);"},
    {"Softplus", false, false, 0, 0, "return vsoftplus(x);"},
    {"Softsign", false, false, 0, 0, "return vdiv(x, vadd(vset(1), vabs(x)));"},
    {"Tanh", false, false, 0, 0, "return vtanh(x);"},
    {"ThresholdedRelu", true, false, 1, 0, "return vselect(vgt(x, $a), x, vzero());"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const struct Row *find_row(const char *name) {
  for (int i = 0; i < N_ROWS; i++)
    if (!strcasecmp(rows[i].name, name)) return &rows[i];
  return NULL;
}

static const char *body_of(Arena *arena, const struct Row *row, float alpha, float beta) {
  Text text = text_new(arena);
  for (const char *at = row->body; *at; at++) {
    if (*at != '$') {
      text_bytes(&text, at, 1);
      continue;
    }
    at++;
    text_add(&text, "vset(");
    text_float(&text, *at == 'a' ? alpha : beta);
    text_add(&text, ")");
  }
  return text.data;
}

/* The list's next value; the default after its end. */
static float next_value(const Attribute *list, size_t *used, float otherwise) {
  return list && *used < list->count ? (float)list->floats[(*used)++] : otherwise;
}

/* activation_alpha and activation_beta have a value for each activation that takes one, as in ONNX Runtime. */
bool read_activation_bodies(Graph *graph, const Node *node, int directions, int per_direction,
                            const char *const *defaults, ActivationBodies *bodies) {
  const Attribute *names = node_attribute(node, ATTR_activations);
  const Attribute *alphas = node_attribute(node, ATTR_activation_alpha),
                  *betas = node_attribute(node, ATTR_activation_beta);
  size_t expected = (size_t)(directions * per_direction), alphas_used = 0, betas_used = 0;
  if (names && names->count != expected) {
    error_at(names->where, EXIT_INVALID, "%zu activations given; %s with %d direction%s has %zu", names->count,
             node->op->name, directions, directions > 1 ? "s" : "", expected);
    return false;
  }
  for (size_t i = 0; i < expected; i++) {
    const char *name = names ? names->strings[i] : defaults[i % (size_t)per_direction];
    const struct Row *row = find_row(name);
    if (!row) {
      error_at(names->where, EXIT_INVALID, "unknown activation `%s` of %s", name, node->op->name);
      return false;
    }
    float alpha = row->takes_alpha ? next_value(alphas, &alphas_used, row->alpha) : 0;
    float beta = row->takes_beta ? next_value(betas, &betas_used, row->beta) : 0;
    bodies->body[i / (size_t)per_direction][i % (size_t)per_direction] = body_of(graph->arena, row, alpha, beta);
  }
  return true;
}
