#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx -t verifies whole images without memory for them, leaves no files
# behind, and does not disturb a running nginx.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('good.bloom', \@ids, '-p', '1e-6', '-n', 600_000);
$t->build_image('other.bloom', \@others, '-p', '1e-6', '-n', 600_000);

my $good = $t->read_file('good.bloom');

sub install {
    my ($content) = @_;

    unlink "$dir/ids.bloom";
    $t->write_file('ids.bloom', $content) if defined $content;
}

sub flipped {
    my ($offset) = @_;

    my $content = $good;
    substr($content, $offset, 1) ^= "\1";

    return $content;
}

sub passes {
    my ($what) = @_;

    my ($exit, $output) = $t->test_config;
    is($exit, 0, "nginx -t accepts $what");
    like($output, qr/test is successful/,
         "nginx -t reports success with $what");

    return $output;
}

sub fails {
    my ($what, $reason) = @_;

    my ($exit, $output) = $t->test_config;
    is($exit, 1, "nginx -t refuses $what");
    like($output, qr{\[emerg\]\ image\ "\Q$dir\E/ids\.bloom"\ of\ bloom\ zone
                     \ "ids"\ $reason}x,
                     "nginx -t names file, zone and reason for $what");
}

# Returns every path in the test's directory, except the logs, the pid file and
# nginx's own temporary directories.

sub paths {
    return grep { !m{/(?:\w+\.log|nginx\.pid|\w+_temp)$} }
                sort glob("$dir/* $dir/.??*");
}


subtest 'no nginx runs' => sub {
    install($good);
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=1m fpr=0.001']);

    my @before = (paths(), sort glob('/dev/shm/*bloom*'));
    unlike(passes('a good image'), qr/warn|notice/,
           'nginx -t gives no warning about a good image');
    is_deeply([paths(), sort glob('/dev/shm/*bloom*')], \@before,
              'nginx -t leaves no file behind');

    install(flipped(140));
    fails('a damaged header', qr/is damaged: .* header/);
    install(flipped(length($good) - 1));
    fails('a damaged last byte of the payload', qr/is damaged: .* bytes/);
};


subtest 'an nginx runs' => sub {
    install($good);
    configure($t, ['zone=ids file=ids.bloom'], workers => 2);
    $t->run;

    my @workers = $t->workers;
    my $mark = $t->log_mark;
    my @before = paths();

    for (1 .. 3) {
        install($t->read_file('other.bloom'));
        passes('another image');
        install(flipped(-1));
        fails('a damaged image', qr/is damaged/);
    }

    configure($t, ['zone=ids:100m file=ids.bloom',
                   'zone=more capacity=1k fpr=0.1'], workers => 2);
    install($good);
    passes('another configuration');

    is("@{[$t->workers]}", "@workers",
       'nginx -t does not replace the workers');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the workers answer as before nginx -t');
    unlike($t->log_since($mark), qr/serves generation/,
           'nginx -t loads no generation into the running nginx');
    is_deeply([paths()], \@before,
              'nginx -t beside a running nginx leaves no file behind');

    install($t->read_file('other.bloom'));
    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'a reload after nginx -t loads the other image');
    $t->stop;
};


# The zones are far larger than the memory that the process may map.

subtest 'zones are larger than the memory' => sub {
    plan(skip_all => 'the address sanitizer maps terabytes by itself')
        if $ENV{TEST_NGINX_SANITIZED};

    install($good);
    configure($t, ['zone=ids:64g file=ids.bloom',
                   'zone=seen capacity=10g fpr=0.001']);

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -v 1048576; exec "$0" "$@"',
         $t->{binary}, '-p', "$dir/", '-c', 'nginx.conf', '-e', 'error.log',
         '-t']);

    is($exit, 0,
       'nginx -t accepts zones of 64 and 40 gigabytes within one gigabyte')
        or diag($err);
    like($err, qr/test is successful/,
         'nginx -t reports success with zones of 64 and 40 gigabytes');
};


done_testing;
