/* SPDX-License-Identifier: MIT */
#include "session.h"

#include "support.h"

Session session_load(const char *path) {
  Session session = {.path = path};
  char why[4096];
  if (rnncc_load(path, &session.library, why, sizeof why) != RNNCC_OK) fail(EXIT_ENVIRONMENT, "%s", why);
  session.api = session.library.api;
  return session;
}

static int exit_code(rnncc_status status) {
  if (status == RNNCC_ERROR_MEMORY) return EXIT_RESOURCE;
  return status == RNNCC_ERROR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_INPUT;
}

void session_check(const Session *session, rnncc_status status, const char *what) {
  if (status == RNNCC_OK) return;
  const char *said = session->context ? session->api->last_error(session->context) : "";
  fail(exit_code(status), "%s: %s: %s (status %d)", session->path, what, *said ? said : "no reason given", (int)status);
}

void session_start(Session *session, int threads) {
  rnncc_options options = {.struct_size = sizeof options,
                           .threads = threads,
                           .share_all = session->share_all,
                           .check_weights = session->check_weights};
  const char *why = "no reason given";
  rnncc_status status = session->api->model_create(&options, &session->model, &why);
  if (status != RNNCC_OK) fail(exit_code(status), "%s: %s (status %d)", session->path, why, (int)status);
  session_check(session, session->api->context_create(session->model, NULL, 0, &session->context, NULL), "context");
}

void session_run(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs) {
  const rnncc_info *info = session->api->info;
  session_check(session,
                session->api->run(session->context, inputs, (size_t)info->n_inputs, outputs, (size_t)info->n_outputs),
                "run");
}

void session_close(Session *session) {
  session->api->context_destroy(session->context);
  session->api->model_destroy(session->model);
  rnncc_unload(&session->library);
}
