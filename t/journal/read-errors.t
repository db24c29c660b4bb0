#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The disk cannot read a part of the journal that tells a gap from the journal's
# end.  nginx does not start then, and the journal stays as it is: when the disk
# can be read again, the records behind the gap count, and the loss is noticed.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Journal;
use BloomTest::Zones;

my $t = BloomTest->new;
my $disk = BloomTest::Disk->new($t, 'state');

$t->expect_log(qr/\[alert\].*"ids" has lost added keys/);
configure($t, ['zone=ids capacity=1k fpr=1e-9'], api => 1);


# Only a record of the second segment says that the lost record was on disk.

my $first = BloomTest::Journal->new(durable => 1);

$first->append(['before']);
my $at = $first->append(['lost']);
substr($first->{data}, $at) =~ tr/\0-\xff/\0/;
$first->append(['behind']);

my $second = $first->next_segment(durable => undef);

$second->append(['proof']);

my $third = $second->next_segment(durable => 1);

$third->append(['last']);
begin_state($t, 'ids', $first, $second, $third);

$disk->refuse('EIO', 'read', sprintf '/journal.%016x', $second->{base});
like($t->run_fails,
     qr/\[emerg\].*journal.* cannot be read .*Input\/output error/,
     'the reason is in the log');
$disk->allow;

$t->run;
is(ask($t, 'ids', qw(before behind proof last lost)), '1111?',
   'records behind the gap count, and the loss is known');


done_testing;
