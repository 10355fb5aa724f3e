/* SPDX-License-Identifier: MIT */
#include "load/onnx/wire.h"

#include <string.h>

#include "load/onnx/foreign.h"
#include "onnx.pb-c.h"
#include "support/utf8.h"

enum {
  MAX_DEPTH = 64,       /* messages inside messages; a body of If adds 3 */
  MAX_FIELDS = 1 << 25, /* protobuf-c keeps some 100 bytes for each while it reads */
  NUMBER_BYTES = 10,    /* 64 bits, 7 a byte */
  PREFIX_BYTES = 5      /* of a field's number, and of a length: protobuf-c reads no more */
};

/* The wire types of the encoding: https://protobuf.dev/programming-guides/encoding */
enum WireType { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 };

typedef struct Walk {
  const char *file;
  const uint8_t *bytes;
  size_t size, position;
  int depth, fields;
} Walk;

static _Noreturn void refuse(const Walk *walk, const char *what) {
  Location where = {.file = walk->file, .byte = (long long)walk->position};
  const char *kind = foreign_kind((FileBytes){.data = walk->bytes, .size = walk->size});
  if (kind) fatal_at(LOCATION_FILE(walk->file), EXIT_INVALID, "expected an ONNX model, found %s", kind);
  fatal_at(where, EXIT_INVALID, "this is no ONNX model: %s", what);
}

static _Noreturn void too_large(const Walk *walk, const char *what, int most) {
  Location where = {.file = walk->file, .byte = (long long)walk->position};
  fatal_at(where, EXIT_LIMIT, "the model has more than %d %s", most, what);
}

/* `longer`: what is wrong with more than `most` bytes. */
static uint64_t read_varint(Walk *walk, size_t end, int most, const char *longer) {
  uint64_t value = 0;
  for (int i = 0; i < most; i++) {
    if (walk->position == end) refuse(walk, "a number is cut off");
    uint8_t byte = walk->bytes[walk->position++];
    value |= (uint64_t)(byte & 0x7f) << 7 * i;
    if (byte < 0x80) return value;
  }
  refuse(walk, longer);
}

static void skip_number(Walk *walk, size_t end) {
  read_varint(walk, end, NUMBER_BYTES, "a number has more than 64 bits");
}

static void skip(Walk *walk, size_t end, uint64_t length) {
  if (length > end - walk->position) refuse(walk, "a field is longer than what holds it");
  walk->position += length;
}

static enum WireType wire_type_of(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_SFIXED32:
    return WIRE_4_BYTES;
  case PROTOBUF_C_TYPE_DOUBLE:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_SFIXED64:
    return WIRE_8_BYTES;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return WIRE_LENGTH;
  default:
    return WIRE_VARINT;
  }
}

/* A list of numbers may also come packed into one field. */
static void check_wire_type(const Walk *walk, const ProtobufCFieldDescriptor *field, enum WireType found) {
  enum WireType due = wire_type_of(field);
  bool packed = field->label == PROTOBUF_C_LABEL_REPEATED && due != WIRE_LENGTH && found == WIRE_LENGTH;
  if (found != due && !packed) refuse(walk, "a field is not encoded as its kind is");
}

/* A NUL would end the text here, but not in other programs. */
static void check_text(Walk *walk, size_t end) {
  for (size_t at = walk->position; at < end;) {
    int bytes = utf8_character((const char *)walk->bytes + at, end - at);
    if (bytes > 0 && walk->bytes[at] != 0) {
      at += (size_t)bytes;
      continue;
    }
    walk->position = at;
    refuse(walk, walk->bytes[at] == 0 ? "a text has a NUL in it" : "a text is not UTF-8");
  }
}

/* Numbers one behind the other. */
static void check_packed(Walk *walk, size_t end, enum WireType of_each) {
  size_t bytes = of_each == WIRE_8_BYTES ? 8 : 4;
  if (of_each != WIRE_VARINT && (end - walk->position) % bytes != 0) refuse(walk, "a list of numbers is cut off");
  while (of_each == WIRE_VARINT && walk->position < end) skip_number(walk, end);
}

static void walk_message(Walk *walk, size_t end, const ProtobufCMessageDescriptor *kind);

/* What a field of that many bytes holds; `newer`: the kind of message of a field that the description does not have. */
static void walk_within(Walk *walk, size_t end, const ProtobufCFieldDescriptor *field,
                        const ProtobufCMessageDescriptor *newer) {
  if (!field) {
    if (newer) walk_message(walk, end, newer);
  } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
    walk_message(walk, end, field->descriptor);
  } else if (field->type == PROTOBUF_C_TYPE_STRING) {
    check_text(walk, end);
  } else if (field->type != PROTOBUF_C_TYPE_BYTES) {
    check_packed(walk, end, wire_type_of(field));
  }
}

static void walk_length(Walk *walk, size_t end, const ProtobufCFieldDescriptor *field,
                        const ProtobufCMessageDescriptor *newer) {
  uint64_t length = read_varint(walk, end, PREFIX_BYTES, "a length has more than 5 bytes");
  size_t start = walk->position;
  skip(walk, end, length);
  size_t field_end = walk->position;
  walk->position = start;
  walk_within(walk, field_end, field, newer);
  walk->position = field_end;
}

/* Of the fields that the description does not have, the one that holds messages. */
static const ProtobufCMessageDescriptor *newer_kind(const ProtobufCMessageDescriptor *kind, uint64_t number) {
  bool is_default = kind == &onnx__function_proto__descriptor && number == WIRE_ATTRIBUTE_DEFAULTS;
  return is_default ? &onnx__attribute_proto__descriptor : NULL;
}

static void walk_field(Walk *walk, size_t end, const ProtobufCMessageDescriptor *kind) {
  size_t start = walk->position;
  uint64_t tag = read_varint(walk, end, PREFIX_BYTES, "a field number has more than 5 bytes"), number = tag >> 3;
  if (number == 0 || number > INT32_MAX >> 2) refuse(walk, "there is no such field number");
  const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(kind, (unsigned)number);
  enum WireType type = (enum WireType)(tag & 7);
  size_t after_tag = walk->position;
  walk->position = start;
  if (field) check_wire_type(walk, field, type);
  walk->position = after_tag;
  if (++walk->fields > MAX_FIELDS) too_large(walk, "fields", MAX_FIELDS);
  switch (type) {
  case WIRE_VARINT:
    skip_number(walk, end);
    return;
  case WIRE_8_BYTES:
    skip(walk, end, 8);
    return;
  case WIRE_4_BYTES:
    skip(walk, end, 4);
    return;
  case WIRE_LENGTH:
    walk_length(walk, end, field, newer_kind(kind, number));
    return;
  }
  refuse(walk, "a field is of an unknown encoding");
}

static void walk_message(Walk *walk, size_t end, const ProtobufCMessageDescriptor *kind) {
  if (++walk->depth > MAX_DEPTH) too_large(walk, "messages inside each other", MAX_DEPTH);
  while (walk->position < end) walk_field(walk, end, kind);
  walk->depth--;
}

static void *allocate(void *arena, size_t bytes) { return arena_alloc(arena, bytes); }

static void keep(void *arena, void *memory) { (void)arena, (void)memory; }

ProtobufCMessage *wire_read(Arena *arena, const char *file, FileBytes bytes, const ProtobufCMessageDescriptor *kind) {
  Walk walk = {.file = file, .bytes = bytes.data, .size = bytes.size};
  ProtobufCAllocator allocator = {.alloc = allocate, .free = keep, .allocator_data = arena};
  walk_message(&walk, bytes.size, kind);
  ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, bytes.size, bytes.data);
  /* What is left after the walk: of two messages with a choice of fields, which are merged, neither has one of them. In
   * ONNX these are types. */
  if (!message)
    fatal_at(LOCATION_FILE(file), EXIT_INVALID, "this is no ONNX model: a type is given twice, both times empty");
  return message;
}

bool wire_newer_field(const ProtobufCMessage *message, unsigned number, unsigned *index, FileBytes *bytes) {
  while (*index < message->n_unknown_fields) {
    const ProtobufCMessageUnknownField *field = &message->unknown_fields[(*index)++];
    if (field->tag != number || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) continue;
    size_t prefix = 1; /* its length, a varint, stands before it */
    while (prefix < field->len && field->data[prefix - 1] >= 0x80) prefix++;
    *bytes = (FileBytes){.data = field->data + prefix, .size = field->len - prefix};
    return true;
  }
  return false;
}
