/* SPDX-License-Identifier: MIT */
/* The invariants of one item: READ only where the kernel does not write, every byte touched is inside its value, and no
 * byte is both read and written through different operands. */
#include "layout/blocked.h"
#include "program/dump.h"
#include "program/overlap.h"
#include "program/verify_program.h"
#include "support/numbers.h"

const char *mistake_text(const Program *program, const Item *item, const char *format, va_list arguments) {
  Text text = text_new(program->arena);
  if (item && item->node) text_add(&text, "n%d, ", item->node->id);
  if (item) item_text(&text, item);
  text_add(&text, item ? ": " : "");
  text_add_va(&text, format, arguments);
  return text.data;
}

static const char *tell(const Program *program, const Item *item, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static const char *tell(const Program *program, const Item *item, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = mistake_text(program, item, format, arguments);
  va_end(arguments);
  return text;
}

/* ---- operands ---- */

static const char *mode_mistake(const Program *program, const Item *item, int parameter) {
  const Operand *operand = &item->call->operands[parameter];
  const Parameter *at = &item->call->kernel->parameters[parameter];
  if (operand->kind != OPERAND_VALUE && operand->kind != OPERAND_VALUES) return NULL;
  for (int k = 0; k < operand->count; k++) {
    const Access *access = &item->accesses[operand->access + k];
    if ((access->mode == READ) != at->points_to_const)
      return tell(program, item, "`%s` says that t%d is %s, but the kernel %s", at->name, access->value->id,
                  access->mode == READ ? "read" : "written",
                  at->points_to_const ? "only reads there" : "may write there");
    int64_t size = (int64_t)dtype_size(at->element);
    if (size && !dim_div_exact(program->graph->dims, access->offset, dim_const(program->graph->dims, size)))
      return tell(program, item, "`%s` begins inside an element of t%d", at->name, access->value->id);
  }
  return NULL;
}

/* ---- bytes ---- */

/* The end of the access from the beginning of the root's memory, if known. */
static const Dim *end_of(const Program *program, const Access *access) {
  DimTable *dims = program->graph->dims;
  const Dim *end = dim_add(dims, access->offset, dim_const(dims, value_first_byte(access->value)));
  return access->bytes ? dim_add(dims, end, access->bytes) : end;
}

/* Bytes of one image, [C, H, W], in memory. */
static const Dim *image_bytes(Graph *graph, const Value *value) {
  DimTable *dims = graph->dims;
  int64_t channels = dim_value(value->shape[1]), block = value->channel_block ? value->channel_block : 1;
  const Dim *pixels = value_count_dim(graph, value, 2, value->rank);
  return dim_mul(dims, pixels, dim_const(dims, round_up(channels, block) * (int64_t)dtype_size(value->dtype)));
}

/* Is the place a constant share of an image, in all runs, such as the beginning of a channel? Bounds of differences of
 * products, (H - 2) * (W - 2), are too wide to show it. */
static bool is_share_of_image(Graph *graph, const Value *value, const Dim *place) {
  if (value->rank < 3 || !dim_is_const(value->shape[1]) || dim_upper(value->shape[0]) < 1) return false;
  const Dim *image = image_bytes(graph, value);
  int64_t part = dim_optimum(place), all = dim_optimum(image);
  for (int axis = 2; axis < value->rank; axis++)
    if (dim_lower(value->shape[axis]) < 0) return false;
  if (part < 0 || part > all || all < 1) return false;
  return dim_mul(graph->dims, place, dim_const(graph->dims, all)) ==
         dim_mul(graph->dims, image, dim_const(graph->dims, part));
}

/* Is the value all of its root, seen in another shape? */
static bool begins_with_root(const Value *value) {
  for (; value->view_of; value = value->view_of)
    if (value->at || value_is_part(value)) return false;
  return true;
}

static bool within(const Program *program, const Access *access) {
  const Value *root = value_root(access->value), *value = access->value;
  if (begins_with_root(value) && is_share_of_image(program->graph, value, end_of(program, access))) return true;
  DimTable *dims = program->graph->dims;
  if (!dim_at_most(dims, dim_const(dims, 0), access->offset)) return false;
  for (; value->view_of; value = value->view_of)
    if (value->at) return true; /* a slice, checked where it is made */
  return dim_at_most(dims, end_of(program, access), dim_const(dims, value_max_bytes(root)));
}

/* Has the root its place, if it should have one by now? */
static bool is_placed(const Value *root, ProgramStage stage) {
  return root->storage != STORAGE_NONE || stage < (root->data ? PROGRAM_PLACED : PROGRAM_PLANNED);
}

static const char *access_mistake(const Program *program, const Item *item, const Access *access, ProgramStage stage) {
  const Value *root = value_root(access->value);
  if (!is_placed(root, stage)) return tell(program, item, "t%d has no place", access->value->id);
  if (!within(program, access)) {
    Text end = text_new(program->arena);
    dim_print(&end, end_of(program, access));
    return tell(program, item, "touches t%d up to byte %s, but t%d has %lld bytes", access->value->id, end.data,
                root->id, (long long)value_max_bytes(root));
  }
  bool constant = root->data || storage_is_read_only(root->storage);
  if (constant && access->mode != READ) return tell(program, item, "writes t%d, which is constant", access->value->id);
  return NULL;
}

/* ---- reads and writes ---- */

static bool ends_before(const Program *program, const Access *a, const Access *b) {
  DimTable *dims = program->graph->dims;
  return a->bytes && dim_at_most(dims, dim_add(dims, a->offset, a->bytes), b->offset);
}

static bool known_apart(const Program *program, const Access *a, const Access *b) {
  return a->value == b->value && (ends_before(program, a, b) || ends_before(program, b, a));
}

static const char *overlap_mistake(const Program *program, const Item *item, const Access *read,
                                   const Access *written) {
  if (!accesses_conflict(read, written) || known_apart(program, read, written)) return NULL;
  const Value *from = value_slice(read->value), *to = value_slice(written->value);
  if (from != to && may_overwrite(item->node, to, from)) return NULL;
  return tell(program, item, "reads t%d and writes t%d, which share memory", read->value->id, written->value->id);
}

const char *item_mistake(const Program *program, const Item *item, ProgramStage stage) {
  const char *mistake = NULL;
  for (int i = 0; !mistake && item->call && i < item->call->kernel->n_parameters; i++)
    mistake = mode_mistake(program, item, i);
  for (int a = 0; !mistake && a < item->n_accesses; a++)
    mistake = access_mistake(program, item, &item->accesses[a], stage);
  if (stage < PROGRAM_PLANNED) return mistake;
  for (int a = 0; !mistake && a < item->n_accesses; a++)
    for (int b = 0; !mistake && b < item->n_accesses; b++)
      if (item->accesses[a].mode == READ && item->accesses[b].mode != READ)
        mistake = overlap_mistake(program, item, &item->accesses[a], &item->accesses[b]);
  return mistake;
}
