/* SPDX-License-Identifier: MIT */
#include "wav.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnnrun/support.h"

typedef struct Chunk {
  char id[4];
  uint32_t bytes;
} Chunk;

typedef struct Format {
  uint16_t kind, channels;
  uint32_t rate, bytes_a_second;
  uint16_t frame_bytes, bits;
} Format;

static FILE *open_riff(const char *path) {
  Chunk riff;
  char kind[4];
  FILE *file = fopen(path, "rb");
  if (!file) fail(EXIT_ENVIRONMENT, "%s: cannot be read", path);
  if (fread(&riff, sizeof riff, 1, file) != 1 || memcmp(riff.id, "RIFF", 4) != 0 || fread(kind, 4, 1, file) != 1 ||
      memcmp(kind, "WAVE", 4) != 0)
    fail(EXIT_INPUT, "%s: not a .wav file", path);
  return file;
}

/* Leaves the file behind the header of its next chunk called `id`. Returns how long that is. */
static uint32_t find_chunk(const char *path, FILE *file, const char *id) {
  Chunk chunk;
  while (fread(&chunk, sizeof chunk, 1, file) == 1) {
    if (!memcmp(chunk.id, id, 4)) return chunk.bytes;
    if (fseek(file, (long)chunk.bytes + (chunk.bytes & 1), SEEK_CUR)) break;
  }
  fail(EXIT_INPUT, "%s: has no chunk `%s`", path, id);
}

static int read_rate(const char *path, FILE *file) {
  Format format;
  uint32_t bytes = find_chunk(path, file, "fmt ");
  if (bytes < sizeof format || fread(&format, sizeof format, 1, file) != 1)
    fail(EXIT_INPUT, "%s: its format is cut off", path);
  if (format.kind != 1 || format.channels != 1 || format.bits != 16)
    fail(EXIT_INPUT, "%s: expected 16-bit PCM with one channel", path);
  fseek(file, (long)(bytes - sizeof format), SEEK_CUR);
  return (int)format.rate;
}

/* A stream's header may promise more than came: what is there counts. */
static int64_t read_samples(FILE *file, uint32_t bytes, float **samples) {
  int64_t count = 0, room = bytes / 2;
  int16_t sample;
  *samples = allocate((size_t)(room + 1) * sizeof **samples);
  while (count < room && fread(&sample, sizeof sample, 1, file) == 1) (*samples)[count++] = (float)sample / 32768;
  return count;
}

Wav wav_read(const char *path) {
  Wav wav;
  FILE *file = open_riff(path);
  wav.rate = read_rate(path, file);
  wav.count = read_samples(file, find_chunk(path, file, "data"), &wav.samples);
  fclose(file);
  return wav;
}
