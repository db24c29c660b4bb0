#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how much huge pages help: it serves the same image in a
# zone on each kind of pages that the machine has. It does not change the
# machine's settings.

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

table(['huge_pages=', 'got', 'huge, MiB', 'key of a batch, ns of a processor',
       'ratio to off', 'request, us', 'ratio to off', 'load, s',
       'ratio to off'],
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

line('Random absent keys, one worker. Batches are `POST .../test` with'
     . " $keys keys; most of their time goes into the answer. A load reads the"
     . ' image from the page cache.');
line('');

if (-d '/sys/module/page_reporting') {
    line('On a virtual machine the kernel can give free huge pages back to the'
         . ' host (`/sys/module/page_reporting`). A load onto transparent pages'
         . ' then waits for the host as well.');
    line('');
}

for my $kind (grep { $page{$_}{kind} ne $_ } @kinds[1, 2]) {
    line("Not measured: $kind huge pages, which this machine does not have.");
    line('');
}
