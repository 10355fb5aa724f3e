/* SPDX-License-Identifier: MIT */
/* The second half of NonMaxSuppression: writes [image, class, box] of all selected boxes. */
#include "kernel.h"
#include "knobs.h"

/* rows: [batch][classes], `row_numbers` numbers each. y: [*measured][3]. */
static void nms_collect(const Team *team, const int32_t *rows, int64_t *y, int64_t *measured, int64_t row_numbers,
                        int64_t batch, int64_t classes, int64_t n) {
  int64_t item, end, at = 0, found = 0;
  team_share(team, batch * classes, &item, &end);
  for (int64_t i = 0; i < batch * classes; i++) {
    if (i == item) at = found;
    found += rows[i * row_numbers];
  }
  if (team->rank == 0) *measured = found;
  for (; item < end; item++) {
    const int32_t *row = rows + item * row_numbers;
    for (int64_t k = 0; k < row[0]; k++, at++) {
      y[3 * at] = item / classes;
      y[3 * at + 1] = item % classes;
      y[3 * at + 2] = row[NMS_HEAD + 2 * (n + 1) + k];
    }
  }
}
