/* SPDX-License-Identifier: MIT */
/* UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing past U+10FFFF. */
#ifndef RNNCC_UTF8_H
#define RNNCC_UTF8_H

#include <stddef.h>

/* Bytes of the character at `text`, of which `left` bytes may be read; 0 if they are not valid UTF-8. */
int utf8_character(const char *text, size_t left);

/* The longest prefix of at most `limit` bytes that does not cut a character. `text` is valid UTF-8. */
size_t utf8_prefix(const char *text, size_t limit);

#endif
