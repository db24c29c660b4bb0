#!/usr/bin/perl

# conf-examples/: each starts as it stands, and does what its first comment
# says.  Only the ports, and the lines that name the module, the pid file and
# the log, are replaced by those of the test.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command wait_until);
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);

my $examples = abs_path(dirname(__FILE__) . '/../conf-examples');
my %more = (
    'dry-run.conf'          => \&dry_run,
    'block-list.conf'       => \&block_list,
    'leaked-passwords.conf' => \&leaked_passwords,
    'revoked-tokens.conf'   => \&revoked_tokens,
);


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


# The commands with "build/ngx-bloom", run by a shell as they stand but for the
# example's directory and the tool.

sub build_images {
    my ($t, @commands) = @_;

    my $dir = $t->testdir;
    my $tool = abs_path($ENV{TEST_BLOOM_TOOL}
                        // dirname(__FILE__) . '/../build/ngx-bloom');
    my @builds = grep { m{(?:^|\| )build/ngx-bloom } } @commands;

    ok(scalar @builds, 'says how its images are made');

    for my $build (@builds) {
        my $command = $build;

        $command =~ s{\bconf-examples/keys/}{$examples/keys/}g;
        $command =~ s{(?<=\s)conf-examples/}{$dir/}g;
        $command =~ s{(?<!\S)build/ngx-bloom }{'$tool' };

        my ($exit, $out, $err) = run_command(['sh', '-c', $command]);
        is($exit, 0, $build) or diag($err);
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


# A line "curl -i [-H 'NAME: VALUE'] URL # STATUS, VALUE": the last value is that
# of the header X-Bloom-Status or X-Cache-Status, "-" where it has none.

sub request {
    my ($t, $line) = @_;

    my ($name, $content, $path, $status, $value) = $line =~
        m{^curl\ -i\ (?:-H\ '([^:']+):\ ([^']*)'\ )?(?|'http://127\.0\.0\.1:8080(/[^']*)'
                       | http://127\.0\.0\.1:8080(/\S*))\ +\#\ (\d+),\ (\S+)$}x
        or return fail("cannot read: $line");

    my $response = $t->get($path,
                           headers => [defined $name ? ($name, $content) : ()]);

    my $asked = $path;
    $path .= " with $content" if defined $content;

    is($response->status, $status, "$path: status");
    is($response->header('X-Bloom-Status')
       // $response->header('X-Cache-Status') // '-', $value, "$path: $value");

    if ($status == 200) {
        like($response->body, qr/ answers \Q$asked\E$/,
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


# The list's other hashes; and the count is no part of a key.

sub leaked_passwords {
    my ($t) = @_;

    my @hashes = content('keys/leaked-sha1.txt') =~ /^([0-9A-F]{40}):\d+$/mg;

    is(scalar @hashes, 4, 'the list is as it is published');
    is($t->get("/leaked/$_")->header('X-Bloom-Status'), 'PASSED',
       "$_ is in the image") for @hashes;
}


sub revoked_tokens {
    my ($t) = @_;

    my $ask = sub {
        $t->get('/api/', headers => [Authorization => $_[0]])->status;
    };

    is($ask->('bearer  8a20c95d-revoked '), 401, 'another spelling of Bearer');
    is($ask->('Basic 8a20c95d-revoked'), 200, 'another scheme is not checked');
    is($t->get('/introspect')->status, 404, 'clients cannot ask the issuer');
}


sub content {
    my ($name) = @_;

    open my $fh, '<', "$examples/$name" or die "cannot read $name: $!\n";
    local $/;

    return <$fh>;
}
