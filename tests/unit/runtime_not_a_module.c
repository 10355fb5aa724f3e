/* SPDX-License-Identifier: MIT */
/* A shared object without rnncc_module_query. */
extern int not_a_module;
int not_a_module = 1;
