/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary of products of 8-bit numbers is compared with plain C in 64 bits: dot products of all inputs and
 * weights, and of the extreme ones in every combination; saturating stores, loads and stores of n lanes next to guard
 * pages; numbers of 16 bits, two to a lane.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "isa.h"
#include "simd/int8.h"
#include "tap.h"

typedef struct Step {
  uint8_t input[DOT];
  int8_t weights[LANES][DOT];
  int32_t acc[LANES];
} Step;

static int64_t wanted(const Step *step, int lane, bool is_signed, int form) {
  const int zero = form == DOT_SIGNS ? DOT_SIGNS_ZERO : DOT_ZERO;
  int64_t sum = step->acc[lane];
  for (int i = 0; i < DOT; i++) {
    int u = is_signed ? (int8_t)step->input[i] + 128 : step->input[i];
    sum += step->weights[lane][i] * (u - zero);
  }
  return sum;
}

/* How many lanes differ, by either form that may be asked for. */
static int wrong_lanes(const Step *step, bool is_signed, int form) {
  int32_t got[LANES];
  int wrong = 0;
  vint input = vdot_broadcast(step->input, is_signed), weights = vdot_load(step->weights);
  vint_store(got, vdot(vint_load(step->acc), input, weights, form));
  for (int lane = 0; lane < LANES; lane++) wrong += got[lane] != wanted(step, lane, is_signed, form);
  return wrong;
}

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* Every byte meets every weight, in every place. */
static void all_products_are_exact(void) {
  int wrong = 0;
  uint32_t random = 1;
  for (int place = 0; place < DOT; place++)
    for (int u = 0; u < 256; u++)
      for (int w = -128; w < 128; w += LANES) {
        Step step;
        for (int i = 0; i < DOT; i++) step.input[i] = (uint8_t)(next_random(&random) >> 24);
        step.input[place] = (uint8_t)u;
        for (int lane = 0; lane < LANES; lane++) {
          for (int i = 0; i < DOT; i++) step.weights[lane][i] = (int8_t)(next_random(&random) >> 24);
          step.weights[lane][place] = (int8_t)(w + lane);
          step.acc[lane] = (int32_t)next_random(&random) / 2;
        }
        wrong += wrong_lanes(&step, false, DOT_ANY) + wrong_lanes(&step, true, DOT_ANY);
      }
  tap_case(wrong == 0, "all_products_are_exact", "%d lanes wrong", wrong);
}

static void extremes_do_not_saturate(void) {
  static const uint8_t inputs[] = {0, 127, 128, 255};
  static const int8_t weights[] = {-128, -127, 1, 127};
  int wrong = 0;
  for (int x = 0; x < 256; x++)
    for (int w = 0; w < 256; w++) {
      Step step;
      for (int i = 0; i < DOT; i++) step.input[i] = inputs[x >> (2 * i) & 3];
      for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < DOT; i++) step.weights[lane][i] = weights[(w + lane) >> (2 * i) & 3];
        step.acc[lane] = lane % 2 ? INT32_MAX - 4 * 255 * 128 : INT32_MIN + 4 * 255 * 128;
      }
      wrong += wrong_lanes(&step, false, DOT_ANY) + wrong_lanes(&step, true, DOT_ANY);
    }
  tap_case(wrong == 0, "extremes_do_not_saturate", "%d lanes wrong", wrong);
}

static int positive(int x) { return x > 0 ? x : 0; }

/* All pairs of weights that the form takes, with the inputs that make the most of them. */
static void pairs_within_the_bound_are_exact(void) {
  static const uint8_t inputs[][DOT] = {{255, 255, 255, 255}, {255, 0, 0, 255}, {0, 255, 255, 0}, {1, 254, 128, 127}};
  int wrong = 0, lane = 0;
  Step step = {0};
  for (int a = -128; a < 128; a++)
    for (int b = -128; b < 128; b++) {
      if (positive(a) + positive(b) > 128 || positive(-a) + positive(-b) > 128) continue;
      const int8_t pairs[DOT] = {(int8_t)a, (int8_t)b, (int8_t)b, (int8_t)a};
      memcpy(step.weights[lane], pairs, DOT);
      lane = (lane + 1) % LANES;
      if (lane) continue;
      for (int x = 0; x < 4; x++) {
        memcpy(step.input, inputs[x], DOT);
        wrong += wrong_lanes(&step, false, DOT_PAIRS) + wrong_lanes(&step, true, DOT_PAIRS);
      }
    }
  tap_case(wrong == 0, "pairs_within_the_bound_are_exact", "%d lanes wrong", wrong);
}

/* Every byte meets every weight but -128 among the extreme ones, and all of these each other. */
static void signs_are_exact_without_the_least_weight(void) {
  static const uint8_t inputs[] = {0, 1, 128, 255};
  static const int8_t weights[] = {-127, 127, 0, -1};
  int wrong = 0;
  for (int u = 0; u < 256; u++)
    for (int x = 0; x < 64; x++)
      for (int w = -127; w < 128; w += LANES) {
        Step step = {.input = {(uint8_t)u}};
        for (int i = 1; i < DOT; i++) step.input[i] = inputs[x >> (2 * (i - 1)) & 3];
        for (int lane = 0; lane < LANES; lane++) {
          step.weights[lane][0] = (int8_t)(w + lane < 128 ? w + lane : 127);
          for (int i = 1; i < DOT; i++) step.weights[lane][i] = weights[(u + lane) >> (2 * (i - 1)) & 3];
          step.acc[lane] = lane % 2 ? INT32_MAX - 4 * 255 * 128 : INT32_MIN + 4 * 255 * 128;
        }
        wrong += wrong_lanes(&step, false, DOT_SIGNS) + wrong_lanes(&step, true, DOT_SIGNS);
      }
  tap_case(wrong == 0, "signs_are_exact_without_the_least_weight", "%d lanes wrong", wrong);
}

/* ---- integers and floats ---- */

static const int32_t integers[] = {0,     1,        -1,      2,        -2,        127,      128,  129,  -127,
                                   -128,  -129,     254,     255,      256,       257,      -255, -256, 32767,
                                   32768, -32768,   -32769,  65535,    999,       -999,     1000, 8191, 65536,
                                   99999, 16777216, 1 << 30, 16777217, INT32_MAX, INT32_MIN};
enum { N_INTEGERS = sizeof integers / sizeof *integers };

static int32_t between(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }

static int wrong_shifts(const int32_t *a) {
  int32_t once[LANES], often[LANES], half[LANES], sixteenth[LANES];
  int wrong = 0;
  vint_store(once, vint_shift(vint_load(a), 1));
  vint_store(often, vint_shift(vint_load(a), 6));
  vint_store(half, vint_shift_right(vint_load(a), 1));
  vint_store(sixteenth, vint_shift_right(vint_load(a), 4));
  for (int k = 0; k < LANES; k++) {
    wrong += (uint32_t)once[k] != (uint32_t)a[k] * 2 || (uint32_t)often[k] != (uint32_t)a[k] * 64;
    wrong += half[k] != (int32_t)floor(a[k] / 2.0) || sixteenth[k] != (int32_t)floor(a[k] / 16.0);
  }
  return wrong;
}

static void lanes_agree_with_plain_c(void) {
  int wrong = 0;
  for (int i = 0; i < N_INTEGERS; i++)
    for (int j = 0; j < N_INTEGERS; j++) {
      int32_t a[LANES], b[LANES], sum[LANES], difference[LANES], product[LANES], least[LANES], most[LANES];
      uint32_t total = 0;
      for (int k = 0; k < LANES; k++) a[k] = integers[(i + k) % N_INTEGERS], b[k] = integers[(j + 3 * k) % N_INTEGERS];
      vint va = vint_load(a), vb = vint_load(b);
      vint_store(sum, vint_add(va, vb));
      vint_store(difference, vint_sub(va, vb));
      vint_store(product, vint_mul(va, vb));
      vint_store(least, vint_min(va, vb));
      vint_store(most, vint_max(va, vb));
      wrong += wrong_shifts(a);
      for (int k = 0; k < LANES; k++) {
        uint32_t x = (uint32_t)a[k], y = (uint32_t)b[k];
        wrong += (uint32_t)sum[k] != x + y || (uint32_t)difference[k] != x - y || (uint32_t)product[k] != x * y;
        wrong += least[k] != (a[k] < b[k] ? a[k] : b[k]) || most[k] != (a[k] > b[k] ? a[k] : b[k]);
        total += x;
      }
      wrong += (uint32_t)vint_hsum(va) != total;
    }
  int32_t seven[LANES], zero[LANES];
  vint_store(seven, vint_set(-7));
  vint_store(zero, vint_zero());
  for (int k = 0; k < LANES; k++) wrong += seven[k] != -7 || zero[k] != 0;
  tap_case(wrong == 0, "integers_agree_with_plain_c", "%d wrong", wrong);
}

static void conversions_round_to_nearest(void) {
  static const float floats[] = {0,          -0.0f,       0.5f,        1.5f,         2.5f,    -0.5f,   -1.5f,
                                 -2.5f,      0.49999997f, 127.5f,      128.5f,       254.5f,  255.5f,  1e6f,
                                 8388607.5f, -8388607.5f, 3e-40f,      -128.5f,      -127.5f, 0.9999f, 1e-30f,
                                 16777215,   2147483e3f,  -2147483e3f, 2147483520.0f};
  enum { N_FLOATS = sizeof floats / sizeof *floats };
  int wrong = 0;
  for (int i = 0; i < N_FLOATS; i++) {
    float x[LANES];
    int32_t rounded[LANES];
    for (int k = 0; k < LANES; k++) x[k] = floats[(i + k) % N_FLOATS];
    vint_store(rounded, vround_to_int(vload(x)));
    for (int k = 0; k < LANES; k++) wrong += rounded[k] != (int32_t)nearbyintf(x[k]);
  }
  for (int i = 0; i < N_INTEGERS; i++) {
    float converted[LANES];
    vstore(converted, vint_to_float(vint_set(integers[i])));
    for (int k = 0; k < LANES; k++) wrong += converted[k] != (float)integers[i];
  }
  tap_case(wrong == 0, "conversions_round_to_nearest", "%d wrong", wrong);
}

/* A page between two pages that cannot be read. */
static uint8_t *guarded_page(size_t *bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *memory = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_READ | PROT_WRITE)) return NULL;
  *bytes = page;
  return memory + page;
}

/* ---- two numbers of 16 bits to a lane ---- */

static const int16_t shorts[] = {0,    1,    -1,    2,     255,   -255,   256,    1020,  -1020,
                                 4096, 8160, 17340, 18432, 32767, -32767, -32768, 12345, -3};
enum { N_SHORTS = sizeof shorts / sizeof *shorts, PAIRS = 2 * LANES };

static int wrong_pairs(const int16_t *a, const int16_t *b, const int32_t *acc) {
  int16_t sum[PAIRS], difference[PAIRS], shifted[PAIRS], first[PAIRS] = {0};
  int32_t dot[LANES];
  int wrong = 0;
  vint va = vint_load(a), vb = vint_load(b);
  vint_store(sum, vpair_add(va, vb));
  vint_store(difference, vpair_sub(va, vb));
  vint_store(shifted, vpair_shift(va, 3));
  vpair_store_first(first, va);
  vint_store(dot, vpair_dot(vint_load(acc), va, vb));
  for (int i = 0; i < PAIRS; i++) {
    wrong += sum[i] != (int16_t)(a[i] + b[i]) || difference[i] != (int16_t)(a[i] - b[i]);
    wrong += shifted[i] != (int16_t)(a[i] * 8) || first[i] != (i < LANES ? a[i] : 0);
  }
  for (int i = 0; i < LANES; i++) {
    int64_t products = (int64_t)a[2 * i] * b[2 * i] + (int64_t)a[2 * i + 1] * b[2 * i + 1];
    wrong += (uint32_t)dot[i] != (uint32_t)(acc[i] + products);
  }
  return wrong;
}

/* Sums in i32 wrap. Four numbers of -2^15 in a lane are left out, as the vocabulary says. */
static void pairs_agree_with_plain_c(void) {
  int wrong = 0;
  for (int i = 0; i < N_SHORTS; i++)
    for (int j = 0; j < N_SHORTS; j++) {
      int16_t a[PAIRS], b[PAIRS];
      int32_t acc[LANES];
      for (int k = 0; k < PAIRS; k++) a[k] = shorts[(i + k) % N_SHORTS], b[k] = shorts[(j + 5 * k) % N_SHORTS];
      for (int k = 0; k < LANES; k++) acc[k] = integers[(i + j + k) % N_INTEGERS];
      wrong += wrong_pairs(a, b, acc);
    }
  tap_case(wrong == 0, "pairs_agree_with_plain_c", "%d wrong", wrong);
}

/* From memory of exactly their size. */
static void bytes_become_pairs(uint8_t *page, size_t bytes) {
  int wrong = page == NULL;
  for (int turn = 0; turn < 16 && page; turn++) {
    uint8_t *p = page, *q = page + bytes - LANES, *w = page + bytes - PAIRS;
    int16_t unsigned_ones[PAIRS], signed_ones[PAIRS], weights[PAIRS];
    for (int i = 0; i < PAIRS; i++) w[i] = (uint8_t)(17 * i + 31 * turn + 128 * (i % 2));
    for (int i = 0; i < LANES; i++) p[i] = (uint8_t)(255 - 13 * i - 16 * turn);
    vint_store(unsigned_ones, vpair_inputs(p, q, false));
    vint_store(signed_ones, vpair_inputs(p, q, true));
    vint_store(weights, vpair_weights(w));
    for (int i = 0; i < PAIRS; i++) {
      uint8_t byte = i < LANES ? p[i] : q[i - LANES];
      wrong += unsigned_ones[i] != byte || signed_ones[i] != (int8_t)byte + 128 || weights[i] != (int8_t)w[i];
    }
  }
  tap_case(wrong == 0, "bytes_become_pairs", "%d wrong", wrong);
}

/* ---- memory ---- */

/* `p` has exactly n bytes; the others must not change. */
static int moves_bytes(uint8_t *p, int n, int first) {
  int32_t x[LANES], back[LANES];
  int wrong = 0;
  for (int k = 0; k < LANES; k++) x[k] = integers[(first + k) % N_INTEGERS];
  vint_store_u8_n(p, vint_load(x), n);
  if (n == LANES) vint_store_u8(p, vint_load(x));
  vint_store(back, n == LANES ? vint_load_u8(p) : vint_load_u8_n(p, n));
  for (int k = 0; k < LANES; k++) wrong += back[k] != (k < n ? between(x[k], 0, 255) : 0);
  vint_store_s8_n(p, vint_load(x), n);
  if (n == LANES) vint_store_s8(p, vint_load(x));
  vint_store(back, n == LANES ? vint_load_s8(p) : vint_load_s8_n(p, n));
  for (int k = 0; k < LANES; k++) wrong += back[k] != (k < n ? between(x[k], -128, 127) : 0);
  return wrong;
}

static int moves_words(uint8_t *p, int n) {
  int32_t x[LANES], back[LANES];
  int wrong = 0;
  for (int k = 0; k < LANES; k++) x[k] = integers[N_INTEGERS - 1 - k];
  vint_store_n(p, vint_load(x), n);
  vint_store(back, vint_load_n(p, n));
  for (int k = 0; k < LANES; k++) wrong += back[k] != (k < n ? x[k] : 0);
  return wrong;
}

static void parts_touch_nothing_beyond(void) {
  size_t bytes = 0;
  uint8_t *page = guarded_page(&bytes);
  int wrong = page == NULL;
  for (int n = 0; n <= LANES && page; n++)
    for (int first = 0; first < N_INTEGERS; first++) {
      memset(page, 0x5a, bytes);
      wrong += moves_bytes(page, n, first) + moves_bytes(page + bytes - n, n, first);
      for (size_t i = (size_t)n; i < bytes - (size_t)n; i++) wrong += page[i] != 0x5a;
      memset(page, 0x5a, bytes);
      size_t words = 4 * (size_t)n;
      wrong += moves_words(page, n) + moves_words(page + bytes - words, n);
      for (size_t i = words; i < bytes - words; i++) wrong += page[i] != 0x5a;
    }
  tap_case(wrong == 0, "parts_touch_nothing_beyond", "%d wrong, guard pages on both sides, 0 to %d lanes", wrong,
           LANES);
}

static void four_vectors_follow_each_other(void) {
  size_t bytes = 0;
  uint8_t *page = guarded_page(&bytes), *at = page + bytes - 4 * LANES;
  int wrong = page == NULL;
  for (int first = 0; first < N_INTEGERS && page; first++) {
    int32_t x[4 * LANES];
    for (int k = 0; k < 4 * LANES; k++) x[k] = integers[(first + 3 * k) % N_INTEGERS];
    const vint v[] = {vint_load(x), vint_load(x + LANES), vint_load(x + 2 * LANES), vint_load(x + 3 * LANES)};
    vint_store4_u8(at, v[0], v[1], v[2], v[3]);
    for (int k = 0; k < 4 * LANES; k++) wrong += at[k] != between(x[k], 0, 255);
    vint_store4_s8(at, v[0], v[1], v[2], v[3]);
    for (int k = 0; k < 4 * LANES; k++) wrong += (int8_t)at[k] != between(x[k], -128, 127);
  }
  tap_case(wrong == 0, "four_vectors_follow_each_other", "%d wrong", wrong);
}

/* The weights of two steps, as vtile_dot_packed() takes them. */
static void pack_tile(const Step steps[2], int8_t packed[2 * DOT * LANES]) {
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 2; i++) memcpy(packed + (2 * lane + i) * DOT, steps[i].weights[lane], DOT);
}

/* Inputs of two rows, each of two words of the four: where any words lie, at one distance, beside each other, and row
 * by row. The words are `distance` bytes apart, and the last ones end with a page. */
static vtile_input inputs_apart(const uint8_t *first, const uint8_t *next, int distance, bool is_signed) {
  if (distance == 2 * DOT && next == first + DOT) return vtile_inputs_packed(first, is_signed);
  if (distance == DOT) return vtile_inputs_beside(first, next, is_signed);
  if (distance % 3 == 0) return vtile_inputs_apart(first, next, first + distance, next + distance, is_signed);
  return vtile_inputs_between(first, next, distance, is_signed);
}

/* Rows of a tile that differ from dot products; it begins with other sums. */
static int wrong_in_packed_tile(const uint8_t *first, const uint8_t *next, int distance, const Step steps[2],
                                bool is_signed) {
  int wrong = 0;
  int8_t packed[2 * DOT * LANES];
  int32_t begin[2][LANES];
  for (int i = 0; i < 2 * LANES; i++) begin[i / LANES][i % LANES] = 7919 * (i + 1) - 100000;
  pack_tile(steps, packed);
  vtile tile = vtile_of_rows(vint_load(begin[0]), vint_load(begin[1]));
  tile = vtile_dot_packed(tile, inputs_apart(first, next, distance, is_signed), vdot_load(packed),
                          vdot_load(packed + DOT * LANES));
  for (int row = 0; row < 2; row++) {
    Step own[2] = {steps[0], steps[1]};
    int32_t got[LANES];
    memcpy(own[0].input, first + row * distance, DOT);
    memcpy(own[1].input, next + row * distance, DOT);
    vint_store(got, vtile_row(tile, row));
    for (int lane = 0; lane < LANES; lane++)
      wrong += got[lane] - begin[row][lane] !=
               wanted(&own[0], lane, is_signed, DOT_ANY) + wanted(&own[1], lane, is_signed, DOT_ANY);
  }
  return wrong;
}

/* Sums of both rows of a tile that differ from those of dot products: of 2 * DOT bytes each, which end with a page. */
static int wrong_in_tile(const uint8_t *rows[2], const Step steps[2], bool is_signed) {
  int wrong = 0;
  vtile tile = vtile_zero();
  for (int turn = 0; turn < 2; turn++)
    tile = vtile_dot(tile, vtile_inputs(rows[0], rows[1], is_signed), vdot_load(steps[0].weights),
                     vdot_load(steps[1].weights));
  for (int row = 0; row < 2; row++) {
    Step own[2] = {steps[0], steps[1]};
    int32_t got[LANES];
    for (int i = 0; i < 2; i++) memcpy(own[i].input, rows[row] + i * DOT, DOT);
    vint_store(got, vtile_row(tile, row));
    for (int lane = 0; lane < LANES; lane++)
      wrong += got[lane] != 2 * (wanted(&own[0], lane, is_signed, DOT_ANY) + wanted(&own[1], lane, is_signed, DOT_ANY));
  }
  return wrong;
}

static void tiles_are_rows_of_dot_products(void) {
  size_t bytes = 0;
  uint8_t *page = guarded_page(&bytes);
  uint32_t random = 7;
  int wrong = page == NULL;
  for (int trial = 0; trial < 2000 && page; trial++) {
    Step steps[2] = {{{0}, {{0}}, {0}}, {{0}, {{0}}, {0}}};
    const uint8_t *rows[2] = {page, page + bytes - 2 * DOT};
    for (int i = 0; i < 2 * DOT; i++) {
      page[i] = (uint8_t)(trial % 2 ? next_random(&random) >> 24 : (next_random(&random) >> 31) * 255);
      page[bytes - 2 * DOT + (size_t)i] = (uint8_t)(next_random(&random) >> 24);
    }
    for (int i = 0; i < 2 * LANES * DOT; i++) {
      int8_t any = (int8_t)(next_random(&random) >> 24), extreme = next_random(&random) >> 31 ? 127 : -128;
      steps[i / LANES / DOT].weights[i / DOT % LANES][i % DOT] = trial % 3 ? any : extreme;
    }
    wrong += wrong_in_tile(rows, steps, false) + wrong_in_tile(rows, steps, true);
    for (int distance = DOT; distance <= 6 * DOT; distance += DOT) {
      const uint8_t *next = page + bytes - DOT - distance;
      for (int i = 0; i < 8 * DOT; i++) page[i] = (uint8_t)(next_random(&random) >> 24);
      wrong += wrong_in_packed_tile(page, next, distance, steps, false);
      wrong += wrong_in_packed_tile(page, next, distance, steps, true);
    }
    const uint8_t *last = page + bytes - 4 * DOT;
    wrong += wrong_in_packed_tile(last, last + DOT, 2 * DOT, steps, false);
    wrong += wrong_in_packed_tile(last, last + DOT, 2 * DOT, steps, true);
  }
  tap_case(wrong == 0, "tiles_are_rows_of_dot_products", "%d wrong", wrong);
}

/* The weights behind the end are zero. */
static void inputs_end_where_they_end(void) {
  size_t bytes = 0;
  uint8_t *page = guarded_page(&bytes);
  int wrong = page == NULL;
  for (int n = 1; n <= DOT && page; n++)
    for (int is_signed = 0; is_signed < 2; is_signed++) {
      Step step = {0};
      for (int i = 0; i < n; i++) page[bytes - (size_t)n + (size_t)i] = step.input[i] = (uint8_t)(200 + 13 * i);
      for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < n; i++) step.weights[lane][i] = (int8_t)(lane - 7 * i - 100);
      int32_t got[LANES];
      vint input = vdot_broadcast_n(page + bytes - n, n, is_signed);
      vint_store(got, vdot(vint_zero(), input, vdot_load(step.weights), DOT_ANY));
      for (int lane = 0; lane < LANES; lane++) wrong += got[lane] != wanted(&step, lane, is_signed, DOT_ANY);
    }
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    const Step step = {.weights = {{127, -128, 1, 100}}};
    int32_t got[LANES];
    vint_store(got,
               vdot(vint_zero(), vdot_broadcast(vdot_nothing(is_signed), is_signed), vdot_load(step.weights), DOT_ANY));
    wrong += got[0] != 0;
  }
  tap_case(wrong == 0, "inputs_end_where_they_end", "%d wrong", wrong);
}

int main(void) {
  skip_unless_isa_runs();
  all_products_are_exact();
  extremes_do_not_saturate();
  pairs_within_the_bound_are_exact();
  signs_are_exact_without_the_least_weight();
  lanes_agree_with_plain_c();
  conversions_round_to_nearest();
  pairs_agree_with_plain_c();
  size_t bytes = 0;
  uint8_t *page = guarded_page(&bytes);
  bytes_become_pairs(page, bytes);
  parts_touch_nothing_beyond();
  four_vectors_follow_each_other();
  inputs_end_where_they_end();
  tiles_are_rows_of_dot_products();
  return tap_end();
}
