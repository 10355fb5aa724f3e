/* SPDX-License-Identifier: MIT */
#include "link/stack_sizes.h"

#include <string.h>

#include "support/numbers.h"

const char stack_sizes_arg[] = "-fstack-size-section";

static const char sizes[] = ".stack_sizes", with_addends[] = ".rela.stack_sizes", without[] = ".rel.stack_sizes";

static bool has_name(const Elf *elf, uint64_t header, const char *name) {
  return strcmp(elf_section_name(elf, header), name) == 0;
}

/* ULEB128: seven bits a byte, the lowest first (DWARF 5, section 7.6). */
static int64_t read_uleb128(const Elf *elf, uint64_t at) {
  enum { BITS = 7, MORE = 1 << BITS, MOST_BITS = 63 };
  uint64_t value = 0, byte = MORE;
  for (int shift = 0; byte & MORE && shift < MOST_BITS; shift += BITS) {
    byte = elf_number(elf, at++, 1);
    value |= (byte & (MORE - 1)) << shift;
  }
  return (int64_t)value;
}

/* An entry's address is a relocation, whose symbol is the function's or its section's. */
static void read_entries(const Elf *elf, uint64_t header, int64_t *frames, uint64_t count) {
  uint64_t symbols = ELF_FIELD(elf, elf_section(elf, ELF_FIELD(elf, header, Shdr, sh_link)), Shdr, sh_offset);
  uint64_t entries = ELF_FIELD(elf, elf_section(elf, ELF_FIELD(elf, header, Shdr, sh_info)), Shdr, sh_offset);
  uint64_t at = ELF_FIELD(elf, header, Shdr, sh_offset), end = at + ELF_FIELD(elf, header, Shdr, sh_size);
  uint64_t bytes = has_name(elf, header, with_addends) ? ELF_STRUCT_BYTES(elf, Rela) : ELF_STRUCT_BYTES(elf, Rel);
  for (; at < end && at < elf->size; at += bytes) {
    uint64_t info = ELF_FIELD(elf, at, Rel, r_info), symbol = elf->wide ? ELF64_R_SYM(info) : ELF32_R_SYM(info);
    uint64_t section = ELF_FIELD(elf, symbols + symbol * ELF_STRUCT_BYTES(elf, Sym), Sym, st_shndx);
    uint64_t frame = entries + ELF_FIELD(elf, at, Rel, r_offset) + (elf->wide ? 8 : 4);
    if (section < count) frames[section] = max_int(frames[section], read_uleb128(elf, frame));
  }
}

int64_t *stack_sizes_read(Arena *arena, const Elf *elf) {
  uint64_t count = elf_section_count(elf);
  int64_t *frames = ARENA_ARRAY(arena, int64_t, count);
  for (uint64_t i = 0; i < count; i++) frames[i] = NO_FRAME;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t header = elf_section(elf, i);
    if (has_name(elf, header, with_addends) || has_name(elf, header, without)) read_entries(elf, header, frames, count);
  }
  return frames;
}

/* Without a kind a section is none (SHT_NULL); nor may its flags say that it goes with another. */
void stack_sizes_hide(Arena *arena, const char *object) {
  Elf elf = elf_open_object(object);
  uint64_t table = elf_section(&elf, 0), bytes = elf_section(&elf, elf_section_count(&elf)) - table;
  uint8_t *headers = arena_copy(arena, bytes ? elf.bytes + table : NULL, bytes);
  size_t from = offsetof(Elf64_Shdr, sh_type),
         to = elf.wide ? offsetof(Elf64_Shdr, sh_addr) : offsetof(Elf32_Shdr, sh_addr);
  for (uint64_t at = 0; at < bytes; at += ELF_STRUCT_BYTES(&elf, Shdr)) {
    uint64_t header = table + at;
    if (has_name(&elf, header, sizes) || has_name(&elf, header, with_addends) || has_name(&elf, header, without))
      memset(headers + at + from, 0, to - from);
  }
  elf_close(&elf);
  if (bytes) elf_write(object, table, headers, bytes);
}
