/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers of integers, after recurrent_workers.h: each worker's weights and
 * quantised states.
 */

/* All workers enter the barriers, which are for the whole team, if any direction's workers share its panels. */
static bool panels_are_shared(const Team *team, int64_t directions) {
  for (int64_t direction = 0; direction < directions; direction++)
    if (crew_of(team, directions, direction).unit_ways > 1) return true;
  return false;
}

/* Of `slots` for each direction: workers that share the samples have other rows of one slot. */
static int64_t slot_of(const Layer *l, const Team *team, int64_t directions, int64_t direction) {
  Crew crew = crew_of(team, directions, direction);
  int64_t unit_way = (team->rank - crew.first) / crew.ways;
  return crew.unit_ways <= l->panels ? unit_way : l->begin;
}

static void take_weights(Weights *w, const int8_t *elements, const float *scales, const int32_t *totals, int64_t panel,
                         int64_t depth, int vectors) {
  *w = (Weights){elements + panel * depth * vectors * LANES, scales + panel * vectors * LANES,
                 totals + panel * vectors * LANES};
}
