/* SPDX-License-Identifier: MIT */
/*
 * A cache of parsed templates until the process ends: parsing takes most of the time of lowering. Each list belongs to
 * the file that defines its type.
 */
#ifndef RNNCC_TEMPLATE_SESSION_H
#define RNNCC_TEMPLATE_SESSION_H

#include "support/arena.h"

typedef struct TemplateSession {
  Arena *arena;
  void *index;                         /* CXIndex; NULL: not made yet */
  struct KeptUnit *units;              /* template_ast.c */
  struct KeptTemplate *templates;      /* specialise.c */
  struct KeptKernel *kernels;          /* specialise.c */
  struct KeptVocabulary *vocabularies; /* fingerprint.c */
  struct KeptDigest *digests;          /* fingerprint.c */
} TemplateSession;

TemplateSession *template_session(void);

#endif
