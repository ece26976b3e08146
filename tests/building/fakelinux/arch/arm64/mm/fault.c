// SPDX-License-Identifier: GPL-2.0
/* Stands for the file by which a kernel tree is known; nothing compiles it. */
