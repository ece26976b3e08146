// SPDX-License-Identifier: GPL-2.0
// Compiled code that reads the pages of fresh memory, and writes each that is zero.
"use strict";

function probe(table, step) {
  for (let at = 0; at < table.length; at += step) {
    if (table[at] === 0) {
      table[at] = 1;
    }
  }
}

// Until it is compiled.
const small = new Int32Array(1 << 10);
for (let i = 0; i < 50000; i++) {
  small.fill(0);
  probe(small, 1);
}
// 331 pages of 4 KiB.
probe(new Int32Array(331 << 10), 1 << 10);
