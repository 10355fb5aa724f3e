/* SPDX-License-Identifier: MIT */
/* Reads a digit with a library that is linked, and, if there is an argument, with the module of that path. */
#include <stdio.h>

#include "digits.h"
#include "rnncc_loader.h"

static int read_digit(const rnncc_api *api) {
  static const char picture[] = "0058840003835810043286000006810000028200000058000000680000688400";
  float image[64], probability[10];
  rnncc_model *model;
  rnncc_context *context;
  const char *why = NULL;
  int best = 0;
  if (api->model_create(NULL, &model, &why) || api->context_create(model, NULL, 0, &context, &why))
    return puts(why), -1;
  for (int i = 0; i < 64; i++) image[i] = (float)(picture[i] - '0') / 8;
  rnncc_tensor x = digits_INPUT_x_TENSOR(image, sizeof image, 1);
  rnncc_tensor y = digits_OUTPUT_probabilities_TENSOR(probability, sizeof probability);
  if (api->run(context, &x, 1, &y, 1)) return puts(api->last_error(context)), -1;
  for (int digit = 1; digit < 10; digit++)
    if (probability[digit] > probability[best]) best = digit;
  api->context_destroy(context);
  api->model_destroy(model);
  return best;
}

int main(int argc, char **argv) {
  char error[256];
  const char *why = NULL;
  const rnncc_api *linked = digits_module_query(RNNCC_ABI, &why);
  if (!linked) return puts(why), 1;
  printf("linked: %d\n", read_digit(linked));
  if (argc > 1) {
    rnncc_library library;
    if (rnncc_load(argv[1], &library, error, sizeof error)) return puts(error), 1;
    printf("loaded: %d\n", read_digit(library.api));
    rnncc_unload(&library);
  }
  return 0;
}
