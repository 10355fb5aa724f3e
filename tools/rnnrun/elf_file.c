/* SPDX-License-Identifier: MIT */
/*
 * ELF files come in four forms: of 32 or 64 bits, little- or big-endian. The few fields that are needed are read by
 * their place in each, and checked against the file's size: the file may be anything.
 */
#include "elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static const struct {
  unsigned id;
  const char *name;
} machines[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_RISCV, "riscv"}, {EM_ARM, "arm"},
                {EM_386, "i386"},      {EM_PPC64, "ppc64"},     {EM_S390, "s390"},   {EM_MIPS, "mips"},
                {EM_PPC, "ppc"},       {EM_SPARCV9, "sparc64"}};

#if defined __x86_64__
enum { MACHINE_HERE = EM_X86_64 };
#elif defined __aarch64__
enum { MACHINE_HERE = EM_AARCH64 };
#elif defined __riscv
enum { MACHINE_HERE = EM_RISCV };
#else
enum { MACHINE_HERE = EM_NONE };
#endif

static ElfFile mapped(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) || !S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(Elf32_Ehdr))
    return (ElfFile){0};
  size_t size = (size_t)status.st_size;
  unsigned char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  return bytes == MAP_FAILED ? (ElfFile){0} : (ElfFile){.bytes = bytes, .size = size};
}

static bool is_wide(const ElfFile *file) { return file->bytes[EI_CLASS] == ELFCLASS64; }
static bool is_big_endian(const ElfFile *file) { return file->bytes[EI_DATA] == ELFDATA2MSB; }

/* The unsigned number of `bytes` bytes at `at`; 0 if the file ends before. */
static uint64_t number_at(const ElfFile *file, uint64_t at, unsigned bytes) {
  if (at > file->size || file->size - at < bytes) return 0;
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value = value << 8 | file->bytes[at + (is_big_endian(file) ? i : bytes - 1 - i)];
  return value;
}

/* A field of the file's header or of a program header at `base`, of each form's struct. */
#define FIELD(file, base, Struct, field)                                                                               \
  (is_wide(file) ? number_at(file, (base) + offsetof(Elf64_##Struct, field), sizeof((Elf64_##Struct *)0)->field)       \
                 : number_at(file, (base) + offsetof(Elf32_##Struct, field), sizeof((Elf32_##Struct *)0)->field))

/* ---- segments of notes ---- */

static bool has_notes(const ElfFile *file, uint64_t header, ElfSegment *segment) {
  uint64_t begin = FIELD(file, header, Phdr, p_offset), bytes = FIELD(file, header, Phdr, p_filesz);
  *segment = (ElfSegment){begin, begin + bytes};
  return FIELD(file, header, Phdr, p_type) == PT_NOTE && begin <= file->size && bytes <= file->size - begin;
}

static int by_begin(const void *a, const void *b) {
  const ElfSegment *x = a, *y = b;
  return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (x->end < y->end) - (x->end > y->end);
}

/* A segment that begins within another's notes is left out. */
static void find_notes(ElfFile *file) {
  uint64_t first = FIELD(file, 0, Ehdr, e_phoff), bytes = FIELD(file, 0, Ehdr, e_phentsize);
  size_t count = FIELD(file, 0, Ehdr, e_phnum), found = 0;
  file->notes = allocate(sizeof *file->notes * count);
  for (size_t i = 0; i < count; i++) found += has_notes(file, first + i * bytes, &file->notes[found]);
  qsort(file->notes, found, sizeof *file->notes, by_begin);
  for (size_t i = 0; i < found; i++)
    if (!file->n_notes || file->notes[i].begin >= file->notes[file->n_notes - 1].end)
      file->notes[file->n_notes++] = file->notes[i];
}

ElfFile elf_open(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return (ElfFile){0};
  ElfFile file = mapped(descriptor);
  close(descriptor);
  if (file.bytes && memcmp(file.bytes, ELFMAG, SELFMAG) != 0) elf_close(&file);
  if (file.bytes) find_notes(&file);
  return file;
}

void elf_close(ElfFile *file) {
  if (file->bytes) munmap(file->bytes, file->size);
  free(file->notes);
  *file = (ElfFile){0};
}

/* ---- machine ---- */

static unsigned machine_of(const ElfFile *file) { return (unsigned)FIELD(file, 0, Ehdr, e_machine); }

static bool is_of_other_machine(const ElfFile *file) {
  const uint16_t one = 1;
  bool big_endian_here = *(const unsigned char *)&one == 0;
  return machine_of(file) != MACHINE_HERE || is_wide(file) != (sizeof(void *) == 8) ||
         is_big_endian(file) != big_endian_here;
}

/* By the line of the note that names the target, "aarch64-linux-musl+dotprod". */
static bool is_of_musl(const ElfFile *file) {
  ElfPlace place = {0};
  const char *description = elf_note(file, ELF_LINES, &place);
  const char *line = description ? strstr(description, "\ntarget ") : NULL;
  const char *musl = line ? strstr(line, "-musl") : NULL;
  return musl && musl < strchr(line + 1, '\n');
}

/* Programs of musl load modules for glibc, too. */
#ifdef __GLIBC__
static const char libc_here[] = "glibc";
static bool is_of_other_libc(const ElfFile *file) { return is_of_musl(file); }
#else
static const char libc_here[] = "musl";
static bool is_of_other_libc(const ElfFile *file) { return (void)file, false; }
#endif

bool elf_is_foreign(const ElfFile *file) {
  return file->bytes && MACHINE_HERE != EM_NONE && (is_of_other_machine(file) || is_of_other_libc(file));
}

static const char *machine_name(unsigned id) {
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].id == id) return machines[i].name;
  return NULL;
}

const char *elf_machine(const ElfFile *file, char text[ELF_MACHINE_TEXT]) {
  char number[32];
  unsigned id = machine_of(file);
  snprintf(number, sizeof number, "machine %u", id);
  snprintf(text, ELF_MACHINE_TEXT, "%s, %d bits, %s-endian%s", machine_name(id) ? machine_name(id) : number,
           is_wide(file) ? 64 : 32, is_big_endian(file) ? "big" : "little", is_of_musl(file) ? ", musl" : "");
  return text;
}

const char *elf_machine_here(char text[ELF_MACHINE_TEXT]) {
  const char *name = machine_name(MACHINE_HERE);
  snprintf(text, ELF_MACHINE_TEXT, "%s with %s", name ? name : "another machine", libc_here);
  return text;
}

/* ---- notes ---- */

static uint64_t padded(uint64_t bytes) { return (bytes + 3) & ~(uint64_t)3; }

/* The text of the note at `at`, which is complete before `end`; NULL: it is not rnncc's. */
static const char *note_text(const ElfFile *file, uint64_t at, uint64_t end) {
  static const char owner[] = "rnncc";
  uint64_t name = at + sizeof(Elf64_Nhdr), name_bytes = number_at(file, at, 4), bytes = number_at(file, at + 4, 4);
  uint64_t text = name + padded(name_bytes);
  bool ours =
      name_bytes == sizeof owner && text + bytes <= end && bytes && !memcmp(file->bytes + name, owner, sizeof owner);
  return ours && !file->bytes[text + bytes - 1] ? (const char *)file->bytes + text : NULL;
}

const char *elf_note(const ElfFile *file, ElfNote kind, ElfPlace *place) {
  for (; place->segment < file->n_notes; *place = (ElfPlace){place->segment + 1, 0}) {
    const ElfSegment *segment = &file->notes[place->segment];
    if (!place->at) place->at = segment->begin;
    while (place->at + sizeof(Elf64_Nhdr) <= segment->end) {
      uint64_t at = place->at;
      const char *text = note_text(file, at, segment->end);
      place->at += sizeof(Elf64_Nhdr) + padded(number_at(file, at, 4)) + padded(number_at(file, at + 4, 4));
      if (text && number_at(file, at + 8, 4) == kind) return text;
    }
  }
  return NULL;
}
