/* SPDX-License-Identifier: MIT */
/* The tree: cJSON's, with each item's number in preorder (kept in `valueint`) leading to its place in the text. */
#include "json/json.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_syntax.h"

struct JsonDocument {
  Arena *arena;
  const char *file, *text;
  size_t length, base;
  int count;
  JsonPlace *places;
};

static Arena *parsing_arena; /* cJSON's allocator takes no argument; set only while it runs */

static void *allocate(size_t bytes) { return arena_alloc(parsing_arena, bytes); }
static void release(void *memory) { (void)memory; }

/* cJSON asks the locale for the decimal point. */
static cJSON *build_tree(Arena *arena, const char *text, size_t length) {
  cJSON_Hooks in_arena = {.malloc_fn = allocate, .free_fn = release}, usual = {.malloc_fn = malloc, .free_fn = free};
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
  parsing_arena = arena;
  cJSON_InitHooks(&in_arena);
  cJSON *root = cJSON_ParseWithLength(text, length);
  cJSON_InitHooks(&usual);
  parsing_arena = NULL;
  uselocale(before);
  freelocale(plain);
  if (!root) bug("cJSON refuses what the scan accepts");
  return root;
}

/* Numbers the items in preorder, which is the order of their places. */
static void number_items(JsonDocument *document, cJSON *root) {
  int index = 0, parent = -1, position = 0;
  for (cJSON *item = root; item;) {
    if (index == document->count) bug("cJSON sees more values than the scan");
    item->valueint = index;
    JsonPlace *place = &document->places[index++];
    *place = (JsonPlace){.offset = place->offset, .item = item, .parent = parent, .position = position};
    if (item->child) {
      parent = item->valueint, position = 0;
      item = item->child;
      continue;
    }
    while (!item->next && parent >= 0) {
      item = document->places[parent].item;
      position = document->places[parent].position;
      parent = document->places[parent].parent;
    }
    item = item->next;
    position++;
  }
  if (index != document->count) bug("cJSON sees fewer values than the scan");
}

static int by_key(const void *a, const void *b) {
  const cJSON *x = *(cJSON *const *)a, *y = *(cJSON *const *)b;
  int order = strcmp(x->string, y->string);
  return order ? order : (x->valueint > y->valueint) - (x->valueint < y->valueint);
}

/* The members sorted by key, in `sorted`, which has room for them. */
static int sort_members(Json object, cJSON **sorted) {
  int n = 0;
  for (cJSON *member = object.item->child; member; member = member->next) sorted[n++] = member;
  if (n > 1) qsort((void *)sorted, (size_t)n, sizeof *sorted, by_key);
  return n;
}

/* cJSON keeps the first of two members and others the last, so a file with both means different things to different
 * readers. */
static void refuse_duplicate_keys(const JsonDocument *document) {
  int widest = 0, before = error_count();
  for (int p = 0; p < document->count; p++)
    if (document->places[p].position >= widest) widest = document->places[p].position + 1;
  cJSON **sorted = ARENA_ARRAY(document->arena, cJSON *, widest);
  for (int p = 0; p < document->count; p++) {
    Json object = {document, document->places[p].item};
    int n = json_kind(object) == JSON_OBJECT ? sort_members(object, sorted) : 0;
    for (int i = 1; i < n; i++)
      if (strcmp(sorted[i]->string, sorted[i - 1]->string) == 0)
        error_at(json_where((Json){document, sorted[i]}), EXIT_INVALID, "the key \"%s\" is given twice",
                 short_name(document->arena, sorted[i]->string));
  }
  if (error_count() > before) stop_on_errors();
}

Json json_parse(Arena *arena, const char *file, const char *text, size_t length, size_t base) {
  JsonDocument *document = ARENA_NEW(arena, JsonDocument);
  *document = (JsonDocument){.arena = arena, .file = file, .text = text, .length = length, .base = base};
  document->places = json_scan(arena, file, text, length, base, &document->count);
  cJSON *root = build_tree(arena, text, length);
  number_items(document, root);
  refuse_duplicate_keys(document);
  return (Json){document, root};
}

Arena *json_arena(Json value) { return value.document->arena; }

JsonKind json_kind(Json value) {
  if (!value.item) return JSON_ABSENT;
  switch (value.item->type & 0xff) {
  case cJSON_NULL:
    return JSON_NULL;
  case cJSON_False:
  case cJSON_True:
    return JSON_BOOL;
  case cJSON_Number:
    return JSON_NUMBER;
  case cJSON_String:
    return JSON_STRING;
  case cJSON_Array:
    return JSON_ARRAY;
  default:
    return JSON_OBJECT;
  }
}

/* `.key`, or `["odd key"]` where it could be taken for something else. */
static int put_key(char *out, size_t room, bool first, const char *key, Arena *arena) {
  static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (*key && strlen(key) <= 80 && strspn(key, PLAIN) == strlen(key))
    return snprintf(out, room, "%s%s", first ? "" : ".", key);
  return snprintf(out, room, "[\"%s\"]", short_name(arena, key));
}

Location json_where(Json value) {
  const JsonDocument *document = value.document;
  const JsonPlace *chain[JSON_MAX_DEPTH + 1];
  char path[128 * (JSON_MAX_DEPTH + 1)]; /* a step is a short name at most, with brackets and quotes */
  size_t length = 0;
  int depth = 0;
  const JsonPlace *place = &document->places[value.item->valueint];
  Location where = {.file = document->file, .byte = (long long)(document->base + place->offset)};
  for (; place->parent >= 0; place = &document->places[place->parent]) chain[depth++] = place;
  if (depth == 0) return where;
  while (depth-- > 0) {
    const JsonPlace *step = chain[depth];
    int added = step->item->string
                    ? put_key(path + length, sizeof path - length, length == 0, step->item->string, document->arena)
                    : snprintf(path + length, sizeof path - length, "[%d]", step->position);
    length += (size_t)added;
  }
  where.path = arena_string(document->arena, path);
  return where;
}

Json json_first(Json container) { return (Json){container.document, container.item ? container.item->child : NULL}; }
Json json_next(Json value) { return (Json){value.document, value.item->next}; }

int json_count(Json container) {
  int count = 0;
  for (Json value = json_first(container); value.item; value = json_next(value)) count++;
  return count;
}

const char *json_key(Json value) { return value.item->string; }

Json json_member(Json object, const char *key) {
  if (json_kind(object) != JSON_OBJECT) return (Json){object.document, NULL};
  Json member = json_first(object);
  while (member.item && strcmp(member.item->string, key) != 0) member = json_next(member);
  return member;
}

const char *json_text(Json string) {
  if (json_kind(string) != JSON_STRING) bug("json_text of what is no string");
  return string.item->valuestring;
}

void json_copy_number(Json value, char text[JSON_MAX_NUMBER + 1]) {
  const JsonDocument *document = value.document;
  size_t offset = document->places[value.item->valueint].offset;
  size_t length = json_number_length(document->text + offset, document->length - offset);
  memcpy(text, document->text + offset, length);
  text[length] = 0;
}

bool json_is_integer(Json value) {
  char text[JSON_MAX_NUMBER + 1];
  if (json_kind(value) != JSON_NUMBER) return false;
  json_copy_number(value, text);
  return !strpbrk(text, ".eE");
}
