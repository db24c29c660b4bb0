#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the help of the tool and of each command, and that unknown commands and
# options, and output that cannot be written, are errors.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(text_line tool tool_redirected tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my @commands = qw(build info test expand verify size add merge journal follow
                  import export analyze status);
my $ids = $t->build_image('ids.bloom', ['key-1']);


# ---- help, and unknown commands and options ----

for my $command (@commands) {
    my $help = tool(0, undef, $command, '--help');

    like($help, qr/\AUsage: ngx-bloom $command /,
         "$command --help begins with the synopsis");
    like($help, qr/^Examples:\n(?:  .*\n)*?  (?:.* )?ngx-bloom $command /m,
         "$command --help has examples");
    is(join('', grep { length > 81 } split /^/, $help), '',
       "$command --help has no line of more than 80 columns");
    is(tool(0, undef, 'help', $command), $help,
       "\"help $command\" prints what $command --help prints");
    is(tool(0, undef, $command, '-h'), $help,
       "$command -h prints what $command --help prints");

    is(tool(0, undef, '--help', $command), $help,
       "\"--help $command\" prints what $command --help prints");

    tool(2, text_line("ngx-bloom $command: unknown option \"--nonsense\"; see"
                 . " \"ngx-bloom $command --help\""), $command, '--nonsense');
    my $flag = $command eq 'follow' ? '--once' : '--json';

    tool(2, qr/unknown option "-Z"/, $command, $flag, '-Z');
    tool(2, qr/option $flag takes no value/, $command, "$flag=1");
    tool(2, qr/unknown option "--hel"/, $command, '--hel');
}

# An abbreviation may be the name of another command's option: --except reads
# the file that --exceptions would replace.

tool(2, qr/unknown option "--except"/, 'add', 'x', '--except', 'file');
tool(2, qr/unknown option "--except=file"/, 'add', 'x', '--except=file');

my $usage = tool(0, undef, '--help');
like($usage, qr/^  \Q$_\E /m, "--help lists $_") for @commands, 'help';
is(tool(0, undef, '-h'), $usage, '-h prints what --help prints');
is(tool(0, undef, 'help'), $usage, 'help prints what --help prints');
is(tool(0, undef, 'help', 'help'), $usage,
   '"help help" prints what --help prints');
is(tool(0, undef, 'help', '-h'), $usage, '"help -h" prints what --help prints');

like(tool(0, undef, '--version'),
     qr/^ngx-bloom \d\S*, image format version 3$/,
     '--version shows the versions of the program and of the format');

my $list = join ', ', @commands, 'help';
tool(2, qr/^ngx-bloom: unknown command "nonsense"; the commands are $list;/,
     'nonsense');
tool(2, qr/unknown command "nonsense"/, 'help', 'nonsense');
tool(2, qr/^ngx-bloom: no command is given;/);
tool(2, qr/^ngx-bloom: unknown option "--nonsense"; the options of a command/,
     '--nonsense');
tool(2, qr/option -o needs a value/, 'merge', '-o');
tool(2, qr/option -o needs a value/, 'merge', '--output');
tool(2, qr/option --layout needs a value/, 'size', '--layout');


# Output that cannot be written is an error.

for ([test => $ids, 'key-1'], [info => $ids], [verify => $ids],
     [size => '-n', '1', '-p', '0.1'], ['--help'])
{
    for my $redirection ('> /dev/full', '>&-') {
        my ($exit, undef, $err) = tool_redirected($redirection, @$_);

        is($exit, 2, "$$_[0] with output $redirection is an error");
        like($err, qr/cannot write to standard output: /,
             "$$_[0] with output $redirection says that it cannot be written");
    }
}

done_testing;
