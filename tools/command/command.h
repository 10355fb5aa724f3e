/* SPDX-License-Identifier: MIT */
/*
 * A program's command line as tables: verbs, options, what each takes and says. The parser, --help, the manual page,
 * tools/docs/options.md and the shells' completion are made from them. For rnncc and rnnrun, so it needs libc only.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* How an option's value is read, and the type of the field that it goes to. */
typedef enum ActionKind {
  ACTION_FLAG,     /* bool; no value */
  ACTION_TEXT,     /* const char *; not empty */
  ACTION_COUNT,    /* int, from 1 to `limit` */
  ACTION_NUMBER,   /* double, not negative */
  ACTION_POSITIVE, /* double, above 0 */
  ACTION_SECONDS,  /* double, above 0; an `s` may follow */
  ACTION_CHOICE,   /* an enum: `limit` plus the place of the value among the option's words */
  ACTION_CALL,     /* `call` reads it */
  ACTION_HELP      /* `all`, or no value */
} ActionKind;

typedef struct Action {
  ActionKind kind;
  size_t field; /* offset in the struct that command_parse() fills */
  int limit;
  /* `value` is NULL if it was left out. Returns NULL if the value is right, else what is expected. */
  const char *(*call)(void *into, const char *value);
} Action;

/* A row without a name is the title of a section, in `help`. */
typedef struct CommandOption {
  const char *name;  /* without dashes */
  char letter;       /* of the short form; 0: none */
  const char *value; /* what it takes: "PATH"; "[SVG]": may be left out; NULL: takes none */
  const char *words; /* possible values, separated by spaces, FILE for paths; NULL: not listed */
  unsigned verbs;    /* a bit each; two rows of one name are for different verbs */
  Action action;
  const char *help;    /* sentences, `code` in backquotes */
  const char *example; /* NULL: none */
} CommandOption;

typedef struct CommandVerb {
  const char *name, *operands, *summary;
  const char *details; /* more sentences for its own help; NULL: none */
  const char *example;
} CommandVerb;

/* A verb's first operand, if it is one of a list of words: `rnncc schedules merge`. */
typedef struct CommandWord {
  int verb;
  const char *name, *help;
} CommandWord;

typedef struct CommandNote {
  const char *name, *help; /* a variable of the environment, or an exit code */
} CommandNote;

typedef struct Command {
  const char *name, *summary;
  int implied_verb; /* of a command line without one; -1: a verb must be given */
  int n_verbs, n_words, n_options, n_variables, n_exits;
  const CommandVerb *verbs;
  const char *const *common; /* of each verb, the names of the options that its help shows first; NULL: none */
  const CommandWord *words;
  const CommandOption *options;
  const CommandNote *variables, *exits;
  /* Says that the command line is wrong, and ends the program. */
  void (*refuse)(const char *message) __attribute__((noreturn));
  /* The one of n names that `word` is probably a misspelling of; NULL: none. Without this function all are listed. */
  const char *(*closest)(const char *word, const char *const *names, int n);
} Command;

typedef struct CommandLine {
  bool help; /* requested, for `verb`; -1: for the program */
  bool all;  /* of --help=all */
  int verb;
  int word; /* which of the verb's words the first of these is; 0 if it has none */
  int n_words;
  char **words; /* operands */
} CommandLine;

/* Fills *into by the options' actions. Ends by `refuse` if the command line is wrong. */
CommandLine command_parse(const Command *command, int argc, char **argv, void *into);

/* The verb that the word is, or is probably a misspelling of; NULL: none. needs: command->closest. */
const char *command_closest_verb(const Command *command, const char *word);

/* The text of --help: of a verb, that verb alone; of the program, its verbs; with `all`, everything. */
void command_help(FILE *out, const Command *command, const CommandLine *line);

bool option_takes(const CommandOption *option, int verb);
bool option_value_optional(const CommandOption *option);
/* "-o, --output=PATH" or "--memory[=SVG]". */
enum { OPTION_TEXT_BYTES = 64 };
const char *option_text(const CommandOption *option, char text[OPTION_TEXT_BYTES]);

#endif
