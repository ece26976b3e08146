/* SPDX-License-Identifier: GPL-2.0 */
/* Another root directory for the traced program. */
#ifndef ROOT_H
#define ROOT_H

/*
 * Gives this process `root` as its /, in a mount namespace of its own, with
 * /proc, /sys, /dev and empty /tmp and /var/tmp; only root can. 0 or an errno.
 */
int root_enter(const char *root);

#endif
