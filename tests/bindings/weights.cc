// SPDX-License-Identifier: MIT
//
// Threads set the weights of a model while others run on it: each result is that of one set of weights, whole. The
// network is y = x W + b with W and b of one number each, v: each row of y is x's sum times v, plus v.
//
//     weights MODULE SETS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "rnncc.hpp"

namespace {

constexpr int rows = 4, depth = 64, columns = 96, runners = 2, setters = 2;
std::atomic<bool> stopped{false};
std::atomic<int> wrong{0};
std::atomic<long> runs{0};

void set(const rnncc::model &model, float v) {
  std::vector<float> w(depth * columns, v), b(columns, v);
  model.set({rnncc::weight("W", w.data(), w.size()), rnncc::weight("b", b.data(), b.size())});
}

void run(const rnncc::model &model) {
  rnncc::context context(model);
  std::vector<float> x(rows * depth, 1), y(rows * columns);
  while (!stopped) {
    context.run({rnncc::input(x.data(), {rows, depth})}, {rnncc::output(y.data(), y.size())});
    float v = y[0] / (depth + 1);
    for (float it : y) wrong += it != y[0];
    wrong += v != static_cast<float>(static_cast<int>(v)) || v < 1;
    runs++;
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  rnncc::model model(rnncc::library(argv[1]), rnncc::options(2));
  set(model, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < runners; i++) threads.emplace_back([&] { run(model); });
  while (!runs) std::this_thread::yield();
  std::vector<std::thread> writers;
  for (int i = 0; i < setters; i++)
    writers.emplace_back([&, i] {
      for (int n = 0; n < std::atoi(argv[2]); n++) {
        set(model, static_cast<float>(1 + i + 2 * (n % 8)));
        rnncc::context short_lived(model);
        float one = 0;
        if (n % 16 == 0) try {
            model.get("b", &one, 1);
            wrong++;
          } catch (const rnncc::error &it) { wrong += it.status() != RNNCC_ERROR_SIZE; }
      }
    });
  for (std::thread &it : writers) it.join();
  stopped = true;
  for (std::thread &it : threads) it.join();
  std::vector<float> b(columns);
  model.get("b", b.data(), b.size());
  for (float it : b) wrong += it != b[0];
  std::vector<std::int32_t> bits(columns);
  try {
    model.get("b", bits.data(), bits.size());
    wrong++;
  } catch (const rnncc::error &it) { wrong += it.status() != RNNCC_ERROR_DTYPE; }
  std::printf(wrong ? "%d wrong\n" : "ok\n", wrong.load());
  return wrong != 0;
}
