#!/usr/bin/perl

# nginx -t: verifies images to the last byte, takes no memory for them, leaves
# nothing behind and does not disturb the nginx that runs.

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
    is($exit, 0, $what);
    like($output, qr/test is successful/, 'and says so');

    return $output;
}

sub fails {
    my ($what, $reason) = @_;

    my ($exit, $output) = $t->test_config;
    is($exit, 1, "$what: refused");
    like($output, qr{\[emerg\]\ image\ "\Q$dir\E/ids\.bloom"\ of\ bloom\ zone
                     \ "ids"\ $reason}x, 'file, zone and reason are named');
}

# Every path in the test's directory; nginx itself makes its logs, its pid file
# and its temporary directories.

sub files {
    return grep { !m{/(?:\w+\.log|nginx\.pid|\w+_temp)$} }
                sort glob("$dir/* $dir/.??*");
}


subtest 'without an nginx that runs' => sub {
    install($good);
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=1m fpr=0.001']);

    my @before = (files(), sort glob('/dev/shm/*bloom*'));
    unlike(passes('a good image'), qr/warn|notice/, 'and nothing else');
    is_deeply([files(), sort glob('/dev/shm/*bloom*')], \@before,
              'nothing is left behind');

    install(flipped(140));
    fails('a damaged header', qr/is damaged: .* header/);
    install(flipped(4096));
    fails('a damaged table', qr/is damaged: .* table/);
    install(flipped(8192));
    fails('a damaged first byte of the payload', qr/is damaged: .* bytes 8192/);
    install(flipped(length($good) - 1));
    fails('a damaged last byte', qr/is damaged: .* bytes/);
    install(substr $good, 0, -1);
    fails('a missing last byte', qr/is truncated/);
    install(undef);
    fails('a missing file', qr/cannot be opened/);
    symlink 'ids.bloom', "$dir/ids.bloom" or die "symlink: $!";
    fails('a link to itself', qr/cannot be opened \(\d+: /);
    install('');
    fails('an empty file', qr/is empty/);
};


subtest 'beside an nginx that runs' => sub {
    install($good);
    configure($t, ['zone=ids file=ids.bloom'], workers => 2);
    $t->run;

    my @workers = $t->workers;
    my $mark = $t->log_mark;
    my @before = files();

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

    is("@{[$t->workers]}", "@workers", 'the workers are the same');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'and answer as before');
    unlike($t->log_since($mark), qr/serves generation/,
           'nothing is loaded');
    is_deeply([files()], \@before, 'nothing is left behind');

    install($t->read_file('other.bloom'));
    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'a reload works afterwards');
    $t->stop;
};


subtest 'a size that is too small' => sub {
    install($good);
    configure($t, ['zone=ids:64k file=ids.bloom']);

    my ($exit, $output) = $t->test_config;
    is($exit, 1, 'is refused');
    my ($needs) = $output =~ /is too small: it needs (\d+k)/;
    ok(defined $needs, 'with the size needed');

    configure($t, ["zone=ids:$needs file=ids.bloom"]);
    passes('which passes');
};


# Far more than the process may map.

subtest 'memory' => sub {
    plan(skip_all => 'the address sanitizer maps terabytes by itself')
        if $ENV{TEST_NGINX_SANITIZED};

    install($good);
    configure($t, ['zone=ids:64g file=ids.bloom',
                   'zone=seen capacity=10g fpr=0.001']);

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -v 1048576; exec "$0" "$@"',
         $t->{binary}, '-p', "$dir/", '-c', 'nginx.conf', '-e', 'error.log',
         '-t']);

    is($exit, 0, 'zones of 64 and 40 gigabytes are tested within one')
        or diag($err);
    like($err, qr/test is successful/, 'with success');
};


done_testing;
