/* SPDX-License-Identifier: MIT */
/* The sizes that kernels get: panels as wide as they can be without more padding, and tiles that fill the registers of
 * each target and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/panels.h"
#include "kernels/recurrent/cell.h"
#include "machine/targets.h"
#include "support/numbers.h"

enum { LANES = 8, MOST_COLUMNS = 300, WIDEST = 6, MAX_ROWS = 8, MAX_PARTS = 8 };

/* Vectors that panels have beyond the columns'. */
static int64_t padding(int64_t used, int vectors) { return round_up(used, vectors) - used; }

static void a_panel_is_the_widest_of_those_with_the_least_padding(void **state) {
  (void)state;
  for (int64_t n = 1; n <= MOST_COLUMNS; n++)
    for (int most = 1; most <= WIDEST; most++) {
      int64_t used = ceil_div(n, LANES);
      int best = panels_best_vectors(n, LANES, most), least = used > 1 && most > 1 ? 2 : 1;
      assert_in_range(best, least, min_int(used, most));
      for (int other = least; other <= min_int(used, most); other++) {
        assert_true(padding(used, best) <= padding(used, other));
        if (other > best) assert_true(padding(used, best) < padding(used, other));
      }
    }
}

/* Of a product of so many rows and vectors: sums, the panel's vectors, elements. */
static int registers_of(const Target *target, int rows, int vectors) {
  if (target->lane_operands) return rows * vectors + rows + 2;
  return rows * vectors + vectors + 1;
}

static void the_rows_of_a_tile_fill_the_registers(void **state) {
  (void)state;
  const Target *target;
  for (int i = 0; (target = target_at(i)); i++)
    for (int vectors = 1; vectors <= WIDEST; vectors++) {
      int registers = target->vector_registers - (target->two_operands && vectors > 1);
      int rows = register_rows(target, vectors);
      assert_in_range(rows, 1, MAX_ROWS);
      if (rows > 1) assert_true(registers_of(target, rows, vectors) <= registers);
      if (rows < MAX_ROWS) assert_true(registers_of(target, rows + 1, vectors) > registers);
    }
}

/* Of rows in pairs: each pair's sums and its input, and two of weights. */
static void the_pairs_of_rows_of_a_tile_fill_the_registers(void **state) {
  (void)state;
  const Target *target;
  for (int i = 0; (target = target_at(i)); i++)
    for (int vectors = 1; vectors <= WIDEST; vectors++) {
      int rows = register_rows_in_tiles(target, vectors), pairs = rows / 2, each = 2 * vectors + 1;
      assert_int_equal(rows, 2 * pairs);
      assert_in_range(pairs, 1, MAX_ROWS / 2);
      if (pairs > 1) assert_true(pairs * each + 2 <= target->vector_registers);
      if (pairs < MAX_ROWS / 2) assert_true((pairs + 1) * each + 2 > target->vector_registers);
    }
}

/* A single row has several sums of each element, so that additions do not wait for each other. */
static void the_partial_sums_of_a_row_fill_half_the_registers(void **state) {
  (void)state;
  const Target *target;
  for (int i = 0; (target = target_at(i)); i++)
    for (int vectors = 1; vectors <= target->vector_registers / 2; vectors++) {
      int parts = cell_partial_sums(target, vectors);
      assert_in_range(parts, 1, MAX_PARTS);
      assert_int_equal(parts & (parts - 1), 0);
      assert_true(parts == 1 || 4 * parts * vectors <= 3 * max_int(16, target->vector_registers));
      assert_true(parts == MAX_PARTS || 4 * parts * vectors > target->vector_registers);
    }
}

/* One sample's panel has more vectors than a batch's where registers are few, without padding. Several workers have
 * even shares of its panels, or one has the only panel. */
static void a_single_rows_panel_is_wide_where_registers_are_few(void **state) {
  (void)state;
  enum { MOST_UNITS = 256 };
  const Target *target;
  for (int i = 0; (target = target_at(i)); i++)
    for (Cell cell = CELL_RNN; cell <= CELL_LSTM; cell++)
      for (int64_t hidden = 1; hidden <= MOST_UNITS; hidden++)
        for (int workers = 1; workers <= 2; workers++) {
          int usual = cell_unit_vectors(cell, target, hidden);
          int wide = cell_unit_vectors_alone(cell, target, hidden, workers);
          int64_t all = ceil_div(hidden, target->lanes);
          assert_int_equal(all % wide, 0);
          if (!target_has_few_registers(target) || all % (2 * usual)) {
            assert_int_equal(wide, usual);
          } else if (workers == 1 || all == 2 * usual || all % (4 * usual) == 0) {
            assert_true(wide >= 2 * usual);
          } else {
            assert_int_equal(wide, usual);
          }
          assert_true(wide * cell_info(cell)->product_gates <= MAX_ROWS);
        }
}

/* Of rows whose number is known, as even as can be, in a multiple of `ways` blocks where there are so many rows. */
static void blocks_of_rows_are_balanced(void **state) {
  (void)state;
  enum { MOST_WAYS = 4, MOST_M = 60 };
  Arena *arena = arena_new();
  DimTable *table = dim_table_new(arena);
  for (int most = 1; most <= MAX_ROWS; most++)
    for (int ways = 1; ways <= MOST_WAYS; ways++)
      for (int m = 1; m <= MOST_M; m++) {
        BlockRows rows = block_rows(most, dim_const(table, m), ways);
        assert_in_range(rows.most, 1, min_int(most, m));
        assert_in_range(rows.least, max_int(1, rows.most - 1), rows.most);
        int64_t fewest = ceil_div(m, rows.most), blocks = round_up(fewest, ways);
        assert_true(blocks * rows.least <= m || blocks > m);
      }
  const Dim *any = dim_symbol(table, dim_symbol_add(table, "M", (DimBounds){1, 50, 400, 1}));
  BlockRows rows = block_rows(MAX_ROWS, any, 1);
  assert_int_equal(rows.least, 1);
  assert_int_equal(rows.most, MAX_ROWS);
  arena_free(arena);
}

/* templates/simd/int8_neon.h has SIMD_TILES, int8_sve.h has not. */
static void two_rows_of_bytes_are_multiplied_where_the_vocabulary_can(void **state) {
  (void)state;
  Arena *arena = arena_new();
  assert_true(target_named(arena, "aarch64-linux-gnu+i8mm")->has_tiles);
  assert_true(target_named(arena, "aarch64-linux-musl+dotprod+i8mm")->has_tiles);
  assert_false(target_named(arena, "aarch64-linux-gnu+dotprod")->has_tiles);
  assert_false(target_named(arena, "aarch64-linux-gnu+sve256+i8mm")->has_tiles);
  arena_free(arena);
}

/* templates/simd/bf16_neon.h, bf16_avx512.h. */
static void rows_of_bf16_are_multiplied_where_the_vocabulary_can(void **state) {
  (void)state;
  Arena *arena = arena_new();
  assert_true(target_named(arena, "aarch64-linux-gnu+bf16")->has_bf16_tiles);
  assert_true(target_named(arena, "aarch64-linux-musl+bf16+i8mm")->has_bf16_tiles);
  assert_false(target_named(arena, "aarch64-linux-gnu+dotprod+i8mm")->has_bf16_tiles);
  assert_false(target_named(arena, "aarch64-linux-gnu+sve256+bf16")->has_bf16_tiles);
  assert_true(target_named(arena, "x86-64-v4+bf16")->has_bf16_tiles);
  assert_true(target_named(arena, "x86-64-v4-linux-musl+amx+bf16+vnni")->has_bf16_tiles);
  assert_false(target_named(arena, "x86-64-v4+vnni+amx")->has_bf16_tiles);
  assert_null(target_named(arena, "x86-64-v3+bf16"));
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_panel_is_the_widest_of_those_with_the_least_padding),
      cmocka_unit_test(the_rows_of_a_tile_fill_the_registers),
      cmocka_unit_test(the_pairs_of_rows_of_a_tile_fill_the_registers),
      cmocka_unit_test(a_single_rows_panel_is_wide_where_registers_are_few),
      cmocka_unit_test(blocks_of_rows_are_balanced),
      cmocka_unit_test(the_partial_sums_of_a_row_fill_half_the_registers),
      cmocka_unit_test(two_rows_of_bytes_are_multiplied_where_the_vocabulary_can),
      cmocka_unit_test(rows_of_bf16_are_multiplied_where_the_vocabulary_can),
  };
  return cmocka_run_group_tests_name("kernel_sizes", tests, NULL, NULL);
}
