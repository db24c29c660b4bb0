// SPDX-License-Identifier: BSD-2-Clause

/*
 * This program writes and checks filters with Guava itself, for
 * t/import/guava.t and t/golden/foreign:
 *
 *   Guava write STRATEGY FUNNEL N FPP FILE < keys    writes a filter
 *   Guava check FUNNEL FILE < keys                   prints 0 or 1 for each key
 *
 * Keys are lines; string and utf16 take them as UTF-8.  STRATEGY is 32 or 64.
 */

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;

public class Guava {

    static Funnel<Object> funnel(String name) {
        return (from, into) -> {
            byte[] bytes = (byte[]) from;
            String key = new String(bytes, StandardCharsets.UTF_8);

            switch (name) {
            case "utf16":
                Funnels.unencodedCharsFunnel().funnel(key, into);
                break;
            case "long":
                Funnels.longFunnel().funnel(Long.parseLong(key), into);
                break;
            case "int":
                Funnels.integerFunnel().funnel(Integer.parseInt(key), into);
                break;
            case "bytes":
                Funnels.byteArrayFunnel().funnel(bytes, into);
                break;
            case "string":
                Funnels.stringFunnel(StandardCharsets.UTF_8).funnel(key, into);
                break;
            default:
                throw new IllegalArgumentException(name);
            }
        };
    }

    /* Filters of today have the strategy of 64 bits; the other is not public. */
    @SuppressWarnings("unchecked")
    static BloomFilter<Object> create(String strategy, Funnel<Object> funnel,
        long n, double fpp) throws Exception
    {
        if (strategy.equals("64")) {
            return BloomFilter.create(funnel, n, fpp);
        }

        Class<?> type = Class.forName("com.google.common.hash.BloomFilter"
                                      + "$Strategy");
        Class<?> all = Class.forName("com.google.common.hash"
                                     + ".BloomFilterStrategies");
        Object mitz32 = null;

        for (Object one : all.getEnumConstants()) {
            if (one.toString().equals("MURMUR128_MITZ_32")) {
                mitz32 = one;
            }
        }

        Method method = BloomFilter.class.getDeclaredMethod(
            "create", Funnel.class, long.class, double.class, type);
        method.setAccessible(true);

        return (BloomFilter<Object>) method.invoke(null, funnel, n, fpp,
                                                   mitz32);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader keys = new BufferedReader(new InputStreamReader(
            System.in, StandardCharsets.ISO_8859_1));
        String key;

        if (args[0].equals("write")) {
            BloomFilter<Object> filter = create(args[1], funnel(args[2]),
                Long.parseLong(args[3]), Double.parseDouble(args[4]));

            while ((key = keys.readLine()) != null) {
                filter.put(key.getBytes(StandardCharsets.ISO_8859_1));
            }

            try (OutputStream out = new BufferedOutputStream(
                new FileOutputStream(args[5])))
            {
                filter.writeTo(out);
            }

            return;
        }

        try (InputStream in = new BufferedInputStream(
            new FileInputStream(args[2])))
        {
            BloomFilter<Object> filter = BloomFilter.readFrom(in,
                funnel(args[1]));
            StringBuilder out = new StringBuilder();

            while ((key = keys.readLine()) != null) {
                out.append(filter.mightContain(
                    key.getBytes(StandardCharsets.ISO_8859_1)) ? '1' : '0');
            }

            System.out.println(out);
        }
    }
}
