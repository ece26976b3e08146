/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NEAREST_H
#define NEAREST_H

/*
 * The candidate that a misspelt word was most probably meant to be, or NULL.
 * The candidates end in NULL.
 */
const char *nearest_word(const char *word, const char * const *candidates);

#endif /* NEAREST_H */
