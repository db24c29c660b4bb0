#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how much huge pages help: it serves the same image from
# an nginx that gets none, and from one that gets those that the machine permits.
# It does not change the machine's settings.

use strict;
use warnings;

use Bench;
use BloomTest::Zones qw(small_pages);

my $rounds = rounds(7);
my $capacity = quick() ? '32m' : '546m';    # of 64 MiB, of 1 GiB
my $keys = 5000;                            # in a body
my $requests = quick() ? 2000 : 20_000;
my @kinds = qw(small huge);
my %nginx = map { $_ => BloomTest->new(log_level => 'notice') } @kinds;

my $t = $nginx{small};
my $image = $t->testdir . '/big.bloom';

$t->write_file('keys', join '', map { "key$_\n" } 1 .. $keys);
my ($exit, undef, $error)
    = $t->run_tool('build', '-q', '-o', $image, '-n', $capacity,
                   $t->testdir . '/keys', { limit => 600 });
$exit == 0 or die "the image cannot be built: $error";

for my $kind (@kinds) {
    small_pages($kind eq 'small');
    Bench::configure($nginx{$kind}, ["zone=big file=$image"],
        'location ~ ^/big/(?<key>.+)$'
        . ' { bloom_reject present $key zone=big; empty_gif; }');
    $nginx{$kind}->run;
}

section(sprintf 'Huge pages, an image of %.0f MiB', (-s $image) / 2 ** 20);

my (%cpu, %batch, %load, %huge);

for my $round (1 .. $rounds) {
    for my $kind (@kinds) {
        my $t = $nginx{$kind};
        my ($worker) = $t->workers;

        my ($line) = client([second_on], 'send', '-p', $t->port(8080),
                            '-w', $worker,
                            '-f', 100_000_000 + 10_000_000 * $round,
                            "test,POST,/bloom/zones/big/test,100,$keys");
        push @{ $batch{$kind} }, $line->{cpu} / $line->{keys} * 1e9;

        ($line) = client([second_on], 'send', '-p', $t->port(8080),
                         '-w', $worker,
                         "one,GET,/big/{1000000000-9000000000},$requests,0");
        push @{ $cpu{$kind} }, $line->{cpu} / $requests * 1e6;

        $t->post('/bloom/zones/big/reload')->status == 200
            or die "the image cannot be loaded again on $kind pages\n";
        until_idle($t);

        my $state = $t->get('/bloom/zones/big')->json;
        push @{ $load{$kind} }, $state->{load}{duration_ms} / 1e3;
        $huge{$kind} = $state->{memory}{huge_bytes};
    }
}

table(['pages', 'huge, MiB', 'key of a batch, ns of a processor',
       'ratio to small', 'request, us', 'ratio to small', 'load, s',
       'ratio to small'],
      map {
          my $kind = $_;
          [$kind,
           sprintf('%.0f', $huge{$kind} / 2 ** 20),
           map { my $of = $_;
                 number(median(@{ $of->{$kind} })),
                 sprintf('%.2f (%.2f to %.2f)',
                         ratios($of->{$kind}, $of->{small})) }
               \%batch, \%cpu, \%load];
      } @kinds);

line('Random absent keys, one worker. Batches are `POST .../test` with'
     . " $keys keys; most of their time goes into the answer. A load reads the"
     . ' image from the page cache.');
line('');

if (-d '/sys/module/page_reporting') {
    line('On a virtual machine the kernel can give free huge pages back to the'
         . ' host (`/sys/module/page_reporting`). A load onto huge pages'
         . ' then waits for the host as well.');
    line('');
}

if ($huge{huge} == 0) {
    line('Huge pages are not measured: this machine permits none.');
    line('');
}
