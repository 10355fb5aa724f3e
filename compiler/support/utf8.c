/* SPDX-License-Identifier: MIT */
#include "support/utf8.h"

#include <string.h>

/* Table 3-7 of the Unicode standard: what may follow a first byte. The second byte's range keeps out overlong forms,
 * surrogates and what lies past U+10FFFF; the others are 80..BF. */
static const struct {
  unsigned char first_low, first_high, second_low, second_high, length;
} FORMS[] = {
    {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

int utf8_character(const char *text, size_t left) {
  const unsigned char *byte = (const unsigned char *)text;
  if (left == 0) return 0;
  for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++) {
    if (byte[0] < FORMS[f].first_low || byte[0] > FORMS[f].first_high) continue;
    if (FORMS[f].length > left) return 0;
    if (FORMS[f].length > 1 && (byte[1] < FORMS[f].second_low || byte[1] > FORMS[f].second_high)) return 0;
    for (int i = 2; i < FORMS[f].length; i++)
      if ((byte[i] & 0xc0) != 0x80) return 0;
    return FORMS[f].length;
  }
  return 0;
}

size_t utf8_prefix(const char *text, size_t limit) {
  size_t length = strnlen(text, limit);
  if (length < limit) return length;
  while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
  return length;
}
