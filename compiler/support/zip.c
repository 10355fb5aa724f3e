/* SPDX-License-Identifier: MIT */
/* The format by PKWARE's APPNOTE.TXT, 4.3: each file's header and bytes, then the directory, which says where they are.
 * Numbers are little-endian. */
#include "support/zip.h"

#include <string.h>

#include "support/list.h"

enum {
  LOCAL_HEADER = 0x04034b50,
  DIRECTORY_HEADER = 0x02014b50,
  DIRECTORY_END = 0x06054b50,
  VERSION = 20, /* 2.0 of the format */
  MADE_ON_UNIX = 3 << 8,
  UTF8_NAMES = 1 << 11,      /* of the flags */
  EARLIEST_DAY = 1 << 5 | 1, /* January 1st, 1980 */
  REGULAR_FILE = 0100644
};

Zip zip_new(Arena *arena) { return (Zip){.arena = arena, .directory = text_new(arena)}; }

/* CRC-32 of ISO 3309, as zip has it: the reversed polynomial 0xedb88320. */
static uint32_t crc32_of(FileBytes data) {
  uint32_t table[256], crc = UINT32_MAX;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
  }
  for (size_t i = 0; i < data.size; i++) crc = crc >> 8 ^ table[(crc ^ data.data[i]) & 0xff];
  return ~crc;
}

static void add_number(Text *text, size_t value, int bytes) {
  char digits[4];
  for (int i = 0; i < bytes; i++) digits[i] = (char)(value >> 8 * i);
  text_bytes(text, digits, (size_t)bytes);
}

/* What the header before the file and that in the directory have in common. */
static void add_facts(Text *text, const char *name, size_t size, uint32_t crc) {
  const size_t facts[][2] = {{VERSION, 2}, {UTF8_NAMES, 2},   {0, 2}, {0, 2}, {EARLIEST_DAY, 2}, {crc, 4}, {size, 4},
                             {size, 4},    {strlen(name), 2}, {0, 2}};
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) add_number(text, facts[i][0], (int)facts[i][1]);
}

static void add_part(Zip *zip, FileBytes part) {
  *LIST_ADD(zip->arena, zip->parts, zip->n_parts, zip->capacity) = part;
  zip->offset += part.size;
}

static void add_to_directory(Zip *zip, const char *name, size_t size, uint32_t crc) {
  Text *text = &zip->directory;
  add_number(text, DIRECTORY_HEADER, 4);
  add_number(text, MADE_ON_UNIX | VERSION, 2);
  add_facts(text, name, size, crc);
  add_number(text, 0, 4); /* no comment, on the first disk */
  add_number(text, 0, 2);
  add_number(text, (size_t)REGULAR_FILE << 16, 4);
  add_number(text, zip->offset, 4);
  text_bytes(text, name, strlen(name));
}

void zip_add(Zip *zip, const char *name, FileBytes data) {
  Text header = text_new(zip->arena);
  uint32_t crc = crc32_of(data);
  add_to_directory(zip, name, data.size, crc);
  add_number(&header, LOCAL_HEADER, 4);
  add_facts(&header, name, data.size, crc);
  text_bytes(&header, name, strlen(name));
  add_part(zip, (FileBytes){(const uint8_t *)header.data, header.length});
  add_part(zip, data);
  zip->count++;
}

void zip_write(Zip *zip, const char *path) {
  Text *text = &zip->directory;
  size_t bytes = text->length;
  if (zip->offset + bytes > UINT32_MAX)
    fatal_at(LOCATION_FILE(path), EXIT_UNSUPPORTED, "expected less than 4 GiB, found %zu bytes", zip->offset + bytes);
  add_number(text, DIRECTORY_END, 4);
  add_number(text, 0, 4); /* on the first disk, whole */
  add_number(text, (size_t)zip->count, 2);
  add_number(text, (size_t)zip->count, 2);
  add_number(text, bytes, 4);
  add_number(text, zip->offset, 4);
  add_number(text, 0, 2); /* no comment */
  add_part(zip, (FileBytes){(const uint8_t *)text->data, text->length});
  file_write_parts(zip->arena, path, zip->parts, zip->n_parts);
}
