/* SPDX-License-Identifier: MIT */
#include "reference/activation.h"

#include <math.h>
#include <strings.h>

static double affine(double x, double alpha, double beta) { return alpha * x + beta; }
static double elu(double x, double alpha, double beta) { return (void)beta, x < 0 ? alpha * expm1(x) : x; }
static double leaky_relu(double x, double alpha, double beta) { return (void)beta, x < 0 ? alpha * x : x; }
static double relu(double x, double alpha, double beta) { return (void)alpha, (void)beta, x < 0 ? 0 : x; }
static double scaled_tanh(double x, double alpha, double beta) { return alpha * tanh(beta * x); }
static double sigmoid(double x, double alpha, double beta) { return (void)alpha, (void)beta, 1 / (1 + exp(-x)); }
static double softsign(double x, double alpha, double beta) { return (void)alpha, (void)beta, x / (1 + fabs(x)); }
static double plain_tanh(double x, double alpha, double beta) { return (void)alpha, (void)beta, tanh(x); }
static double threshold(double x, double alpha, double beta) { return (void)beta, x > alpha ? x : 0; }
static double hard_sigmoid(double x, double alpha, double beta) {
  return isnan(x) ? x : fmax(0, fmin(1, alpha * x + beta));
}
static double softplus(double x, double alpha, double beta) {
  return (void)alpha, (void)beta, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Default alpha and beta are those of the ONNX operators of the same name. There is no Affine and no ScaledTanh among
 * them: these get ONNX Runtime's defaults, which are 0. */
static const struct {
  const char *name;
  double (*apply)(double x, double alpha, double beta);
  bool takes_alpha, takes_beta;
  double alpha, beta;
} ACTIVATIONS[] = {
    {"Affine", affine, true, true, 0, 0},
    {"Elu", elu, true, false, 1, 0},
    {"HardSigmoid", hard_sigmoid, true, true, 0.2, 0.5},
    {"LeakyRelu", leaky_relu, true, false, 0.01, 0},
    {"Relu", relu, false, false, 0, 0},
    {"ScaledTanh", scaled_tanh, true, true, 0, 0},
    {"Sigmoid", sigmoid, false, false, 0, 0},
    {"Softplus", softplus, false, false, 0, 0},
    {"Softsign", softsign, false, false, 0, 0},
    {"Tanh", plain_tanh, false, false, 0, 0},
    {"ThresholdedRelu", threshold, true, false, 1, 0},
};
enum { N_ACTIVATIONS = sizeof ACTIVATIONS / sizeof *ACTIVATIONS };

static int find_activation(const char *name) {
  for (int row = 0; row < N_ACTIVATIONS; row++)
    if (!strcasecmp(ACTIVATIONS[row].name, name)) return row;
  return -1;
}

/* The list's next value, as f32 holds it, or the default when the list is through. */
static double next_value(const Attribute *list, size_t *used, double otherwise) {
  return list && *used < list->count ? (double)(float)list->floats[(*used)++] : (double)(float)otherwise;
}

/* activation_alpha and activation_beta hold one value for each activation that takes one, in the order of the
 * activations, as ONNX Runtime reads them; ONNX's text would also allow one for every activation. */
const char *read_activations(const Node *node, int directions, int per_direction, const char *const *defaults,
                             Activation *activations) {
  const Attribute *names = node_attribute(node, ATTR_activations);
  const Attribute *alphas = node_attribute(node, ATTR_activation_alpha),
                  *betas = node_attribute(node, ATTR_activation_beta);
  size_t alphas_used = 0, betas_used = 0;
  if (names && names->count != (size_t)(directions * per_direction)) return "a wrong number of activations";
  for (int i = 0; i < directions * per_direction; i++) {
    int row = find_activation(names ? names->strings[i] : defaults[i % per_direction]);
    if (row < 0) return "an unknown activation";
    activations[i] = (Activation){ACTIVATIONS[row].apply, (float)ACTIVATIONS[row].alpha, (float)ACTIVATIONS[row].beta};
    if (ACTIVATIONS[row].takes_alpha) activations[i].alpha = next_value(alphas, &alphas_used, ACTIVATIONS[row].alpha);
    if (ACTIVATIONS[row].takes_beta) activations[i].beta = next_value(betas, &betas_used, ACTIVATIONS[row].beta);
  }
  return NULL;
}
