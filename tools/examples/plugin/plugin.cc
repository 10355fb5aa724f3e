// SPDX-License-Identifier: MIT
//
// Three networks in a row, each with a state: what is constant is taken off, speech gets one level, and what is loud is
// softened. The models are shared by all channels; each channel has a context of each, which keeps its states.
#include "plugin.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <vector>

#include "blocker.h"
#include "leveler.h"
#include "limiter.h"
#include "rnncc.hpp"

namespace {

constexpr int MOST = blocker_DIM_T_MAX; // samples of a run; the other models have the same bound

// One network, of a library that is linked. A callback computes on the thread that it is called on: no workers.
rnncc::model linked(rnncc_module_query_fn query) { return rnncc::model(rnncc::library(query), rnncc::options(1)); }

// One channel.
class stream {
public:
  explicit stream(const std::array<rnncc::model, 3> &models) {
    for (const rnncc::model &each : models) {
      steps_.emplace_back(each);
      steps_.back().warmup(); // the first block is then as fast as the next
    }
  }

  void reset() {
    for (rnncc::context &step : steps_) step.state_reset();
  }

  void run(const float *input, float *output, int frames) {
    const float *from = input;
    for (rnncc::context &step : steps_) {
      float *to = from == between_[0].data() ? between_[1].data() : between_[0].data();
      if (&step == &steps_.back()) to = output;
      step.run({rnncc::input(from, {frames})}, {rnncc::output(to, static_cast<std::size_t>(frames))});
      from = to;
    }
  }

private:
  std::vector<rnncc::context> steps_;
  std::array<std::array<float, MOST>, 2> between_{};
};

} // namespace

struct plugin {
  explicit plugin(int channels) {
    for (int channel = 0; channel < channels; channel++) streams.emplace_back(models);
  }
  std::array<rnncc::model, 3> models{linked(blocker_module_query), linked(leveler_module_query),
                                     linked(limiter_module_query)};
  std::vector<stream> streams;
};

plugin *plugin_create(int channels, char *why, unsigned long why_bytes) try {
  return new plugin(channels);
} catch (const std::exception &reason) {
  std::snprintf(why, why_bytes, "%s", reason.what());
  return nullptr;
}

void plugin_destroy(plugin *it) { delete it; }

void plugin_reset(plugin *it) {
  for (stream &each : it->streams) each.reset();
}

int plugin_process(plugin *it, const float *const *input, float *const *output, int frames) {
  int failures = 0;
  for (std::size_t channel = 0; channel < it->streams.size(); channel++) {
    int done = 0;
    try {
      for (int count; done < frames; done += count) {
        count = std::min(frames - done, MOST);
        it->streams[channel].run(input[channel] + done, output[channel] + done, count);
      }
    } catch (const std::exception &) {
      std::fill(output[channel] + done, output[channel] + frames, 0.0f);
      failures = 1;
    }
  }
  return failures;
}
