/* SPDX-License-Identifier: MIT */
#include "support/closest.h"

#include "support/numbers.h"
#include "support/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORD = 40 };

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. Both at most MAX_WORD. */
static int edit_distance(const char *a, int a_length, const char *b, int b_length) {
  int cost[MAX_WORD + 1][MAX_WORD + 1];
  for (int i = 0; i <= a_length; i++) {
    for (int j = 0; j <= b_length; j++) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = (int)min_int(cost[i - 1][j], cost[i][j - 1]) + 1;
      cost[i][j] = (int)min_int(cost[i][j], cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = (int)min_int(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a_length][b_length];
}

Closest closest_to(const char *word) {
  int length = (int)strnlen(word, MAX_WORD + 1);
  int furthest = length > MAX_WORD ? -1 : (int)min_int(2, length / 3); /* two slips in a word of six letters */
  return (Closest){.word = word, .distance = furthest + 1};
}

void closest_try(Closest *closest, const char *candidate) {
  int length = (int)strnlen(candidate, MAX_WORD + 1);
  if (length > MAX_WORD || closest->distance == 0) return;
  int word_length = (int)strlen(closest->word);
  if (abs(length - word_length) >= closest->distance && strcasecmp(closest->word, candidate) != 0) return;
  int distance =
      strcasecmp(closest->word, candidate) == 0 ? 0 : edit_distance(closest->word, word_length, candidate, length);
  if (distance >= closest->distance) return;
  closest->best = candidate;
  closest->distance = distance;
}

const char *closest_hint(Arena *arena, const Closest *closest) {
  return closest->best ? arena_format(arena, "; did you mean \"%s\"?", closest->best) : "";
}

typedef struct Near {
  const char *name;
  int distance, place;
} Near;

static int by_distance(const void *a, const void *b) {
  const Near *first = a, *second = b;
  return first->distance != second->distance ? first->distance - second->distance : first->place - second->place;
}

/* Long names are far from each other. */
static int distance_of(const char *a, const char *b) {
  int a_length = (int)strnlen(a, MAX_WORD + 1), b_length = (int)strnlen(b, MAX_WORD + 1);
  if (!strcasecmp(a, b)) return 0;
  return a_length > MAX_WORD || b_length > MAX_WORD ? MAX_WORD : edit_distance(a, a_length, b, b_length);
}

const char *nearest_names(Arena *arena, const char *word, const char *const *names, int count) {
  enum { MOST = 16 };
  Text text = text_new(arena);
  Near *near = ARENA_ARRAY(arena, Near, count);
  for (int i = 0; i < count; i++) near[i] = (Near){names[i], distance_of(word, names[i]), i};
  if (count) qsort(near, (size_t)count, sizeof *near, by_distance);
  for (int i = 0; i < count && i < MOST; i++) text_add(&text, "%s\"%.80s\"", i ? ", " : "", near[i].name);
  if (count > MOST) text_add(&text, " and %d more", count - MOST);
  return count ? text.data : "none";
}
