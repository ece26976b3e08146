/* SPDX-License-Identifier: GPL-2.0 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "run.h"

/*
 * Reads the arguments after the experiment's name into run->values.
 * An error is printed and STATUS_USAGE returned.
 */
enum status options_parse(struct run *run, int argc, char **argv);

#endif /* OPTIONS_H */
