#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom expand" prints the canonical form and the expressions of
# keys.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;


is(tool(0, undef, 'expand', 'HTTP://A.b.c:80/1/%32.html?param=1'), <<'OUT',
http://a.b.c/1/2.html?param=1
a.b.c/1/2.html?param=1
a.b.c/1/2.html
a.b.c/
a.b.c/1/
b.c/1/2.html?param=1
b.c/1/2.html
b.c/
b.c/1/
OUT
   'expand prints the canonical form, then every expression');

is(tool(0, undef, 'expand', 'a.b', 'c.d'),
   "http://a.b/\na.b/\n\nhttp://c.d/\nc.d/\n",
   'expand prints a blank line between keys');

is(tool(0, undef, 'expand', '--form', 'url', { stdin => "a.b\r\nc.d" }),
   "http://a.b/\na.b/\n\nhttp://c.d/\nc.d/\n", 'expand reads standard input');

$t->write_file('urls', "a.b\0c.d\0");
is(tool(0, undef, 'expand', '-0', '-f', "$dir/urls"),
   "http://a.b/\na.b/\n\nhttp://c.d/\nc.d/\n",
   'expand -0 -f reads keys that end with a zero byte from a file');

is(tool(0, undef, 'expand', '--form', 'host', 'A.B.Co.UK.:80'),
   "a.b.co.uk\na.b.co.uk\nb.co.uk\nco.uk\n",
   'expand --form host prints a name and its parent domains');
is(tool(0, undef, 'expand', '--form', 'lower', 'A b'), "a b\na b\n",
   'expand --form lower prints a key in lower case');
is(tool(0, undef, 'expand', '--form', 'raw', 'A b'), "A b\nA b\n",
   'expand --form raw prints a key as it is');

is(tool(1, qr/^ngx-bloom expand: "\/x" has no host\n\z/, 'expand', 'a.b', '/x'),
   "http://a.b/\na.b/\n",
   'expand continues after a key that cannot be looked up');
is(tool(1, qr/^ngx-bloom expand: "\\xff\\x01:b" has a port .*\n\z/, 'expand',
        "\xff\x01:b"), '',
   'expand prints nothing of a key of unprintable bytes without a form');
is(tool(1, qr/^ngx-bloom expand: "" is empty\n\z/, 'expand', ''), '',
   'expand prints nothing of an empty key');

is(tool(1, undef, 'expand', '--json', 'http://a.b/"?', '/x'),
   '{"canonical":"http://a.b/\"?","expressions":["a.b/\"?","a.b/\"","a.b/"]}'
   . "\n" . '{"canonical":null,"expressions":[],"reason":"has no host"}' . "\n",
   'expand --json has null, no expression and a reason for an invalid key');

tool(2, qr/there are no keys to expand/, 'expand', { stdin => '' });
tool(2, qr/cannot be used together with keys on the command line/,
     'expand', '-f', "$dir/urls", 'a.b');
tool(2, qr/cannot be opened/, 'expand', '-f', "$dir/none");
tool(2, qr/^ngx-bloom expand: --form "URL": must be raw, lower, host or url;/,
     'expand', '--form', 'URL', 'a.b');

done_testing;
