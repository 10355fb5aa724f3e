/* SPDX-License-Identifier: MIT */
/*
 * A wheel (Python's PEP 427) is a zip file: the package, and beside it a folder that says what it is, with a list of
 * all files and their hashes. Its name has the package's, its version, and which machines it is for: the architecture,
 * and the oldest libc that the module loads with (PEP 600, PEP 656).
 */
#include "link/wheel.h"

#include <ctype.h>
#include <string.h>

#include "sha256.h"
#include "support/data_directory.h"
#include "support/folder.h"
#include "support/text.h"
#include "support/zip.h"

enum { MAX_SOURCE = 1 << 22 };
static const size_t MAX_MODULE_BYTES = (size_t)1 << 40;

typedef struct WheelFile {
  Arena *arena;
  Zip zip;
  Text record;
} WheelFile;

/* ---- names ---- */

static const char *const python_words[] = {"False",  "None",   "True",    "and",      "as",       "assert", "async",
                                           "await",  "break",  "class",   "continue", "def",      "del",    "elif",
                                           "else",   "except", "finally", "for",      "from",     "global", "if",
                                           "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
                                           "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};

bool is_python_word(const char *name) {
  for (size_t i = 0; i < sizeof python_words / sizeof *python_words; i++)
    if (!strcmp(name, python_words[i])) return true;
  return false;
}

/* Of the distribution: lower-case, with single underscores between letters and digits. */
static const char *distribution_name(Arena *arena, const char *package) {
  Text text = text_new(arena);
  for (const char *at = package; *at; at++) {
    char letter = (char)tolower((unsigned char)*at);
    bool doubled = letter == '_' && (!text.length || at[1] == '_' || !at[1]);
    if (!doubled) text_bytes(&text, &letter, 1);
  }
  return text.length ? text.data : "model";
}

/* Numbers with dots between them; else 0, as of a model that has none. */
static const char *version_of(const Wheel *wheel) {
  const char *at = wheel->version;
  while (at && isdigit((unsigned char)*at)) {
    while (isdigit((unsigned char)*at)) at++;
    if (!*at) return wheel->version;
    if (*at == '.') at++;
  }
  return "0";
}

/* How Python calls an architecture, and the glibc from which on modules for it load: runtime/glibc_floor.h. */
static const struct Platform {
  const char *architecture, *python, *glibc; /* glibc: as of tags */
} platforms[] = {
    {"x86_64", "x86_64", "2_17"},   {"aarch64", "aarch64", "2_17"}, {"powerpc64le", "ppc64le", "2_17"},
    {"riscv64", "riscv64", "2_27"}, {"i686", "i686", "2_17"},       {"i386", "i686", "2_17"},
    {"arm", "armv7l", "2_17"},      {"armv7", "armv7l", "2_17"},
};

/* "manylinux_2_17_x86_64": the machines that the wheel is for. */
static const char *platform_tag(Arena *arena, const char *triple) {
  const char *architecture = arena_format(arena, "%.*s", (int)strcspn(triple, "-"), triple);
  for (size_t i = 0; i < sizeof platforms / sizeof *platforms; i++) {
    const struct Platform *it = &platforms[i];
    if (strcmp(it->architecture, architecture) != 0) continue;
    if (strstr(triple, "-musl")) return arena_format(arena, "musllinux_1_2_%s", it->python);
    return arena_format(arena, "manylinux_%s_%s", it->glibc, it->python);
  }
  return arena_format(arena, "linux_%s", architecture);
}

/* ---- files ---- */

/* A line of RECORD: the hash is in base64 of URLs, without padding. */
static void add_record(Text *record, const char *path, FileBytes bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  uint8_t digest[SHA256_BYTES + 1] = {0};
  sha256(bytes.data, bytes.size, digest);
  text_add(record, "%s,sha256=", path);
  for (int bit = 0; bit < 8 * SHA256_BYTES; bit += 6) {
    int pair = digest[bit / 8] << 8 | digest[bit / 8 + 1];
    text_bytes(record, &digits[pair >> (10 - bit % 8) & 63], 1);
  }
  text_add(record, ",%zu\n", bytes.size);
}

static void add_file(WheelFile *file, const char *path, FileBytes bytes) {
  zip_add(&file->zip, path, bytes);
  add_record(&file->record, path, bytes);
}

/* What loads modules: the files of the Python package that need no compiler. */
static void add_loader(WheelFile *file, const Wheel *wheel) {
  Arena *arena = file->arena;
  const char *package = arena_format(arena, "%s/runtime/bindings/python/rnncc", data_directory(arena));
  FileNames sources = folder_list(arena, package, ".py");
  for (int i = 0; i < sources.count; i++) {
    const char *name = sources.names[i], *from = arena_format(arena, "%s/%s", package, name);
    bool is_start = !strcmp(name, "__init__.py"); /* which offers to compile */
    add_file(file, arena_format(arena, "%s/_rnncc/%s", wheel->name, name),
             is_start ? bytes_of_text("# SPDX-License-Identifier: MIT\n")
                      : file_read(arena, from, MAX_SOURCE, LOCATION_FILE(from)));
  }
  const char *start = data_file(arena, "runtime/bindings/python/module/__init__.py");
  add_file(file, arena_format(arena, "%s/__init__.py", wheel->name),
           file_read(arena, start, MAX_SOURCE, LOCATION_FILE(start)));
  add_file(file, arena_format(arena, "%s/py.typed", wheel->name), bytes_of_text(""));
}

static void add_information(WheelFile *file, const Wheel *wheel, const char *name, const char *tag) {
  Arena *arena = file->arena;
  const char *version = version_of(wheel), *folder = arena_format(arena, "%s-%s.dist-info", name, version);
  add_file(file, arena_format(arena, "%s/METADATA", folder),
           bytes_of_text(arena_format(arena,
                                      "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: A compiled network: %s\n"
                                      "Requires-Python: >=3.9\nRequires-Dist: numpy\n",
                                      name, version, wheel->build)));
  add_file(file, arena_format(arena, "%s/WHEEL", folder),
           bytes_of_text(arena_format(arena,
                                      "Wheel-Version: 1.0\nGenerator: rnncc " RNNCC_VERSION
                                      "\nRoot-Is-Purelib: false\nTag: py3-none-%s\n",
                                      tag)));
  const char *record = arena_format(arena, "%s/RECORD", folder);
  text_add(&file->record, "%s,,\n", record);
  zip_add(&file->zip, record, bytes_of_text(file->record.data));
}

const char *wheel_write(Arena *arena, const Wheel *wheel, const char *module, const char *folder) {
  WheelFile file = {arena, zip_new(arena), text_new(arena)};
  const char *name = distribution_name(arena, wheel->name), *tag = platform_tag(arena, wheel->triple);
  const char *path = arena_format(arena, "%s/%s-%s-py3-none-%s.whl", folder, name, version_of(wheel), tag);
  folder_make(folder);
  add_loader(&file, wheel);
  add_file(&file, arena_format(arena, "%s/%s.so", wheel->name, wheel->name),
           file_read(arena, module, MAX_MODULE_BYTES, LOCATION_FILE(module)));
  add_information(&file, wheel, name, tag);
  zip_write(&file.zip, path);
  return path;
}
