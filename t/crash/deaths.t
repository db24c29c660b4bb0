#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process dies at any step of an operation, and nginx goes on.

use strict;
use warnings;

use BloomTest::Crash;

crash_tests('dies',

    # kinds of zones                        operation

    ['file fuse grow/memory expire/memory', 'an addition'],
    ['file',                                'a durable addition'],
    ['file expire',                         'bloom_add'],
    ['file',                                'an addition of removed keys'],
    ['file',                                'bloom_add of a removed key'],
    ['file',                                'an addition to the next segment',
                                            fresh => 1, every => 3],
    ['grow fuse',                           'an addition that begins a layer'],
    ['expire',                              'an addition that opens a slice'],
    ['expire large',                        'time that passes'],
    ['except',                              'an addition of a false positive'],
    ['except',                              'an exception'],

    ['file expire grow',                    'a removal'],
    ['file',                                'a durable removal'],
    ['file',                                'a durable removal', fresh => 1],
    ['file',                                'DELETE'],
    ['file',                                'bloom_remove'],
    ['file',                                'a restoration of removed keys'],
    ['excepted',                            'a restoration of excepted keys'],

    ['source',                              'changes'],
    ['source',                              'changes in parts'],
    ['source',                              'a gap'],
    ['source',                              'an image at a later position'],

    ['file fuse grow expire grow/memory',   'a clear'],
    ['file fuse',                           'a load'],
    ['file',                                'an upload'],
    ['file grow expire',                    'a checkpoint'],
    ['grow expire',                         'HUP behind two checkpoints',
                                            fresh => 1],
    ['file',                                'a snapshot'],
    ['file',                                'a load after a loss', lossy => 1,
                                            every => 3],
    ['file',                                'bloom_add after a loss',
                                            lossy => 1, every => 2],
    ['file expire/two grow/memory',         'a key that is owed', lossy => 1],
    ['file',                                'HUP'],

    ['file/two',                            'an addition'],
    ['file/two',                            'an addition to the next segment',
                                            fresh => 1, every => 3],
    ['file/two',                            'a removal'],
    ['file/two',                            'a restoration of removed keys'],
    ['file/two grow/two',                   'a clear'],
    ['grow/two',                            'an addition that begins a layer'],
    ['expire/two',                          'an addition that opens a slice'],
    ['source/two',                          'changes']);
