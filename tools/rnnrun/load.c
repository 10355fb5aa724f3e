/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "elf_file.h"
#include "session.h"
#include "support.h"
#include "verbs.h"

static const rnncc_api *only_network(const Session *session) {
  char names[1024];
  size_t length = 0;
  int32_t count = session->api->n_networks;
  if (count == 1) return session->api;
  for (int32_t i = 0; i < count && length < sizeof names; i++)
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                               session->api->networks[i]->info->name);
  fail(EXIT_INPUT, "%s: expected --network=NAME, found none; it has %s", session->path, names);
}

static const rnncc_api *network_named(const Session *session, const char *name) {
  char error[1024];
  const rnncc_api *api = rnncc_network(session->api, name, error, sizeof error);
  if (!api) fail(EXIT_INPUT, "%s: %s", session->path, error);
  return api;
}

Session load_module(const char *path, const char *network) {
  char machine[ELF_MACHINE_TEXT], here[ELF_MACHINE_TEXT];
  ElfFile file = elf_open(path);
  if (elf_is_foreign(&file))
    fail(EXIT_ENVIRONMENT, "%s: for %s; this is %s", path, elf_machine(&file, machine), elf_machine_here(here));
  elf_close(&file);
  Session session = session_load(path);
  session.api = network ? network_named(&session, network) : only_network(&session);
  return session;
}
