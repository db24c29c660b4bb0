#!/usr/bin/perl

# conf-examples/: each starts as it stands, and does what its first comment
# says.  Only the ports, and the lines that name the module, the pid file and
# the log, are replaced by those of the test.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);

my $examples = abs_path(dirname(__FILE__) . '/../conf-examples');
my %more = ('dry-run.conf' => \&dry_run, 'block-list.conf' => \&block_list);


for my $path (sort glob "$examples/*.conf") {
    my $name = basename($path);
    next if $name eq 'local.conf';

    subtest $name => sub { example($name) };
}

like(content('README.md'), qr/\Q($_)\E/, "README.md has $_")
    for grep { $_ ne 'local.conf' } map { basename($_) } glob "$examples/*.conf";

done_testing();


sub example {
    my ($name) = @_;

    my $t = BloomTest->new;
    my $text = content($name);

    my @commands = grep { !/^curl / } $text =~ /^#     (\S.*)$/mg;
    my @requests = $text =~ /^#     (curl .*)$/mg;

    is(scalar(grep { $_ eq start_command($name) } @commands), 1,
       'says how it is started');
    is(scalar(grep { $_ eq start_command($name) . ' -s stop' } @commands), 1,
       'says how it is stopped');

    $t->write_file('local.conf', content('local.conf'));
    build_images($t, @commands);
    configure($t, $text);
    $t->run;

    ok(scalar @requests, 'has requests to try');
    request($t, $_) for @requests;

    $more{$name}->($t) if $more{$name};
    $t->stop;
}


sub start_command {
    my ($name) = @_;

    return "nginx -e error.log -p \$PWD/conf-examples -c $name";
}


# The commands "build/ngx-bloom ...", with the example's directory replaced.

sub build_images {
    my ($t, @commands) = @_;

    my $dir = $t->testdir;
    my @builds = grep { s{^build/ngx-bloom }{} } @commands;

    ok(scalar @builds, 'says how its images are made');

    for my $build (@builds) {
        my @arguments = split ' ', $build;

        s{^conf-examples/keys/}{$examples/keys/} for @arguments;
        s{^conf-examples/}{$dir/} for @arguments;

        my ($exit, $out, $err) = $t->run_tool(@arguments);
        is($exit, 0, "ngx-bloom $build") or diag($err);
    }
}


sub configure {
    my ($t, $text) = @_;

    my $header = qr/^load_module\s.*\npid\s.*\nerror_log\s.*\n/m;

    like($text, $header, 'has the lines that the test replaces');
    $text =~ s/$header/%%TEST_GLOBALS%%\n/;
    $text =~ s/\b127\.0\.0\.1:(80\d\d)\b/127.0.0.1:%%PORT_$1%%/g;

    $t->write_file_expand('nginx.conf', $text);
}


# A line "curl -i URL # STATUS, VALUE": the value is that of the header
# X-Bloom-Status or X-Cache-Status, "-" where it has none.

sub request {
    my ($t, $line) = @_;

    my ($path, $status, $value) = $line =~
        m{^curl\ -i\ (?|'http://127\.0\.0\.1:8080(/[^']*)'
                       | http://127\.0\.0\.1:8080(/\S*))\ +\#\ (\d+),\ (\S+)$}x
        or return fail("cannot read: $line");

    my $response = $t->get($path);

    is($response->status, $status, "$path: status");
    is($response->header('X-Bloom-Status')
       // $response->header('X-Cache-Status') // '-', $value, "$path: $value");

    if ($status == 200) {
        like($response->body, qr/ answers \Q$path\E$/,
             "$path: reaches the server behind");
    } else {
        unlike($response->body, qr/ answers /,
               "$path: does not reach the server behind");
    }
}


sub dry_run {
    my ($t) = @_;

    my $log = wait_until(sub {
        -s $t->testdir . '/rejected.log' && $t->read_file('rejected.log');
    });

    is(() = $log =~ /\n/g, 1, 'rejected.log has one line');
    like($log, qr{"GET /item/9999 .* 200 REJECTED_DRY_RUN by ids },
         'it is about the request that would have been rejected');
    like($t->log_since(0), qr/rejecting request, dry run: key "9999" absent/,
         'the error log has a line, too');
}


sub block_list {
    my ($t) = @_;

    is($t->get('/go/malware.example')->status, 403, 'the other bad site');
    is($t->get('/confirm')->status, 404, 'clients cannot ask the service');
    is($t->get('/go/EVIL.example')->status, 404,
       'other spellings of a name find no redirector');
}


sub content {
    my ($name) = @_;

    open my $fh, '<', "$examples/$name" or die "cannot read $name: $!\n";
    local $/;

    return <$fh>;
}
