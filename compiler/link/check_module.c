/* SPDX-License-Identifier: MIT */
/*
 * A tool may end with status 0 and have written something else: an empty file where the disk was full, a module for
 * this machine by a wrapper that drops --target, one with more symbols by a linker that knows no --exclude-libs. ELF is
 * read by <elf.h>, each field by its place in the form of 32 or of 64 bits, and checked against the file's size. All
 * targets are little-endian.
 */
#include "link/check_module.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/clang_program.h"
#include "support/diagnostics.h"

typedef struct Elf {
  const uint8_t *bytes;
  uint64_t size;
  bool wide; /* of 64 bits */
} Elf;

enum { FAULT_BYTES = 256 };

/* The unsigned number of `bytes` bytes at `at`; 0 if the file ends before. */
static uint64_t number_at(const Elf *elf, uint64_t at, size_t bytes) {
  uint64_t value = 0;
  if (at > elf->size || elf->size - at < bytes) return 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | elf->bytes[at + i];
  return value;
}

/* A field of the struct of that name at `base`. */
#define FIELD(elf, base, Struct, field)                                                                                \
  ((elf)->wide ? number_at(elf, (base) + offsetof(Elf64_##Struct, field), sizeof((Elf64_##Struct *)0)->field)          \
               : number_at(elf, (base) + offsetof(Elf32_##Struct, field), sizeof((Elf32_##Struct *)0)->field))
#define STRUCT_BYTES(elf, Struct) ((elf)->wide ? sizeof(Elf64_##Struct) : sizeof(Elf32_##Struct))

/* ---- the machine ---- */

static const struct {
  const char *triple; /* how it begins */
  unsigned machine;
} machines[] = {{"x86_64", EM_X86_64}, {"i386", EM_386},        {"i486", EM_386},
                {"i586", EM_386},      {"i686", EM_386},        {"aarch64", EM_AARCH64},
                {"arm", EM_ARM},       {"powerpc64", EM_PPC64}, {"riscv", EM_RISCV}};

static unsigned machine_of(const Target *target) {
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (!strncmp(target->triple, machines[i].triple, strlen(machines[i].triple))) return machines[i].machine;
  return EM_NONE;
}

static bool is_for(const Elf *elf, const Target *target, char *fault) {
  unsigned due = machine_of(target), found = (unsigned)FIELD(elf, 0, Ehdr, e_machine);
  if (elf->bytes[EI_DATA] == ELFDATA2LSB && (due == EM_NONE || due == found)) return true;
  snprintf(fault, FAULT_BYTES, "is for machine %u of ELF, not for %s", found, target->triple);
  return false;
}

/* ---- segments and sections ---- */

static bool is_whole(const Elf *elf, char *fault) {
  uint64_t at = FIELD(elf, 0, Ehdr, e_phoff), count = FIELD(elf, 0, Ehdr, e_phnum), loaded = 0;
  for (uint64_t i = 0; i < count; i++, at += STRUCT_BYTES(elf, Phdr)) {
    uint64_t kind = FIELD(elf, at, Phdr, p_type), offset = FIELD(elf, at, Phdr, p_offset);
    uint64_t bytes = FIELD(elf, at, Phdr, p_filesz);
    loaded += kind == PT_LOAD;
    if (kind == PT_LOAD && (offset > elf->size || elf->size - offset < bytes)) {
      snprintf(fault, FAULT_BYTES, "is cut short: of %llu bytes", (unsigned long long)elf->size);
      return false;
    }
    if (kind == PT_GNU_STACK && FIELD(elf, at, Phdr, p_flags) & PF_X) {
      snprintf(fault, FAULT_BYTES, "has an executable stack");
      return false;
    }
  }
  if (!loaded) snprintf(fault, FAULT_BYTES, "has nothing to be loaded");
  return loaded > 0;
}

static uint64_t section_at(const Elf *elf, uint64_t index) {
  return FIELD(elf, 0, Ehdr, e_shoff) + index * STRUCT_BYTES(elf, Shdr);
}

/* The first section of the kind; 0: there is none. */
static uint64_t section_of_kind(const Elf *elf, uint64_t kind) {
  uint64_t count = FIELD(elf, 0, Ehdr, e_shnum);
  for (uint64_t i = 1; i < count; i++)
    if (FIELD(elf, section_at(elf, i), Shdr, sh_type) == kind) return section_at(elf, i);
  return 0;
}

/* Does loading it change or run nothing of it? */
static bool is_passive(const Elf *elf, char *fault) {
  static const unsigned kinds[] = {SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (section_of_kind(elf, kinds[i])) {
      snprintf(fault, FAULT_BYTES, "has a constructor or a destructor");
      return false;
    }
  uint64_t dynamic = section_of_kind(elf, SHT_DYNAMIC);
  uint64_t at = FIELD(elf, dynamic, Shdr, sh_offset), bytes = dynamic ? FIELD(elf, dynamic, Shdr, sh_size) : 0;
  for (uint64_t end = at + bytes; at < end && at < elf->size; at += STRUCT_BYTES(elf, Dyn))
    if (FIELD(elf, at, Dyn, d_tag) == DT_TEXTREL) {
      snprintf(fault, FAULT_BYTES, "has code that is changed when it is loaded (TEXTREL)");
      return false;
    }
  return true;
}

/* ---- symbols ---- */

/* A name in the strings at `at`: empty if it does not end within the file. */
static const char *name_at(const Elf *elf, uint64_t at) {
  bool ends = at < elf->size && memchr(elf->bytes + at, 0, elf->size - at);
  return ends ? (const char *)elf->bytes + at : "";
}

static bool is_exported(const Elf *elf, uint64_t symbol) {
  unsigned binding = ELF64_ST_BIND(FIELD(elf, symbol, Sym, st_info));
  return FIELD(elf, symbol, Sym, st_shndx) != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

static bool exports_only(const Elf *elf, const char *due, char *fault) {
  uint64_t table = section_of_kind(elf, SHT_DYNSYM), found = 0;
  uint64_t at = FIELD(elf, table, Shdr, sh_offset), bytes = table ? FIELD(elf, table, Shdr, sh_size) : 0;
  uint64_t names = FIELD(elf, section_at(elf, FIELD(elf, table, Shdr, sh_link)), Shdr, sh_offset);
  for (uint64_t end = at + bytes; at < end && at < elf->size; at += STRUCT_BYTES(elf, Sym)) {
    if (!is_exported(elf, at)) continue;
    const char *name = name_at(elf, names + FIELD(elf, at, Sym, st_name));
    if (strcmp(name, due) != 0) {
      snprintf(fault, FAULT_BYTES, "exports %.100s, not %s alone", name, due);
      return false;
    }
    found++;
  }
  if (!found) snprintf(fault, FAULT_BYTES, "does not export %s", due);
  return found > 0;
}

/* ---- the file ---- */

static bool is_shared_object(const Elf *elf, char *fault) {
  bool is_elf = elf->size >= sizeof(Elf64_Ehdr) && memcmp(elf->bytes, ELFMAG, SELFMAG) == 0;
  if (is_elf && FIELD(elf, 0, Ehdr, e_type) == ET_DYN) return true;
  snprintf(fault, FAULT_BYTES, "is no shared object of ELF: it has %llu bytes", (unsigned long long)elf->size);
  return false;
}

static Elf elf_open(const char *path) {
  struct stat status = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  void *bytes = MAP_FAILED;
  if (file >= 0 && !fstat(file, &status) && S_ISREG(status.st_mode) && status.st_size > 0)
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (file >= 0) close(file);
  if (bytes == MAP_FAILED) return (Elf){0};
  Elf elf = {.bytes = bytes, .size = (uint64_t)status.st_size};
  elf.wide = elf.size > EI_CLASS && elf.bytes[EI_CLASS] == ELFCLASS64;
  return elf;
}

void check_module(const char *path, const Target *target, const char *symbol) {
  char fault[FAULT_BYTES] = "";
  Elf elf = elf_open(path);
  bool good = is_shared_object(&elf, fault) && is_for(&elf, target, fault) && is_whole(&elf, fault) &&
              is_passive(&elf, fault) && exports_only(&elf, symbol, fault);
  if (elf.bytes) munmap((void *)(uintptr_t)elf.bytes, elf.size);
  if (!good)
    fatal_at(LOCATION_FILE(clang_program()), EXIT_ENVIRONMENT,
             "ended well, but what it wrote %s; is it the clang and the "
             "lld of one installation?",
             fault);
}
