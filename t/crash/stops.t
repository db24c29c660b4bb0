#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process stops at any step of an operation, other operations take place
# meanwhile, and the process goes on.

use strict;
use warnings;

use BloomTest::Crash;

my @changes = ('an addition', 'bloom_add', 'a removal');
my $half = 'half a life that passes';

crash_tests('stops',

    # kinds of zones   operation

    ['file',       'an addition', meanwhile => [@changes, 'a load']],
    ['file',       'bloom_add', meanwhile => ['a load', @changes]],
    ['file',       'a removal', meanwhile => [@changes, 'a load']],
    ['file',       'a restoration of removed keys',
                   meanwhile => ['bloom_add of a removed key', @changes]],
    ['mixed',      'an addition', meanwhile => [('a load') x 3]],
    ['grow fuse',  'an addition that begins a layer',
                   meanwhile => ['an addition', 'bloom_add']],
    ['grow fuse',  'an addition that begins a layer',
                   meanwhile => ['a clear', 'an addition', 'a clear']],
    ['expire',     'an addition that opens a slice',
                   meanwhile => ['an addition', 'time that passes']],
    ['expire',     'an addition that opens a slice',
                   meanwhile => ['a clear', 'an addition', 'a clear']],
    ['expire',     'an addition that opens a slice',
                   meanwhile => ['HUP', 'an addition']],
    ['expire',     'an addition', meanwhile => [$half, 'an addition', $half]],
    ['expire',     'time that passes',
                   meanwhile => ['an addition', $half, 'an addition', $half]],
    ['source',     'changes',
                   meanwhile => ['the same changes', 'a load', 'a lookup']],

    # false positives are excepted

    ['except',     'an addition of a false positive',
                   meanwhile => ['an exception of the same key']],
    ['except',     'bloom_add of a false positive',
                   meanwhile => ['an exception of the same key']],
    ['except',     'an exception',
                   meanwhile => ['an addition of the same keys',
                                 'bloom_add of the same key']],
    ['except',     'a load', meanwhile => \@changes, lossy => 1],

    # lookups

    ['forms',      'a lookup', meanwhile => ['a load'], fresh => 1],
    ['forms',      'a lookup by rules', meanwhile => ['a load'], fresh => 1],
    ['expire',     'a lookup of an old key',
                   meanwhile => ['slices that pass',
                                 'an addition of the same keys',
                                 ('slices that pass') x 2]],

    # tasks of the helper

    ['file fuse',  'a load', meanwhile => \@changes, lossy => 1],
    ['file grow',  'a clear', meanwhile => \@changes, lossy => 1],
    ['file',       'an upload', meanwhile => \@changes, lossy => 1],
    ['file',       'a checkpoint', meanwhile => [@changes, 'a lookup']],
    ['grow',       'HUP behind two checkpoints', meanwhile => \@changes,
                   fresh => 1],
    ['file',       'a snapshot', meanwhile => [@changes, 'a lookup']],
    ['file',       'a load on a full disk', meanwhile => ['bloom_add']],

    # two instances

    ['file/two',   'an addition', meanwhile => [@changes, 'a lookup']],
    ['file/two',   'a removal', meanwhile => [@changes, 'a load']],
    ['file/two',   'a load', meanwhile => ['a removal', 'a lookup'],
                   lossy => 1],
    ['file/two',   'a clear', meanwhile => ['an addition'], lossy => 1],
    ['expire/two', 'an addition that opens a slice',
                   meanwhile => ['an addition', 'time that passes']],
    ['except/two', 'an addition of a false positive',
                   meanwhile => ['an exception of the same key']]);
