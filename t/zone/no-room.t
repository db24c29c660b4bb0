#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx -t and a start warn of a zone that takes additions and whose image has
# no room for them.

use strict;
use warnings;

use BloomTest;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @keys = map { "k$_" } 1 .. 1000;

$t->build_image('full.bloom', \@keys);
$t->build_image('over.bloom', \@keys, '-n', 900);
$t->build_image('nearly.bloom', [@keys[0 .. 990]], '-n', 1000);
$t->build_image('roomy.bloom', [@keys[0 .. 989]], '-n', 1000);
$t->build_image('one.bloom', ['one']);


# Writes a configuration of one zone.  Returns the line of its bloom_zone.

sub configuration {
    my ($image, %option) = @_;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    @{[ $option{http} // 'bloom_state_path %%TESTDIR%%/state;' ]}
    bloom_zone zone=ids file=$image.bloom @{[ $option{zone} // '' ]};
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location / {
            @{[ $option{location} // 'bloom_add $arg_id zone=ids;' ]}
        }
    }
}
CONF

    my @lines = split /^/, $t->read_file('nginx.conf');

    return (grep { $lines[$_ - 1] =~ /bloom_zone/ } 1 .. @lines)[0];
}


# What nginx -t warns of.

sub warnings_of {
    my $line = configuration(@_);
    my ($exit, $output) = $t->test_config;

    is($exit, 0, 'nginx -t accepts the configuration') or diag($output);

    return $line, grep { /\[warn\]/ && /room/ } split /\n/, $output;
}


sub message {
    my ($image, $line, $room) = @_;

    return qr{\[warn\] (?:.*: )?bloom zone "ids" in \Q$dir\E/nginx\.conf:$line takes additions, and its image "\Q$dir\E/$image\.bloom" has $room$}m;
}


for (['full', 'no room for them: it has 1000 keys and was made for 1000; build it with "-n" greater than 1000'],
     ['over', 'no room for them: it has 1000 keys and was made for 900; build it with "-n" greater than 1000'],
     ['nearly', 'hardly any room for them: it has 991 keys and was made for 1000; build it with "-n" greater than 1000'],
     ['one', 'no room for them: it has 1 key and was made for 1; build it with "-n" greater than 1'])
{
    my ($image, $room) = @$_;
    my ($line, @warnings) = warnings_of($image);

    is(scalar @warnings, 1, "nginx -t warns once of the image $image");
    like($warnings[0] // '', message($image, $line, $room),
         "the warning of the image $image has its figures");
}

# A filter that grows is made for all its layers: here for 300 + 600 keys.

$t->build_image('small.bloom', \@keys, '-n', 300);

{
    my ($line, @warnings) = warnings_of('small', zone => 'max_keys=400');

    is(scalar @warnings, 1, 'nginx -t warns of no room in the layers');
    like($warnings[0] // '',
         message('small', $line, 'no room for them: it has 1000 keys and was made for 900; build it with "-n" greater than 1000'),
         'the warning has the room with all layers');
}

my @quiet = (
    ['roomy', {}, 'an image with room'],
    ['full', { zone => 'max_keys=2k' }, 'a zone whose filter will grow'],
    ['full', { location => 'bloom_reject absent $arg_id zone=ids;' },
     'a zone that takes no additions'],
    ['full', { location => 'bloom_api;' }, 'an endpoint without write=on'],
    ['full', { http => 'bloom_zone zone=other capacity=1k fpr=0.1;',
               location => 'bloom_api write=on zone=other;' },
     'an endpoint at which the zone does not exist'],
    ['full', { zone => 'journal=off' }, 'a zone without a journal'],
    ['full', { http => 'bloom_state_path off;' },
     'a zone without a state directory'],
);

for (@quiet) {
    my ($image, $option, $what) = @$_;
    my ($line, @warnings) = warnings_of($image, %$option);

    is(scalar @warnings, 0, "nginx -t does not warn of $what");
}

for (['bloom_api write=on;', 'an endpoint that takes keys'],
     ["bloom_reject absent \$arg_id zone=ids;\nbloom_audit 1% add=on;",
      'an audit that adds keys'])
{
    my ($location, $what) = @$_;
    my ($line, @warnings) = warnings_of('full', location => $location);

    is(scalar @warnings, 1, "nginx -t warns of no room for $what");
}

my $line = configuration('full');
my $mark = $t->log_mark;
$t->run;
like($t->log_since($mark),
     message('full', $line, qr/no room for them: [^\n]*/),
     'a start warns, too');

done_testing;
