/* SPDX-License-Identifier: MIT */
/* The command line of rnncc. */
#ifndef RNNCC_OPTIONS_H
#define RNNCC_OPTIONS_H

#include <stdbool.h>

#include "command.h"
#include "driver/manage_schedules.h"
#include "ir/config.h"
#include "load/settings.h"
#include "machine/machine.h"
#include "quantise/quantise.h"
#include "support/sandbox.h"

typedef enum Verb {
#define VERB(name, text, operands, summary, details, example) VERB_##name,
#include "driver/options.def"
} Verb;

typedef enum ScheduleVerb {
#define WORD(verb, name, text, help) verb##_##name,
#include "driver/options.def"
} ScheduleVerb;

/* Those of a bundle come first. */
typedef enum EmitKind {
  EMIT_SO,
  EMIT_C,
  EMIT_H,
  EMIT_WHEEL,
  EMIT_GRAPH,
  EMIT_DOT,
  EMIT_A /* by --static */
} EmitKind;

typedef enum Profile { PROFILE_FULL, PROFILE_EDGE } Profile;

typedef enum Weights { WEIGHTS_CONSTANT, WEIGHTS_MUTABLE } Weights;

typedef enum Explain {
  EXPLAIN_NOTHING,
  EXPLAIN_VERDICT,
  EXPLAIN_RNN,
  EXPLAIN_CONV,
  EXPLAIN_LAYOUT,
  EXPLAIN_INT8
} Explain;

/* A target to compile for, and the machine planned for. */
typedef struct PlannedTarget {
  const Target *target;
  bool native;     /* it is this CPU's */
  Machine machine; /* for native this one */
} PlannedTarget;

/* A network to compile. */
typedef struct PlannedModel {
  const char *network; /* its name in a bundle; NULL: it is of none */
  const char *path;
} PlannedModel;

typedef struct Options {
  Arena *arena;
  Verb verb;
  int n_models; /* more than one only in a bundle */
  PlannedModel *models;
  ScheduleVerb schedule_verb;
  FileList files; /* schedules: of records */
  ModelSettings settings;
  const char *output; /* NULL: made from the model's name; "-": stdout, for text */
  EmitKind emit;
  bool static_library; /* --static was given */
  const char *name;    /* with which globals and the names of a header begin; NULL: made from the model's name */
  Profile profile;
  Weights weights;
  int n_targets;
  PlannedTarget *targets;    /* of one architecture, the one that needs most of the CPU first */
  const char *machine_given; /* --machine=; NULL: not given */
  bool calibrate;            /* targets: measure this machine */
  const char *variant;       /* what --rnn forces, in the form of kernels/recurrent/variant.h; NULL: nothing */
  const char *conv_form;     /* --conv=, checked; NULL: not given */
  PrecisionRules precision;
  Training training;
  LayoutSearch layout_search;
  bool no_winograd;         /* convolutions are computed as they are defined */
  uint64_t seed;            /* of random numbers */
  bool tune_conv, tune_rnn; /* tune: convolutions, recurrent layers */
  int trials;               /* tune: of a convolution; 0: as the tuner has it */
  bool exhaustive;          /* tune: all schedules of a convolution */
  int shard, shards;        /* tune: the K-th of N shares of the tasks, from 1 */
  double budget_seconds;    /* tune: for building and measuring; --calibrate: for measuring */
  QuantiseOptions quantise; /* quantize: without its output and threads, which are below */
  bool no_bias_correction;  /* quantize */
  const char *runner;       /* tune: shell command that measures; NULL: rnnrun, on this machine */
  const char *schedules;    /* a file of schedule records besides rnncc's own, or "none"; NULL: not given */
  const char *runtime;      /* object file of the runtime that the tuner has built; NULL: none */
  const char *dump_after;   /* a step's name, NULL: none */
  int n_without;
  const char **without;       /* steps to leave out, by their names of step_find() */
  const char *depfile;        /* where to write what the output depends on, NULL: nowhere */
  const char *memory_picture; /* where to draw the memory plan, NULL: nowhere */
  const char *html;           /* inspect: where to write a page, NULL: nowhere */
  bool verify_each, time_passes, memory, verbose;
  Explain explain;     /* inspect: which choices */
  int threads;         /* to plan for; 0: as many as the machine has */
  double tool_seconds; /* how long clang or the linker may take */
  Sandbox sandbox;     /* of clang and the linker */
} Options;

extern const Command rnncc_command;

void options_add_target(Options *options, const Target *target, bool native);

/* Prints help and exits for --help and --version; error and EXIT_INVALID for what it does not understand. */
Options parse_options(Arena *arena, int argc, char **argv);

#endif
