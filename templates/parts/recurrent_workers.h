/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers, after recurrent_cells.h: a direction's states to and from memory, and
 * its workers' shares.
 */

/* ---- states: `outer` is one of ONNX's initial or final states, of this direction, samples outer_row apart ---- */

static void load_state(const Layer *l, float *state, const float *outer, int64_t outer_row) {
  for (int64_t sample = block_at(l, l->block_begin); sample < block_at(l, l->block_end); sample++) {
    for (int64_t unit = l->begin * PANEL_UNITS; unit < l->end * PANEL_UNITS; unit += LANES) {
      vec v = outer ? panel_load(outer + sample * outer_row + unit, l->hidden - unit) : vzero();
      vstore(state + sample * l->state_row + unit, v);
    }
  }
}

static void store_state(const Layer *l, const float *state, float *outer, int64_t outer_row) {
  if (!outer) return;
  for (int64_t sample = block_at(l, l->block_begin); sample < block_at(l, l->block_end); sample++) {
    bool empty = l->lengths && length_of(l, sample) == 0;
    for (int64_t unit = l->begin * PANEL_UNITS; unit < l->end * PANEL_UNITS; unit += LANES) {
      vec v = empty ? vzero() : vload(state + sample * l->state_row + unit);
      panel_store(outer + sample * outer_row + unit, v, l->hidden - unit);
    }
  }
}

/* ---- the layer ---- */

/* Floats from one sample's states to the next: whole lines, and one more, which keeps samples off each other's cache
 * sets. */
static int64_t state_row_of(const Layer *l) { return round_up(l->panels * PANEL_UNITS, STATE_LINE) + STATE_LINE; }

/* The workers of one direction: `ways` parts of the samples, each with `unit_ways` parts of the panels. */
typedef struct Crew {
  int64_t first, count, ways, unit_ways;
} Crew;

/* Each direction has its own part of the team. */
static Crew crew_of(const Team *team, int64_t directions, int64_t direction) {
  Crew crew = {.count = team->size};
  if (team->size >= directions) {
    crew.first = team->size * direction / directions;
    crew.count = team->size * (direction + 1) / directions - crew.first;
  }
  int64_t workers = min_i64(crew.count, WORKERS);
  crew.ways = min_i64(BATCH_PARTS, workers);
  crew.unit_ways = workers / crew.ways;
  return crew;
}

/* This worker's panels and blocks of samples: none if it rests. */
static void take_share(Layer *l, const Team *team, int64_t directions, int64_t direction) {
  Crew crew = crew_of(team, directions, direction);
  int64_t member = team->rank - crew.first, way = member % crew.ways, unit_way = member / crew.ways;
  l->blocks = min_i64(l->batch, round_up(ceil_div(l->batch, ROWS), BATCH_PARTS));
  l->half = -1;
  if (member < 0 || unit_way >= crew.unit_ways) return;
  l->block_begin = share_begin(l->blocks, way, crew.ways);
  l->block_end = share_begin(l->blocks, way + 1, crew.ways);
  l->begin = unit_way * l->panels / crew.unit_ways;
  l->end = (unit_way + 1) * l->panels / crew.unit_ways;
  if (crew.unit_ways == 2) l->half = (int)unit_way;
}

static void take_memory(Layer *l, float *memory, int64_t direction) {
  int64_t buffer = l->batch * l->state_row;
  memory += direction * BUFFERS * buffer;
  l->state[0] = memory;
  l->state[1] = memory + buffer;
  l->cell = l->update = memory + 2 * buffer;
  l->reset = memory + 3 * buffer;
}

static void take_partial(Layer *l, float *partial, int64_t direction) {
  if (HIDE || HALVES || DEPTH_BLOCK > 0 || PANEL_PARTS > 1)
    l->partial = partial + direction * l->batch * l->panels * PRODUCT_VECTORS * LANES;
}

static void set_strides(Layer *l, int64_t directions, bool batch_first) {
  int64_t gates = directions * l->panels * GATE_VECTORS * LANES, y = directions * l->hidden;
  l->gates_time = gates * (batch_first ? 1 : l->batch);
  l->gates_sample = gates * (batch_first ? l->count : 1);
  if (INPUT) l->gates_time = 0, l->gates_sample = gates;
  l->x_time = l->inputs * (batch_first ? 1 : l->batch);
  l->x_sample = l->inputs * (batch_first ? l->steps : 1);
  l->y_time = batch_first ? y : y * l->batch;
  l->y_sample = batch_first ? y * l->steps : l->hidden;
}
