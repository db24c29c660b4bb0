#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# All processes die at any step of an operation, and nginx is started.

use strict;
use warnings;

use BloomTest::Crash;

crash_tests('all_die',

    # kinds of zones                        operation

    ['file fuse expire',                    'an addition'],
    ['file',                                'bloom_add'],
    ['file',                                'an addition to the next segment',
                                            fresh => 1, every => 3],
    ['grow fuse',                           'an addition that begins a layer'],
    ['expire',                              'an addition that opens a slice'],
    ['file',                                'a removal'],
    ['file',                                'a restoration of removed keys'],
    ['excepted',                            'a restoration of excepted keys'],
    ['source',                              'changes'],
    ['file',                                'a clear', every => 3],
    ['grow',                                'a clear', every => 3],
    ['file',                                'a load', every => 3],
    ['file',                                'an upload', every => 3],
    ['file expire',                         'a checkpoint', every => 3],
    ['grow expire',                         'HUP behind two checkpoints',
                                            fresh => 1],
    ['file',                                'a load after a loss', lossy => 1,
                                            every => 5],
    ['file/two',                            'a removal']);
