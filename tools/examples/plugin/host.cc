// SPDX-License-Identifier: MIT
//
// A host: loads the plug-in, plays two channels of raw f32 from stdin to stdout in blocks of many lengths, twice with a
// reset between, and says how often memory was allocated meanwhile.
//
//     host plugin.so < stereo.f32 > leveled.f32
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "plugin.h"

static std::atomic<long> allocations{0};

void *operator new(std::size_t bytes) {
  allocations++;
  if (void *memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

template <class Function> static Function find(void *library, const char *name, Function) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

static std::vector<float> samples_of(std::FILE *file) {
  std::vector<float> samples;
  for (float sample; std::fread(&sample, sizeof sample, 1, file) == 1;) samples.push_back(sample);
  return samples;
}

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) return std::fprintf(stderr, "host: %s\n", argc == 2 ? dlerror() : "expected a plug-in"), 1;
  auto create = find(library, "plugin_create", &plugin_create);
  auto process = find(library, "plugin_process", &plugin_process);
  auto reset = find(library, "plugin_reset", &plugin_reset);
  auto destroy = find(library, "plugin_destroy", &plugin_destroy);

  std::vector<float> sound = samples_of(stdin); // one channel, then the other
  int frames = static_cast<int>(sound.size() / 2);
  char why[256] = "";
  plugin *it = create(2, why, sizeof why);
  if (!it) return std::fprintf(stderr, "host: %s\n", why), 1;
  static const int lengths[] = {1, 64, 512, 3, 513, 1300, 480};
  long before = allocations;
  for (int pass = 0, failures = 0; pass < 2; pass++) {
    std::vector<float> played(sound.size());
    before += 1; // `played`
    for (int at = 0, block = 0, count; at < frames; at += count, block++) {
      count = lengths[block % 7] < frames - at ? lengths[block % 7] : frames - at;
      const float *input[] = {&sound[static_cast<std::size_t>(at)], &sound[static_cast<std::size_t>(frames + at)]};
      float *output[] = {&played[static_cast<std::size_t>(at)], &played[static_cast<std::size_t>(frames + at)]};
      failures += process(it, input, output, count);
    }
    if (failures) return std::fprintf(stderr, "host: %d blocks failed\n", failures), 1;
    std::fwrite(played.data(), sizeof(float), played.size(), stdout);
    reset(it);
  }
  std::fprintf(stderr, "%ld allocations\n", allocations - before);
  destroy(it);
  dlclose(library);
}
