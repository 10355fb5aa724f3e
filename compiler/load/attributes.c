/* SPDX-License-Identifier: MIT */
/* A node's attributes. The kind is the JSON value's; where JSON has one kind for two of ours, the op's row decides.
 * The check against the op table reports what does not fit. */
#include "ir/op.h"
#include "load/model.h"

/* The kind of a JSON list by its entries; an empty list fits every kind. */
static AttributeKind kind_of_list(Json list) {
  Json first = json_first(list);
  if (json_kind(first) == JSON_STRING) return ATTRIBUTE_STRINGS;
  for (Json entry = first; entry.item; entry = json_next(entry))
    if (json_kind(entry) == JSON_NUMBER && !json_is_integer(entry)) return ATTRIBUTE_FLOATS;
  return ATTRIBUTE_INTS;
}

static bool read_list(Json list, Attribute *attribute, bool floats_wanted) {
  Arena *arena = json_arena(list);
  size_t n = (size_t)json_count(list), i = 0;
  bool good = true;
  attribute->kind = kind_of_list(list);
  if (attribute->kind == ATTRIBUTE_INTS && floats_wanted) attribute->kind = ATTRIBUTE_FLOATS;
  attribute->count = n;
  attribute->strings = attribute->kind == ATTRIBUTE_STRINGS ? ARENA_ARRAY(arena, const char *, n) : NULL;
  attribute->floats = attribute->kind == ATTRIBUTE_FLOATS ? ARENA_ARRAY(arena, double, n) : NULL;
  attribute->ints = attribute->kind == ATTRIBUTE_INTS ? ARENA_ARRAY(arena, int64_t, n) : NULL;
  for (Json entry = json_first(list); entry.item; entry = json_next(entry), i++) {
    if (attribute->strings)
      good &= json_get_string(entry, &attribute->strings[i]);
    else if (attribute->floats)
      good &= json_get_double(entry, &attribute->floats[i]);
    else
      good &= json_get_int(entry, INT64_MIN, INT64_MAX, &attribute->ints[i]);
  }
  return good;
}

static bool read_number(Json json, Attribute *attribute, bool float_wanted) {
  attribute->kind = float_wanted || !json_is_integer(json) ? ATTRIBUTE_FLOAT : ATTRIBUTE_INT;
  return attribute->kind == ATTRIBUTE_FLOAT ? json_get_double(json, &attribute->f)
                                            : json_get_int(json, INT64_MIN, INT64_MAX, &attribute->i);
}

static bool read_tensor(ModelReader *reader, Json json, Attribute *attribute) {
  Constant *constant = ARENA_NEW(reader->arena, Constant);
  attribute->kind = ATTRIBUTE_TENSOR;
  if (!constant_read(json, json_key(json), constant)) return false;
  attribute->tensor = constant_value(reader->graph, constant);
  return attribute->tensor != NULL;
}

bool read_attribute(ModelReader *reader, const OpInfo *op, Json json, Attribute *attribute) {
  const AttributeSpec *spec = op_attribute(op, attribute_find(json_key(json)));
  *attribute = (Attribute){.name = json_key(json), .where = json_where(json)};
  if (!spec) return true; /* the check tells that the op has none of the name */
  AttributeKind wanted = spec->kind;
  switch (json_kind(json)) {
  case JSON_NUMBER:
    return read_number(json, attribute, wanted == ATTRIBUTE_FLOAT);
  case JSON_STRING:
    attribute->kind = ATTRIBUTE_STRING;
    attribute->s = json_text(json);
    return true;
  case JSON_ARRAY:
    return read_list(json, attribute, wanted == ATTRIBUTE_FLOATS);
  case JSON_OBJECT:
    if (wanted == ATTRIBUTE_GRAPH) return read_body(reader, json, attribute);
    return read_tensor(reader, json, attribute);
  default:
    error_at(attribute->where, EXIT_INVALID, "`%s` of %s must be %s, found %s", attribute->name, op->name,
             attribute_kind_words(wanted), json_kind(json) == JSON_NULL ? "null" : "true or false");
    return false;
  }
}
