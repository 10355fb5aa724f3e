/* SPDX-License-Identifier: MIT */
/*
 * The layout of a node's tensors: row-major, or in blocks of channels (layout/blocked.h). Once it is chosen, a value
 * has its number of channels, Value.channel_block: see layout_block() in layout/layout.h.
 */
#ifndef RNNCC_IR_LAYOUT_H
#define RNNCC_IR_LAYOUT_H

typedef enum Layout {
  LAYOUT_ROW_MAJOR,
  LAYOUT_NARROW,  /* one block of all channels, fewer than a vector's lanes: for images that are read */
  LAYOUT_BLOCKED, /* blocks of a vector */
  LAYOUT_WIDE,    /* blocks of two vectors */
  LAYOUTS,
  LAYOUT_ANY = LAYOUTS /* the node reads any layout */
} Layout;

/* The layouts of a node. Its other inputs, such as a residual, have the layout of its outputs. */
typedef struct NodeLayout {
  Layout reads;  /* inputs[0] */
  Layout writes; /* outputs; row-major where inputs[0] is any, or row-major, but of what brings channels first */
} NodeLayout;

/* A set of NodeLayouts: a bit for each. */
typedef unsigned LayoutSet;
#define LAYOUT_BIT(reads, writes) (1U << ((reads) * LAYOUTS + (writes)))

#define LAYOUT_SET_ROW_MAJOR LAYOUT_BIT(LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR)
#define LAYOUT_SET_BLOCKED LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_BLOCKED) /* all in blocks of a vector */
/* All that write blocks of a vector. */
#define LAYOUT_SET_WRITES_BLOCKED                                                                                      \
  (LAYOUT_BIT(LAYOUT_ROW_MAJOR, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_BLOCKED) |                          \
   LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_BLOCKED))
/* All that read narrow, read wide, and write wide. */
#define LAYOUT_SET_NARROW (LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_WIDE))
#define LAYOUT_SET_READS_WIDE (LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE))
#define LAYOUT_SET_WRITES_WIDE                                                                                         \
  (LAYOUT_BIT(LAYOUT_ROW_MAJOR, LAYOUT_WIDE) | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_WIDE) |                                \
   LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_WIDE) | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE))
/* All of either that read blocks. */
#define LAYOUT_SET_WIDE                                                                                                \
  (LAYOUT_SET_READS_WIDE | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_WIDE) | LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_WIDE))

#endif
