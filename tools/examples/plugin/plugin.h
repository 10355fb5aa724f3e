/* SPDX-License-Identifier: MIT */
/* What a host of audio plug-ins calls, from C: any channels, blocks of any length, no allocation while it plays. */
#ifndef PLUGIN_H
#define PLUGIN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plugin plugin;

/* NULL: it cannot be made, and `why`, of why_bytes bytes, says the reason. */
plugin *plugin_create(int channels, char *why, unsigned long why_bytes);
void plugin_destroy(plugin *);

/* `frames` samples of each channel, in place if input and output are the same. 0, or 1 where a run failed: the output
 * is silence from there on. From one thread at a time; it allocates nothing and takes no lock. */
int plugin_process(plugin *, const float *const *input, float *const *output, int frames);
/* What follows is another recording. */
void plugin_reset(plugin *);

#ifdef __cplusplus
}
#endif
#endif
