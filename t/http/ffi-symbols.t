#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that LuaJIT's ffi.C, which searches with dlsym(), can find each function
# of src/http/ngx_http_bloom_ffi.h in this nginx, whether the module is loaded or
# linked in.  lua.t calls the functions, in the installed nginx alone.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new;
my $header = abs_path(dirname(__FILE__) . '/../..')
             . '/src/http/ngx_http_bloom_ffi.h';

open my $fh, '<', $header or die "cannot read $header: $!";
my $text = do { local $/; <$fh> };
my @functions = sort $text =~ /^[a-z][\w ]*[ *](ngx_http_bloom_ffi_\w+)\(/mg;

is(scalar @functions, 6, 'the header declares the functions of docs/lua.md');

my $file = $t->{module} || $t->{binary};
my ($exit, $out, $err) = run_command(['nm', '-D', '--defined-only', $file]);

is($exit, 0, 'nm lists the dynamic symbols') or diag $err;
is_deeply([sort $out =~ / T (ngx_http_bloom_ffi_\w+)$/mg], \@functions,
          ($t->{module} ? 'the module' : 'nginx, which has the module linked in,')
          . ' exports each function, and no other of this name');


done_testing;
