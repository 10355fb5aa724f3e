/* SPDX-License-Identifier: MIT */
#include "load/settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "load/bound_values.h"
#include "support/closest.h"
#include "support/list.h"

static const int64_t MAX_EXTENT = INT32_MAX; /* of a named dim: fits every index type in emitted C */

ModelSettings settings_new(Arena *arena, int most) {
  return (ModelSettings){.list = ARENA_ARRAY(arena, Setting, most)};
}

/* True, for what reads settings to end with. */
static bool add(ModelSettings *settings, Setting setting) {
  settings->list[settings->count++] = setting;
  return true;
}

/* Cuts `NAME=REST` in two, at the last `=` if `last`: names may hold one, extents do not. */
static bool cut(Arena *arena, const char *text, bool last, const char **name, const char **rest) {
  const char *equals = last ? strrchr(text, '=') : strchr(text, '=');
  if (!equals || equals == text || !equals[1]) return false;
  *name = arena_format(arena, "%.*s", (int)(equals - text), text);
  *rest = equals + 1;
  return true;
}

static bool read_extent(const char **text, int64_t *extent) {
  char *end;
  if (**text < '0' || **text > '9') return false;
  *extent = strtoll(*text, &end, 10);
  *text = end;
  return *extent >= 1 && *extent <= MAX_EXTENT;
}

bool settings_add_dim(ModelSettings *settings, Arena *arena, const char *text) {
  Setting setting = {.kind = SETTING_DIM};
  DimBounds *dim = &setting.dim;
  const char *rest;
  int64_t extents[3];
  int n = 0;
  if (!cut(arena, text, true, &setting.name, &rest)) return false;
  for (bool more = true; more;) {
    if (n == 3 || !read_extent(&rest, &extents[n])) return false;
    n++;
    more = strncmp(rest, "..", 2) == 0;
    if (more) rest += 2;
  }
  *dim = (DimBounds){extents[0], n == 3 ? extents[1] : extents[n - 1], extents[n - 1], 1};
  bool has_multiple = *rest == ':';
  if (has_multiple) rest++;
  if (has_multiple && !read_extent(&rest, &dim->multiple)) return false;
  return !*rest && add(settings, setting);
}

const char *dim_bounds_fault(Arena *arena, DimBounds b) {
  if (b.min > b.opt || b.opt > b.max)
    return arena_format(arena, "expected min <= opt <= max, found %" PRId64 ", %" PRId64 ", %" PRId64, b.min, b.opt,
                        b.max);
  if (b.min % b.multiple || b.opt % b.multiple || b.max % b.multiple)
    return arena_format(arena, "expected multiples of %" PRId64 ", found %" PRId64 ", %" PRId64 ", %" PRId64,
                        b.multiple, b.min, b.opt, b.max);
  return NULL;
}

bool settings_add_bound(ModelSettings *settings, Arena *arena, const char *text) {
  Setting bound = {.kind = SETTING_BOUND};
  const char *rest;
  if (!cut(arena, text, true, &bound.name, &rest) || !read_extent(&rest, &bound.most)) return false;
  bool has_least = strncmp(rest, "..", 2) == 0;
  if (has_least) rest += 2;
  if (has_least) bound.least = bound.most;
  if ((has_least && !read_extent(&rest, &bound.most)) || *rest || bound.least > bound.most) return false;
  return add(settings, bound);
}

bool settings_add_state(ModelSettings *settings, Arena *arena, const char *text) {
  Setting state = {.kind = SETTING_STATE};
  return cut(arena, text, false, &state.name, &state.output) && add(settings, state);
}

bool settings_add_freeze(ModelSettings *settings, Arena *arena, const char *text) {
  Setting freeze = {.kind = SETTING_FREEZE};
  return cut(arena, text, false, &freeze.name, &freeze.value) && add(settings, freeze);
}

static bool same_network(const Setting *a, const Setting *b) {
  return a->network && b->network ? !strcmp(a->network, b->network) : a->network == b->network;
}

/* The name that both set; NULL: none. */
static const char *set_by_both(const Setting *a, const Setting *b, bool bundle) {
  if (a->kind != b->kind || !same_network(a, b)) return NULL;
  bool name = !strcmp(a->name, b->name), output = a->kind == SETTING_STATE && !strcmp(a->output, b->output);
  if (a->kind == SETTING_STATE && bundle && !a->network && name != output) return NULL;
  return name ? a->name : output ? a->output : NULL;
}

static const char *const options[] = {
    [SETTING_DIM] = "--dim", [SETTING_BOUND] = "--bound", [SETTING_STATE] = "--state", [SETTING_FREEZE] = "--freeze"};

const char *settings_twice(const ModelSettings *settings, bool bundle, const char **name) {
  for (int i = 0; i < settings->count; i++)
    for (int one = 0; one < i; one++)
      if ((*name = set_by_both(&settings->list[i], &settings->list[one], bundle)))
        return options[settings->list[i].kind];
  return NULL;
}

static bool is_for(const char *network, const ModelSettings *settings) {
  return !network || !strcmp(network, settings->network);
}

/* Is it an error if a setting that is for this network does not fit it? */
static bool must_fit(const char *network, const ModelSettings *settings) {
  return !settings->network || (network && is_for(network, settings));
}

int settings_count(const ModelSettings *settings, SettingKind kind) {
  int count = 0;
  for (int i = 0; settings && i < settings->count; i++) count += settings->list[i].kind == kind;
  return count;
}

const Setting *settings_find(const ModelSettings *settings, SettingKind kind, const char *name) {
  const Setting *found = NULL;
  for (int i = 0; settings && i < settings->count; i++) {
    Setting *setting = &settings->list[i];
    if (setting->kind != kind || strcmp(setting->name, name) != 0 || !is_for(setting->network, settings)) continue;
    setting->used = true;
    if (!found || setting->network) found = setting;
  }
  return found;
}

/* The rank of a nested list, and its extents as its first entries have them. */
static int nested_shape(Json json, int64_t shape[MAX_RANK]) {
  int rank = 0;
  for (; json_kind(json) == JSON_ARRAY; json = json_first(json)) {
    if (rank == MAX_RANK) return -1;
    shape[rank++] = json_count(json);
  }
  return rank;
}

/* Elements in row-major order to `*next`, which moves on; false after an error. */
static bool read_nested(Json json, DType dtype, int rank, const int64_t *shape, char **next) {
  if (rank == 0) {
    bool good = constant_read_element(json, dtype, *next);
    *next += dtype_size(dtype);
    return good;
  }
  if (!json_expect(json, JSON_ARRAY)) return false;
  if (json_count(json) != *shape) {
    error_at(json_where(json), EXIT_INVALID, "a list of %d where others of its depth have %" PRId64, json_count(json),
             *shape);
    return false;
  }
  for (Json entry = json_first(json); entry.item; entry = json_next(entry))
    if (!read_nested(entry, dtype, rank - 1, shape + 1, next)) return false;
  return true;
}

static int64_t product(int rank, const int64_t *shape) {
  int64_t count = 1;
  for (int axis = 0; axis < rank; axis++) count *= shape[axis];
  return count;
}

/* A number may stand for a tensor of one element. */
static bool adopt_shape(const Value *input, int *rank, int64_t shape[MAX_RANK]) {
  if (*rank == 0 && value_static(input) && value_count(input) == 1) {
    *rank = input->rank;
    for (int axis = 0; axis < input->rank; axis++) shape[axis] = 1;
  }
  bool fits = *rank == input->rank;
  for (int axis = 0; fits && axis < *rank; axis++) {
    const Dim *due = input->shape[axis];
    fits = !due || !dim_is_const(due) || dim_value(due) == shape[axis];
  }
  return fits;
}

/* The input's shape and elements. False after an error. */
static bool read_frozen(Graph *graph, const Setting *setting, Value *input) {
  const char *place = arena_format(graph->arena, "--freeze %s", setting->name);
  Json json = json_parse(graph->arena, place, setting->value, strlen(setting->value), 0);
  int64_t shape[MAX_RANK];
  int rank = nested_shape(json, shape);
  if (rank < 0 || !adopt_shape(input, &rank, shape)) {
    error_at(LOCATION_FILE(place), EXIT_INVALID, "the value is not of the shape that the input has");
    return false;
  }
  int64_t count = product(rank, shape);
  char *data = arena_array(graph->arena, (size_t)(count > 0 ? count : 1), dtype_size(input->dtype)), *next = data;
  bool scalar = json_kind(json) != JSON_ARRAY;
  if (!read_nested(json, input->dtype, scalar ? 0 : rank, shape, &next)) return false;
  for (int axis = 0; axis < rank; axis++) input->shape[axis] = dim_const(graph->dims, shape[axis]);
  input->data = data;
  return true;
}

void settings_freeze(Graph *graph, const Setting *setting, Value *input) {
  input->is_input = false;
  input->refused = !read_frozen(graph, setting, input);
  if (input->refused) input->rank = -1;
}

static int find_value(Value *const *values, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(values[i]->name, name) == 0) return i;
  return -1;
}

/* The batch axis of a state: its one named dim. Two are an error. */
static int batch_axis(const Graph *graph, const Value *input) {
  int found = -1;
  for (int axis = 0; axis < input->rank; axis++) {
    if (dim_is_const(input->shape[axis])) continue;
    if (found >= 0)
      error_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--state: \"%.80s\" has two axes without a fixed length",
               input->name);
    found = axis;
  }
  return found;
}

static const char *value_names_near(Arena *arena, const char *name, Value *const *values, int n) {
  const char **names = ARENA_ARRAY(arena, const char *, n);
  for (int i = 0; i < n; i++) names[i] = values[i]->name;
  return nearest_names(arena, name, names, n);
}

/* After states that took others: what is left. */
static void tell_unpaired(const Graph *graph, const Setting *setting, bool input_found) {
  const char *name = input_found ? setting->output : setting->name;
  const char *names = input_found ? value_names_near(graph->arena, name, graph->outputs, graph->n_outputs)
                                  : value_names_near(graph->arena, name, graph->inputs, graph->n_inputs);
  error_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--state: the model has no %s \"%.80s\"; it has %s",
           input_found ? "output" : "input", name, names);
}

static void pair_state(const ModelSettings *settings, Graph *graph, Setting *setting, State *state) {
  int input = find_value(graph->inputs, graph->n_inputs, setting->name);
  int output = find_value(graph->outputs, graph->n_outputs, setting->output);
  bool found = input >= 0 && output >= 0;
  setting->used |= found;
  if (!found && !must_fit(setting->network, settings)) return;
  if (!found) {
    tell_unpaired(graph, setting, input >= 0);
    return;
  }
  *state = (State){.input = graph->inputs[input], .output = graph->outputs[output]};
  state->batch_axis = batch_axis(graph, state->input);
  values_remove(graph->inputs, &graph->n_inputs, input);
  values_remove(graph->outputs, &graph->n_outputs, output);
  graph->n_states++;
}

static void pair_states(const ModelSettings *settings, Graph *graph) {
  int count = settings_count(settings, SETTING_STATE);
  if (count == 0) return;
  State *states = ARENA_ARRAY(graph->arena, State, graph->n_states + count);
  if (graph->n_states) memcpy(states, graph->states, (size_t)graph->n_states * sizeof *states);
  graph->states = states;
  for (int own = 1; own >= 0; own--) /* what is set for all fits what is left */
    for (int i = 0; i < settings->count; i++) {
      Setting *setting = &settings->list[i];
      bool due = own ? setting->network && is_for(setting->network, settings) : !setting->network;
      if (setting->kind == SETTING_STATE && due) pair_state(settings, graph, setting, &graph->states[graph->n_states]);
    }
  if (graph->n_outputs == 0)
    error_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--state: no output is left; a module needs one");
}

static void tell_unused_dim(const Graph *graph, const char *name) {
  int count = dim_symbol_count(graph->dims);
  const char **names = ARENA_ARRAY(graph->arena, const char *, count);
  for (int i = 0; i < count; i++) names[i] = dim_symbol_at(graph->dims, i)->name;
  error_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--dim: the model has no named dim \"%.80s\"; it has %s", name,
           nearest_names(graph->arena, name, names, count));
}

static void tell_unused_bound(const Graph *graph, const char *name) {
  error_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--bound: the model has no value \"%.80s\"; it has %s", name,
           value_names_near(graph->arena, name, graph->values, graph->n_values));
}

static void tell_unused_freeze(const Graph *graph, const char *name) {
  error_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--freeze: the model has no input \"%.80s\"; it has %s", name,
           value_names_near(graph->arena, name, graph->inputs, graph->n_inputs));
}

static void tell_unused(const Graph *graph, const Setting *setting) {
  switch (setting->kind) {
  case SETTING_DIM:
    tell_unused_dim(graph, setting->name);
    break;
  case SETTING_BOUND:
    tell_unused_bound(graph, setting->name);
    break;
  case SETTING_FREEZE:
    tell_unused_freeze(graph, setting->name);
    break;
  case SETTING_STATE:
    break; /* told where it was not paired */
  }
}

void settings_finish(const ModelSettings *settings, Graph *graph) {
  if (!settings) return;
  bound_values(graph, settings);
  pair_states(settings, graph);
  for (int i = 0; i < settings->count; i++) {
    const Setting *setting = &settings->list[i];
    if (!setting->used && must_fit(setting->network, settings)) tell_unused(graph, setting);
  }
}

AssumedDims assumed_dims_new(Arena *arena) { return (AssumedDims){text_new(arena), text_new(arena)}; }

/* The first axis of an image or volume is its batch. Whatever else it is, an axis may be a time, a width or a batch. */
DimBounds dim_assume(AssumedDims *assumed, const ModelSettings *settings, const char *name, const char *input, int axis,
                     int rank) {
  enum { USUAL = 16, MOST = 256, MOST_IMAGES = 16, RANK_OF_IMAGES = 4 };
  bool images = axis == 0 && rank >= RANK_OF_IMAGES;
  DimBounds bounds = {1, images ? 1 : USUAL, images ? MOST_IMAGES : MOST, 1};
  const char *network = settings && settings->network ? settings->network : "";
  text_add(&assumed->places, "%s\"%s\" (axis %d of `%.200s`)", assumed->places.length ? ", " : "", name, axis, input);
  text_add(&assumed->options, " --dim '%s%s%s=%" PRId64 "..%" PRId64 "..%" PRId64 "'", network, *network ? ":" : "",
           name, bounds.min, bounds.opt, bounds.max);
  return bounds;
}

void assumed_dims_tell(const AssumedDims *assumed, const char *file) {
  if (assumed->places.length)
    note_at(LOCATION_FILE(file), "nothing bounds %s; assumed:%s", assumed->places.data, assumed->options.data);
}
