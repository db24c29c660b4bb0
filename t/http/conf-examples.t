#!/usr/bin/perl

# conf-examples/: each starts as it stands, and does what its first comment
# says: the commands are run in a directory that looks like the checkout, in
# their order.  Only the ports, and the lines that name the module, the pid
# file and the log, are replaced by those of the test.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command wait_until);
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);

my $examples = abs_path(dirname(__FILE__) . '/../../conf-examples');
my %more = (
    'dry-run.conf' => \&dry_run, 'block-list.conf' => \&block_list,
    'endpoint.conf' => \&endpoint, 'shield-add.conf' => \&kept,
    'leaked-passwords.conf' => \&leaked_passwords,
    'revoked-tokens.conf' => \&revoked_tokens,
    'redirect.conf' => \&redirect,
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

    my @commands = $text =~ /^#     (\S.*)$/mg;
    my ($start) = grep { $commands[$_] eq start_command($name) }
                       0 .. $#commands;
    my $stop = pop @commands;

    ok(defined $start, 'says how it is started') or return;
    is($stop, start_command($name) . ' -s stop', 'says how it is stopped');

    my @before = splice @commands, 0, $start;
    shift @commands;

    ok(scalar @before, 'says how its images are made');
    ok(scalar(grep { /^curl -i / } @commands), 'has requests to try');

    checkout($t);
    configure($t, $text);

    command($t, $_) for @before;
    $t->run;
    command($t, $_) for @commands;

    $more{$name}->($t) if $more{$name};
    $t->stop;
}


sub start_command {
    my ($name) = @_;

    return "nginx -e error.log -p \$PWD/conf-examples -c $name";
}


# What the commands find in the directory that they are run from.

sub checkout {
    my ($t) = @_;

    my $dir = $t->testdir;
    my $tool = $ENV{TEST_BLOOM_TOOL} // "$examples/../build/ngx-bloom";

    $t->write_file($_, content($_)) for 'local.conf', 'confirm.pl';
    $t->write_file("keys/$_", content("keys/$_"))
        for map { basename($_) } glob "$examples/keys/*";

    mkdir "$dir/top" or die "mkdir: $!";
    mkdir "$dir/top/build" or die "mkdir: $!";
    symlink '..', "$dir/top/conf-examples" or die "symlink: $!";
    symlink abs_path($tool), "$dir/top/build/ngx-bloom" or die "symlink: $!";
}


# A line of the comment: a command; a request has "# STATUS, TEXT" behind it.

sub command {
    my ($t, $line) = @_;

    my ($command, $status, $text) =
        $line =~ /^(.*?)(?:\s+\# (\d+), (\S.*))?$/;

    $command =~ s/\b127\.0\.0\.1:(80\d\d)\b/'127.0.0.1:' . $t->port($1)/ge;

    if (!defined $status) {
        unlike($command, qr/^curl -i/, "not without what it answers: $line");

        # what nginx is to write is there after a moment, too

        my ($exit, $out, $err);

        wait_until(sub {
            ($exit, $out, $err) = run_at_top($t, $command);
            return $exit == 0;
        });

        is($exit, 0, $line) or diag($err);
        return;
    }

    # a file that is watched is loaded after a moment; what changes something
    # is asked for once

    my $once = $command =~ / -(?:d|X) /;
    my $response;

    my $matches = wait_until(sub {
        $response = run_at_top($t, "$command -sS");
        return matches($response, $status, $text) ? 'yes' : $once && 'no';
    });

    is($matches, 'yes', $line) or diag($response);

    my ($path) = $command =~ m{http://[^/]+(/(?:item|go|news|old)\b[^\s']*)};

    return if !$path || $once;

    if ($status == 200) {
        like($response, qr/ answers \Q$path\E$/m,
             "$path: reaches the server behind");
    } else {
        unlike($response, qr/ answers /,
               "$path: does not reach the server behind");
    }
}


# In a list the exit status, the output and what was said of errors; else the
# output.

sub run_at_top {
    my ($t, $command) = @_;

    my $top = $t->testdir . '/top';
    my @result = run_command(['sh', '-c', "cd '$top' && $command"],
                             env => $t->{env});

    return wantarray ? @result : $result[1];
}


# Whether a response has the status and the text: a piece of the body if it
# begins with a quote, a header if it looks like one, or else the value of
# X-Bloom-Status or X-Cache-Status, "-" where there is none.

sub matches {
    my ($response, $status, $text) = @_;

    $response =~ s/\r//g;
    my ($head, $body) = split /\n\n/, $response, 2;

    return if ($head // '') !~ m{^HTTP/1\.1 $status\b};
    return index($body, $text) >= 0 if $text =~ /^"/;
    return $head =~ /^\Q$text\E$/mi if $text =~ /: /;

    my ($value) = $head =~ /^X-(?:Bloom|Cache)-Status: (.*)$/mi;

    return ($value // '-') eq $text;
}


sub configure {
    my ($t, $text) = @_;

    my $header = qr/^load_module\s.*\npid\s.*\nerror_log\s.*\n/m;

    like($text, $header, 'has the lines that the test replaces');
    $text =~ s/$header/%%TEST_GLOBALS%%\n/;
    $text =~ s/\b127\.0\.0\.1:(80\d\d)\b/127.0.0.1:%%PORT_$1%%/g;

    $t->write_file_expand('nginx.conf', $text);
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


sub endpoint {
    my ($t) = @_;

    is($t->get('/bloom/zones', port => 8082)->status, 200,
       'the endpoint for reading');

    my ($exit) = $t->run_tool('test', $t->testdir . '/backup.bloom', '1004');
    is($exit, 0, 'the backup has the key that was added');

    kept($t);
}


# Keys that were added outlive a kill -9 of everything.

sub kept {
    my ($t) = @_;

    my $id = $t->read_file('nginx.conf') =~ /bloom_add/ ? 1009 : 1004;

    $t->kill_all;
    $t->run;
    is($t->get("/item/$id")->status, 200, "$id: it is there after a crash");
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


# A listed URL is refused however it is written; and what confirm.pl asks Redis
# for is what the tool says it is looked up by.

sub redirect {
    my ($t) = @_;

    my $script = content('confirm.pl');
    my ($sub) = $script =~ /^(sub expressions \{.*?^\})/ms;

    ok(defined $sub && eval "$sub; 1", 'confirm.pl has expressions')
        or return diag($@);

    for my $url ('http://a.b.c/1/2.html?param=1', 'http://a.b.c.d.e.f.g/1.html',
                 'http://1.2.3.4/1/', 'http://example.co.uk/1', 'http://a.b/?',
                 'http://a.b/1/2/3/4/5/6.html?x=/y', 'http://[2001:db8::1]/a/')
    {
        my ($exit, $out) = $t->run_tool('expand', $url);
        my ($canonical, @want) = split /\n/, $out;

        is_deeply([sort(expressions($want[0]))], [sort @want],
                  "confirm.pl: $url");
    }
}


sub content {
    my ($name) = @_;

    open my $fh, '<', "$examples/$name" or die "cannot read $name: $!\n";
    local $/;

    return <$fh>;
}
