/* SPDX-License-Identifier: MIT */
/*
 * When someone speaks: vad MODULE.so SOUND.wav [--probabilities], a module of silero-vad's network for one sample rate
 * (models/pretrained/silero.py). The sound is streamed through it, a chunk of 32 ms at a time, as a microphone would
 * give it: the module carries the recurrent state, this program the last samples of the chunk before, which the network
 * wants to see again.
 *
 * Prints the spans of speech, or with --probabilities a line for each chunk; then, on stderr, the time of a chunk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnnrun/session.h"
#include "rnnrun/support.h"
#include "wav.h"

enum { CONTEXT_PART = 9, QUIET_CHUNKS = 4 }; /* a ninth of the input is context; so much silence ends a span */
static const float BEGINS = 0.5f, GOES_ON = 0.35f;

typedef struct Listener {
  Session session;
  float *input; /* context, then the chunk */
  int context, chunk;
} Listener;

static Listener listen_with(const char *module) {
  Listener listener = {.session = session_load(module)};
  const rnncc_info *info = listener.session.api->info;
  if (info->n_inputs != 1 || info->n_states != 1 || rnncc_input_at(info, 0)->rank != 2 ||
      rnncc_input_at(info, 0)->shape[1] < CONTEXT_PART)
    fail(EXIT_INPUT, "%s: not a module of silero-vad with its state and its sample rate frozen", module);
  int samples = (int)rnncc_input_at(info, 0)->shape[1];
  listener.context = samples / CONTEXT_PART;
  listener.chunk = samples - listener.context;
  listener.input = allocate((size_t)samples * sizeof *listener.input);
  session_start(&listener.session, 1);
  return listener;
}

/* The probability that the chunk at `samples` contains speech. */
static float hear(Listener *listener, const float *samples) {
  float probability;
  int size = listener->context + listener->chunk;
  memcpy(listener->input + listener->context, samples, (size_t)listener->chunk * sizeof *samples);
  const rnncc_tensor input = {.struct_size = sizeof input,
                              .data = listener->input,
                              .bytes = (size_t)size * 4,
                              .dtype = RNNCC_F32,
                              .rank = 2,
                              .shape = {1, size}};
  rnncc_tensor output = {
      .struct_size = sizeof output, .data = &probability, .bytes = sizeof probability, .dtype = RNNCC_F32};
  session_run(&listener->session, &input, &output);
  memcpy(listener->input, listener->input + listener->chunk, (size_t)listener->context * sizeof *samples);
  return probability;
}

/* Speech begins where a chunk is above BEGINS and ends where QUIET_CHUNKS in a row are below GOES_ON. */
typedef struct Spans {
  double chunk_seconds;
  int first, quiet; /* chunks; first -1: no speech */
} Spans;

static void end_span(Spans *spans, int end) {
  if (spans->first >= 0) printf("%.2f s to %.2f s\n", spans->first * spans->chunk_seconds, end * spans->chunk_seconds);
  *spans = (Spans){spans->chunk_seconds, -1, 0};
}

static void take(Spans *spans, int chunk, float probability) {
  if (probability > BEGINS && spans->first < 0) spans->first = chunk;
  spans->quiet = probability < GOES_ON ? spans->quiet + 1 : 0;
  if (spans->quiet == QUIET_CHUNKS) end_span(spans, chunk + 1 - QUIET_CHUNKS);
}

int main(int argc, char **argv) {
  int probabilities = argc == 4 && !strcmp(argv[3], "--probabilities");
  if (argc < 3 || argc != 3 + probabilities) fail(EXIT_INPUT, "usage: vad MODULE.so SOUND.wav [--probabilities]");
  Listener listener = listen_with(argv[1]);
  Wav sound = wav_read(argv[2]);
  int chunks = (int)(sound.count / listener.chunk);
  Spans spans = {(double)listener.chunk / sound.rate, -1, 0};
  uint64_t taken = 0;
  for (int i = 0; i < chunks; i++) {
    uint64_t start = now_ns();
    float probability = hear(&listener, sound.samples + (size_t)i * (size_t)listener.chunk);
    taken += now_ns() - start;
    if (probabilities)
      printf("%.6f\n", (double)probability);
    else
      take(&spans, i, probability);
  }
  end_span(&spans, chunks);
  fflush(stdout);
  if (chunks) fprintf(stderr, "%d chunks, %.1f us each, one thread\n", chunks, (double)taken * 1e-3 / chunks);
  session_close(&listener.session);
  free(listener.input);
  free(sound.samples);
}
