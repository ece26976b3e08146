// SPDX-License-Identifier: GPL-2.0
// Compiled code that reads the pages of fresh memory, and writes each that is zero.

import java.lang.reflect.Field;
import sun.misc.Unsafe;

class Probe {
    static final int PAGE = 4096, PAGES = 331;

    static void probe(Unsafe memory, long table, long bytes, int step) {
        for (long at = table; at < table + bytes; at += step) {
            if (memory.getInt(at) == 0) {
                memory.putInt(at, 1);
            }
        }
    }

    public static void main(String[] words) throws ReflectiveOperationException {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe memory = (Unsafe) field.get(null);
        long small = memory.allocateMemory(PAGE);
        // Until it is compiled.
        for (int i = 0; i < 50_000; i++) {
            memory.setMemory(small, PAGE, (byte) 0);
            probe(memory, small, PAGE, 4);
        }
        probe(memory, memory.allocateMemory((long) PAGES * PAGE), (long) PAGES * PAGE, PAGE);
    }
}
