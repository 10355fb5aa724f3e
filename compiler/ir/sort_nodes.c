/* SPDX-License-Identifier: MIT */
/*
 * Topological order by depth-first search with a stack of its own. Nodes are tried in the file's order, and a node is
 * placed once the nodes it reads from are: a file that is sorted already keeps its order.
 */
#include <string.h>

#include "ir/graph.h"
#include "support/text.h"
#include "json/json.h"

typedef enum Mark { UNSEEN, OPEN, PLACED } Mark;

typedef struct Frame {
  Node *node;
  int next_input;
} Frame;

typedef struct Search {
  Graph *graph;
  Mark *marks;  /* by node id: the position in the file */
  Frame *stack; /* the nodes whose inputs are being visited; each reads from the one above it */
  int depth;
  Node **sorted;
  int n_sorted;
  bool has_cycle;
} Search;

enum { MAX_SHOWN = 8 };

static void push(Search *search, Node *node) {
  search->marks[node->id] = OPEN;
  search->stack[search->depth++] = (Frame){.node = node};
}

/* `nodes[3] "name"`; where the place of a node is its name, `"name"`. */
static void add_step(Text *text, const Node *node) {
  bool named = strcmp(node->where.path, node->name) == 0;
  text_add(text, "%s%s%s\"%s\"", text->length ? " <- " : "", named ? "" : node->where.path, named ? "" : " ",
           short_name(text->arena, node->name));
}

/* `node` is open and read by the top of the stack. */
static void tell_cycle(Search *search, const Node *node) {
  search->has_cycle = true;
  int bottom = search->depth - 1;
  while (search->stack[bottom].node != node) bottom--;
  int length = search->depth - bottom;
  if (length == 1) {
    error_at(node->where, EXIT_INVALID, "the node \"%s\" reads its own output",
             short_name(search->graph->arena, node->name));
    return;
  }
  Text text = text_new(search->graph->arena);
  for (int i = bottom; i < search->depth && i < bottom + MAX_SHOWN; i++) add_step(&text, search->stack[i].node);
  if (length > MAX_SHOWN) text_add(&text, " <- ... (%d nodes)", length);
  add_step(&text, node);
  error_at(node->where, EXIT_INVALID, "nodes read from each other in a cycle: %s", text.data);
}

/* A body may read what a graph around it makes. */
static bool has_node(const Graph *graph, const Node *node) {
  return node->id < graph->n_nodes && graph->nodes[node->id] == node;
}

/* Goes one input further in the innermost open node. */
static void advance(Search *search) {
  Frame *top = &search->stack[search->depth - 1];
  if (top->next_input == top->node->n_inputs) {
    search->marks[top->node->id] = PLACED;
    search->sorted[search->n_sorted++] = top->node;
    search->depth--;
    return;
  }
  const Value *input = top->node->inputs[top->next_input++];
  if (!input || !input->producer || !has_node(search->graph, input->producer)) return;
  Mark mark = search->marks[input->producer->id];
  if (mark == UNSEEN) push(search, input->producer);
  if (mark == OPEN) tell_cycle(search, input->producer);
}

bool sort_nodes(Graph *graph) {
  Search search = {.graph = graph,
                   .marks = ARENA_ARRAY(graph->arena, Mark, graph->n_nodes),
                   .stack = ARENA_ARRAY(graph->arena, Frame, graph->n_nodes),
                   .sorted = ARENA_ARRAY(graph->arena, Node *, graph->n_nodes)};
  for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i]->id = i;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (search.marks[i] == UNSEEN) push(&search, graph->nodes[i]);
    while (search.depth > 0) advance(&search);
  }
  for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i] = search.sorted[i];
  return !search.has_cycle;
}

void graph_tidy(Graph *graph) {
  graph_close_gaps(graph);
  if (!sort_nodes(graph)) bug("nodes that a pass appended read each other");
  graph_remove_dead(graph);
}
