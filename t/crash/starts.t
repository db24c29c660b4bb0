#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A start dies at any step, and the next one completes what it began.

use strict;
use warnings;

use BloomTest::Crash;

crash_tests('start_dies',

    # kinds of zones   operation before the start

    ['file expire',    'an addition', torn => 1],
    ['file',           'a removal', torn => 1],
    ['grow fuse',      'an addition that begins a layer'],
    ['expire',         'an addition that opens a slice'],
    ['file grow',      'a clear', at => 'published']);
