// SPDX-License-Identifier: MIT
//
// Threads run a model, step on it, set its weights and take it back to checkpoints, all at once: each run has one set
// of weights, whole. The network has weights v and w that begin alike; y = v - w, and the loss is the sum of both, so
// that v and w stay alike in every step. Of each weight there is a copy in the loss, which is the sum of x (v + w).
//
//     trained_weights MODULE ROUNDS
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "rnncc.hpp"

namespace {

constexpr std::size_t width = 4096;
std::atomic<bool> stopped{false};
std::atomic<int> wrong{0};
std::atomic<long> runs{0}, steps{0};

// Runs, whose outputs are 0, and whose loss is a sum of equal numbers.
float run(rnncc::context &context, const std::vector<float> &x, std::vector<float> &y) {
  float loss = 0;
  context.run({rnncc::input(x.data(), {width})}, {rnncc::output(&loss, 1), rnncc::output(y.data(), width)});
  for (float it : y) wrong += it != 0;
  runs++;
  return loss;
}

void evaluate(const rnncc::model &model) {
  rnncc::context context(model);
  std::vector<float> x(width, 1), y(width);
  while (!stopped) run(context, x, y);
}

bool goes_back(rnncc::trainer &trainer) {
  try {
    trainer.backward();
    return true;
  } catch (const rnncc::error &it) { // the weights have changed since the run
    wrong += it.status() != RNNCC_ERROR_ARGUMENT;
    return false;
  }
}

void train(const rnncc::model &model, int rounds) {
  rnncc::trainer trainer(model);
  std::vector<float> x(width, 1), y(width);
  const rnncc_optimizer adam = rnncc::optimizer(RNNCC_ADAM, 0.125f);
  for (int i = 0; i < rounds; i++) {
    run(trainer, x, y);
    if (!goes_back(trainer)) continue;
    wrong += trainer.gradient_norm() != std::sqrt(2.0 * width);
    trainer.step(adam);
    steps++;
  }
}

void set(const rnncc::model &model, int rounds) {
  rnncc::trainer trainer(model);
  std::vector<float> numbers(width), v(width), w(width);
  const std::vector<unsigned char> begin = trainer.checkpoint();
  for (int i = 0; i < rounds; i++) {
    numbers.assign(width, static_cast<float>(i % 8));
    trainer.set_weights({rnncc::weight("v", numbers.data(), width), rnncc::weight("w", numbers.data(), width)});
    trainer.get_weight("v", v.data(), width);
    for (float it : v) wrong += it != v[0];
    if (i % 8 == 0) trainer.restore(begin.data(), begin.size());
    if (i % 8 == 4) trainer.reset_optimizer();
    if (i % 8 == 6) wrong += trainer.checkpoint().size() != begin.size();
    rnncc::context short_lived(model);
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  rnncc::model model(rnncc::library(argv[1]), rnncc::options(2));
  int rounds = std::atoi(argv[2]);
  std::vector<std::thread> evaluators, changers;
  for (int i = 0; i < 2; i++) evaluators.emplace_back([&] { evaluate(model); });
  while (!runs) std::this_thread::yield();
  for (int i = 0; i < 2; i++) changers.emplace_back([&] { train(model, rounds); });
  changers.emplace_back([&] { set(model, rounds); });
  for (std::thread &it : changers) it.join();
  stopped = true;
  for (std::thread &it : evaluators) it.join();
  if (wrong || !steps)
    std::printf("%d wrong, %ld steps\n", wrong.load(), steps.load());
  else
    std::printf("ok\n");
  return wrong || !steps;
}
