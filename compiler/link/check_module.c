/* SPDX-License-Identifier: MIT */
/*
 * A tool may end with status 0 and have written something else: an empty file where the disk was full, a module for
 * this machine by a wrapper that drops --target, one with more symbols by a linker that knows no --exclude-libs.
 */
#include "link/check_module.h"

#include <stdio.h>
#include <string.h>

#include "link/elf_file.h"
#include "support/clang_program.h"
#include "support/diagnostics.h"

enum { FAULT_BYTES = 256 };

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
  unsigned due = machine_of(target), found = (unsigned)ELF_FIELD(elf, 0, Ehdr, e_machine);
  if (elf->bytes[EI_DATA] == ELFDATA2LSB && (due == EM_NONE || due == found)) return true;
  snprintf(fault, FAULT_BYTES, "is for machine %u of ELF, not for %s", found, target->triple);
  return false;
}

/* ---- segments and sections ---- */

static bool is_whole(const Elf *elf, char *fault) {
  uint64_t at = ELF_FIELD(elf, 0, Ehdr, e_phoff), count = ELF_FIELD(elf, 0, Ehdr, e_phnum), loaded = 0;
  for (uint64_t i = 0; i < count; i++, at += ELF_STRUCT_BYTES(elf, Phdr)) {
    uint64_t kind = ELF_FIELD(elf, at, Phdr, p_type), offset = ELF_FIELD(elf, at, Phdr, p_offset);
    uint64_t bytes = ELF_FIELD(elf, at, Phdr, p_filesz);
    loaded += kind == PT_LOAD;
    if (kind == PT_LOAD && (offset > elf->size || elf->size - offset < bytes)) {
      snprintf(fault, FAULT_BYTES, "is cut short: of %llu bytes", (unsigned long long)elf->size);
      return false;
    }
    if (kind == PT_GNU_STACK && ELF_FIELD(elf, at, Phdr, p_flags) & PF_X) {
      snprintf(fault, FAULT_BYTES, "has an executable stack");
      return false;
    }
  }
  if (!loaded) snprintf(fault, FAULT_BYTES, "has nothing to be loaded");
  return loaded > 0;
}

/* Does loading it change or run nothing of it? */
static bool is_passive(const Elf *elf, char *fault) {
  static const unsigned kinds[] = {SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (elf_section_of_kind(elf, kinds[i])) {
      snprintf(fault, FAULT_BYTES, "has a constructor or a destructor");
      return false;
    }
  uint64_t dynamic = elf_section_of_kind(elf, SHT_DYNAMIC);
  uint64_t at = ELF_FIELD(elf, dynamic, Shdr, sh_offset), bytes = dynamic ? ELF_FIELD(elf, dynamic, Shdr, sh_size) : 0;
  for (uint64_t end = at + bytes; at < end && at < elf->size; at += ELF_STRUCT_BYTES(elf, Dyn))
    if (ELF_FIELD(elf, at, Dyn, d_tag) == DT_TEXTREL) {
      snprintf(fault, FAULT_BYTES, "has code that is changed when it is loaded (TEXTREL)");
      return false;
    }
  return true;
}

/* ---- symbols ---- */

static bool is_exported(const Elf *elf, uint64_t symbol) {
  unsigned binding = ELF64_ST_BIND(ELF_FIELD(elf, symbol, Sym, st_info));
  return ELF_FIELD(elf, symbol, Sym, st_shndx) != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

static bool exports_only(const Elf *elf, const char *due, char *fault) {
  uint64_t table = elf_section_of_kind(elf, SHT_DYNSYM), found = 0;
  uint64_t at = ELF_FIELD(elf, table, Shdr, sh_offset), bytes = table ? ELF_FIELD(elf, table, Shdr, sh_size) : 0;
  uint64_t names = ELF_FIELD(elf, elf_section(elf, ELF_FIELD(elf, table, Shdr, sh_link)), Shdr, sh_offset);
  for (uint64_t end = at + bytes; at < end && at < elf->size; at += ELF_STRUCT_BYTES(elf, Sym)) {
    if (!is_exported(elf, at)) continue;
    const char *name = elf_text(elf, names + ELF_FIELD(elf, at, Sym, st_name));
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
  if (is_elf && ELF_FIELD(elf, 0, Ehdr, e_type) == ET_DYN) return true;
  snprintf(fault, FAULT_BYTES, "is no shared object of ELF: it has %llu bytes", (unsigned long long)elf->size);
  return false;
}

void check_module(const char *path, const Target *target, const char *symbol) {
  char fault[FAULT_BYTES] = "";
  Elf elf = elf_open(path);
  bool good = is_shared_object(&elf, fault) && is_for(&elf, target, fault) && is_whole(&elf, fault) &&
              is_passive(&elf, fault) && exports_only(&elf, symbol, fault);
  elf_close(&elf);
  if (!good)
    fatal_at(LOCATION_FILE(clang_program()), EXIT_ENVIRONMENT,
             "ended well, but what it wrote %s; is it the clang and the "
             "lld of one installation?",
             fault);
}
