// SPDX-License-Identifier: MIT
// What rnncc.hpp promises, on the module of tests/unit/runtime_fake.h: test_cpp.py builds it with two compilers, as
// C++17 and C++20, and under sanitizers.
#include "rnncc.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <optional>
#include <random>
#include <thread>

namespace {

constexpr std::int64_t T = 5, B = 2, F = 3;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) std::printf("line %d: %s\n", __LINE__, #condition), std::exit(1);                                \
  } while (0)

template <class Call> std::string refusal(rnncc_status status, Call call) {
  try {
    call();
  } catch (const rnncc::error &error) {
    CHECK(error.status() == status);
    return error.what();
  }
  return "none";
}

struct Stream {
  explicit Stream(const rnncc::model &model) : context(model) {}

  // y[last][0][0] of a run on the numbers 0, 1, ...
  float step(float scale) {
    std::vector<float> x(T * B * F);
    for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 7);
    const std::int64_t lengths[] = {T, T};
    std::vector<rnncc_tensor> inputs{rnncc::input(x.data(), {T, B, F}), rnncc::input(lengths, {B}),
                                     rnncc::input(&scale, {})};
    std::vector<rnncc_tensor> outputs{rnncc::output(y.data(), y.size()), rnncc::output(last.data(), last.size())};
    context.run(inputs, outputs);
    CHECK(outputs[0].rank == 3 && outputs[0].shape[0] == T && outputs[1].rank == 2 && outputs[1].shape[1] == F);
    return y[(T - 1) * B * F];
  }

  rnncc::context context;
  std::vector<float> y = std::vector<float>(T * B * F), last = std::vector<float>(B * F);
};

void errors_have_words(const rnncc::library &library) {
  CHECK(refusal(RNNCC_ERROR_ARGUMENT, [] { rnncc::library("nowhere.so"); }).find("nowhere.so") != std::string::npos);
  CHECK(refusal(RNNCC_ERROR_ARGUMENT, [&] { library.state("c"); }) == "fake has no state c; it has h, runs");
  CHECK(refusal(RNNCC_ERROR_ARGUMENT, [&] { library.network("other"); }) ==
        "the module has no network other; it has fake");
  Stream stream{rnncc::model(library)};
  CHECK(refusal(RNNCC_ERROR_BOUND, [&] { stream.context.output_shapes({99, 1}); }).find("'T' is 99") == 0);
  CHECK(refusal(RNNCC_ERROR_ARGUMENT, [&] { stream.context.run({}, {}); }) == "0 inputs given, the model has 3");
  std::vector<float> floats(1);
  CHECK(refusal(RNNCC_ERROR_DTYPE, [&] { stream.context.state_get("runs", floats); }).find("runs") !=
        std::string::npos);
  std::vector<std::int64_t> two(2);
  CHECK(refusal(RNNCC_ERROR_SIZE, [&] { stream.context.state_get("runs", two); }).find("16 bytes") !=
        std::string::npos);
}

void states_are_each_streams_own(const rnncc::library &library) {
  rnncc::model model(library, rnncc::options(2)), beside(library, model);
  CHECK(model.threads() == 2 && beside.threads() == 2);
  Stream first(model), second(beside);
  const float fresh = first.step(2), later = first.step(2);
  CHECK(fresh != later);
  std::vector<std::int64_t> runs(1);
  first.context.state_get("runs", runs);
  CHECK(runs[0] == 2);
  CHECK(second.step(2) == fresh);
  std::vector<float> h(2 * 4 * F);
  second.context.state_get("h", h); // after one run
  first.context.state_reset();
  CHECK(first.step(2) == fresh);
  first.context.state_reset();
  first.context.state_set("h", h);
  CHECK(first.step(2) == later);
}

void threads_have_streams(const rnncc::library &library) {
  rnncc::model model(library);
  const float expected = Stream(model).step(3);
  std::vector<std::thread> threads;
  std::vector<float> got(4);
  for (float &result : got) threads.emplace_back([&] { result = Stream(model).step(3); });
  for (std::thread &thread : threads) thread.join();
  for (float result : got) CHECK(result == expected);
}

// The stream is all that is left.
Stream orphan(const char *path) { return Stream(rnncc::model(rnncc::library(path))); }

void lifetimes_follow_use(const char *path) {
  Stream stream = orphan(path), moved = std::move(stream);
  const float expected = Stream(rnncc::model(rnncc::library(path))).step(2);
  CHECK(moved.step(2) == expected);
  std::optional<rnncc::model> owner{rnncc::library(path)};
  Stream shares(rnncc::model(owner->of(), *owner));
  owner.reset();
  CHECK(shares.step(2) == expected);
}

// One pool, made by a module and let go of at once; two modules' models on it, from four threads.
void modules_share_a_pool(const char *path, const char *second) {
  const float expected = Stream(rnncc::model(rnncc::library(path))).step(3);
  std::atomic<int> greeted{0};
  std::vector<rnncc::model> models;
  {
    rnncc_options options = rnncc::options(3);
    options.host = &greeted;
    options.thread_start = [](void *host, std::int32_t) { ++*static_cast<std::atomic<int> *>(host); };
    rnncc::library maker(path), guest(second);
    rnncc::pool pool(maker, options);
    CHECK(greeted == 2 && pool.threads() == 3 && pool.waiting() == 0);
    rnncc_options waits = rnncc::options();
    waits.waits = waits.share_all = 1;
    waits.priority = 5;
    models = {rnncc::model(guest, pool, waits), rnncc::model(maker, pool), rnncc::model(guest, pool),
              rnncc::model(maker, pool, waits)};
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (const rnncc::model &model : models) {
    CHECK(model.threads() == 3);
    threads.emplace_back([&] {
      for (int i = 0; i < 100; i++) wrong += Stream(model).step(3) != expected;
    });
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(wrong == 0 && greeted == 2);
}

// What is assigned to lets go of a pool, and of the library that only the pool held, when nothing is on it any more.
void what_is_assigned_to_ends_in_order(const rnncc::library &library, const char *second) {
  const auto pooled = [&] { return rnncc::model(library, rnncc::pool(rnncc::library(second), rnncc::options(2))); };
  const rnncc::model plain(library);
  const float expected = Stream(plain).step(2);
  rnncc::model moved = pooled(), copied = pooled(), shares(library, pooled());
  moved = rnncc::model(library);
  copied = plain;
  shares = plain;
  for (const rnncc::model &model : {moved, copied, shares}) CHECK(Stream(model).step(2) == expected);
  Stream stream(pooled());
  CHECK(stream.step(2) == expected);
  stream.context = rnncc::context(plain);
  CHECK(stream.step(2) == expected);
  stream.context = rnncc::context(pooled());
  CHECK(stream.step(2) == expected);
}

using Body = void (*)(void *arg, int index);

struct Hosts {
  static void in_order(void *host, int n, Body body, void *arg) {
    ++*static_cast<int *>(host);
    for (int i = 0; i < n; i++) body(arg, i);
  }
  static void at_random(void *host, int n, Body body, void *arg) {
    static std::mt19937 generator;
    std::vector<int> order(static_cast<std::size_t>(n));
    for (int i = 0; i < n; i++) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), generator);
    ++*static_cast<int *>(host);
    for (int index : order) body(arg, index);
  }
  static void by_async(void *host, int n, Body body, void *arg) {
    std::vector<std::future<void>> bodies;
    ++*static_cast<int *>(host);
    for (int i = 0; i < n; i++) bodies.push_back(std::async(std::launch::async, body, arg, i));
    for (std::future<void> &it : bodies) it.get();
  }
};

// In any order, by any threads; the module's run has 2 T + 1 barriers.
void hosts_run_steps(const rnncc::library &library) {
  const float expected = Stream(rnncc::model(library)).step(3);
  for (rnncc_parallel_for parallel_for : {Hosts::in_order, Hosts::at_random, Hosts::by_async}) {
    int steps = 0;
    rnncc_options options = rnncc::options(4);
    options.parallel_for = parallel_for;
    options.host = &steps;
    options.by_steps = 1;
    CHECK(Stream(rnncc::model(library, options)).step(3) == expected);
    CHECK(steps == 2 * T + 2);
    CHECK(Stream(rnncc::model(library, rnncc::pool(library, options))).step(3) == expected);
  }
  rnncc_options lost = rnncc::options(4);
  lost.by_steps = 1;
  CHECK(refusal(RNNCC_ERROR_ARGUMENT, [&] { rnncc::pool(library, lost); }) ==
        "options.by_steps is set without a parallel_for that it is about");
}

void a_profile_is_a_list(const rnncc::library &library) {
  Stream stream{rnncc::model(library)};
  stream.context.warmup();
  stream.context.profile_begin();
  stream.step(1);
  std::vector<rnncc::profile_line> lines = stream.context.profile_end();
  CHECK(lines.size() == 2 && lines[1].kernel == "leak" && lines[1].node == "y" && lines[1].calls == 1);
  CHECK((stream.context.output_shapes({7, 2}) == std::vector<rnncc::shape>{{7, 2, F}, {2, F}}));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  rnncc::library library(argv[1]);
  CHECK(library.input("lengths") == 1 && library.output("last") == 1 && library.state("runs") == 1);
  errors_have_words(library);
  states_are_each_streams_own(library);
  threads_have_streams(library);
  lifetimes_follow_use(argv[1]);
  a_profile_is_a_list(library);
  modules_share_a_pool(argv[1], argv[2]);
  what_is_assigned_to_ends_in_order(library, argv[2]);
  hosts_run_steps(library);
  const rnncc::library older(argv[3]);
  CHECK(refusal(RNNCC_ERROR_UNSUPPORTED, [&] { rnncc::pool{older}; }) == "fake: compiled by an rnncc of before pools");
  CHECK(refusal(RNNCC_ERROR_UNSUPPORTED, [&] { rnncc::model(older, rnncc::pool(library)); }) ==
        "fake: compiled by an rnncc of before pools");
  std::puts("ok");
}
