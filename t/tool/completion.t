#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests docs/ngx-bloom.bash, the completion of bash: what it offers after a
# command line, and that the tool accepts the offered values.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(tool_ok tool_path tool_test);
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $t = tool_test();
my $completion = abs_path(dirname(__FILE__) . '/../../docs/ngx-bloom.bash');

# the commands and their options, from --help

my ($commands) = tool_ok('--help') =~ /^Commands:\n((?:  .*\n)+)/m;
my @commands = $commands =~ /^  (\S+)/mg;

is_deeply([offers('')], [sort @commands], 'the first word is a command');
is_deeply([offers('help', '')], [sort @commands], 'and so is that of help');
is_deeply([offers('me')], ['merge'], 'it is completed');
is_deeply([offers('--')], ['--help', '--version'],
          'or an option without a command');

for my $command (grep { $_ ne 'help' } @commands) {
    my $help = tool_ok($command, '--help');
    my @options = $help =~ /^  (?:-\S, |    )(--[a-z-]+)/mg;

    is_deeply([offers($command, '-')], [sort @options],
              "$command offers its options");
}

my @layouts = qw(blocked classic fuse);
is_deeply([offers('build', '--layout', '')], \@layouts, 'the layouts');
is_deeply([offers('build', '--layout', 'c')], ['classic'], 'one of them');
is_deeply([offers('build', '--layout', '=')], \@layouts, 'after "="');
is_deeply([offers('build', '--layout', '=', 'b')], ['blocked'],
          'one of them after "="');
is_deeply([offers('build', '--hash', '')], [qw(murmur3 siphash)], 'the hashes');
is_deeply([offers('build', '--form', '')], [qw(host lower raw url)],
          'the key forms');
is_deeply([offers('build', '--from', '')],
          [qw(adblock auto dnsmasq hosts json lines rpz unbound)], 'the lists');
is_deeply([offers('import', '--from', '')],
          [qw(bitmap bits-and-blooms dcso go-zero guava libbloom redisbloom
              redisson spark)], 'the formats of import');
is_deeply([offers('size', '-p', '')], [], 'a rate is nothing to offer');

for my $with (['build', '-o'], ['build', '--like'], ['info'],
              ['test', '-f'], ['merge', 'a.bloom'])
{
    is_deeply([offers(@$with, 'fi')], ['<default>'],
              "@$with is completed with files");
}
is_deeply([offers('build', '--temp', 'x')], ['<dirnames>'],
          '--temp is completed with directories');

is_deeply([offers('nonsense', '')], ['<default>'],
          'an unknown command has no completion of its own');

done_testing;


# offers(WORD...): returns what the completion offers for the last word, sorted;
# or <default> or <dirnames>, if readline is to offer files or directories.
# compopt works in a completion only, so a function stands for it.

sub offers {
    my @words = @_;

    my ($exit, $out, $err) = run_command(['bash', '-c', <<'END', '-',
        source "$1"
        shift
        options=default
        compopt() {
            while (($#)); do
                case $1 in
                    -o) options="$options $2" ;;
                    +o) options=$(sed "s/\b$2\b//g" <<< "$options") ;;
                esac
                shift 2
            done
        }
        COMP_WORDS=(ngx-bloom "$@")
        COMP_CWORD=$#
        _ngx_bloom
        printf '%s\n' "${COMPREPLY[@]}"
        if ((${#COMPREPLY[@]} == 0)); then
            for option in $options; do echo "<$option>"; done | sort -u
        fi
END
        $completion, @words]);

    is($exit, 0, "\"ngx-bloom @words\" is completed") or diag($err);
    is($err, '', 'without a message');

    return sort grep { length } split /\n/, $out;
}
