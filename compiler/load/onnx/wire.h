/* SPDX-License-Identifier: MIT */
/*
 * Before protobuf-c builds anything from a file, the file's bytes are walked once: it would follow nested messages
 * with one stack frame each, make large objects of two bytes, and say no more than "no" to what is broken.
 */
#ifndef RNNCC_WIRE_H
#define RNNCC_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "support/files.h"

/* The message in the arena. fatal_at() with the byte for what is cut off, of another wire type, no UTF-8, or nested
 * deeper than any model is. */
ProtobufCMessage *wire_read(Arena *arena, const char *file, FileBytes bytes, const ProtobufCMessageDescriptor *kind);

/* Fields newer than Debian's description, which protobuf-c keeps as they are: the next one with that number from *index
 * on that holds bytes, *index past it. False if there is none. */
bool wire_newer_field(const ProtobufCMessage *message, unsigned number, unsigned *index, FileBytes *bytes);

#endif
