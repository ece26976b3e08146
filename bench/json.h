/* SPDX-License-Identifier: GPL-2.0 */
#ifndef JSON_H
#define JSON_H

#include <stdio.h>

/* Writes text as a JSON string, quotes included. */
void json_string(FILE *out, const char *text);

#endif /* JSON_H */
