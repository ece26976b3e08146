/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What ftbench says about itself, to people and to the laboratory: --list,
 * --list=json, --help and EXPERIMENT --help.
 */
#ifndef LIST_H
#define LIST_H

#include <stdio.h>

#include "experiment.h"

/* @list has the experiments and ends in NULL. */
void list_plain(const struct experiment * const *list, FILE *out);
void list_json(const struct experiment * const *list, FILE *out);
void help_program(const struct experiment * const *list, FILE *out);
void help_experiment(const struct experiment *experiment, FILE *out);

#endif /* LIST_H */
