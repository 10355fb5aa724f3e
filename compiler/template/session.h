/* SPDX-License-Identifier: MIT */
/*
 * What has been made of templates, kept until the process ends: templates do not change while it runs, and parsing them
 * takes most of the time that lowering does. Each list is of the file that names its type.
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
