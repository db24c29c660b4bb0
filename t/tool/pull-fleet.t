#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests a hundred nodes that run ngx-bloom-pull at the same time against one
# nginx: how often it sends the image, and how many bytes.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command spawn now wait_until);
use BloomTest::Pull;
use POSIX qw(WNOHANG);

use constant NODES => 100;

my $t = pull_test(BloomTest->new(module => 0));
my $dir = $t->testdir;

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    log_format pull '$request_uri $status $bytes_sent $body_bytes_sent';
    access_log pull.log pull;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root www;
    }
}
CONF
$t->run;

my $url = 'http://127.0.0.1:' . $t->port(8080) . '/ids.bloom';
my @signed = ('--public-key', public_key('first'));
my ($old, $new) = map { image($_, 20_000) } 1, 2;

# Runs a pull on each node.  Returns how many exited with each status.

sub round {
    my %pid;

    for my $node (1 .. NODES) {
        my ($command, %option) = pull_command($url, "$node.bloom", @signed);
        $pid{ spawn($command, %option) } = $node;
    }

    my %exits;

    wait_until(sub {
        for my $pid (keys %pid) {
            next if waitpid($pid, WNOHANG) != $pid;
            delete $pid{$pid};
            $exits{$? >> 8}++;
        }
        return !%pid;
    }, 200) or die 'pulls do not end';

    return \%exits;
}

# Returns the requests of the round in the origin's log, once it has so many.

my $seen = 0;

sub requests {
    my ($count) = @_;

    my @lines;
    wait_until(sub {
        @lines = split /\n/, substr(content("$dir/pull.log") // '', $seen);
        return @lines >= $count;
    });
    $seen = length(content("$dir/pull.log") // '');

    return map { [split] } @lines;
}

sub count {
    my ($what, $status, @requests) = @_;

    return scalar grep { $$_[0] =~ /$what$/ && $$_[1] == $status } @requests;
}

sub bytes {
    my $sum = 0;
    $sum += $$_[2] for @_;

    return $sum;
}

for (['the first image', $old, 0], ['an unchanged image', $old, 1],
     ['a new image', $new, 0])
{
    my ($what, $image, $status) = @$_;
    my $began = now();

    publish('ids.bloom', $image, 'first') if $status == 0;
    is_deeply(round(), { $status => NODES },
              "$what: each of the nodes exits with $status");

    my $took = sprintf '%.1f', now() - $began;
    my $sent = $status == 0 ? NODES : 0;
    my @requests = requests(NODES + $sent);
    my ($whole, $not_modified) = (count('bloom', 200, @requests),
                                  count('bloom', 304, @requests));

    is($whole, $sent, "$what: the image was sent $sent times");
    is($not_modified, NODES - $sent, "$what: the other answers are 304");
    is(count('minisig', 200, @requests), $sent,
       "$what: the signature was sent as often");
    cmp_ok(bytes(@requests), '<=', $sent * (length($image) + 1000) + NODES * 300,
           "$what: an answer 304 has no more than 300 bytes");

    my @wrong = grep { content("$dir/node/$_.bloom") ne $image } 1 .. NODES;
    is("@wrong", '', "$what: each of the nodes has the image");

    note("$what, ", length $image, " bytes: $whole answers 200, $not_modified"
         . ' answers 304, ', bytes(@requests), " bytes sent in $took s");
}

done_testing;
