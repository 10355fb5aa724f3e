/* SPDX-License-Identifier: MIT */
/*
 * Runs specialised recurrent kernels on random layers and compares them with plain loops in double.
 *
 * Built by test_recurrent_kernels.py, once for each instruction set, with KERNEL naming the variants linked in. Prints
 * one line for each variant: `ok NAME, N layers, worst error E of bound`, or what differs.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/panels.h"
#include "knobs.h"
#include "recurrent_check.h"

enum { MAX_TEAM = 5 };

/* ---- random numbers: the same on every machine ---- */

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}
static int64_t random_in(int64_t low, int64_t high) {
  return low + (int64_t)(next_random() % (uint64_t)(high - low + 1));
}
static bool coin(void) { return next_random() >> 40 & 1; }

static float *random_floats(int64_t n, double range) {
  float *data = malloc((size_t)(n ? n : 1) * sizeof *data);
  for (int64_t i = 0; i < n; i++) data[i] = (float)(((double)(next_random() >> 11) * 0x1p-52 - 1) * range);
  return data;
}
static float *filled(int64_t n, float value) {
  float *data = aligned_alloc(64, ((size_t)n * sizeof *data + 127) / 64 * 64);
  for (int64_t i = 0; i < n; i++) data[i] = value;
  return data;
}

/* ---- a layer, in ONNX's layout ---- */

typedef struct Case {
  const Variant *variant;
  int64_t T, B, I, H, D;
  int64_t cut; /* steps of the first of two calls; 0: one call does all */
  bool reverse, batch_first;
  float *x, *w, *r, *b, *p, *h0, *c0; /* b, h0, c0 may be NULL */
  int64_t *lengths;                   /* or NULL */
  float clip;
} Case;

typedef struct Outputs {
  float *y, *y_h, *y_c;
  bool own_lines; /* of the kernel's memory */
} Outputs;

static int gates_of_cell(int cell) { return cell == 0 ? 1 : cell == 3 ? 4 : 3; }

/* A number of units near H that gives an odd number of panels, at least three. */
static int64_t random_odd_panels(const Variant *v, int64_t H) {
  int64_t unit = (int64_t)v->lanes * v->unit_vectors, panels = (H + unit - 1) / unit;
  if (panels < 3) panels = 3;
  return ((panels | 1) - 1) * unit + random_in(1, unit);
}

static Case random_case(const Variant *v, int64_t size) {
  int64_t G = gates_of_cell(v->cell);
  Case c = {.variant = v, .T = random_in(1, 9), .B = random_in(1, 6), .I = random_in(1, size), .H = random_in(1, size)};
  if (v->halves) c.H = random_odd_panels(v, c.H);
  c.D = coin() ? 2 : 1;
  c.reverse = coin();
  c.batch_first = coin();
  double range = 1 / sqrt((double)c.H);
  c.x = random_floats(c.T * c.B * c.I, 1);
  c.w = random_floats(c.D * G * c.H * c.I, 1 / sqrt((double)c.I));
  c.r = random_floats(c.D * G * c.H * c.H, range);
  c.b = coin() ? random_floats(c.D * 2 * G * c.H, range) : NULL;
  c.p = random_floats(c.D * 3 * c.H, 1);
  c.h0 = coin() ? random_floats(c.D * c.B * c.H, 1) : NULL;
  c.c0 = coin() ? random_floats(c.D * c.B * c.H, 1) : NULL;
  if (v->hide) c.B = 1;
  if (c.D == 1 && !c.reverse && !c.batch_first && !v->input) c.cut = random_in(0, c.T - 1);
  c.lengths = coin() && !v->input ? malloc((size_t)c.B * sizeof *c.lengths) : NULL;
  for (int64_t b = 0; c.lengths && b < c.B; b++) c.lengths[b] = random_in(0, c.T);
  c.clip = 0.6f;
  return c;
}

static void free_case(Case *c) {
  float *const arrays[] = {c->x, c->w, c->r, c->b, c->p, c->h0, c->c0};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  free(c->lengths);
}

static Outputs new_outputs(const Case *c) {
  int64_t states = c->D * c->B * c->H;
  return (Outputs){.y = filled(c->T * states, NAN), .y_h = filled(states, NAN), .y_c = filled(states, NAN)};
}

static void free_outputs(Outputs *o) { free(o->y), free(o->y_h), free(o->y_c); }

/* ---- the reference ---- */

static int64_t y_at(const Case *c, int64_t t, int64_t b, int64_t d) {
  return (c->batch_first ? (b * c->T + t) * c->D + d : (t * c->D + d) * c->B + b) * c->H;
}
static int64_t state_at(const Case *c, int64_t b, int64_t d) {
  return (c->batch_first ? b * c->D + d : d * c->B + b) * c->H;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double clipped(const Case *c, double x) { return c->variant->clip ? fmin(fmax(x, -c->clip), c->clip) : x; }
static double f(const Case *c, double x) {
  return c->variant->cell == 0 ? tanh(clipped(c, x)) : sigmoid(clipped(c, x));
}

/* Row `row` of W times x(t), with its bias. */
static double input_part(const Case *c, int64_t d, int64_t row, int64_t t, int64_t b) {
  int64_t rows = gates_of_cell(c->variant->cell) * c->H;
  const float *x = c->x + (c->batch_first ? b * c->T + t : t * c->B + b) * c->I;
  double sum = c->b ? c->b[d * 2 * rows + row] : 0;
  for (int64_t i = 0; i < c->I; i++) sum += (double)x[i] * c->w[(d * rows + row) * c->I + i];
  return sum;
}
static double hidden_part(const Case *c, int64_t d, int64_t row, const double *h) {
  int64_t rows = gates_of_cell(c->variant->cell) * c->H;
  double sum = c->b ? c->b[(d * 2 + 1) * rows + row] : 0;
  for (int64_t k = 0; k < c->H; k++) sum += h[k] * c->r[(d * rows + row) * c->H + k];
  return sum;
}

static void lstm_step(const Case *c, int64_t d, int64_t t, int64_t b, const double *h, double *cell, double *next) {
  const float *p = c->p + d * 3 * c->H;
  double see = c->variant->peepholes;
  for (int64_t u = 0; u < c->H; u++) {
    double sum[4];
    for (int g = 0; g < 4; g++) sum[g] = input_part(c, d, g * c->H + u, t, b) + hidden_part(c, d, g * c->H + u, h);
    double in = f(c, sum[0] + see * p[u] * cell[u]);
    double forget = c->variant->input_forget ? 1 - in : f(c, sum[2] + see * p[2 * c->H + u] * cell[u]);
    cell[u] = forget * cell[u] + in * tanh(clipped(c, sum[3]));
    next[u] = f(c, sum[1] + see * p[c->H + u] * cell[u]) * tanh(cell[u]);
  }
}

static void gru_step(const Case *c, int64_t d, int64_t t, int64_t b, const double *h, double *next) {
  int64_t H = c->H;
  double *reset = calloc((size_t)H, sizeof *reset);
  for (int64_t u = 0; u < H; u++) reset[u] = f(c, input_part(c, d, H + u, t, b) + hidden_part(c, d, H + u, h));
  double *before = calloc((size_t)H, sizeof *before);
  for (int64_t u = 0; u < H; u++) before[u] = reset[u] * h[u];
  for (int64_t u = 0; u < H; u++) {
    double update = f(c, input_part(c, d, u, t, b) + hidden_part(c, d, u, h));
    double input = input_part(c, d, 2 * H + u, t, b);
    double hidden =
        c->variant->cell == 1 ? reset[u] * hidden_part(c, d, 2 * H + u, h) : hidden_part(c, d, 2 * H + u, before);
    next[u] = update * h[u] + (1 - update) * tanh(clipped(c, input + hidden));
  }
  free(reset);
  free(before);
}

static void reference_sample(const Case *c, int64_t d, int64_t b, Outputs *out) {
  int64_t length = c->lengths ? c->lengths[b] : c->T, H = c->H, state = state_at(c, b, d);
  double *h = calloc((size_t)H, sizeof *h), *cell = calloc((size_t)H, sizeof *cell);
  double *next = calloc((size_t)H, sizeof *next);
  for (int64_t u = 0; u < H && length; u++) {
    h[u] = c->h0 ? c->h0[state + u] : 0;
    cell[u] = c->c0 ? c->c0[state + u] : 0;
  }
  for (int64_t step = 0; step < c->T; step++) {
    bool reverse = d ? true : c->D == 1 && c->reverse, live = step < length;
    int64_t t = reverse && live ? length - 1 - step : step;
    if (live && c->variant->cell == 3) lstm_step(c, d, t, b, h, cell, next);
    if (live && (c->variant->cell == 1 || c->variant->cell == 2)) gru_step(c, d, t, b, h, next);
    for (int64_t u = 0; u < H && live && c->variant->cell == 0; u++)
      next[u] = f(c, input_part(c, d, u, t, b) + hidden_part(c, d, u, h));
    if (live) memcpy(h, next, (size_t)H * sizeof *h);
    for (int64_t u = 0; u < H; u++) out->y[y_at(c, t, b, d) + u] = live ? (float)h[u] : 0;
  }
  for (int64_t u = 0; u < H; u++) out->y_h[state + u] = (float)h[u], out->y_c[state + u] = (float)cell[u];
  free(h), free(cell), free(next);
}

static Outputs reference(const Case *c) {
  Outputs out = new_outputs(c);
  for (int64_t d = 0; d < c->D; d++)
    for (int64_t b = 0; b < c->B; b++) reference_sample(c, d, b, &out);
  return out;
}

/* ---- the kernel, on a team of threads ---- */

typedef struct Packed {
  float *w, *bias, *r, *candidate, *after_bias, *peepholes;
} Packed;

static float *packed(Panels p, const float *source, const float *addend) {
  float *target = filled(panels_floats(&p), 0);
  if (source) panels_pack(&p, source, addend, target);
  return target;
}

static Packed pack(const Case *c) {
  const Variant *v = c->variant;
  int G = gates_of_cell(v->cell), product = v->cell == 2 ? 2 : G;
  int64_t H = c->H;
  Panels w = {.lanes = v->lanes,
              .vectors = v->input ? G * v->unit_vectors : GEMM_VECTORS,
              .gates = G,
              .unit_vectors = v->unit_vectors,
              .directions = c->D,
              .units = H,
              .depth = c->I,
              .direction_stride = G * H * c->I,
              .column_stride = c->I,
              .depth_stride = 1};
  Panels bias = w, r = w, peepholes = w;
  bias.vectors = 1, bias.depth = 1, bias.column_stride = 1, bias.direction_stride = 2 * G * H;
  bias.addend_gates = v->cell == 1 ? 2 : G;
  r.gates = product, r.vectors = product * v->unit_vectors / v->panel_parts, r.depth = r.column_stride = H,
  r.direction_stride = G * H * H;
  Panels candidate = r, after = bias;
  candidate.gates = after.gates = 1, candidate.vectors = v->unit_vectors;
  after.addend_gates = 0;
  peepholes.vectors = 1, peepholes.depth = peepholes.column_stride = 1, peepholes.gates = 3;
  peepholes.direction_stride = 3 * H;
  return (Packed){.w = packed(w, c->w, NULL),
                  .bias = packed(bias, c->b, c->b ? c->b + G * H : NULL),
                  .r = packed(r, c->r, NULL),
                  .candidate = packed(candidate, v->cell == 2 ? c->r + 2 * H * H : NULL, NULL),
                  .after_bias = packed(after, v->cell == 1 && c->b ? c->b + 5 * H : NULL, NULL),
                  .peepholes = packed(peepholes, c->p, NULL)};
}

typedef struct Job {
  const Case *c;
  const Packed *packed;
  float *gates, *memory, *partial;
  const void *lengths;
  Outputs out;
  pthread_barrier_t *barrier;
  int size;
} Job;

typedef struct Worker {
  Job *job;
  Team team;
} Worker;

/* Steps first .. first + count of direction d. gates_row: floats of one sample and time. */
static void run_steps(Worker *worker, int64_t d, int64_t first, int64_t count, int64_t gates_row) {
  const Job *job = worker->job;
  const Packed *p = job->packed;
  const Case *c = job->c;
  const Outputs *out = &job->out;
  c->variant->kernel(&worker->team, c->x, p->w, c->b ? p->bias : NULL, job->gates + first * c->B * gates_row, p->r,
                     p->candidate, p->after_bias, p->peepholes, job->lengths, c->h0, c->c0, out->y, out->y_h, out->y_c,
                     job->memory, job->partial, c->clip, c->T, first, count, c->B, c->I, c->H, c->D, d,
                     d ? true : c->D == 1 && c->reverse, c->batch_first, worker->team.size & 1, NULL, NULL, NULL);
}

static void *work(void *argument) {
  Worker *worker = argument;
  Job *job = worker->job;
  const Case *c = job->c;
  const Variant *v = c->variant;
  int64_t G = gates_of_cell(v->cell), unit = (int64_t)v->lanes * v->unit_vectors;
  int64_t row = c->D * ((c->H + unit - 1) / unit) * unit * G;
  if (!v->input)
    kernel_gemm_packed(&worker->team, c->x, job->packed->w, job->packed->bias, job->gates, 1, 1, c->T * c->B, row, c->I,
                       c->I, 1, 0, row, 0, NULL, NULL, NULL);
  team_barrier(&worker->team);
  for (int64_t d = 0; d < c->D; d++) {
    if (c->cut) {
      run_steps(worker, d, 0, c->cut, row);
      team_barrier(&worker->team);
    }
    run_steps(worker, d, c->cut, c->T - c->cut, row);
  }
  return NULL;
}

/* Team.epochs carries this test's barrier. */
void team_enter(Team *team) { (void)team; }
void team_await(Team *team) { pthread_barrier_wait((pthread_barrier_t *)team->epochs); }

static void *lengths_as(const Case *c, int bytes) {
  if (!c->lengths) return NULL;
  int64_t *wide = malloc((size_t)c->B * 8);
  int32_t *narrow = (int32_t *)wide;
  for (int64_t b = 0; b < c->B; b++) {
    if (bytes == 8)
      wide[b] = c->lengths[b];
    else
      narrow[b] = (int32_t)c->lengths[b];
  }
  return wide;
}

/* Rows of states, between which memory is as it was, begin with cache lines: of others two workers would write one. */
static bool rows_begin_lines(const float *memory, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    if (i % STATE_LINE && isnan(memory[i - 1]) && !isnan(memory[i])) return false;
  return true;
}

static Outputs run_kernel(const Case *c, int size) {
  const Variant *v = c->variant;
  int64_t units = c->H + 4 * v->lanes, floats = c->D * 4 * c->B * (units + 2 * STATE_LINE);
  Packed weights = pack(c);
  void *lengths = lengths_as(c, v->length_bytes);
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, (unsigned)size);
  Job job = {.c = c,
             .packed = &weights,
             .lengths = lengths,
             .out = new_outputs(c),
             .size = size,
             .gates = filled(c->T * c->B * c->D * units * 4, NAN),
             .memory = filled(floats, NAN),
             .partial = filled(c->D * c->B * units * 4, NAN)};
  pthread_t threads[MAX_TEAM];
  Worker workers[MAX_TEAM];
  for (int rank = 0; rank < size; rank++) {
    workers[rank] = (Worker){&job, {.rank = rank, .size = size, .epochs = (TeamEpoch *)&barrier}};
    pthread_create(&threads[rank], NULL, work, &workers[rank]);
  }
  for (int rank = 0; rank < size; rank++) pthread_join(threads[rank], NULL);
  pthread_barrier_destroy(&barrier);
  job.out.own_lines = rows_begin_lines(job.memory, floats);
  float *const arrays[] = {weights.w,         weights.bias, weights.r,  weights.candidate, weights.after_bias,
                           weights.peepholes, job.gates,    job.memory, job.partial};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  free(lengths);
  return job.out;
}

/* ---- comparison ---- */

/* Worst |got - want| / max(1, |want|) over the bound; infinite if there is a NaN. */
static double worst_error(const float *got, const float *want, int64_t n, double bound) {
  double worst = 0;
  for (int64_t i = 0; i < n; i++) {
    double error = fabs((double)got[i] - want[i]) / fmax(1, fabs((double)want[i])) / bound;
    if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
  }
  return worst;
}

/* Rounding errors of a sum of n terms grow like log2 n with random signs (a few times that, to be safe), and every one
 * of the T steps adds its own. */
static double bound_of(const Case *c) { return 4 * ceil(log2((double)((c->I + c->H) * c->T) + 1)) * 0x1p-23; }

static double compare(const Case *c, const Outputs *got, const Outputs *want) {
  int64_t states = c->D * c->B * c->H;
  double bound = bound_of(c), worst = worst_error(got->y, want->y, c->T * states, bound);
  worst = fmax(worst, worst_error(got->y_h, want->y_h, states, bound));
  return c->variant->cell == 3 ? fmax(worst, worst_error(got->y_c, want->y_c, states, bound)) : worst;
}

static bool same_bits(const Case *c, const Outputs *a, const Outputs *b) {
  size_t states = (size_t)(c->D * c->B * c->H) * sizeof(float);
  return !memcmp(a->y, b->y, (size_t)c->T * states) && !memcmp(a->y_h, b->y_h, states) &&
         (c->variant->cell != 3 || !memcmp(a->y_c, b->y_c, states));
}

static double check_case(Case *c) {
  Outputs want = reference(c), alone = run_kernel(c, 1);
  double worst = alone.own_lines ? compare(c, &alone, &want) : INFINITY;
  for (int size = 2; size <= MAX_TEAM; size++) {
    Outputs team = run_kernel(c, size);
    if (!same_bits(c, &team, &alone)) worst = INFINITY;
    free_outputs(&team);
  }
  if (worst > 1)
    printf("not ok %s: T %ld B %ld I %ld H %ld D %ld reverse %d batch_first %d b %d h0 %d c0 %d lengths %d: error %g\n",
           c->variant->name, (long)c->T, (long)c->B, (long)c->I, (long)c->H, (long)c->D, c->reverse, c->batch_first,
           !!c->b, !!c->h0, !!c->c0, !!c->lengths, worst);
  free_outputs(&want);
  free_outputs(&alone);
  return worst;
}

int main(int argc, char **argv) {
  int layers = argc > 1 ? atoi(argv[1]) : 40, failures = 0;
  for (const Variant *const *v = variants; *v; v++) {
    double worst = 0;
    for (int i = 0; i < layers; i++) {
      Case c = random_case(*v, i % 4 ? 40 : 130);
      worst = fmax(worst, check_case(&c));
      free_case(&c);
    }
    failures += worst > 1;
    if (worst <= 1) printf("ok %s, %d layers, worst error %.3f of bound\n", (*v)->name, layers, worst);
  }
  return failures ? 1 : 0;
}
