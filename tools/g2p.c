/* SPDX-License-Identifier: MIT */
/*
 * How words are pronounced: g2p ENCODER.so DECODER.so BEAM [WORD...], the modules of models/pretrained/g2p.py. Without
 * words, standard input has one a line. Each word's phonemes are printed after it.
 *
 * The encoder reads a word's letters once. The decoder then runs once a phoneme on all hypotheses side by side: its
 * dimension K is their number, at most BEAM. BEAM 1 takes the likeliest phoneme each time.
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
  START = 2, /* phonemes: <pad> <unk> <s> </s> AA0 ... */
  END = 3,
  PHONEMES = 74,
  MAX_SOUND = 20, /* phonemes of a word */
  HIDDEN = 256,
  MAX_BEAM = 16,
};

static const char *const PHONEME[PHONEMES] = {
    "<pad>", "<unk>", "<s>", "</s>", "AA0", "AA1", "AA2", "AE0", "AE1", "AE2", "AH0", "AH1", "AH2", "AO0", "AO1",
    "AO2",   "AW0",   "AW1", "AW2",  "AY0", "AY1", "AY2", "B",   "CH",  "D",   "DH",  "EH0", "EH1", "EH2", "ER0",
    "ER1",   "ER2",   "EY0", "EY1",  "EY2", "F",   "G",   "HH",  "IH0", "IH1", "IH2", "IY0", "IY1", "IY2", "JH",
    "K",     "L",     "M",   "N",    "NG",  "OW0", "OW1", "OW2", "OY0", "OY1", "OY2", "P",   "R",   "S",   "SH",
    "T",     "TH",    "UH0", "UH1",  "UH2", "UW",  "UW0", "UW1", "UW2", "V",   "W",   "Y",   "Z",   "ZH"};

typedef struct Hypothesis {
  float score; /* log probability of its phonemes, END included once it has ended */
  int length;
  int phoneme[MAX_SOUND];
  float hidden[HIDDEN];
} Hypothesis;

typedef struct Speaker {
  Session encoder, decoder;
  int beam;
} Speaker;

static Session start(const char *path, const char *name) {
  Session session = session_load(path);
  if (strcmp(session.api->info->name, name) != 0) fail(EXIT_INPUT, "%s: not the module of %s.json", path, name);
  session_start(&session, 1);
  return session;
}

/* Upper case counts as lower case. Characters that are no letters of English are unknown to the network, but read. */
static int64_t letter_index(char c) {
  int lower = tolower((unsigned char)c);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + FIRST_LETTER : 1;
}

static void encode(Speaker *speaker, const char *word, float hidden[HIDDEN]) {
  int64_t letters[MAX_WORD], length = 0;
  for (; word[length]; length++) letters[length] = letter_index(word[length]);
  letters[length++] = END_OF_WORD;
  const rnncc_tensor input = {.struct_size = sizeof input,
                              .data = letters,
                              .bytes = sizeof letters,
                              .dtype = RNNCC_I64,
                              .rank = 1,
                              .shape = {length}};
  rnncc_tensor output = {
      .struct_size = sizeof output, .data = hidden, .bytes = HIDDEN * sizeof *hidden, .dtype = RNNCC_F32};
  session_run(&speaker->encoder, &input, &output);
}

/* The next phoneme of `count` hypotheses: their hidden states move on. */
static void decode(Speaker *speaker, Hypothesis *hypotheses, int count, float log_probability[][PHONEMES]) {
  int64_t last[MAX_BEAM];
  float hidden[MAX_BEAM][HIDDEN], next[MAX_BEAM][HIDDEN];
  for (int k = 0; k < count; k++) {
    last[k] = hypotheses[k].length ? hypotheses[k].phoneme[hypotheses[k].length - 1] : START;
    memcpy(hidden[k], hypotheses[k].hidden, sizeof hidden[k]);
  }
  const rnncc_tensor inputs[] = {
      {.struct_size = sizeof(rnncc_tensor),
       .data = last,
       .bytes = sizeof last,
       .dtype = RNNCC_I64,
       .rank = 1,
       .shape = {count}},
      {.struct_size = sizeof(rnncc_tensor),
       .data = hidden,
       .bytes = sizeof hidden,
       .dtype = RNNCC_F32,
       .rank = 3,
       .shape = {1, count, HIDDEN}},
  };
  rnncc_tensor outputs[] = {
      {.struct_size = sizeof(rnncc_tensor),
       .data = log_probability,
       .bytes = sizeof(float[MAX_BEAM][PHONEMES]),
       .dtype = RNNCC_F32},
      {.struct_size = sizeof(rnncc_tensor), .data = next, .bytes = sizeof next, .dtype = RNNCC_F32},
  };
  session_run(&speaker->decoder, inputs, outputs);
  for (int k = 0; k < count; k++) memcpy(hypotheses[k].hidden, next[k], sizeof next[k]);
}

typedef struct Step {
  float score;
  int from, phoneme;
} Step;

/* The likeliest continuations, best first; of equal ones the earlier hypothesis and phoneme. Returns how many. */
static int best_steps(const Hypothesis *hypotheses, int count, float log_probability[][PHONEMES], int wanted,
                      Step *best) {
  int n = 0;
  for (int k = 0; k < count; k++) {
    for (int phoneme = 0; phoneme < PHONEMES; phoneme++) {
      Step step = {hypotheses[k].score + log_probability[k][phoneme], k, phoneme};
      int place = n;
      while (place > 0 && best[place - 1].score < step.score) place--;
      if (place == wanted) continue;
      if (n < wanted) n++;
      memmove(best + place + 1, best + place, (size_t)(n - 1 - place) * sizeof *best);
      best[place] = step;
    }
  }
  return n;
}

static Hypothesis continued(const Hypothesis *from, const Step *step) {
  Hypothesis longer = *from;
  longer.score = step->score;
  longer.phoneme[longer.length++] = step->phoneme;
  return longer;
}

/* The likeliest pronunciation by a beam search. Scores only fall as a hypothesis grows: the search ends once the best
 * ended one beats all open ones. A hypothesis that reaches MAX_SOUND without an end counts as ended. */
static Hypothesis pronounce(Speaker *speaker, const char *word) {
  Hypothesis open[MAX_BEAM] = {0}, grown[MAX_BEAM], ended = {.score = -1e30f};
  int count = 1;
  encode(speaker, word, open[0].hidden);
  for (int length = 0; length < MAX_SOUND && count > 0 && open[0].score > ended.score; length++) {
    float log_probability[MAX_BEAM][PHONEMES];
    Step steps[MAX_BEAM];
    decode(speaker, open, count, log_probability);
    int n = best_steps(open, count, log_probability, speaker->beam, steps);
    count = 0;
    for (int i = 0; i < n; i++) {
      if (steps[i].phoneme != END) {
        grown[count++] = continued(&open[steps[i].from], &steps[i]);
      } else if (steps[i].score > ended.score) {
        ended = open[steps[i].from];
        ended.score = steps[i].score;
      }
    }
    memcpy(open, grown, (size_t)count * sizeof *open);
  }
  return count > 0 && open[0].score > ended.score ? open[0] : ended;
}

static void say(Speaker *speaker, const char *word) {
  if (strlen(word) >= MAX_WORD) fail(EXIT_INPUT, "%s: a word has at most %d letters", word, MAX_WORD - 1);
  Hypothesis sound = pronounce(speaker, word);
  printf("%s", word);
  for (int i = 0; i < sound.length; i++) printf(" %s", PHONEME[sound.phoneme[i]]);
  printf("\n");
}

static void say_lines(Speaker *speaker) {
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) >= 0) {
    line[strcspn(line, "\n")] = 0;
    if (*line) say(speaker, line);
  }
  free(line);
}

int main(int argc, char **argv) {
  int64_t beam;
  if (argc < 4 || !parse_integer(argv[3], &beam) || beam < 1 || beam > MAX_BEAM)
    fail(EXIT_INPUT, "usage: g2p ENCODER.so DECODER.so BEAM [WORD...]   BEAM: 1 to %d hypotheses", MAX_BEAM);
  Speaker speaker = {start(argv[1], "g2p_encoder"), start(argv[2], "g2p_decoder"), (int)beam};
  for (int i = 4; i < argc; i++) say(&speaker, argv[i]);
  if (argc == 4) say_lines(&speaker);
  session_close(&speaker.encoder);
  session_close(&speaker.decoder);
}
