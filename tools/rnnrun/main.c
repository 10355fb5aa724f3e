/* SPDX-License-Identifier: MIT */
/* rnnrun runs, verifies, benchmarks, profiles and inspects a compiled module. It needs libc only. */
#include "overwrites.h"
#include "support.h"
#include "verbs.h"

static int (*const verbs[])(const Arguments *) = {
#define VERB(name, operands, summary, details, example) name##_verb,
#include "options.def"
};

int main(int argc, char **argv) {
  Arguments arguments = parse_arguments(argc, argv);
  check_overwrites(&arguments);
  int exit_code = verbs[arguments.verb](&arguments);
  free_arguments(&arguments);
  check_stdout();
  return exit_code;
}
