/* SPDX-License-Identifier: MIT */
#include "kernels/gemm/panels.h"

#include "support/numbers.h"

#include <stdbool.h>
#include <stddef.h>

/* Vectors of one direction. */
static int64_t direction_vectors(const Panels *p) {
  return ceil_div(p->units, (int64_t)p->unit_vectors * p->lanes) * p->gates * p->unit_vectors;
}

static int64_t panels_vectors(const Panels *p) { return p->directions * direction_vectors(p); }
static int64_t panels_count(const Panels *p) { return ceil_div(panels_vectors(p), p->vectors); }
int64_t panels_columns(const Panels *p) { return panels_count(p) * p->vectors * p->lanes; }
int64_t panels_floats(const Panels *p) { return panels_columns(p) * p->depth; }

/* The columns of a packed vector. */
typedef struct VectorSource {
  int gate;
  int64_t first, left; /* the first column's place in the source; how many there are, if less than LANES */
} VectorSource;

static VectorSource source_of(const Panels *p, int64_t vector) {
  int64_t direction = vector / direction_vectors(p), within = vector % direction_vectors(p);
  int64_t gate = within / p->unit_vectors % p->gates;
  int64_t unit_vector = within / (p->unit_vectors * p->gates) * p->unit_vectors + within % p->unit_vectors;
  int64_t unit = unit_vector * p->lanes;
  return (VectorSource){.gate = (int)gate,
                        .first = direction * p->direction_stride + (gate * p->units + unit) * p->column_stride,
                        .left = p->units - unit};
}

int64_t panels_source(const Panels *p, int64_t column) {
  int64_t vector = column / p->lanes, lane = column % p->lanes;
  if (vector >= panels_vectors(p)) return -1;
  VectorSource from = source_of(p, vector);
  return lane < from.left ? from.first + lane * p->column_stride : -1;
}

/* Packs one vector of columns over the whole depth, from `target` on. */
static void pack_vector(const Panels *p, int64_t vector, const float *source, const float *addend, float *target) {
  VectorSource from = source_of(p, vector);
  bool add = addend && from.gate < p->addend_gates;
  for (int64_t k = 0; k < p->depth; k++) {
    for (int64_t lane = 0; lane < p->lanes && lane < from.left; lane++) {
      int64_t at = from.first + lane * p->column_stride + k * p->depth_stride;
      target[k * p->vectors * p->lanes + lane] = add ? source[at] + addend[at] : source[at];
    }
  }
}

void panels_pack(const Panels *p, const float *source, const float *addend, float *target) {
  for (int64_t vector = 0; vector < panels_vectors(p); vector++) {
    int64_t panel = vector / p->vectors, in_panel = vector % p->vectors;
    pack_vector(p, vector, source, addend, target + (panel * p->depth * p->vectors + in_panel) * p->lanes);
  }
}

int panels_best_vectors(int64_t n, int lanes, int most) {
  int64_t used = n > lanes ? ceil_div(n, lanes) : 1, least = INT64_MAX;
  int best = 1;
  for (int vectors = (int)min_int(used, most); vectors > (used > 1); vectors--) {
    int64_t padded = ceil_div(used, vectors) * vectors;
    if (padded < least) least = padded, best = vectors;
  }
  return best;
}
