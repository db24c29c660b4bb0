#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the files of keys that options of "ngx-bloom build" name: they are read
# alike, and one that cannot be used is refused with the line, the reason and the
# option, before any image is written.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(content_of tool tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my @options = qw(except without must-have must-not-have);
my $list = $t->write_file('list', "bad.example\n");
my $image = "$dir/image";
my @build = ('build', '-q', '-o', $image, '-p', '1e-9', $list);

tool_ok(@build);

my $old = content_of($image);

# Tests that a build with an option refuses its file.

sub refused {
    my ($option, $file, $message, @more) = @_;

    tool(2, $message, @build, "--$option", $file, @more);
    ok(content_of($image) eq $old, "--$option: the old image stays");
}


mkdir "$dir/directory" or die "mkdir: $!";

for my $option (@options) {
    refused($option, "$dir/missing", qr/missing: cannot be opened: No such file/);
    refused($option, "$dir/directory", qr/directory: is a directory/);
}

# A file of samples without a key would let every image pass.

for my $option ('must-have', 'must-not-have') {
    for ('', "# one\n\n") {
        refused($option, $t->write_file('comments', $_),
                qr/--$option \S*comments has no key; write one into it, or leave out the option/);
    }
}

for my $option ('except', 'without') {
    refused($option, '-', qr/--$option "-": must be a file/);
    refused($option, $image,
            qr/is also the output, and the image would replace/);
}

# Lines that no lookup finds

my $byte = qr/has a byte that a host cannot have/;

for (['||x.example^', qr/$byte|is a rule of Adblock lists/, 'host', 'url'],
     ['0.0.0.0 x.example', $byte, 'host', 'url'],
     ['local=/x.example/', qr/is a line of dnsmasq/, 'host', 'url'],
     ['1,x.example', qr/is a line of CSV/, 'host', 'url'],
     ['192.0.2.0/24', qr/is a range of addresses/, 'host', 'url'],
     ['x.example/page', qr/$byte|has a path; use --form url/, 'host'],
     ['http://', qr/$byte|has no host/, 'host', 'url'],
     ['k' x 65536, qr/is longer than 65535 bytes/, 'raw', 'host'])
{
    my ($line, $why, @forms) = @$_;
    my $shown = substr $line, 0, 20;

    for my $option (@options) {
        refused($option, $t->write_file('keys', "# one\n$line\n"),
                qr/^(?=[^\n]*line 2)[^\n]*"\Q$shown\E[^\n]*" $why; correct [^\n]*--$option/m,
                '--form', $_) for @forms;
    }
}

# Blanks, comments, CR LF and a byte order mark are those of a list of lines.

$t->write_file('keys', "\xef\xbb\xbf# samples\n\nbad.example\r\n! x\n"
                       . "  a.bad.example  # x\n");
tool(0, undef, @build, '--form', 'host', '--must-have', "$dir/keys");
tool(1, qr/has the key "bad\.example" of line 3 of --must-not-have/, @build,
     '--form', 'host', '--must-not-have', "$dir/keys");
tool(2, qr/--without leaves out all keys/, @build, '--form', 'host',
     '--without', "$dir/keys");
tool(2, qr/keys: line 3: "bad\.example" must not be found, but/, @build,
     '--form', 'host', '--except', "$dir/keys");

done_testing;
