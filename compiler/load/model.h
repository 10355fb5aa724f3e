/* SPDX-License-Identifier: MIT */
/* Shared by the files that read a JSON model: each reads one part of it into the graph. */
#ifndef RNNCC_MODEL_H
#define RNNCC_MODEL_H

#include "load/names.h"
#include "load/settings.h"
#include "sha256.h"
#include "support/files.h"

typedef struct ModelReader {
  Arena *arena;
  Graph *graph;
  NameTable names;
  Json dims;                     /* of the model; those with an error are no dims of the graph */
  const ModelSettings *settings; /* may be NULL */
  Sha256 hash;                   /* the model file, then its weights files in order */
  Json *state_outputs;           /* of each state of the graph, its output's name */
} ModelReader;

/* The JSON of the model format, see models/schema.json. */
Graph *load_json_model(Arena *arena, const char *path, const ModelSettings *settings);
/* The same from memory; `path` is for messages, and for the folder of the weights. Nodes are not sorted. After errors,
 * which stop_on_errors() will find, nodes with errors are left out, and infer_shapes() can tell what is wrong with
 * others. */
Graph *read_json_model(Arena *arena, const char *path, FileBytes text, const ModelSettings *settings);

/* dims, inputs and the inputs of states; `read_results` after the nodes: outputs and the outputs of states. */
void read_dims(ModelReader *reader, Json dims);
void read_inputs(ModelReader *reader, Json inputs);
void read_states(ModelReader *reader, Json states);
void read_results(ModelReader *reader, Json outputs);

/* Declares every tensor of the weights files and every inline one; values are made when nodes read them. */
void read_weights(ModelReader *reader, Json weights);
void read_constants(ModelReader *reader, Json constants);

void read_nodes(ModelReader *reader, Json nodes);

/* A new value of the name that the JSON has, a string. If that is none, is empty or is taken, which is an error,
 * nothing can name the value. */
Value *declare_value(ModelReader *reader, Json name);

/* The value that a string names: NULL after an error. */
Value *read_value(ModelReader *reader, Json name);

/* Reads an attribute; the op's row decides its kind where JSON leaves a choice. False after an error. */
bool read_attribute(ModelReader *reader, const OpInfo *op, Json json, Attribute *attribute);

/* The body of If, Loop or Scan. False after an error. */
bool read_body(ModelReader *reader, Json json, Attribute *attribute);

/* Permutes constant weights from the gate order `order` to ONNX's. False after an error. */
bool normalise_gate_order(ModelReader *reader, Node *node, Json order);

#endif
