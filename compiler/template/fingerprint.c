/* SPDX-License-Identifier: MIT */
#include "template/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sha256.h"
#include "support/data_directory.h"
#include "support/files.h"
#include "support/list.h"
#include "support/text.h"
#include "template/session.h"
#include "template/tokens.h"

enum { MAX_HEADER = 1 << 20, DIGITS = 16 };

/* ---- the vocabulary: the declarations of a kernel's headers ---- */

typedef struct Entry {
  const char *name;
  int declaration; /* index in Vocabulary.declarations */
} Entry;

typedef struct Vocabulary {
  Arena *arena;
  const Target *target;
  int n_files, file_capacity, n_declarations, capacity, n_entries;
  const char **files;
  const SourceDeclaration **declarations;
  Entry *entries; /* by name */
} Vocabulary;

static bool is_read(const Vocabulary *v, const char *name) {
  for (int i = 0; i < v->n_files; i++)
    if (!strcmp(v->files[i], name)) return true;
  return false;
}

/* simd/simd.h, simd/int8.h and simd/bf16.h include the vocabulary of the target's ISA only. */
static bool is_of_other_isa(const Vocabulary *v, const char *name) {
  for (int i = 0; target_at(i); i++) {
    const char *isa = target_at(i)->isa;
    if (!strcmp(isa, v->target->isa)) continue;
    if (!strcmp(name, arena_format(v->arena, "simd/%s.h", isa))) return true;
    if (!strcmp(name, arena_format(v->arena, "simd/int8_%s.h", isa))) return true;
    if (!strcmp(name, arena_format(v->arena, "simd/bf16_%s.h", isa))) return true;
  }
  return false;
}

static void read_header(Vocabulary *v, const char *name) {
  const char *path = arena_format(v->arena, "%s/templates/%s", data_directory(v->arena), name);
  if (is_read(v, name) || is_of_other_isa(v, name) || access(path, F_OK) != 0)
    return; /* absent here: a header of the runtime */
  *LIST_ADD(v->arena, v->files, v->n_files, v->file_capacity) = name;
  const char *text = (const char *)file_read(v->arena, path, MAX_HEADER, LOCATION_FILE(path)).data;
  SourceFile file = read_declarations(v->arena, text);
  for (int i = 0; i < file.n_includes; i++) read_header(v, file.includes[i]);
  for (int i = 0; i < file.n_declarations; i++) {
    *LIST_ADD(v->arena, v->declarations, v->n_declarations, v->capacity) = &file.declarations[i];
    v->n_entries += file.declarations[i].n_names;
  }
}

static int by_name(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  int by = strcmp(x->name, y->name);
  return by ? by : x->declaration - y->declaration;
}

static void list_names(Vocabulary *v) {
  int count = 0;
  v->entries = ARENA_ARRAY(v->arena, Entry, v->n_entries);
  for (int i = 0; i < v->n_declarations; i++)
    for (int n = 0; n < v->declarations[i]->n_names; n++)
      v->entries[count++] = (Entry){v->declarations[i]->names[n], i};
  if (count) qsort(v->entries, (size_t)count, sizeof *v->entries, by_name);
}

typedef struct KeptVocabulary {
  struct KeptVocabulary *next;
  const char *key; /* the instruction set and the headers that the template includes */
  Vocabulary vocabulary;
} KeptVocabulary;

static const char *vocabulary_key(Arena *arena, const Target *target, const SpecialisedKernel *kernel) {
  Text key = text_new(arena);
  text_add(&key, "%s", target->isa);
  for (int i = 0; i < kernel->n_includes; i++) text_add(&key, " %s", kernel->includes[i]);
  return key.data;
}

static const Vocabulary *vocabulary_of(Arena *arena, const Target *target, const SpecialisedKernel *kernel) {
  TemplateSession *session = template_session();
  const char *key = vocabulary_key(arena, target, kernel);
  KeptVocabulary *known = session->vocabularies;
  while (known && strcmp(known->key, key) != 0) known = known->next;
  if (known) return &known->vocabulary;
  known = ARENA_NEW(session->arena, KeptVocabulary);
  *known = (KeptVocabulary){session->vocabularies, arena_string(session->arena, key), {.arena = session->arena}};
  known->vocabulary.target = target;
  for (int i = 0; i < kernel->n_includes; i++) {
    const char *include = kernel->includes[i];
    if (*include == '"')
      read_header(&known->vocabulary,
                  arena_format(session->arena, "%.*s", (int)strcspn(include + 1, "\""), include + 1));
  }
  list_names(&known->vocabulary);
  session->vocabularies = known;
  return &known->vocabulary;
}

/* ---- declarations that a kernel uses ---- */

typedef struct Use {
  const Vocabulary *vocabulary;
  bool *used; /* by declaration */
  int n_open;
  int *open; /* used, and not searched yet */
} Use;

static int compare_name(const char *name, Token token) {
  int by = strncmp(name, token.text, token.length);
  return by ? by : name[token.length] != 0;
}

/* The first entry that is not before the name. */
static int place_of(const Vocabulary *v, Token name) {
  int low = 0, high = v->n_entries;
  while (low < high) {
    int middle = (low + high) / 2;
    if (compare_name(v->entries[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void use_names(Use *use, const SourceDeclaration *declaration) {
  const Vocabulary *v = use->vocabulary;
  for (int i = 0; i < declaration->n_tokens; i++) {
    Token token = declaration->tokens[i];
    if (token.kind != TOKEN_NAME) continue;
    for (int at = place_of(v, token); at < v->n_entries && !compare_name(v->entries[at].name, token); at++) {
      int found = v->entries[at].declaration;
      if (use->used[found]) continue;
      use->used[found] = true;
      use->open[use->n_open++] = found;
    }
  }
}

/* ---- digests ---- */

typedef struct Digest {
  uint8_t bytes[SHA256_BYTES];
} Digest;

static Digest digest_of(const SourceDeclaration *declaration, bool with_numbers) {
  Sha256 hash = sha256_new();
  Digest digest;
  for (int i = 0; i < declaration->n_tokens; i++) {
    Token token = declaration->tokens[i];
    if (with_numbers || token.kind != TOKEN_NUMBER) sha256_add(&hash, token.text, token.length);
    sha256_add(&hash, "\n", 1);
  }
  sha256_end(&hash, digest.bytes);
  return digest;
}

static bool declares(const SourceDeclaration *declaration, const char *name) {
  for (int i = 0; i < declaration->n_names; i++)
    if (!strcmp(declaration->names[i], name)) return true;
  return false;
}

static bool is_hook(Arena *arena, const KernelSpec *spec, const SourceDeclaration *declaration) {
  for (int i = 0; i < spec->n_hooks; i++)
    if (declares(declaration, arena_format(arena, "%c_%s", NAME_MARK, spec->hooks[i].function))) return true;
  return false;
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(Digest)); }

static void add_used(Arena *arena, Sha256 *hash, const Use *use) {
  const Vocabulary *v = use->vocabulary;
  Digest *digests = ARENA_ARRAY(arena, Digest, v->n_declarations);
  int count = 0;
  for (int i = 0; i < v->n_declarations; i++)
    if (use->used[i]) digests[count++] = digest_of(v->declarations[i], true);
  if (count == 0) return;
  qsort(digests, (size_t)count, sizeof *digests, by_bytes);
  sha256_add(hash, digests, (size_t)count * sizeof *digests);
}

static Digest digest_of_kernel(Arena *arena, const Target *target, const KernelSpec *spec,
                               const SpecialisedKernel *kernel) {
  Sha256 hash = sha256_new();
  Digest kernel_digest;
  SourceFile file = read_declarations(arena, kernel->text);
  Use use = {.vocabulary = vocabulary_of(arena, target, kernel)};
  use.used = ARENA_ARRAY(arena, bool, use.vocabulary->n_declarations);
  use.open = ARENA_ARRAY(arena, int, use.vocabulary->n_declarations);
  for (int i = 0; i < file.n_declarations; i++) {
    const SourceDeclaration *declaration = &file.declarations[i];
    Digest digest = digest_of(declaration, !is_hook(arena, spec, declaration));
    sha256_add(&hash, digest.bytes, sizeof digest.bytes);
    use_names(&use, declaration);
  }
  while (use.n_open > 0) use_names(&use, use.vocabulary->declarations[use.open[--use.n_open]]);
  add_used(arena, &hash, &use);
  sha256_end(&hash, kernel_digest.bytes);
  return kernel_digest;
}

typedef struct KeptDigest {
  struct KeptDigest *next;
  const Target *target;
  const SpecialisedKernel *kernel;
  Digest digest;
} KeptDigest;

static const Digest *kept_digest(Arena *arena, const Target *target, const KernelSpec *spec) {
  TemplateSession *session = template_session();
  const SpecialisedKernel *kernel = specialise_unnamed(spec, target->lanes);
  KeptDigest *known = session->digests;
  while (known && (known->kernel != kernel || known->target != target)) known = known->next;
  if (known) return &known->digest;
  known = ARENA_NEW(session->arena, KeptDigest);
  *known = (KeptDigest){session->digests, target, kernel, digest_of_kernel(arena, target, spec, kernel)};
  session->digests = known;
  return &known->digest;
}

const char *kernels_fingerprint(Arena *arena, const Target *target, KernelSpec *const *specs, int count) {
  Sha256 hash = sha256_new();
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  for (int i = 0; i < count; i++) sha256_add(&hash, kept_digest(arena, target, specs[i])->bytes, sizeof(Digest));
  sha256_end(&hash, digest);
  sha256_hex(digest, hex);
  return arena_format(arena, "%.*s", DIGITS, hex);
}
