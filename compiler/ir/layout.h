/* SPDX-License-Identifier: MIT */
/*
 * How the tensors of a node are laid out: row-major, or in blocks of channels (layout/blocked.h). A layout is a word
 * here, and a number of channels, Value.channel_block, once it is chosen: layout_block() in layout/layout.h.
 */
#ifndef RNNCC_IR_LAYOUT_H
#define RNNCC_IR_LAYOUT_H

typedef enum Layout {
  LAYOUT_ROW_MAJOR,
  LAYOUT_NARROW,  /* one block of all channels, fewer than a vector has lanes: an image that is read */
  LAYOUT_BLOCKED, /* blocks of a vector */
  LAYOUT_WIDE,    /* blocks of two vectors */
  LAYOUTS,
  LAYOUT_ANY = LAYOUTS /* what a node reads stands in whatever blocks it was written in */
} Layout;

/* How a node runs. All that it reads beside inputs[0], such as a residual, is laid out as what it writes. */
typedef struct NodeLayout {
  Layout reads;  /* inputs[0] */
  Layout writes; /* outputs; row-major where inputs[0] is, and where it may be any */
} NodeLayout;

/* A set of NodeLayouts: a bit for each. */
typedef unsigned LayoutSet;
#define LAYOUT_BIT(reads, writes) (1U << ((reads) * LAYOUTS + (writes)))

#define LAYOUT_SET_ROW_MAJOR LAYOUT_BIT(LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR)
#define LAYOUT_SET_BLOCKED LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_BLOCKED) /* all in blocks of a vector */
/* All that read narrow, that read wide, and that write wide. */
#define LAYOUT_SET_NARROW (LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_WIDE))
#define LAYOUT_SET_READS_WIDE (LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE))
#define LAYOUT_SET_WRITES_WIDE                                                                                         \
  (LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_WIDE) | LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_WIDE) |                                  \
   LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE))
/* All that do either. */
#define LAYOUT_SET_WIDE                                                                                                \
  (LAYOUT_SET_READS_WIDE | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_WIDE) | LAYOUT_BIT(LAYOUT_BLOCKED, LAYOUT_WIDE))

#endif
