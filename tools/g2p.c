/* SPDX-License-Identifier: MIT */
/*
 * How words are pronounced: g2p MODULE.so [WORD...], a module of models/pretrained/g2p.py. Without words, standard
 * input has one a line. Each word's phonemes are printed after it. The search for the likeliest is in the module.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnnrun/session.h"
#include "rnnrun/support.h"

enum {
  MAX_WORD = 64,   /* letters and the end */
  END_OF_WORD = 2, /* letters: <pad> <unk> </s> a b c ... */
  FIRST_LETTER = 3,
  PHONEMES = 74,
  MAX_SOUND = 20, /* phonemes of a word */
};

static const char *const PHONEME[PHONEMES] = {
    "<pad>", "<unk>", "<s>", "</s>", "AA0", "AA1", "AA2", "AE0", "AE1", "AE2", "AH0", "AH1", "AH2", "AO0", "AO1",
    "AO2",   "AW0",   "AW1", "AW2",  "AY0", "AY1", "AY2", "B",   "CH",  "D",   "DH",  "EH0", "EH1", "EH2", "ER0",
    "ER1",   "ER2",   "EY0", "EY1",  "EY2", "F",   "G",   "HH",  "IH0", "IH1", "IH2", "IY0", "IY1", "IY2", "JH",
    "K",     "L",     "M",   "N",    "NG",  "OW0", "OW1", "OW2", "OY0", "OY1", "OY2", "P",   "R",   "S",   "SH",
    "T",     "TH",    "UH0", "UH1",  "UH2", "UW",  "UW0", "UW1", "UW2", "V",   "W",   "Y",   "Z",   "ZH"};

/* Upper case counts as lower case. Characters that are no letters of English are unknown to the network, but read. */
static int64_t letter_index(char c) {
  int lower = tolower((unsigned char)c);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + FIRST_LETTER : 1;
}

static rnncc_tensor integers(int64_t *data, int64_t count) {
  return (rnncc_tensor){.struct_size = sizeof(rnncc_tensor),
                        .data = data,
                        .bytes = (uint64_t)count * sizeof *data,
                        .dtype = RNNCC_I64,
                        .rank = 1,
                        .shape = {count}};
}

/* Returns how many phonemes the word has. */
static int64_t pronounce(Session *session, const char *word, int64_t phonemes[MAX_SOUND]) {
  int64_t letters[MAX_WORD], count = 0, length;
  for (; word[count]; count++) letters[count] = letter_index(word[count]);
  letters[count++] = END_OF_WORD;
  const rnncc_tensor input = integers(letters, count);
  rnncc_tensor outputs[] = {integers(phonemes, MAX_SOUND), integers(&length, 1)};
  session_run(session, &input, outputs);
  return length;
}

static void say(Session *session, const char *word) {
  int64_t phonemes[MAX_SOUND];
  if (strlen(word) >= MAX_WORD) fail(EXIT_INPUT, "%s: a word has at most %d letters", word, MAX_WORD - 1);
  int64_t length = pronounce(session, word, phonemes);
  printf("%s", word);
  for (int64_t i = 0; i < length; i++) printf(" %s", PHONEME[phonemes[i]]);
  printf("\n");
}

static void say_lines(Session *session) {
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) >= 0) {
    line[strcspn(line, "\n")] = 0;
    if (*line) say(session, line);
  }
  free(line);
}

int main(int argc, char **argv) {
  if (argc < 2) fail(EXIT_INPUT, "usage: g2p MODULE.so [WORD...]");
  Session session = session_load(argv[1]);
  if (strcmp(session.api->info->name, "g2p") != 0) fail(EXIT_INPUT, "%s: not a module of g2p.py", argv[1]);
  session_start(&session, 1);
  for (int i = 2; i < argc; i++) say(&session, argv[i]);
  if (argc == 2) say_lines(&session);
  session_close(&session);
}
