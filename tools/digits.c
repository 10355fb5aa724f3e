/* SPDX-License-Identifier: MIT */
/*
 * Reads the held-out digits with a shipped network, one image at a time: digits MODULE.so IMAGES.npy LABELS.npy
 * Prints how many it read right, and draws the first that it did not.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rnnrun/npy.h"
#include "rnnrun/session.h"
#include "rnnrun/support.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10 };

typedef struct HeldOut {
  const float *images; /* [count,SIDE,SIDE], 0 to 1 */
  const uint8_t *labels;
  int count;
} HeldOut;

static HeldOut read_held_out(const char *images_path, const char *labels_path) {
  rnncc_tensor images = npy_read(images_path, RNNCC_NONE), labels = npy_read(labels_path, RNNCC_NONE);
  if (images.dtype != RNNCC_F32 || images.rank != 3 || images.shape[1] != SIDE || images.shape[2] != SIDE)
    fail(EXIT_INPUT, "%s: expected float32 images [N,%d,%d]", images_path, SIDE, SIDE);
  if (labels.dtype != RNNCC_U8 || labels.rank != 1 || labels.shape[0] != images.shape[0])
    fail(EXIT_INPUT, "%s: expected uint8 labels [N], one for each image", labels_path);
  return (HeldOut){images.data, labels.data, (int)images.shape[0]};
}

static int read_digit(Session *session, const float *image) {
  float probability[CLASSES];
  const rnncc_tensor input = {.struct_size = sizeof input,
                              .data = (void *)image,
                              .bytes = PIXELS * sizeof *image,
                              .dtype = RNNCC_F32,
                              .rank = 3,
                              .shape = {1, SIDE, SIDE}};
  rnncc_tensor output = {
      .struct_size = sizeof output, .data = probability, .bytes = sizeof probability, .dtype = RNNCC_F32};
  session_run(session, &input, &output);
  int best = 0;
  for (int digit = 1; digit < CLASSES; digit++)
    if (probability[digit] > probability[best]) best = digit;
  return best;
}

static void draw(const float *image) {
  static const char ink[] = " .:-=+*#";
  for (int row = 0; row < SIDE; row++) {
    printf("    ");
    for (int column = 0; column < SIDE; column++) {
      int shade = (int)(image[row * SIDE + column] * 7.99f);
      printf("%c%c", ink[shade], ink[shade]);
    }
    printf("\n");
  }
}

/* Reads all images, and draws the first that it reads right and the first that it takes for another. */
static void read_all(Session *session, const HeldOut *held_out) {
  int right = 0, first_wrong = -1, taken_for = 0;
  for (int i = 0; i < held_out->count; i++) {
    const float *image = held_out->images + (size_t)i * PIXELS;
    int digit = read_digit(session, image);
    if (digit == held_out->labels[i]) {
      if (!right++) printf("  reads this as a %d:\n", digit), draw(image);
    } else if (first_wrong < 0) {
      first_wrong = i;
      taken_for = digit;
    }
  }
  printf("  %d of %d held-out images right (%.1f%%)\n", right, held_out->count, 100.0 * right / held_out->count);
  if (first_wrong < 0) return;
  printf("  takes this %d for a %d:\n", held_out->labels[first_wrong], taken_for);
  draw(held_out->images + (size_t)first_wrong * PIXELS);
}

int main(int argc, char **argv) {
  if (argc != 4) fail(EXIT_INPUT, "usage: digits MODULE.so IMAGES.npy LABELS.npy");
  HeldOut held_out = read_held_out(argv[2], argv[3]);
  Session session = session_load(argv[1]);
  session_start(&session, 1);
  read_all(&session, &held_out);
  session_close(&session);
  free((void *)held_out.images);
  free((void *)held_out.labels);
}
