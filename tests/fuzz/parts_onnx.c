/* SPDX-License-Identifier: MIT */
/* ONNX files as parts. protobuf-c's description of the messages says what each field is, so no field is named here but
 * those of tensors. Fields that it does not know are left out. */
#include <protobuf-c/protobuf-c.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "parts.h"

enum { MOST_DEPTH = 60 };
enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };

typedef struct Reader {
  const uint8_t *at, *end;
  bool bad;
} Reader;

static uint64_t read_varint(Reader *reader) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
    uint8_t byte = *reader->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  reader->bad = true;
  return 0;
}

static const uint8_t *read_bytes(Reader *reader, uint64_t count) {
  const uint8_t *bytes = reader->at;
  if (count > (uint64_t)(reader->end - reader->at)) {
    reader->bad = true;
    return NULL;
  }
  reader->at += count;
  return bytes;
}

static bool is_float(const ProtobufCFieldDescriptor *field) {
  return field->type == PROTOBUF_C_TYPE_FLOAT || field->type == PROTOBUF_C_TYPE_DOUBLE;
}

static int wire_type(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_FLOAT:
    return FOUR_BYTES;
  case PROTOBUF_C_TYPE_DOUBLE:
    return EIGHT_BYTES;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return LENGTH;
  default:
    return VARINT; /* ONNX has no other types */
  }
}

/* Messages of one kind may stand for each other wherever they are: a body may hold the whole graph. */
static uint64_t role_of(const ProtobufCFieldDescriptor *field) {
  return (uint64_t)(uintptr_t)(field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : (const void *)field);
}

static Part *read_number(Arena *arena, Reader *reader, const ProtobufCFieldDescriptor *field) {
  Part *part = part_new(arena, is_float(field) ? PART_FLOAT : PART_NUMBER, role_of(field));
  part->field = field;
  float narrow;
  const uint8_t *bytes;
  switch (wire_type(field)) {
  case FOUR_BYTES:
    if (!(bytes = read_bytes(reader, sizeof narrow))) return NULL;
    memcpy(&narrow, bytes, sizeof narrow);
    part->real = (double)narrow;
    return part;
  case EIGHT_BYTES:
    if (!(bytes = read_bytes(reader, sizeof part->real))) return NULL;
    memcpy(&part->real, bytes, sizeof part->real);
    return part;
  default:
    part->number = (int64_t)read_varint(reader);
    return reader->bad ? NULL : part;
  }
}

static bool read_message(Arena *arena, Reader *reader, const ProtobufCMessageDescriptor *kind, Part *group, int depth);

static void append(Arena *arena, Part *group, Part *part) { part_insert(arena, group, group->n_parts, part); }

/* A list of numbers in one field. */
static bool read_packed(Arena *arena, Reader reader, const ProtobufCFieldDescriptor *field, Part *group) {
  while (reader.at < reader.end) {
    Part *number = read_number(arena, &reader, field);
    if (!number) return false;
    append(arena, group, number);
  }
  return true;
}

static bool read_length(Arena *arena, Reader *reader, const ProtobufCFieldDescriptor *field, Part *group, int depth) {
  uint64_t length = read_varint(reader);
  const uint8_t *bytes = read_bytes(reader, length);
  if (!bytes) return false;
  if (!field) return true;
  Reader inside = {bytes, bytes + length, false};
  if (wire_type(field) != LENGTH) return read_packed(arena, inside, field, group);
  PartKind kind = field->type == PROTOBUF_C_TYPE_MESSAGE ? PART_GROUP
                  : !strcmp(field->name, "raw_data")     ? PART_BYTES
                                                         : PART_TEXT;
  Part *part = part_new(arena, kind, role_of(field));
  part->field = field;
  part->bytes = (FileBytes){bytes, length};
  append(arena, group, part);
  return kind != PART_GROUP || read_message(arena, &inside, field->descriptor, part, depth + 1);
}

static bool read_field(Arena *arena, Reader *reader, const ProtobufCMessageDescriptor *kind, Part *group, int depth) {
  uint64_t tag = read_varint(reader);
  const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(kind, (unsigned)(tag >> 3));
  switch (tag & 7) {
  case LENGTH:
    return read_length(arena, reader, field, group, depth);
  case VARINT:
  case EIGHT_BYTES:
  case FOUR_BYTES:
    break;
  default:
    return false;
  }
  if (!field || wire_type(field) != (int)(tag & 7)) return false;
  Part *number = read_number(arena, reader, field);
  if (number) append(arena, group, number);
  return number != NULL;
}

static bool read_message(Arena *arena, Reader *reader, const ProtobufCMessageDescriptor *kind, Part *group, int depth) {
  if (depth > MOST_DEPTH) return false;
  while (reader->at < reader->end)
    if (!read_field(arena, reader, kind, group, depth) || reader->bad) return false;
  return true;
}

Part *parts_of_onnx(Arena *arena, FileBytes file) {
  Reader reader = {file.data, file.data + file.size, false};
  Part *root = part_new(arena, PART_GROUP, (uint64_t)(uintptr_t)&onnx__model_proto__descriptor);
  return read_message(arena, &reader, &onnx__model_proto__descriptor, root, 0) ? root : NULL;
}

/* ---- writing ---- */

static void write_varint(Text *text, uint64_t value) {
  for (; value > 0x7f; value >>= 7) text_bytes(text, &(char){(char)(value | 0x80)}, 1);
  text_bytes(text, &(char){(char)value}, 1);
}

static void write_length(Text *text, const char *bytes, size_t length) {
  write_varint(text, length);
  text_bytes(text, bytes, length);
}

static void write_part(Text *text, const Part *part) {
  const ProtobufCFieldDescriptor *field = part->field;
  float narrow = (float)part->real;
  write_varint(text, (uint64_t)field->id << 3 | (unsigned)wire_type(field));
  if (part->kind == PART_GROUP) {
    Text inside = text_new(text->arena);
    onnx_of_parts(&inside, part);
    write_length(text, inside.data, inside.length);
  } else if (wire_type(field) == LENGTH) {
    write_length(text, (const char *)part->bytes.data, part->bytes.size);
  } else if (wire_type(field) == FOUR_BYTES) {
    text_bytes(text, (const char *)&narrow, sizeof narrow);
  } else if (wire_type(field) == EIGHT_BYTES) {
    text_bytes(text, (const char *)&part->real, sizeof part->real);
  } else {
    write_varint(text, (uint64_t)part->number);
  }
}

void onnx_of_parts(Text *text, const Part *root) {
  for (int i = 0; i < root->n_parts; i++) write_part(text, root->parts[i]);
}

/* ---- what mutations need ---- */

const void *onnx_other_field(const Part *part, const Part *parent, uint64_t chance) {
  const ProtobufCMessageDescriptor *kind =
      parent->field ? ((const ProtobufCFieldDescriptor *)parent->field)->descriptor : &onnx__model_proto__descriptor;
  const ProtobufCFieldDescriptor *own = part->field;
  for (unsigned k = 0; k < kind->n_fields; k++) {
    const ProtobufCFieldDescriptor *other = &kind->fields[(chance + k) % kind->n_fields];
    bool message = own->type == PROTOBUF_C_TYPE_MESSAGE || other->type == PROTOBUF_C_TYPE_MESSAGE;
    if (other != own && wire_type(other) == wire_type(own) && (!message || other->descriptor == own->descriptor))
      return other;
  }
  return own;
}

static size_t element_bits(int64_t type) {
  static const uint8_t bits[] = {0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4};
  return type >= 0 && type < (int64_t)sizeof bits ? bits[type] : 0;
}

static bool is_field(const Part *part, const char *name) {
  return !strcmp(((const ProtobufCFieldDescriptor *)part->field)->name, name);
}

/* The bytes that its shape needs; -1: of no use. */
static int64_t bytes_needed(const Part *tensor) {
  enum { MOST = 1 << 16 };
  int64_t elements = 1, bits = 0;
  for (int i = 0; i < tensor->n_parts; i++) {
    const Part *part = tensor->parts[i];
    if (is_field(part, "data_type")) bits = (int64_t)element_bits(part->number);
    if (!is_field(part, "dims")) continue;
    if (part->number < 0 || part->number > MOST) return -1;
    elements *= part->number;
    if (elements > MOST) return -1;
  }
  return bits ? (elements * bits + 7) / 8 : -1;
}

static void fill_tensor(Arena *arena, Part *tensor) {
  int64_t needed = bytes_needed(tensor);
  for (int i = 0; needed >= 0 && i < tensor->n_parts; i++) {
    Part *part = tensor->parts[i];
    if (!is_field(part, "raw_data") || part->bytes.size == (size_t)needed) continue;
    uint8_t *longer = arena_alloc(arena, (size_t)needed + 1);
    for (size_t k = 0; k < (size_t)needed; k++)
      longer[k] = part->bytes.size ? part->bytes.data[k % part->bytes.size] : 0;
    part->bytes = (FileBytes){longer, (size_t)needed};
  }
}

void onnx_fill_tensors(Arena *arena, Part *root) {
  if (root->role == (uint64_t)(uintptr_t)&onnx__tensor_proto__descriptor) fill_tensor(arena, root);
  for (int i = 0; i < root->n_parts; i++)
    if (root->parts[i]->kind == PART_GROUP) onnx_fill_tensors(arena, root->parts[i]);
}
