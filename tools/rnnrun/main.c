/* SPDX-License-Identifier: MIT */
/*
 * rnnrun: runs, verifies, benchmarks, profiles and inspects a compiled module. It needs libc only, so it goes to the
 * device with the module. Results to stdout, everything else to stderr.
 */
#include <stdio.h>
#include <string.h>

#include "support.h"
#include "verbs.h"

static const Verb verbs[] = {
    {"run", "input output dim threads steps", run_verb, "Runs the module once, or --steps times as a stream.",
     "Outputs that --output does not name are printed, shortened. A device, a pipe or a link is written to, not\n"
     "replaced: y=@/dev/stdout.\n\n"
     "  rnnrun run model.so --input x=@x.npy --output y=@y.npy\n"
     "  rnnrun run model.so --input x=random:7 --dim T=50 --steps 3\n"},
    {"verify", "input expect dim threads steps atol rtol", verify_verb, "Runs the module and compares its outputs.",
     "An element matches if |got - expected| <= atol + rtol * |expected|; integers match exactly. Prints the worst\n"
     "error of each output and where it is. Exit 1 on a mismatch.\n\n"
     "  rnnrun verify model.so --input x=@x.npy --expect y=@y.npy --rtol 1e-4\n"},
    {"bench", "input dim threads runs signal-ms json", bench_verb, "Measures latency, each thread count on its own.",
     "load is from dlopen until warmed up; first is the run after that; the percentiles are of --runs further runs.\n"
     "Inputs that are not given are random. Fields of --json: threads, runs, load_us, first_us, p50_us, p90_us,\n"
     "p99_us, p999_us, max_us, peak_rss_bytes.\n\n"
     "  rnnrun bench model.so --threads 1,2 --runs 1000 --dim T=100 --json\n"},
    {"profile", "input dim threads runs trace", profile_verb, "Shows where the time goes, kernel by kernel.",
     "A kernel's name says the algorithm and its knobs. % peak is of the multiply-adds that a short loop in registers\n"
     "reaches with the module's vectors on as many threads, measured after the runs; a convolution's are counted as "
     "the\n"
     "direct one's, so Winograd may pass 100. Inputs that are not given are random.\n\n"
     "  rnnrun profile model.so --dim T=100 --threads 1\n"
     "  rnnrun profile model.so --runs 20 --trace trace.json\n"},
    {"inspect", "", inspect_verb, "Prints the inputs, outputs, states, dimensions and build record.",
     "  rnnrun inspect model.so\n"},
    {"measure", NULL, measure_verb, "Runs and times a module that comes in by stdin: for rnncc tune --runner.",
     "It answers on stdout, also when the module crashes or hangs. tools/rnnrun/request.h describes what it reads.\n\n"
     "  rnncc tune model.json --target=aarch64-linux-gnu --runner='ssh board rnnrun measure'\n"},
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(FILE *stream) {
  fputs("usage: rnnrun VERB [OPTION...] MODULE.so\n\n", stream);
  for (int i = 0; i < VERBS; i++) fprintf(stream, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
  fputs("\nrnnrun VERB --help says more. For example:\n  rnnrun run model.so --input x=@x.npy --output y=@y.npy\n\n"
        "Exit codes: 0 ok; 1 verify found a mismatch; 2 usage or invalid input; 3 not supported by this module;\n"
        "4 out of memory; 5 the module cannot be loaded, or a file not be written.\n",
        stream);
}

int main(int argc, char **argv) {
  if (argc >= 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
    print_usage(stdout);
    return 0;
  }
  for (int i = 0; i < VERBS && argc >= 2; i++) {
    if (strcmp(argv[1], verbs[i].name) != 0) continue;
    Arguments arguments = parse_arguments(&verbs[i], argc - 1, argv + 1);
    int exit_code = verbs[i].run(&arguments);
    free_arguments(&arguments);
    if (fflush(stdout) != 0 || ferror(stdout)) fail(EXIT_ENVIRONMENT, "cannot write to stdout");
    return exit_code;
  }
  if (argc >= 2) fail(EXIT_INPUT, "%s: no such verb; see rnnrun --help", argv[1]);
  print_usage(stderr);
  return EXIT_INPUT;
}
