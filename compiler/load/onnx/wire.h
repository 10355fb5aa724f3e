/* SPDX-License-Identifier: MIT */
/*
 * Checks the file's bytes before protobuf-c reads them. protobuf-c recurses for nested messages, makes large objects of
 * two bytes, and does not say where a broken file is broken.
 */
#ifndef RNNCC_WIRE_H
#define RNNCC_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "support/files.h"

/* The message in the arena. fatal_at() with the byte's offset if it is cut off, of another wire type, not UTF-8, or
 * nested too deep. */
ProtobufCMessage *wire_read(Arena *arena, const char *file, FileBytes bytes, const ProtobufCMessageDescriptor *kind);

/* FunctionProto.attribute_proto: attributes that stand for what a call leaves out. */
enum { WIRE_ATTRIBUTE_DEFAULTS = 11 };

/* Fields newer than Debian's description, which protobuf-c keeps raw: the next field of bytes with that number from
 * *index on; moves *index past it. False if there is none. */
bool wire_newer_field(const ProtobufCMessage *message, unsigned number, unsigned *index, FileBytes *bytes);

#endif
