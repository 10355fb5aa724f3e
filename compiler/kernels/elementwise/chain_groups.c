/* SPDX-License-Identifier: MIT */
/*
 * Nodes are visited in order; each becomes a group, which is merged with the groups of its inputs.
 *
 * A value's taint is the set of groups that it depends on. Two groups may be merged unless an input from outside both
 * depends on one of them. The number of open groups is limited so that a set fits in a word; when there is no room, all
 * are closed and a new epoch begins. Nodes read earlier values only, so groups of different epochs form no circle.
 */
#include "kernels/elementwise/chain_groups.h"

#include <string.h>

#include "ir/family.h"
#include "kernels/elementwise/byte_table.h"
#include "kernels/elementwise/elementwise.h"
#include "shapes/shape.h"
#include "support/list.h"

enum { MAX_OPEN = 64, NO_GROUP = -1 };
typedef uint64_t GroupSet;

/* A value's group and taint in its epoch. */
typedef struct Trace {
  int epoch, group; /* the group that makes it, or NO_GROUP */
  GroupSet taint;   /* of a value that none makes */
} Trace;

typedef struct Finder {
  Graph *graph;
  Trace *traces; /* by value id */
  bool blocks;   /* some node seeks blocked tensors: nodes that run blocked are not merged with nodes that do not */
  const bool *forward; /* by node id, see graph_forward_nodes() */
  UseList uses;
  bool *apart; /* by value id: bytes that a table reads or makes (byte_table.h), where its chain ends */
  int epoch, n_open;
  ChainGroup *open[MAX_OPEN];
  int merged_into[MAX_OPEN]; /* itself, while the group stands */
  ChainGroups found;
} Finder;

static GroupSet bit(int group) { return (GroupSet)1 << group; }

static int standing(const Finder *finder, int group) {
  while (finder->merged_into[group] != group) group = finder->merged_into[group];
  return group;
}

/* The group that makes the value, or NO_GROUP. */
static int maker(const Finder *finder, const Value *value) {
  const Trace *trace = &finder->traces[value->id];
  return trace->epoch == finder->epoch && trace->group != NO_GROUP ? standing(finder, trace->group) : NO_GROUP;
}

static GroupSet taint_of(const Finder *finder, const Value *value) {
  const Trace *trace = &finder->traces[value->id];
  if (trace->epoch != finder->epoch) return 0;
  return trace->group == NO_GROUP ? trace->taint : bit(trace->group);
}

static GroupSet taint_of_inputs(const Finder *finder, const ChainGroup *group) {
  GroupSet taint = 0;
  for (int k = 0; k < group->n_inputs; k++) taint |= taint_of(finder, group->inputs[k]);
  return taint;
}

/* The open groups of the set, and those that they depend on. */
static GroupSet closure(const Finder *finder, GroupSet set) {
  GroupSet seen = 0;
  while (set) {
    int group = standing(finder, __builtin_ctzll(set));
    set &= set - 1;
    if (seen & bit(group)) continue;
    seen |= bit(group);
    set |= taint_of_inputs(finder, finder->open[group]);
  }
  return seen;
}

/* ---- inputs of a node ---- */

static void add_input(ChainGroup *group, Value *value, bool *fits) {
  if (!value || elementwise_is_literal(value)) return;
  for (int k = 0; k < group->n_inputs; k++)
    if (group->inputs[k] == value) return;
  if (group->n_inputs == MAX_CHAIN_OPERANDS)
    *fits = false;
  else
    group->inputs[group->n_inputs++] = value;
}

bool may_chain(const Node *node) {
  if (node->op->family != &family_elementwise || !elementwise_chains(node)) return false;
  for (int k = 0; k < node->n_epilogue; k++)
    if (!elementwise_chains(node->epilogue[k])) return false;
  return 1 + node->n_epilogue <= MAX_CHAIN_MEMBERS;
}

bool is_square(const Node *node) {
  return is_op(node, OP_Mul) && node->inputs[0] == node->inputs[1] && !node->n_epilogue;
}

/* ---- groups ---- */

/* A node of bytes is a chain of its own: only chains have vectors of bytes. */
static bool is_worth_it(const ChainGroup *group) { return group->n_nodes > 1 || elementwise_of_bytes(group->nodes[0]); }

static void close_all(Finder *finder) {
  for (int g = 0; g < finder->n_open; g++) {
    if (finder->merged_into[g] != g || !is_worth_it(finder->open[g])) continue;
    ChainGroups *found = &finder->found;
    *LIST_ADD(finder->graph->arena, found->groups, found->n, found->capacity) = finder->open[g];
  }
  finder->n_open = 0;
  finder->epoch++;
}

/* A group of this node; NULL if it has too many inputs. */
static ChainGroup *group_of(Graph *graph, Node *node) {
  ChainGroup *group = ARENA_NEW(graph->arena, ChainGroup);
  bool fits = true;
  group->nodes[group->n_nodes++] = node;
  group->n_members = 1 + node->n_epilogue;
  for (int k = 0; k < node->n_inputs; k++) add_input(group, node->inputs[k], &fits);
  return fits && group->n_inputs ? group : NULL;
}

static const Value *result_of(const ChainGroup *group) { return group->nodes[0]->outputs[0]; }

static bool runs_blocked(const ChainGroup *group) {
  return chain_runs_blocked(result_of(group), group->n_inputs, group->inputs);
}

/* `both` becomes a and b together, nodes in order; false if that is too much, or on blocked tensors less. */
static bool join(const Finder *finder, int a, int b, ChainGroup *both) {
  const ChainGroup *first = finder->open[a], *second = finder->open[b];
  bool fits = first->n_members + second->n_members <= MAX_CHAIN_MEMBERS;
  if (!fits) return false;
  for (int i = 0, k = 0; i < first->n_nodes || k < second->n_nodes;) {
    bool from_first = k == second->n_nodes || (i < first->n_nodes && first->nodes[i]->id < second->nodes[k]->id);
    both->nodes[both->n_nodes++] = from_first ? first->nodes[i++] : second->nodes[k++];
  }
  both->n_members = first->n_members + second->n_members;
  for (int k = 0; k < first->n_inputs; k++)
    if (maker(finder, first->inputs[k]) != b) add_input(both, first->inputs[k], &fits);
  for (int k = 0; k < second->n_inputs; k++)
    if (maker(finder, second->inputs[k]) != a) add_input(both, second->inputs[k], &fits);
  if (!fits || both->n_inputs == 0) return false;
  return !finder->blocks || runs_blocked(both) || !(runs_blocked(first) || runs_blocked(second));
}

static bool depends_on_itself(const Finder *finder, int a, int b, const ChainGroup *both) {
  return (closure(finder, taint_of_inputs(finder, both)) & (bit(a) | bit(b))) != 0;
}

/* Merges b into a, if possible. What only gradients need is computed by backward(). */
static bool merge(Finder *finder, int a, int b) {
  ChainGroup *both = ARENA_NEW(finder->graph->arena, ChainGroup);
  const Node *first = finder->open[a]->nodes[0], *second = finder->open[b]->nodes[0];
  if (finder->forward[first->id] != finder->forward[second->id]) return false;
  if (!shapes_agree(first->outputs[0], second->outputs[0])) return false;
  if (!join(finder, a, b, both) || depends_on_itself(finder, a, b, both)) return false;
  finder->open[a] = both;
  finder->merged_into[b] = a;
  return true;
}

/* ---- the visit ---- */

static void visit_other(Finder *finder, const Node *node) {
  GroupSet taint = 0;
  for (int k = 0; k < node->n_inputs; k++)
    if (node->inputs[k]) taint |= taint_of(finder, node->inputs[k]);
  for (int k = 0; k < node->n_outputs; k++)
    if (node->outputs[k]) finder->traces[node->outputs[k]->id] = (Trace){finder->epoch, NO_GROUP, taint};
}

static void visit_chained(Finder *finder, Node *node) {
  if (finder->n_open == MAX_OPEN) close_all(finder);
  ChainGroup *alone = group_of(finder->graph, node);
  if (!alone) {
    visit_other(finder, node);
    return;
  }
  int own = finder->n_open++;
  finder->open[own] = alone;
  finder->merged_into[own] = own;
  for (int k = 0; k < alone->n_inputs; k++) {
    int group = maker(finder, alone->inputs[k]), mine = standing(finder, own);
    if (finder->apart[alone->inputs[k]->id]) continue;
    if (group != NO_GROUP && group != mine) merge(finder, group, mine);
  }
  int mine = standing(finder, own);
  if (mine != own) finder->n_open--; /* its own number is not used yet */
  finder->traces[node->outputs[0]->id] = (Trace){finder->epoch, mine, 0};
}

/* The squares, for a reduction alone, of what others read, too: the reduction squares what is stored anyway. */
static bool is_left_to_reduction(const Finder *finder, const Node *node) {
  const Node *reader = finder->uses.single[node->outputs[0]->id];
  bool sums = reader && (is_op(reader, OP_ReduceSum) || is_op(reader, OP_ReduceMean));
  if (!sums || !is_square(node) || finder->uses.count[node->inputs[0]->id] <= 2) return false;
  return !finder->blocks || !chain_runs_blocked(node->outputs[0], node->n_inputs, node->inputs);
}

bool graph_seeks_blocks(const Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n]->op->family && graph->nodes[n]->op->family->seeks_blocked) return true;
  return false;
}

/* The bytes that a table reads, and those that it makes. Others that read the former are apart, too. A node is of the
 * first table that it could be of. */
static bool *find_tables(Graph *graph, const UseList *uses) {
  bool *apart = ARENA_ARRAY(graph->arena, bool, graph->n_values),
       *taken = ARENA_ARRAY(graph->arena, bool, graph->n_nodes);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *first = graph->nodes[n], *last = taken[n] ? NULL : table_end(graph, uses, first);
    if (!last) continue;
    apart[first->inputs[0]->id] = apart[last->outputs[0]->id] = true;
    for (const Node *node = first; node != last; node = uses->single[node->outputs[0]->id]) taken[node->id] = true;
    taken[last->id] = true;
  }
  return apart;
}

ChainGroups find_chain_groups(Graph *graph) {
  Finder *finder = ARENA_NEW(graph->arena, Finder);
  finder->graph = graph;
  finder->traces = ARENA_ARRAY(graph->arena, Trace, graph->n_values);
  finder->epoch = 1; /* traces begin in epoch 0 */
  finder->blocks = graph_seeks_blocks(graph);
  finder->forward = graph_forward_nodes(graph);
  finder->uses = graph_uses(graph);
  finder->apart = find_tables(graph, &finder->uses);
  for (int n = 0; n < graph->n_nodes; n++) {
    if (may_chain(graph->nodes[n]) && !is_left_to_reduction(finder, graph->nodes[n]))
      visit_chained(finder, graph->nodes[n]);
    else
      visit_other(finder, graph->nodes[n]);
  }
  close_all(finder);
  return finder->found;
}
