/* SPDX-License-Identifier: MIT */
/*
 * Exporters write a network's own LSTM, GRU or RNN cell as the products, sums and activations it consists of, and a
 * loop over time as one copy a step. Such cells become RNN, GRU and LSTM ops again, one for all steps: its kernels keep
 * one copy of the weights, and multiply all of X at once.
 *
 *   strip         some columns of a value, led back to where they are made: no Split or Concat hides a gate
 *   pattern       formulas over strips
 *   affine        a gate's sum of products
 *   match_cell    the cells' formulas: what h', c' and the gates are
 *   cell_weights  W, R and B of a cell; are two cells the same?
 *   chains        which cells follow one another
 *   roll          a chain of cells becomes an op
 *   merge_stacks  the results of its steps, put together by the graph, are its Y
 */
#include "passes.h"
#include "reroll/roll.h"

/* needs: simplify; no epilogues yet. keeps: types and shapes, the names of inputs and outputs; results but for
 * rounding; graphs without a cell. breaks: nothing. Afterwards every cell that a recurrent op can compute is one. A
 * cell with anything else in it, whose inner values are read elsewhere, or whose weights are not constant stays as it
 * is. */
void reroll_rnn(Graph *graph) {
  const Chains chains = find_chains(graph);
  if (chains.n == 0) return;
  roll_chains(graph, &chains);
  merge_stacks(graph);
  sort_nodes(graph);
  graph_remove_dead(graph);
  drop_identities(graph);
  graph_remove_dead(graph);
}
