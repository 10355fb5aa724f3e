/* SPDX-License-Identifier: MIT */
/* What `rnnrun inspect` reads of a module's notes, and that its work grows as the file does: a file may be made to have
 * as many notes, lines and segments as it has room for. Work is counted in bytes that are compared or searched. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t work;

static int counted_memcmp(const void *a, const void *b, size_t length) {
  work += length + 1;
  return memcmp(a, b, length);
}

static size_t counted_strcspn(const char *text, const char *until) {
  size_t length = strcspn(text, until);
  work += length + 1;
  return length;
}

#define memcmp counted_memcmp
#define strcspn counted_strcspn
#include "rnnrun/elf_file.c"
#include "rnnrun/notes.c"
#undef memcmp
#undef strcspn

#include <cmocka.h> /* whose fail() is a macro */

enum { SEGMENTS = 40, LONGEST = 64 };

static void set_segment(ElfFile *file, int index, size_t begin, size_t end) {
  Elf64_Phdr segment = {.p_type = PT_NOTE, .p_offset = begin, .p_filesz = end - begin};
  memcpy(file->bytes + sizeof(Elf64_Ehdr) + (size_t)index * sizeof segment, &segment, sizeof segment);
}

/* A file of `segments` segments that all are the same notes: `count` of them, of `networks` networks in turn. */
static ElfFile crafted(int count, int networks, int segments) {
  size_t most = sizeof(Elf64_Ehdr) + (size_t)segments * sizeof(Elf64_Phdr) + (size_t)count * LONGEST;
  ElfFile file = {.bytes = allocate(most), .size = sizeof(Elf64_Ehdr) + (size_t)segments * sizeof(Elf64_Phdr)};
  Elf64_Ehdr header = {.e_phoff = sizeof header, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = (Elf64_Half)segments};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  size_t begin = file.size;
  for (int i = 0; i < count; i++) {
    char text[LONGEST];
    Elf64_Nhdr note = {sizeof "rnncc", 0, ELF_LINES};
    note.n_descsz = (Elf64_Word)snprintf(text, sizeof text, "model    n%d\ntarget   %d\n", i % networks, i) + 1;
    memcpy(file.bytes + file.size, &note, sizeof note);
    memcpy(file.bytes + file.size + sizeof note, "rnncc", sizeof "rnncc");
    memcpy(file.bytes + file.size + sizeof note + 8, text, note.n_descsz);
    file.size += sizeof note + 8 + padded(note.n_descsz);
  }
  memcpy(file.bytes, &header, sizeof header);
  for (int i = 0; i < segments; i++) set_segment(&file, i, begin, file.size);
  find_notes(&file);
  return file;
}

static void done_with(ElfFile *file) {
  free(file->bytes);
  free(file->notes);
}

static void notes_of_a_network_follow_each_other(void **state) {
  (void)state;
  ElfFile file = crafted(7, 3, 1);
  Notes notes = notes_of(&file, ELF_LINES);
  static const int first[] = {0, 1, 2, 0, 1, 2, 0}, next[] = {3, 4, 5, 6, -1, -1, -1};
  assert_int_equal(notes.count, 7);
  assert_memory_equal(notes.first, first, sizeof first);
  assert_memory_equal(notes.next, next, sizeof next);
  assert_string_equal(notes.texts[4], "model    n1\ntarget   4\n");
  notes_free(&notes);
  done_with(&file);
}

static void notes_to_which_many_segments_point_are_read_once(void **state) {
  (void)state;
  ElfFile file = crafted(5, 5, SEGMENTS);
  Notes notes = notes_of(&file, ELF_LINES);
  assert_int_equal(notes.count, 5);
  notes_free(&notes);
  done_with(&file);
}

/* Only those that are loaded must be. */
static void segments_of_notes_need_not_ascend(void **state) {
  (void)state;
  ElfFile file = crafted(2, 2, 3);
  size_t begin = file.notes[0].begin, end = file.size, middle = begin + (end - begin) / 2;
  free(file.notes);
  file.n_notes = 0;
  set_segment(&file, 0, middle, end);
  set_segment(&file, 1, begin, middle);
  set_segment(&file, 2, end, end);
  find_notes(&file);
  Notes notes = notes_of(&file, ELF_LINES);
  assert_int_equal(notes.count, 2);
  assert_string_equal(notes.texts[0], "model    n0\ntarget   0\n");
  notes_free(&notes);
  done_with(&file);
}

static size_t work_of_notes(int count, int networks) {
  ElfFile file = crafted(count, networks, SEGMENTS);
  work = 0;
  Notes notes = notes_of(&file, ELF_LINES);
  assert_int_equal(notes.count, count);
  notes_free(&notes);
  done_with(&file);
  return work;
}

/* Twice the notes are twice the work, and one more comparison of each to sort them; n^2 is four times it. */
static void the_work_grows_as_the_notes_do(void **state) {
  (void)state;
  enum { NOTES = 2048 };
  assert_in_range(work_of_notes(2 * NOTES, 2 * NOTES), 2 * NOTES, 3 * work_of_notes(NOTES, NOTES));
  assert_in_range(work_of_notes(2 * NOTES, 1), 2 * NOTES, 3 * work_of_notes(NOTES, 1));
}

static size_t work_of_lines(int count) {
  char *text = allocate((size_t)count * LONGEST), *end = text;
  for (int i = 0; i < count; i++) end += sprintf(end, "input    x%d f32\n", i);
  work = 0;
  Lines lines = lines_of(text);
  assert_int_equal(lines.count, count);
  for (const char *line = text, *stop; (stop = strchr(line, '\n')); line = stop + 1)
    assert_true(lines_have(&lines, line, (size_t)(stop - line)));
  assert_false(lines_have(&lines, "input    x", sizeof "input    x" - 1));
  lines_free(&lines);
  free(text);
  return work;
}

static void the_work_grows_as_the_lines_do(void **state) {
  (void)state;
  enum { LINES = 2048 };
  assert_in_range(work_of_lines(2 * LINES), 2 * LINES, 3 * work_of_lines(LINES));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(notes_of_a_network_follow_each_other),
      cmocka_unit_test(notes_to_which_many_segments_point_are_read_once),
      cmocka_unit_test(segments_of_notes_need_not_ascend),
      cmocka_unit_test(the_work_grows_as_the_notes_do),
      cmocka_unit_test(the_work_grows_as_the_lines_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
