/* SPDX-License-Identifier: MIT */
/* Sound from a .wav file: 16-bit PCM, one channel. */
#ifndef WAV_H
#define WAV_H

#include <stdint.h>

typedef struct Wav {
  int rate;       /* samples a second */
  int64_t count;  /* samples */
  float *samples; /* -1 to 1; the caller frees them */
} Wav;

/* Fails, naming the file, if it is anything else. */
Wav wav_read(const char *path);

#endif
