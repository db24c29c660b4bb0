#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the commands of docs/runbook.md work as they are written, for one
# node and for three, also if a node is down, lacks an entry or has another
# image.
#
# The nodes are instances of nginx at 127.0.0.1, 127.0.0.2 and 127.0.0.3, with
# the same ports.  Each command runs in a shell of its own, after the block that
# the document says to paste and after the settings of earlier commands.  The
# test replaces addresses and ports; ssh, scp, systemctl and redis-cli are
# scripts that reach the test's nginx and Redis.

use strict;
use warnings;

use BloomTest;
use BloomTest::Clock;
use BloomTest::Process qw(alive run_command spawn wait_until);
use BloomTest::Redis qw(redis_program);
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $top = abs_path(dirname(__FILE__) . '/../..');
my $tool = abs_path($ENV{TEST_BLOOM_TOOL} // "$top/build/ngx-bloom");
my $desk = BloomTest->new;    # where the operator works
my $dir = $desk->testdir;
my $listed = 'http://www.shop.example/offer?id=1&from=mail';
my @list = qw(http://shop.example/ http://mail.example/login/
              http://192.0.2.7:8080/bins/x86 http://pages.example/~mallory/
              http://last.example/);

# the document: the block to paste, and [line, command, output] by section

my ($paste, %section) = ('');

read_document();

my %settings;    # what earlier commands have set, such as URL
my @nodes;       # the instances of nginx that run

script('ngx-bloom', "exec $tool \"\$@\"");
script('redis-cli', join ' ', 'exec', program('redis-cli'),
                               "-s $dir/redis.sock \"\$@\"");
script('ssh', <<"SH");
node=\$1; shift
export PATH=$dir/bin/\$node:\$PATH
exec sh -c "\$(printf '%s' "\$*" | sed "s|/etc/nginx|$dir/node/\$node|g
    s|/var/lib/nginx/bloom|$dir/node/\$node/state|g")"
SH
script('scp', <<"SH");
test "\$1" = -q || exit 2
to=\$3; file=\${to#*:}
exec cp "\$2" "$dir/node/\${to%%:*}/\${file#/etc/nginx/}"
SH


for my $count (1, 3) {
    subtest "every command works as it is written on nodes: $count"
        => sub { everything($count) };
}

subtest 'a node that was down lacks an entry, until the file is sent'
    => \&node_down;
subtest 'a node with another image gets the image of a good one'
    => \&another_image;
subtest 'an entry is taken as it is written' => \&special_characters;
subtest 'lists of other formats lack the entry alone' => \&other_formats;
subtest 'an allowed URL allows nothing else' => \&allowed;
subtest 'an added entry goes an hour after it' => \&an_hour_later;
subtest 'what else a line says' => \&other_lines;

stop_nodes();
done_testing;


# ---- the document ----

sub read_document {
    my ($title, $block) = ('');

    open my $fh, '<', "$top/docs/runbook.md" or die "runbook.md: $!";

    while (my $line = <$fh>) {

        if ($line =~ /^##+ (.*)/ && !$block) {
            $title = $1;

        } elsif ($line =~ /^```(.*)/) {
            $block = $block ? undef : $1;

        } elsif (($block // '') eq 'sh') {
            $paste .= $line;

        } elsif (($block // '') eq 'console') {

            if ($line =~ /^\$ (.*)/) {
                push @{ $section{$title} }, [$., $1, ''];
            } else {
                $section{$title}[-1][2] .= $line;
            }
        }
    }
}


# Replaces the addresses and the ports of the document.

sub localise {
    my ($text) = @_;

    my @addresses = map { "127.0.0.$_" } 1 .. @nodes;

    $text =~ s/^NODES='[^']*'/NODES='@addresses'/m;
    $text =~ s/\b192\.0\.2\.([123])\b/127.0.0.$1/g;
    $text =~ s/\b(808[02])\b/$desk->port($1)/ge;

    return $text;
}


# Makes the output of $count nodes from that of the first one.

sub expected {
    my ($text) = @_;

    $text = join '', map { $text =~ s/^192\.0\.2\.1\b/192.0.2.$_/mgr }
                         1 .. @nodes
        if $text =~ /\A192\.0\.2\.1 ?/;
    $text =~ s/^( +)3 192/$1 . @nodes . ' 192'/me;

    my $pattern = quotemeta localise($text);
    $pattern =~ s/\\\.\\\.\\\./.*/g;

    return qr/\A$pattern\z/s;
}


# Runs a command as the operator does.  Returns its output, errors included.

sub shell {
    my ($command) = @_;

    my $before = join '', map { "$settings{$_}\n" } sort keys %settings;
    my ($exit, $out) = run_command(
        ['bash', '-c', "cd $dir/desk\nexec 2>&1\n"
                       . localise("$paste\n$before$command")],
        env => { %{ $desk->{env} || {} }, PATH => "$dir/bin:$ENV{PATH}" });

    $settings{$1} = $command if $command =~ /\A([A-Z]+)=.*\z/;

    return $out;
}


# Runs a command of the document.  A reload takes a moment, so a command that
# only looks is repeated until its output is right.

sub run_documented {
    my ($line, $command, $output) = @{ $_[0] };

    my $pattern = expected($output);
    my $out;
    my $once = sub { ($out = shell($command)) =~ $pattern };

    $once = sub { ($out = shell_with_systemctl($command)) =~ $pattern }
        if $command =~ /systemctl/;

    ok($command =~ /^(?:visit|state)/ ? wait_until($once) : $once->(),
       "line $line of docs/runbook.md works as written: $command")
        or diag($out);
}


# Runs a command that stops and starts nodes.  The script "systemctl" leaves
# what it is told in a file, and waits until the file is gone.

sub shell_with_systemctl {
    my ($command) = @_;

    my $done = "$dir/desk/output";
    my $pid = spawn(sub {
        my $out = shell($command);
        $desk->write_file('desk/output.new', $out);
        rename "$done.new", $done;
    });

    wait_until(sub {
        for my $i (0 .. $#nodes) {
            my $told = 'bin/127.0.0.' . ($i + 1) . '/told';

            next if !-s "$dir/$told";

            my $what = $desk->read_file($told);
            $what eq "stop nginx\n" ? $nodes[$i]->stop : $nodes[$i]->run;
            unlink "$dir/$told";
        }
        return -e $done;
    });
    waitpid $pid, 0;

    return $desk->read_file('desk/output');
}


# Runs the commands of a section, or those that match.

sub run_section {
    my ($title, $pattern) = @_;

    ok($section{$title}, "docs/runbook.md has the section \"$title\"")
        or return;

    run_documented($_) for grep { !$pattern || $_->[1] =~ $pattern }
                                @{ $section{$title} };
}


# ---- nodes ----

sub script {
    my ($name, $text) = @_;

    $desk->write_file("bin/$name", "#!/bin/sh\n$text\n");
    chmod 0755, "$dir/bin/$name";
}


sub program {
    my ($name) = @_;

    my ($path) = grep { -x } map { "$_/$name" } split /:/, $ENV{PATH};

    return $path // BAIL_OUT("$name is missing; run `make deps`");
}


# Starts nodes with an example configuration, with empty state, and empties the
# operator's directory.  change => a function of the configuration's text;
# list => the text of a list in another format.

sub start_nodes {
    my ($count, %option) = @_;

    my $example = $option{example} // 'enforce.conf';

    stop_nodes();
    run_command(['rm', '-rf', "$dir/desk", "$dir/node"]);
    %settings = ();

    $desk->write_file('desk/list.txt',
                      $option{list} // join '', map { "$_\n" } @list);
    $desk->write_file('desk/local.txt', "http://own.example/\n");
    mkdir "$dir/node";
    build("$dir/bad.bloom", "$dir/desk/list.txt", "$dir/desk/local.txt");

    for my $i (1 .. $count) {
        my $t = BloomTest->new;
        my $address = "127.0.0.$i";
        my $text = content("conf-examples/$example");

        $text =~ s/^load_module\s.*/%%TEST_GLOBALS%%/m;
        $text =~ s/^(?:pid|error_log)\s.*//mg;
        $text =~ s/file=urls-\w+\.bloom/file=bad.bloom/g;
        $text =~ s/\b127\.0\.0\.1:(808[012])\b/
                   ($example eq 'redirect.conf' && $1 == 8082
                    ? '127.0.0.1' : $address) . ':' . $desk->port($1)/gex;
        $text =~ s/server_name 127\.0\.0\.1\b/server_name $address/g;
        $text = $option{change}->($text) if $option{change};

        $t->write_file_expand('nginx.conf', $text);
        $t->write_file('local.conf', content('conf-examples/local.conf'));
        run_command(['cp', "$dir/bad.bloom", $t->testdir]);
        symlink $t->testdir, "$dir/node/$address" or die "symlink: $!";

        script("$address/nginx", "exec $t->{binary} -e error.log -p "
                                 . $t->testdir . '/ -c nginx.conf "$@"');
        script("$address/systemctl", "told=$dir/bin/$address/told\n"
            . 'echo "$*" > $told; while [ -e $told ]; do sleep 0.02; done');
        $option{before}->($t) if $option{before};
        $t->run;
        push @nodes, $t;
    }
}


sub stop_nodes {
    $_->stop for splice @nodes;
}


sub build {
    my ($image, $list, @options) = @_;

    my ($exit, $out, $err) = $desk->run_tool(
        'build', '-q', '-o', $image, '--form', 'url', '-p', '1e-7', '-n', '10k',
        '--from', 'auto', @options, $list);
    is($exit, 0, 'an image is built') or diag($err);
}


sub content {
    my ($name) = @_;

    open my $fh, '<', "$top/$name" or die "$name: $!";
    local $/;

    return <$fh>;
}


# Returns the statuses of all nodes for a URL, as a client gets them.

sub statuses {
    my ($url) = @_;

    my $out = shell("URL='$url'\n" . command('Block now', 'visit'));

    return join ' ', $out =~ /^127\.0\.0\.\d (\d+)$/mg;
}

sub kinds { return shell(command('Is every node the same?', 'uniq')) }

sub add {
    my ($entry) = @_;

    return shell("ENTRY='$entry'\n" . command('Block now', 'keys'));
}


# Returns the command of a section that has a word.

sub command {
    my ($title, $word) = @_;

    my ($found) = grep { $_->[1] =~ /\b$word\b/ } @{ $section{$title} };

    return $found ? $found->[1]
           : BAIL_OUT("\"$title\" of docs/runbook.md has no \"$word\"");
}


# ---- tests ----

sub everything {
    my ($count) = @_;

    my $all = sub { join ' ', ($_[0]) x $count };

    start_nodes($count);
    is(statuses('http://www.evil.example/pay/now'), $all->(200),
       'before, the URL that is to be blocked passes');
    run_section('Block now');
    is(statuses('http://www.evil.example/other'), $all->(200),
       'another directory of the site passes');
    for my $t (@nodes) {
        $t->kill_all;
        $t->run;
    }
    is(statuses('http://www.evil.example/pay/now'), $all->(403),
       'an added entry is there after kill -9 of all processes');
    run_section('Is every node the same?');
    run_section('Send the entries again');
    run_section('Give every node one image');
    is(statuses('http://www.evil.example/pay/now'), $all->(403),
       'an added entry is there after the images have been uploaded');

    start_nodes($count);
    is(statuses($listed), $all->(403), 'before, a listed URL is blocked');
    run_section('Unblock now');
    run_section('Allow the URL');

    removing($count);

    for my $way ('Load a list without the entry', 'Stop refusing') {
        start_nodes($count);
        is(statuses($listed), $all->(403), 'before, a listed URL is blocked');
        run_section('Unblock now');
        run_section($way);
    }

    stopping_twice($count);

    confirming_service($count);
}


# An entry of the list and one that was added by mistake are removed.

sub removing {
    my ($count) = @_;

    my $all = sub { join ' ', ($_[0]) x $count };
    my $title = 'Remove the entry';

    start_nodes($count);
    is(statuses($listed), $all->(403), 'before, a listed URL is blocked');
    run_section('Unblock now');
    run_section($title);
    is(statuses('http://other.shop.example/'), $all->(200),
       'all that is below a removed entry passes');
    is(statuses('http://mail.example/login/'), $all->(403),
       'another entry blocks as before');
    is($desk->read_file('desk/exceptions.txt'), "shop.example/\n",
       'the entry is kept out of the next image');

    run_section('Block now');
    $settings{ENTRY} = "ENTRY='evil.example/pay/'";
    run_documented([$_->[0], $_->[1], '...'])
        for grep { $_->[1] !~ /^(?:ENTRY|visit)/ } @{ $section{$title} };
    is(statuses('http://www.evil.example/pay/now'), $all->(200),
       'an entry that was added by mistake is gone');
    is($desk->read_file('desk/local.txt'), "http://own.example/\n",
       'the entry is no longer one of the own entries');

    run_section('Is every node the same?', qr/uniq/);
    run_section('Send the removals again');
    for my $t (@nodes) {
        $t->kill_all;
        $t->run;
    }
    is(statuses('http://www.evil.example/pay/now'), $all->(200),
       'a removed entry stays removed after kill -9 of all processes');
    is(statuses($listed), $all->(200), 'so does one of the list');
}


# Rules on trial stay on trial, and a second run does no harm.

sub stopping_twice {
    my ($count) = @_;

    start_nodes($count, change => sub {
        $_[0] =~ s/(?=bloom_reject present)
                  /bloom_reject present \$url zone=bad dry_run name=trial;\n/xr;
    });
    my $before = $nodes[0]->read_file('nginx.conf');

    shell(command('Stop refusing', 'sed')) for 1, 2;
    ok(wait_until(sub { statuses($listed) eq join ' ', (200) x $count }),
       'nothing is refused, although the rules are stopped twice');

    shell(command('Stop refusing', 's\/ dry_run'));
    ok(wait_until(sub { statuses($listed) eq join ' ', (403) x $count }),
       'the list is enforced again');
    is($nodes[0]->read_file('nginx.conf'), $before,
       'the configuration is as before: a rule on trial is on trial');
}


sub confirming_service {
    my ($count) = @_;

    my $redis = spawn([redis_program(), '--port', 0, '--dir', $dir, '--save', '',
                       '--unixsocket', "$dir/redis.sock"]);

    start_nodes($count, example => 'redirect.conf');
    ok(wait_until(sub { shell('redis-cli ping') eq "PONG\n" }),
       'Redis starts');
    shell('ngx-bloom expand --form url -f list.txt'
          . ' | awk -v RS= "{ print \$2 }" | xargs redis-cli sadd sites');

    $desk->write_file('confirm.pl', content('conf-examples/confirm.pl'));
    run_command(['perl', "$dir/confirm.pl", '127.0.0.1:' . $desk->port(8082),
                 "$dir/redis.sock"]);

    is(statuses($listed), join(' ', (403) x $count),
       'before, a listed URL is blocked');
    $settings{URL} = "URL='$listed'";
    run_section('Clear it at the confirming service');

    my ($confirm) = $desk->read_file('confirm.pid') =~ /(\d+)/;
    kill 'TERM', $confirm, $redis;
    wait_until(sub { !alive($redis) });
}


sub node_down {
    start_nodes(3);
    like(kinds(), qr/\A +3 \S+ state:serving [^\n]*\n\z/,
         'three equal nodes are one kind');

    $nodes[1]->stop;

    my $out = add('evil.example/pay/');

    like($out, qr/^127\.0\.0\.$_ \{"received":1,"added":1,.*"durable":true\}$/m,
         "node $_ gets the entry") for 1, 3;
    like($out, qr/^127\.0\.0\.2 FAILED curl: \(7\) /m,
         'the node that is down is reported');
    is(statuses('http://evil.example/pay/'), '403 000 403',
       'a client cannot reach the node that is down');
    like(kinds(), qr/^ +1 127\.0\.0\.2 FAILED curl: \(7\) [^\n]*$/m,
         'the node that is down is a kind of its own');

    $nodes[1]->run;
    is(statuses('http://evil.example/pay/'), '403 200 403',
       'the node that was down lacks the entry');

    $out = kinds();
    my %kind = $out =~ /^ +(\d) \S+ (state:serving .*)$/mg;
    my ($more, $fewer) = map { /\bbits_set:(\d+)/ } $kind{2}, $kind{1};
    cmp_ok($fewer, '<', $more, 'one of the nodes has fewer bits set')
        or diag($out);
    is($kind{1} =~ s/bits_set:\d+//r, $kind{2} =~ s/bits_set:\d+//r,
       'nothing else differs');

    shell('echo evil.example/pay/ > local.txt');
    run_section('Send the entries again');
    is(statuses('http://evil.example/pay/'), '403 403 403',
       'all nodes have the entry');

    # an entry that only two nodes have, without a file of entries

    $nodes[2]->stop;
    add('evil.example/other/');
    $nodes[2]->run;

    my ($exit, $keys) = $desk->run_tool('journal', '--keys',
                                        $nodes[0]->testdir . '/state/bad');
    like($keys, qr{\A(?:evil\.example/pay/\n)+evil\.example/other/\n\z},
       'the journal of a good node has the added entries');
    shell("printf '%s' '$keys' > local.txt");
    run_section('Send the entries again');
}


sub another_image {
    start_nodes(3);
    add('evil.example/pay/');

    $desk->write_file('desk/old.txt', "http://old.example/\n");
    build($nodes[2]->testdir . '/bad.bloom', "$dir/desk/old.txt");
    $nodes[2]->reload;

    is(statuses($listed), '403 403 200', 'a node has another image');

    my @ids = kinds() =~ /^ +[12] \S+ state:serving build_id:(\w+)/mg;
    is(scalar @ids, 2, 'there are two kinds of nodes');
    isnt($ids[0], $ids[1], 'they have different build ids');

    run_section('Give every node one image');
    is(statuses($listed), '403 403 403', 'all nodes have the image');
    is(statuses('http://evil.example/pay/'), '403 403 403',
       'all nodes have the added entry');

    # the right file was copied to the node, and not loaded

    start_nodes(3);
    build($nodes[0]->testdir . '/bad.bloom', "$dir/desk/list.txt");
    run_command(['cp', $nodes[0]->testdir . '/bad.bloom', $_->testdir])
        for @nodes[1, 2];
    $_->reload for @nodes[0, 1];
    like(kinds(), qr/^ +1 127\.0\.0\.3 state:serving /m,
         'a node that has not loaded its file differs');
    shell('each "$BLOCK/reload" -X POST');
    like(kinds(), qr/\A +3 \S+ state:serving [^\n]*\n\z/,
         'a reload makes it equal');
}


sub special_characters {
    start_nodes(1);

    my %url = (
        '@evil1.example/'                => 'http://evil1.example/',
        'http://evil2.example/a?b=c&d=e' => 'http://evil2.example/a?b=c&d=e',
        'evil3.example/it%27s'           => q(http://evil3.example/it%27s),
        'evil4.example/$HOME/`x`"\\'     => 'http://evil4.example/$HOME/`x`"/',
        'evil5.example/a b#c'            => 'http://evil5.example/a%20b',
        'evil6.example/100%25'           => 'http://evil6.example/100%25',
        '[2001:db8::1]/'                 => 'http://[2001:0db8::0001]:80/x',
        "b\303\274cher.example/"         => 'http://xn--bcher-kva.example/',
        'evil7.example/~x/(a);b|c&'      => 'http://evil7.example/~x/(a);b|c&',
    );

    for my $entry (sort keys %url) {
        is(statuses($url{$entry}), '200', "$url{$entry} passes before");
        like(add($entry), qr/"received":1,"added":1,.*"invalid":0/,
             "the entry $entry is added");
        is(statuses($url{$entry}), '403', "the entry blocks $url{$entry}");
    }

    like(add('evil1.example/'), qr/"added":0,"already_present":1,"invalid":0/,
         'an entry that is there is already present');
}


sub other_formats {
    my $load = 'Load a list without the entry';
    my @hosts = qw(shop.example last.example pages.example mail.example);
    my %list = (
        dnsmasq => join('', map { "address=/$_/0.0.0.0\n" } @hosts),
        hosts => join('', map { "0.0.0.0 $_\n" } @hosts),
        csv => join("\n", 'id,url,tags',
                    map({ qq("1","HTTP://$_:80/","a,b") } @hosts), ''),
    );

    for my $format (sort keys %list) {
        start_nodes(3, list => $list{$format});
        $settings{URL} = "URL='$listed'";
        is(statuses($listed), '403 403 403', "$format: the URL is blocked");
        run_section($load, qr/^(?!for|each "\$BLOCK\/reload)/);
        is(statuses("http://$_/"), '403 403 403', "$format: $_ stays blocked")
            for @hosts[1, 2], 'own.example';
    }

    # a file that is not the list

    $desk->write_file('desk/list.txt', "http://other.example/\n");
    like(shell(command($load, 'build')), qr/and --max-loss allows 20 %/,
         'another file is refused');

    # an image that lacks own entries, as one before local.txt was written

    like(shell("rm new.bloom; echo none.example/ > exceptions.txt\n"
               . 'printf "%s\n" shop.example/ pages.example/ last.example/'
               . " > list.txt\n" . command($load, 'build')),
         qr/no list has "none\.example\/"/, 'an entry of no list is named');
}


sub allowed {
    start_nodes(1);

    $settings{URL} = "URL='$listed'";
    run_section('Allow the URL', qr/^each.*--data-raw/);

    is(statuses($_), '200', "$_ passes") for $listed, $listed =~ s/p:/ps:/r,
        $listed =~ s/example/example:81/r;
    is(statuses($_), '403', "$_ stays blocked")
        for "$listed&utm_source=x", $listed =~ s/\?.*//r, $listed =~ s/www.//r,
            $listed =~ s{offer}{offer/more}r, 'http://shop.example/',
            'http://www.shop.example/';

    # a page and a site, which would allow all below them without "exact"

    shell("URL='$_'\n" . command('Allow the URL', 'keys'))
        for 'http://mail.example/login/', 'http://mail.example/login/x';
    is(statuses($_), '200', "$_ passes")
        for 'http://mail.example/login/', 'http://mail.example/login/x';
    is(statuses($_), '403', "$_ stays blocked")
        for 'http://mail.example/login/y', 'http://mail.example/login/x?y',
            'http://www.mail.example/login/';
}


# Tests when an added entry goes, and when an unblocked URL is blocked again.

sub an_hour_later {
    my $clock;

    start_nodes(1, change => sub { "env LD_PRELOAD;\nenv BLOOM_CLOCK_AHEAD;\n"
                                   . $_[0] },
                before => sub {
                    $clock = BloomTest::Clock->new($_[0]);
                    $clock->ahead(-3700);
                });

    $settings{URL} = "URL='$listed'";
    add('evil.example/pay/');
    run_section('Allow the URL', qr/--data-raw|printf/);
    is(statuses('http://evil.example/pay/'), '403', 'an entry blocks');

    # an image lacks the entry: as of a time less than an hour after it, then
    # as of a time more than an hour after it

    $clock->right;
    for my $as_of ([200, 403], [0, 200]) {
        build("$dir/desk/new.bloom", "$dir/desk/list.txt", '--as-of',
              time - $as_of->[0]);
        like(shell('each "$BLOCK/image" -T new.bloom'), qr/"generation":/,
             'the image is loaded');
        is(statuses('http://evil.example/pay/'), $as_of->[1],
           "as of $as_of->[0] seconds ago, the answer is $as_of->[1]");
    }

    run_section('Allow the URL', qr/DELETE|sed/);
    is(statuses($listed), '403', 'an allowed URL is blocked again');
}


sub other_lines {
    my $add = sub { add('evil.example/pay/') };

    start_nodes(1, change => sub { $_[0] =~ s/bloom_api write=on/bloom_api/r });
    like($add->(), qr/^127\.0\.0\.1 FAILED .*"read_only"/,
         'an endpoint without write=on says so');

    start_nodes(1, change => sub { $_[0] =~ s/allow 127\.0\.0\.1;//r });
    like($add->(), qr/^127\.0\.0\.1 FAILED .*<title>403 Forbidden/,
         'an endpoint that denies this machine says so');

    start_nodes(1, change => sub {
        $_[0] =~ s/server_name \S+/server_name x/r
    });
    like($add->(), qr/^127\.0\.0\.1 FAILED curl: \(52\) Empty reply/,
         'an endpoint with another name says nothing');

    start_nodes(1);
    like(shell('each other/test --data-raw x'),
         qr/FAILED .*"unknown_zone"/, 'an unknown zone is reported');
    like(add('mailto:x'), qr/"added":0,.*"invalid":1,.*"reason":"/,
         'an invalid entry is not added, and there is a reason');
    $nodes[0]->stop;
    like($add->(), qr/\A127\.0\.0\.1 FAILED curl: \(7\) .*\n\z/,
         'the only node is down');
    is(statuses('http://evil.example/pay/'), '000',
       'a client cannot reach the only node');

    # a zone without a journal: the image has to be built, copied and loaded

    start_nodes(3, change => sub {
        $_[0] =~ s/file=bad\.bloom/$& journal=off/r
    });
    like($add->(), qr/^127\.0\.0\.1 FAILED .*"no_additions"/,
         'a zone without a journal takes no additions');

    my $load = 'Load a list without the entry';
    my $file = $nodes[0]->testdir . '/bad.bloom';

    shell("echo evil.example/pay/ > local.txt; : > exceptions.txt; cp $file ."
          . ' && mv bad.bloom old.bloom');
    like(shell(command($load, 'build')), qr/new\.bloom: 6 keys/,
         'an image is built');
    like(shell(command($load, 'T new')), qr/"not_possible"/,
         'a zone without a journal takes no uploads');
    shell(command($load, $_)) for qw(scp reload);
    is(statuses('http://evil.example/pay/'), '403 403 403',
       'the new image blocks on each node');

    start_nodes(1, change => sub {
        $_[0] =~ s/file=bad\.bloom form=url/capacity=10k fpr=1e-7 form=url journal=off/r
    });
    like($add->(), qr/"added":1,.*"durable":false/,
         'a zone that starts empty and has no journal is not durable');
}
