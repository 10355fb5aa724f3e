/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Makes the path absolute: dlopen looks a bare name up elsewhere. */
static void *open_module(const char *path) {
  char *absolute = realpath(path, NULL);
  if (!absolute) fail(EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
  void *handle = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
  free(absolute);
  if (!handle) fail(EXIT_ENVIRONMENT, "%s", dlerror());
  return handle;
}

Session session_load(const char *path) {
  Session session = {.path = path, .handle = open_module(path)};
  rnncc_module_query_fn query = (rnncc_module_query_fn)dlsym(session.handle, "rnncc_module_query");
  if (!query) fail(EXIT_ENVIRONMENT, "%s: not a module of rnncc: it has no rnncc_module_query", path);
  const char *why = "no reason given";
  session.api = query(RNNCC_ABI, &why);
  if (!session.api) fail(EXIT_ENVIRONMENT, "%s: %s", path, why);
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
  rnncc_options options = {.struct_size = sizeof options, .threads = threads};
  const char *why = "no reason given";
  rnncc_status status = session->api->model_create(&options, &session->model, &why);
  if (status != RNNCC_OK) fail(exit_code(status), "%s: %s (status %d)", session->path, why, (int)status);
  session_check(session, session->api->context_create(session->model, NULL, 0, &session->context), "context");
}

void session_run(Session *session, const rnncc_tensor *inputs, rnncc_tensor *outputs) {
  const rnncc_info *info = session->api->info;
  session_check(session,
                session->api->run(session->context, inputs, (size_t)info->n_inputs, outputs, (size_t)info->n_outputs),
                "run");
}

void session_close(Session *session) {
  if (session->api) {
    session->api->context_destroy(session->context);
    session->api->model_destroy(session->model);
  }
  dlclose(session->handle);
}
