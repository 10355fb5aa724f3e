/* SPDX-License-Identifier: MIT */
#include "template/session.h"

TemplateSession *template_session(void) {
  static TemplateSession session;
  if (!session.arena) session.arena = arena_new();
  return &session;
}
