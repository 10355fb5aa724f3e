/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "ir/op.h"
#include "layout/layout.h"
#include "layout/layout_costs.h"
#include "layout/layout_plan.h"

static const char *const layout_names[] = {
    [LAYOUT_ROW_MAJOR] = "row-major", [LAYOUT_NARROW] = "narrow", [LAYOUT_BLOCKED] = "blocked", [LAYOUT_WIDE] = "wide"};

static const char *us(Arena *arena, double seconds) {
  return isinf(seconds) ? "-" : arena_format(arena, "%.1f", 1e6 * seconds);
}

/* ---- nodes ---- */

/* "wide>blocked": reads wide blocks, writes blocks of a vector. */
static const char *layout_name(Arena *arena, const NodeLayouts *layouts, int alternative) {
  NodeLayout layout = layouts->layout[alternative];
  const char *reads = layout_names[layout.reads], *writes = layout_names[layout.writes];
  bool alike = !is_wide_alternative(layouts, alternative) || reads == writes;
  return alike ? reads : arena_format(arena, "%s>%s", reads, writes);
}

/* The least time among the alternatives that read this layout. */
static double seconds_in(const NodeLayouts *layouts, Layout reads) {
  double seconds = INFINITY;
  for (int a = 0; a < layouts->n; a++)
    if (layouts->layout[a].reads == reads) seconds = fmin(seconds, layouts->seconds[a]);
  return seconds;
}

static void tell_node(Text *text, Arena *arena, const LayoutPlan *plan, int v) {
  const NodeLayouts *layouts = &plan->problem->nodes[v];
  int chosen = plan->chosen[v], greedy = plan->greedy[v];
  text_add(text, "%-28.28s %-20.20s %-12s", printable(arena, layouts->node->name), layouts->node->op->name,
           layout_name(arena, layouts, chosen));
  for (Layout reads = 0; reads < LAYOUTS; reads++) text_add(text, " %10s", us(arena, seconds_in(layouts, reads)));
  text_add(text, "%s\n", chosen == greedy ? "" : "  differs from greedy");
}

static void tell_nodes(Text *text, Arena *arena, const LayoutPlan *plan) {
  text_add(text, "%-28s %-20s %-12s %10s %10s %10s %10s\n", "node", "op", "layout", "row-major", "narrow", "blocked",
           "wide");
  for (int v = 0; v < plan->problem->n_nodes; v++) tell_node(text, arena, plan, v);
}

/* ---- transforms ---- */

static void tell_transforms(Text *text, Arena *arena, const LayoutPlan *plan) {
  const LayoutProblem *problem = plan->problem;
  text_add(text, "\n%-28s %-10s %-10s %10s\n", "transformed value", "from", "to", "us");
  for (int v = 0; v < problem->n_values; v++) {
    const ValueLayouts *layouts = &problem->values[v];
    const Value *value = layouts->value;
    int chosen = plan->chosen[problem->n_nodes + v];
    Layout made = layouts->made[chosen];
    for (Layout to = 0; to < LAYOUTS; to++) {
      int from_block = layout_block(problem->graph, value, made), to_block = layout_block(problem->graph, value, to);
      if (to == made || !(layouts->exists[chosen] >> to & 1)) continue;
      double seconds = layout_transform_seconds(problem->graph, value, from_block, to_block);
      if (seconds > 0)
        text_add(text, "%-28.28s %-10s %-10s %10s\n", printable(arena, value->name), layout_names[made],
                 layout_names[to], us(arena, seconds));
    }
  }
}

/* ---- totals ---- */

static double transforms_total(const LayoutPlan *plan, const int *chosen) {
  double total = 0;
  for (int v = 0; v < plan->problem->n_values; v++)
    total += plan->problem->values[v].seconds[chosen[plan->problem->n_nodes + v]];
  return total;
}

static void tell_total(Text *text, Arena *arena, const LayoutPlan *plan, const char *name, const int *chosen,
                       const char *remark) {
  if (!chosen) {
    text_add(text, "%-8s %12s %12s  %s\n", name, "-", "-", remark);
    return;
  }
  text_add(text, "%-8s %12s %12s  %s\n", name, us(arena, choices_total(plan->problem->choices, chosen)),
           us(arena, transforms_total(plan, chosen)), remark);
}

static const char *tell_wide(Arena *arena, const LayoutPlan *plan) {
  double percent = 100 * (layout_wide_margin - 1);
  if (!plan->problem->has_wide)
    return arena_format(arena, "wide blocks, of two vectors, make no node %.0f%% better, and none is in them", percent);
  return arena_format(arena, "one in wide blocks, of two vectors, must be %.0f%% better", percent);
}

static void tell_totals(Text *text, Arena *arena, const LayoutPlan *plan) {
  ChoiceSolution dp = choices_eliminate(plan->problem->choices), pbqp = choices_pbqp(plan->problem->choices);
  const ChoiceProblem *choices = plan->problem->choices;
  text_add(text,
           "\n%d nodes and %d values choose, %d pairs of them constrain each other;\n"
           "a layout of a node other than the greedy one must be a fifth better, and is counted so;\n"
           "%s\n",
           plan->problem->n_nodes, plan->problem->n_values, choices->n_pairs, tell_wide(arena, plan));
  text_add(text, "%-8s %12s %12s\n", "search", "total us", "transforms");
  tell_total(text, arena, plan, "greedy", plan->greedy, "");
  tell_total(
      text, arena, plan, "dp", dp.chosen,
      arena_format(arena, "%s, largest table %lld", dp.chosen ? "exact" : "gave up", (long long)dp.largest_table));
  tell_total(text, arena, plan, "pbqp", pbqp.chosen,
             arena_format(arena, "%s, reductions R0 %d, RI %d, RII %d, RN %d", pbqp.exact ? "exact" : "heuristic",
                          pbqp.by_rule[RULE_R0], pbqp.by_rule[RULE_RI], pbqp.by_rule[RULE_RII], pbqp.by_rule[RULE_RN]));
  text_add(text, "chosen: %s; %.1f ms to estimate the costs, %.1f ms to search\n",
           plan->better ? "what the search found" : "greedy, than which nothing better was found",
           1e3 * plan->posing_seconds, 1e3 * plan->solving_seconds);
}

Text explain_layouts(const Graph *graph) {
  Text text = text_new(graph->arena);
  const LayoutPlan *plan = graph->layout_plan;
  if (!plan) return text;
  tell_nodes(&text, graph->arena, plan);
  tell_transforms(&text, graph->arena, plan);
  tell_totals(&text, graph->arena, plan);
  return text;
}
