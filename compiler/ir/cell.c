/* SPDX-License-Identifier: MIT */
#include "ir/cell.h"

#include <strings.h>

static const CellKind kinds[] = {
#define GATE(op, letter) #letter
#define DEFAULT(name) ACTIVATION_##name,
#define CELL(op, states, gates, last, names)                                                                           \
  {OP_##op,                                                                                                            \
   OP_##op##Training,                                                                                                  \
   OP_##op##Gradient,                                                                                                  \
   states,                                                                                                             \
   op##_GATES,                                                                                                         \
   gates,                                                                                                              \
   last,                                                                                                               \
   sizeof((ActivationKind[]){names}) / sizeof(ActivationKind),                                                         \
   {names}},
#include "ir/cells.def"
};

const CellKind *layer_cell(OpKind op) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].op == op || kinds[i].training == op || kinds[i].gradient == op) return &kinds[i];
  return NULL;
}

bool op_is_layer_training(OpKind op) { return layer_cell(op) && layer_cell(op)->training == op; }
bool op_is_layer_gradient(OpKind op) { return layer_cell(op) && layer_cell(op)->gradient == op; }

const CellKind *cell_kind(OpKind op) {
  const CellKind *kind = layer_cell(op);
  return kind && kind->op == op ? kind : NULL;
}

static const struct ActivationRow {
  const char *name;
  int parameters;
  float alpha, beta;
} rows[N_ACTIVATIONS] = {
#define ACTIVATION(name, ...) {#name, __VA_ARGS__},
#include "ir/cells.def"
};

ActivationKind activation_find(const char *name) {
  int kind = 0;
  while (kind < N_ACTIVATIONS && strcasecmp(rows[kind].name, name) != 0) kind++;
  return (ActivationKind)kind;
}

/* The list's next value; the default after its end. */
static float next_value(const Attribute *list, size_t *used, float otherwise) {
  return list && *used < list->count ? (float)list->floats[(*used)++] : otherwise;
}

/* activation_alpha and activation_beta have a value for each activation that takes one, as ONNX Runtime reads them;
 * ONNX's text would also allow one for every activation. */
int read_activations(const Node *node, Activation activations[2 * MAX_ACTIVATIONS]) {
  const CellKind *cell = layer_cell(node->op->kind);
  const Attribute *names = node_attribute(node, ATTR_activations);
  const Attribute *alphas = node_attribute(node, ATTR_activation_alpha),
                  *betas = node_attribute(node, ATTR_activation_beta);
  size_t alphas_used = 0, betas_used = 0, n = names ? names->count : 2 * (size_t)cell->activations;
  for (size_t i = 0; i < n; i++) {
    ActivationKind kind = names ? activation_find(names->strings[i]) : cell->defaults[i % (size_t)cell->activations];
    const struct ActivationRow *row = &rows[kind];
    activations[i] = (Activation){.kind = kind};
    if (row->parameters > 0) activations[i].alpha = next_value(alphas, &alphas_used, row->alpha);
    if (row->parameters > 1) activations[i].beta = next_value(betas, &betas_used, row->beta);
  }
  return (int)n;
}

bool activation_has_slope(const Activation *activation) {
  ActivationKind kind = activation->kind;
  if (kind == ACTIVATION_Elu || kind == ACTIVATION_LeakyRelu) return activation->alpha >= 0;
  return kind != ACTIVATION_ScaledTanh || activation->alpha != 0;
}
