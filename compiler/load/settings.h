/* SPDX-License-Identifier: MIT */
/*
 * What the command line sets in a model: bounds of named dims and of numbers in the data, states, and constant inputs.
 *
 *     --dim T=1..50..400    min..opt..max; also 1..400, whose opt is its max, and 16
 *     --bound n=1..900      the integers of the value n are from 1 to 900; also 900, from 0 on
 *     --state h0=hN         the context carries hN over to the next run's h0
 *     --freeze sr=16000     the input is that constant: a JSON number, true, false, or a nested list of those
 */
#ifndef RNNCC_SETTINGS_H
#define RNNCC_SETTINGS_H

#include "ir/graph.h"
#include "load/constant.h"
#include "load/model_files.h"
#include "support/text.h"

typedef enum SettingKind { SETTING_DIM, SETTING_BOUND, SETTING_STATE, SETTING_FREEZE } SettingKind;

typedef struct Setting {
  SettingKind kind;
  const char *network; /* the one that it is of; NULL: those that it fits, and that have none of their own */
  const char *name;    /* of a dim, of a value, or of an input */
  DimBounds dim;
  int64_t least, most; /* of bounded integers */
  const char *output;  /* of a state */
  const char *value;   /* of a constant, in JSON */
  bool used;
} Setting;

typedef struct ModelSettings {
  int count;
  Setting *list;        /* has room for every word of the command line */
  const char *network;  /* of a bundle, which they are read for; NULL: the model is in none */
  ModelFiles *files;    /* that were read before; NULL: none are kept */
  const Config *config; /* the graph's: a reader that infers must know which weights stay as they are; may be NULL */
} ModelSettings;

ModelSettings settings_new(Arena *arena, int most);
/* False if the text is not of that form. Bounds may still be at fault: dim_bounds_fault(). */
bool settings_add_dim(ModelSettings *settings, Arena *arena, const char *text);
bool settings_add_bound(ModelSettings *settings, Arena *arena, const char *text);
bool settings_add_state(ModelSettings *settings, Arena *arena, const char *text);
bool settings_add_freeze(ModelSettings *settings, Arena *arena, const char *text);

/* Of a bundle of `count` networks: "NETWORK:NAME" is the NAME of one. */
void settings_take_networks(ModelSettings *settings, Arena *arena, const char *const *networks, int count);
/* The option that is given twice for one name of one network, and that name; NULL: there is none. In a bundle states of
 * no named network may be each of another. */
const char *settings_twice(const ModelSettings *settings, bool bundle, const char **name);
/* The same settings, for one network's reader; NULL: for the one model. */
ModelSettings settings_for(const ModelSettings *settings, const char *network, ModelFiles *files);
/* After all networks of a bundle are read: reports settings that fitted none. The graphs are called as the networks. */
void settings_finish_bundle(Arena *arena, const ModelSettings *settings, Graph *const *networks, int count);

/* For the readers, whose settings may be NULL. */

int settings_count(const ModelSettings *settings, SettingKind kind);
/* Of that kind, for that name: what is set for this network, or else for all; NULL: nothing. */
const Setting *settings_find(const ModelSettings *settings, SettingKind kind, const char *name);
/* What bounds of a dim must be, for a message; NULL if they are. */
const char *dim_bounds_fault(Arena *arena, DimBounds bounds);

/* Makes an input, whose type and shape are read, a constant. Axes that are named dims or NULL get their extents from
 * the constant. */
void settings_freeze(Graph *graph, const Setting *setting, Value *input);

/* After a model is read: bounds values, pairs states, and reports settings whose names the model does not have. */
void settings_finish(const ModelSettings *settings, Graph *graph);

/* Named dims that nothing bounds: bounds are assumed for them, which one remark states as options, so that these can be
 * changed. */
typedef struct AssumedDims {
  Text places, options; /* "T" (axis 1 of `x`), ...; --dim 'T=1..16..256' ... */
} AssumedDims;
AssumedDims assumed_dims_new(Arena *arena);
/* Bounds for the dim that is first seen as that axis of an input of that rank. */
DimBounds dim_assume(AssumedDims *assumed, const ModelSettings *settings, const char *name, const char *input, int axis,
                     int rank);
void assumed_dims_tell(const AssumedDims *assumed, const char *file);

#endif
