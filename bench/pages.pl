#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures what huge pages are worth: it serves the same image in a
# zone on each kind of pages that the machine has. It changes no setting of the
# machine.

use strict;
use warnings;

use Bench;

my $rounds = rounds(7);
my $capacity = quick() ? '32m' : '546m';    # of 64 MiB, of 1 GiB
my $keys = 5000;                            # in a body
my $requests = quick() ? 2000 : 20_000;
my @kinds = qw(off transparent reserved);

my $t = BloomTest->new(log_level => 'notice');
my $image = $t->testdir . '/big.bloom';

$t->write_file('keys', join '', map { "key$_\n" } 1 .. $keys);
my ($exit, undef, $error)
    = $t->run_tool('build', '-q', '-o', $image, '-n', $capacity,
                   $t->testdir . '/keys', { limit => 600 });
$exit == 0 or die "the image cannot be built: $error";

Bench::configure($t, [map { "zone=$_ file=$image huge_pages=$_" } @kinds],
    join "\n", map {
        "location ~ ^/$_/(?<$_>.+)\$"
        . " { bloom_reject present \$$_ zone=$_; empty_gif; }"
    } @kinds);
$t->run;

section(sprintf 'Huge pages, an image of %.0f MiB', (-s $image) / 2 ** 20);

my ($worker) = $t->workers;
my (%cpu, %batch, %load, %page);

for my $round (1 .. $rounds) {
    for my $kind (@kinds) {
        my ($line) = client([second_on], 'send', '-p', $t->port(8080),
                            '-w', $worker,
                            '-f', 100_000_000 + 10_000_000 * $round,
                            "test,POST,/bloom/zones/$kind/test,100,$keys");
        push @{ $batch{$kind} }, $line->{cpu} / $line->{keys} * 1e9;

        ($line) = client([second_on], 'send', '-p', $t->port(8080),
                         '-w', $worker,
                         "one,GET,/$kind/{1000000000-9000000000},$requests,0");
        push @{ $cpu{$kind} }, $line->{cpu} / $requests * 1e6;

        $t->post("/bloom/zones/$kind/reload")->status == 200
            or die "zone $kind cannot be loaded again\n";
        until_idle($t);
        push @{ $load{$kind} },
            $t->get("/bloom/zones/$kind")->json->{load}{duration_ms} / 1e3;
        $page{$kind} = $t->get("/bloom/zones/$kind")->json->{memory}{pages};
    }
}

table(['huge_pages=', 'got', 'huge, MiB', 'a key of a batch, ns of a processor',
       'to off', 'a request, us', 'to off', 'load, s', 'to off'],
      map {
          my $kind = $_;
          [$kind, $page{$kind}{kind},
           sprintf('%.0f', $page{$kind}{huge_bytes} / 2 ** 20),
           map { my $of = $_;
                 number(median(@{ $of->{$kind} })),
                 sprintf('%.2f (%.2f to %.2f)',
                         ratios($of->{$kind}, $of->{off})) }
               \%batch, \%cpu, \%load];
      } @kinds);

line('Keys at random, absent, one worker. Batches are `POST .../test` with'
     . " $keys keys, most of whose time goes into the answer; a load is of the"
     . ' image in the page cache.');
line('');

if (-d '/sys/module/page_reporting') {
    line('The kernel can hand free huge pages back to a host that this machine'
         . ' runs on (`/sys/module/page_reporting`): then a load onto'
         . ' transparent ones waits for the host, too.');
    line('');
}

for my $kind (grep { $page{$_}{kind} ne $_ } @kinds[1, 2]) {
    line("Could not be measured: $kind ones, which this machine has not got.");
    line('');
}
