// SPDX-License-Identifier: BSD-2-Clause

/*
 * This program writes and checks filters with Spark's own classes
 * (common/sketch), for t/golden/foreign:
 *
 *   Spark write VERSION KIND K BITS SEED FILE < keys   writes a filter
 *   Spark check VERSION KIND FILE < keys               prints 0 or 1 for each key
 *
 * Keys are lines.  KIND is binary, string (of UTF-8) or long.  SEED is for
 * version 2.  The package is that of the classes, as they are not public.
 */

package org.apache.spark.util.sketch;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

public class Spark {

    static Object item(String kind, String line) {
        byte[] bytes = line.getBytes(StandardCharsets.ISO_8859_1);

        switch (kind) {
        case "binary":
            return bytes;
        case "string":
            return new String(bytes, StandardCharsets.UTF_8);
        default:
            return Long.parseLong(line);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader keys = new BufferedReader(new InputStreamReader(
            System.in, StandardCharsets.ISO_8859_1));
        boolean first = args[1].equals("1");
        String kind = args[2];
        BloomFilter filter;
        String key;

        if (args[0].equals("write")) {
            int k = Integer.parseInt(args[3]);
            long bits = Long.parseLong(args[4]);

            filter = first ? new BloomFilterImpl(k, bits)
                           : new BloomFilterImplV2(k, bits,
                                                   Integer.parseInt(args[5]));

            while ((key = keys.readLine()) != null) {
                filter.put(item(kind, key));
            }

            try (OutputStream out = new FileOutputStream(args[6])) {
                filter.writeTo(out);
            }

            return;
        }

        try (InputStream in = new FileInputStream(args[3])) {
            filter = first ? BloomFilterImpl.readFrom(in)
                           : BloomFilterImplV2.readFrom(in);
        }

        StringBuilder out = new StringBuilder();

        while ((key = keys.readLine()) != null) {
            out.append(filter.mightContain(item(kind, key)) ? '1' : '0');
        }

        System.out.println(out);
    }
}
