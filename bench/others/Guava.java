// SPDX-License-Identifier: BSD-2-Clause

/* Guava's BloomFilter as bench/filter.c describes it. */

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

public class Guava {

    static byte[] key(long x) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN)
            .putLong(x).putLong(x * 0x9e3779b97f4a7c15L).array();
    }

    public static void main(String[] args) throws Exception {
        long n = Long.parseLong(args[0]);
        double rate = Double.parseDouble(args[1]);

        BloomFilter<byte[]> filter =
            BloomFilter.create(Funnels.byteArrayFunnel(), n, rate);

        for (long i = 0; i < n; i++) {
            filter.put(key(i));
        }

        /* what its source computes */
        System.out.println(
            (long) (-n * Math.log(rate) / (Math.log(2) * Math.log(2))));

        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in));
        long state = 1;
        String line;

        while ((line = in.readLine()) != null) {
            String[] words = line.split(" ");
            boolean hits = words[0].equals("1");
            byte[][] keys = new byte[Integer.parseInt(words[1])][];

            for (int i = 0; i < keys.length; i++) {
                state = state * 6364136223846793005L + 1442695040888963407L;
                keys[i] = key(hits ? (state >>> 33) % n : n + (state >>> 33));
            }

            long found = 0;
            long start = System.nanoTime();

            for (byte[] k : keys) {
                if (filter.mightContain(k)) {
                    found++;
                }
            }

            double ns = (double) (System.nanoTime() - start) / keys.length;

            System.out.println(ns + " " + found);
        }
    }
}
