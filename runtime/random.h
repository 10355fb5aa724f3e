/* SPDX-License-Identifier: MIT */
/*
 * Random numbers by counters: Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as
 * 1, 2, 3, SC 2011. A number is a function of the key, the draw and its place in the tensor, so it does not depend on
 * who computes it. What is made of it is plain arithmetic of doubles, each operation rounded by itself: the same bits
 * on every CPU.
 */
#ifndef RNNCC_RANDOM_H
#define RNNCC_RANDOM_H

#include <stdint.h>

/* No multiply-adds: CPUs that have them would round once where others round twice. gcc makes none in ISO C. */
#ifdef __clang__
#define RANDOM_EACH_ROUNDED _Pragma("STDC FP_CONTRACT OFF")
#else
#define RANDOM_EACH_ROUNDED
#endif

enum { RANDOM_WORDS = 4, RANDOM_ROUNDS = 10 };

/* word: the counter, then the random words. */
static inline void random_words(uint64_t key, uint32_t word[RANDOM_WORDS]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#ifdef __clang__
#pragma clang loop unroll(full)
#endif
  for (int round = 0; round < RANDOM_ROUNDS; round++) {
    uint64_t a = (uint64_t)word[0] * 0xd2511f53u, b = (uint64_t)word[2] * 0xcd9e8d57u;
    word[0] = (uint32_t)(b >> 32) ^ word[1] ^ k0;
    word[2] = (uint32_t)(a >> 32) ^ word[3] ^ k1;
    word[1] = (uint32_t)b;
    word[3] = (uint32_t)a;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
}

/* The words of one block of a tensor. */
static inline void random_block(uint64_t key, uint64_t draw, uint64_t block, uint32_t word[RANDOM_WORDS]) {
  word[0] = (uint32_t)block;
  word[1] = (uint32_t)(block >> 32);
  word[2] = (uint32_t)draw;
  word[3] = (uint32_t)(draw >> 32);
  random_words(key, word);
}

typedef union RandomBits {
  double f;
  uint64_t i;
} RandomBits;

/* In [0, 1): of 24 bits, and of 53. */
static inline double random_unit24(uint32_t word) { return (double)(int32_t)(word >> 8) * 0x1p-24; }
static inline double random_unit53(uint32_t low, uint32_t high) {
  double above = (double)(int32_t)(high >> 5), below = (double)(int32_t)(low >> 6); /* 27 and 26 bits */
  return (above * 0x1p26 + below) * 0x1p-53;
}

/* log u of a normal u in (0, 1], with an error of some units in the last place: 2 atanh((m - 1) / (m + 1)) of its
 * mantissa m. */
static inline double random_log(double u) {
  RANDOM_EACH_ROUNDED
  RandomBits bits = {.f = u}, mantissa, exponent;
  mantissa.i = (bits.i & 0xfffffffffffff) | UINT64_C(0x3ff0000000000000);
  exponent.i = bits.i >> 52 | UINT64_C(0x4330000000000000); /* 2^52 + the biased exponent */
  double m = mantissa.f, k = exponent.f - (0x1p52 + 1023);
  int upper = m > 0x1.6a09e667f3bcdp+0;
  m = upper ? m * 0.5 : m;
  k = upper ? k + 1 : k;
  double s = (m - 1) / (m + 1), z = s * s, p = 1.0 / 21;
  p = p * z + 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  return k * 0x1.62e42fefa39efp-1 + 2 * (s + s * z * p);
}

/* Sine and cosine of x in [-pi/4, pi/4], by their series. */
static inline double random_sine(double x) {
  RANDOM_EACH_ROUNDED
  double z = x * x, p = -1.0 / 1307674368000;
  p = p * z + 1.0 / 6227020800;
  p = p * z - 1.0 / 39916800;
  p = p * z + 1.0 / 362880;
  p = p * z - 1.0 / 5040;
  p = p * z + 1.0 / 120;
  p = p * z - 1.0 / 6;
  return x + x * z * p;
}

static inline double random_cosine(double x) {
  RANDOM_EACH_ROUNDED
  double z = x * x, p = 1.0 / 20922789888000;
  p = p * z - 1.0 / 87178291200;
  p = p * z + 1.0 / 479001600;
  p = p * z - 1.0 / 3628800;
  p = p * z + 1.0 / 40320;
  p = p * z - 1.0 / 720;
  p = p * z + 1.0 / 24;
  return 1 - z * 0.5 + z * z * p;
}

/* Two normal numbers: Box and Muller, A note on the generation of random normal deviates, 1958. unit: in (0, 1];
 * eighths: of a turn, an integer multiple of 2^-29 in [-1, 1], besides `quarter` quarters. */
static inline void random_normals(double unit, double eighths, uint32_t quarter, double normal[2]) {
  RANDOM_EACH_ROUNDED
  double radius = __builtin_sqrt(-2 * random_log(unit)), angle = eighths * 0x1.921fb54442d18p-1;
  double sine = random_sine(angle), cosine = random_cosine(angle);
  double x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine;
  normal[0] = radius * (quarter & 2 ? -x : x);
  normal[1] = radius * (quarter & 2 ? -y : y);
}

/* The words' 32 bits are the turn; `low` has more bits of it. */
static inline void random_normals_at(double unit, uint32_t turn, double low, double normal[2]) {
  uint32_t quarter = (turn + 0x20000000u) >> 30;
  random_normals(unit, ((double)(int32_t)(turn - (quarter << 30)) + low) * 0x1p-29, quarter, normal);
}

/* ---- the numbers of a block: four of 24 random bits, or two of 53 ---- */

static inline void random_uniform_floats(const uint32_t word[RANDOM_WORDS], double number[4]) {
  for (int i = 0; i < 4; i++) number[i] = random_unit24(word[i]);
}

static inline void random_uniform_doubles(const uint32_t word[RANDOM_WORDS], double number[2]) {
  for (int i = 0; i < 2; i++) number[i] = random_unit53(word[2 * i], word[2 * i + 1]);
}

static inline void random_normal_floats(const uint32_t word[RANDOM_WORDS], double number[4]) {
  for (int i = 0; i < 2; i++) {
    double unit = ((double)(int32_t)(word[2 * i] >> 1) + 1) * 0x1p-31;
    random_normals_at(unit, word[2 * i + 1], 0, number + 2 * i);
  }
}

static inline void random_normal_doubles(const uint32_t word[RANDOM_WORDS], double number[2]) {
  random_normals_at(random_unit53(word[0], word[1]) + 0x1p-53, word[3], (double)(int32_t)(word[2] >> 1) * 0x1p-31,
                    number);
}

/* first + step * number */
static inline double random_scaled(double first, double step, double number) {
  RANDOM_EACH_ROUNDED
  double product = step * number;
  return first + product;
}

#endif
