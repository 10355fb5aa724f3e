// SPDX-License-Identifier: MIT
// A network is trained from C++: y = w x + b learns 3 x - 1. The module has x [8], t [8], weights w [1] and b [1].
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "rnncc.hpp"

static int failures;

#define EXPECT(it)                                                                                                     \
  do {                                                                                                                 \
    if (!(it)) std::printf("line %d: %s\n", __LINE__, #it), failures++;                                                \
  } while (0)

template <class F> static rnncc_status status_of(const F &function) {
  try {
    function();
  } catch (const rnncc::error &it) {
    return it.status();
  }
  return RNNCC_OK;
}

static float loss_of(rnncc::trainer &trainer, const float *x, const float *t) {
  float loss = 0;
  trainer.run({rnncc::input(x, {8}), rnncc::input(t, {8})}, {rnncc::output(&loss, 1)});
  return loss;
}

// The same loss, computed here of y = w x + b: its gradients for x, w and b, and what is refused.
static void train_from_outside(const char *path, rnncc::trainer &inner) {
  rnncc::model model{rnncc::library(path)};
  rnncc::trainer trainer(model);
  float x[8], y[8], given[8], found[8] = {}, w = 2, b = 1, due = 0, sum = 0;
  for (int i = 0; i < 8; i++) x[i] = static_cast<float>(i) / 4;
  trainer.set_weight("w", &w, 1);
  trainer.set_weight("b", &b, 1);
  EXPECT(trainer.training().n_output_gradients == 1 && trainer.training().n_input_gradients == 1);
  const std::vector<rnncc_tensor> gradients{rnncc::input(given, {8})}, short_ones{rnncc::input(given, {7})};
  std::vector<rnncc_tensor> results{rnncc::output(found, 8)}, none;
  EXPECT(status_of([&] { trainer.backward_from(gradients, results); }) == RNNCC_ERROR_ARGUMENT); // no run yet
  trainer.run({rnncc::input(x, {8})}, {rnncc::output(y, 8)});
  for (int i = 0; i < 8; i++) given[i] = 2 * (y[i] - (3 * x[i] - 1)) / 8, due += given[i] * x[i], sum += given[i];
  EXPECT(status_of([&] { trainer.backward_from(short_ones, results); }) == RNNCC_ERROR_SHAPE);
  EXPECT(status_of([&] { trainer.backward_from(gradients, none); }) == RNNCC_ERROR_ARGUMENT);
  EXPECT(status_of([&] { trainer.backward(); }) == RNNCC_ERROR_ARGUMENT);
  trainer.backward_from(gradients, results);
  EXPECT(results[0].rank == 1 && results[0].shape[0] == 8);
  for (int i = 0; i < 8; i++) EXPECT(std::fabs(found[i] - w * given[i]) < 1e-6f);
  trainer.gradient("w", &w, 1);
  trainer.gradient("b", &b, 1);
  EXPECT(std::fabs(w - due) < 1e-5f && std::fabs(b - sum) < 1e-5f);
  EXPECT(status_of([&] { inner.backward_from(gradients, results); }) == RNNCC_ERROR_ARGUMENT); // its loss is an output
}

// The table of a module of an older rnncc ends before gradients_keep, and its step() knows no gradient_scale.
static rnncc_api older_api;
static rnncc_training older_training;

static void older_module(const char *path) {
  rnncc::library loaded(path);
  older_api = loaded.api(), older_training = *older_api.training;
  older_training.struct_size = offsetof(rnncc_training, gradients_keep);
  older_api.training = &older_training;
  rnncc::model model{rnncc::library([](std::uint32_t, const char **) -> const rnncc_api * { return &older_api; })};
  rnncc::trainer trainer(model);
  const float x[8] = {1}, t[8] = {2};
  loss_of(trainer, x, t);
  trainer.backward();
  rnncc_optimizer by = rnncc::optimizer(RNNCC_SGD, 0.1f);
  by.gradient_scale = 0.5f;
  EXPECT(status_of([&] { trainer.step(by); }) == RNNCC_ERROR_UNSUPPORTED);
  by.gradient_scale = 1;
  EXPECT(status_of([&] { trainer.step(by); }) == RNNCC_OK);
}

// The table of one older than training ends before `training`, and what stands behind it is none of the table's.
static void module_of_before_training(const char *path) {
  rnncc::library loaded(path);
  older_api = loaded.api();
  older_api.struct_size = offsetof(rnncc_api, training);
  rnncc::model model{rnncc::library([](std::uint32_t, const char **) -> const rnncc_api * { return &older_api; })};
  EXPECT(status_of([&] { rnncc::trainer none(model); }) == RNNCC_ERROR_UNSUPPORTED);
}

int main(int, char **argv) {
  rnncc::model model{rnncc::library(argv[1])};
  rnncc::trainer trainer(model);
  float x[8], t[8], w = 0, b = 0, gradient[2], nothing = std::nanf("");
  for (int i = 0; i < 8; i++) x[i] = static_cast<float>(i) / 4, t[i] = 3 * x[i] - 1;
  EXPECT(trainer.training().n_parameters == 2 && trainer.training().loss == 0);

  // The gradient of the mean of (w x + b - t)^2.
  trainer.set_weight("w", &w, 1);
  trainer.set_weight("b", &b, 1);
  EXPECT(status_of([&] { trainer.backward(); }) == RNNCC_ERROR_ARGUMENT);
  float first = loss_of(trainer, x, t), due_w = 0, due_b = 0;
  trainer.backward();
  trainer.gradient("w", &gradient[0], 1);
  trainer.gradient("b", &gradient[1], 1);
  for (int i = 0; i < 8; i++) due_w -= 2 * t[i] * x[i] / 8, due_b -= 2 * t[i] / 8;
  EXPECT(std::fabs(gradient[0] - due_w) < 1e-5f && std::fabs(gradient[1] - due_b) < 1e-5f);
  EXPECT(std::fabs(trainer.gradient_norm() - std::hypot(due_w, due_b)) < 1e-5);

  rnncc_optimizer adam = rnncc::optimizer(RNNCC_ADAM, 0.1f);
  trainer.step(adam);
  trainer.get_weight("w", &w, 1);
  EXPECT(std::fabs(w - 0.1f) < 1e-5f); // Adam's first step is the rate, against the gradient's sign
  trainer.reset_optimizer();
  trainer.seed(7); // it draws nothing
  for (int step = 0; step < 300; step++) {
    loss_of(trainer, x, t);
    trainer.backward();
    trainer.step(adam);
  }
  rnncc::trainer other(model); // weights are the model's
  EXPECT(loss_of(other, x, t) < 1e-3f && first > 1);
  trainer.get_weight("w", &w, 1);
  trainer.get_weight("b", &b, 1);
  EXPECT(std::fabs(w - 3) < 0.1f && std::fabs(b + 1) < 0.1f);

  // Two parts of a batch, of equal gradients; and back to before the step.
  w = 1, b = 0.5f;
  trainer.set_weights({rnncc::weight("w", &w, 1), rnncc::weight("b", &b, 1)});
  const std::vector<unsigned char> before = trainer.checkpoint();
  double norm = 0;
  for (int part = 0; part < 2; part++) {
    loss_of(trainer, x, t);
    trainer.backward();
    if (!part) norm = trainer.gradient_norm(), trainer.keep_gradients();
  }
  EXPECT(trainer.gradient_norm() == 2 * norm);
  trainer.keep_gradients(false);
  adam.gradient_scale = 0.5f;
  trainer.step(adam);
  float stepped = 0;
  trainer.get_weight("w", &stepped, 1);
  EXPECT(stepped != w && trainer.checkpoint() != before);
  trainer.restore(before.data(), before.size());
  trainer.get_weight("w", &stepped, 1);
  EXPECT(stepped == w && trainer.checkpoint() == before);
  EXPECT(status_of([&] { trainer.restore(before.data(), before.size() - 1); }) == RNNCC_ERROR_SIZE);
  EXPECT(status_of([&] { trainer.set_weights({rnncc::weight("w", &b, 1), rnncc::weight("v", &b, 1)}); }) ==
         RNNCC_ERROR_ARGUMENT);

  // A weight that is frozen.
  trainer.weight_factors("w", 0, 1);
  EXPECT(status_of([&] { trainer.weight_factors("v", 1, 1); }) == RNNCC_ERROR_ARGUMENT);
  loss_of(trainer, x, t);
  trainer.backward();
  trainer.step(adam);
  float frozen = 0;
  trainer.get_weight("w", &frozen, 1);
  trainer.get_weight("b", &stepped, 1);
  EXPECT(frozen == w && stepped != b);
  trainer.weight_factors("w", 1, 1);
  trainer.restore(before.data(), before.size());

  // What is refused leaves the weights.
  EXPECT(status_of([&] { trainer.get_weight("v", &w, 1); }) == RNNCC_ERROR_ARGUMENT);
  EXPECT(status_of([&] { trainer.set_weight("w", &w, 2); }) == RNNCC_ERROR_SIZE);
  EXPECT(status_of([&] { trainer.step(adam); }) == RNNCC_ERROR_ARGUMENT);
  float bad[8] = {nothing}, after = 0;
  loss_of(trainer, bad, t);
  trainer.backward();
  EXPECT(status_of([&] { trainer.step(adam); }) == RNNCC_ERROR_VALUE);
  trainer.get_weight("w", &after, 1);
  EXPECT(after == w);

  rnncc::model plain{rnncc::library(argv[2])};
  EXPECT(status_of([&] { rnncc::trainer none(plain); }) == RNNCC_ERROR_UNSUPPORTED);
  train_from_outside(argv[3], trainer);
  older_module(argv[1]);
  module_of_before_training(argv[1]);
  if (!failures) std::printf("ok\n");
  return failures != 0;
}
