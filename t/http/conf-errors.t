#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that nginx refuses wrong directives and images of the module, and warns
# of directives that do not do what they seem to do.  Its message names the file,
# the line, the value and what to do.  What it says about the parameters of
# directives is read from their tables in the source.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use POSIX ();

use BloomTest;
use BloomTest::Image qw(patch_header);
use BloomTest::Process qw(run_command);

my $top = abs_path(dirname(__FILE__) . '/../..');

require "$top/scripts/tables.pl";

my $t = BloomTest->new;
my $dir = $t->testdir;
my $program = qr/(?:nginx|angie)/;    # Angie's messages begin with its own name

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '-n', '1k', '--seed', 1,
                '--as-of', time);


# Writes an nginx.conf with these lines in its block http, server or location.
# A line with > is that of the error; "; >" begins a line.  Returns the number of
# the line.

sub write_conf {
    my ($where, $lines) = @_;

    my %text = (http => '', server => '', location => '', $where => $lines);

    s/([;{}]) >/$1\n>/g for values %text;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=ids file=ids.bloom;
    $text{http}
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location \@known { }
        $text{server}
        location / {
            $text{location}
        }
    }
}
CONF

    my $conf = $t->read_file('nginx.conf');
    my $line = line_of($conf, qr/^\s*>/);
    $conf =~ s/^(\s*)>/$1/m;
    $t->write_file('nginx.conf', $conf);

    return $line;
}


sub line_of {
    my ($text, $pattern) = @_;

    my @lines = split /^/, $text;

    return (grep { $lines[$_ - 1] =~ $pattern } 1 .. @lines)[0];
}


# Returns lines of a configuration as they are called in the name of a test.

sub quoted {
    my ($where, $lines) = @_;

    my $text = $lines =~ s/>(?=\w)//r =~ s/\s+/ /gr;

    return "'" . (length $text > 200 ? substr($text, 0, 200) . '...' : $text)
           . "' in $where";
}


# Tests that nginx refuses the lines with a message that has these texts and the
# line of the error.  In a text, SERVER stands for the line of the server, and
# BEFORE for the line before that of the error.

sub is_refused {
    my ($where, $lines, @texts) = @_;

    my $line = write_conf($where, $lines);
    my $server = line_of($t->read_file('nginx.conf'), qr/server \{/);
    my ($exit, $output) = $t->test_config;
    my ($message) = $output =~ /^$program: \[emerg\] (.*)$/m;

    s/\bSERVER\b/nginx.conf:$server/, s/\bBEFORE\b/'nginx.conf:' . ($line - 1)/e
        for @texts;

    my @missing = grep { index($message // '', $_) < 0 }
                       @texts, "$dir/nginx.conf:$line";

    ok($exit != 0 && !@missing, 'nginx refuses ' . quoted($where, $lines))
        or diag("exit status $exit, missing: @missing\ngot:\n$output");
}


sub is_accepted {
    my ($where, $lines) = @_;

    write_conf($where, $lines);
    my ($exit, $output) = $t->test_config;

    is($exit, 0, 'nginx accepts ' . quoted($where, $lines)) or diag($output);

    return $output;
}


# Tests that nginx accepts the lines and warns with these texts and the marked
# line, or of nothing if there is no text.

sub is_warned {
    my ($where, $lines, @texts) = @_;

    my $line = write_conf($where, $lines);
    my @warnings = is_accepted($where, $lines) =~ /\[warn\] (.*)/g;
    my $shown = quoted($where, $lines);

    return is("@warnings", '', "nginx warns of nothing in $shown") if !@texts;

    my @missing = grep { index("@warnings", $_) < 0 }
                       @texts, "$dir/nginx.conf:$line";

    is("@missing", '', "nginx warns of $shown") or diag("got: @warnings");
}


# Tests a table of configurations.  The line "[BLOCK]" begins those in a block.
# A configuration, which may go on in lines that begin with spaces, stands before
# "=>", and behind it "ok", "quiet" (nginx warns of nothing), or the words that
# the message has: of an error, or of a warning after "warns".  Z is a zone that
# starts empty.

sub verdicts {
    my ($table) = @_;

    my $where;

    for my $row (grep { /\S/ } split /\n(?=\S)/, $table) {
        if ($row =~ /^\[(\w+)\]$/) {
            $where = $1;
            next;
        }

        my ($lines, $words) = $row =~ /^\s*(.*?)\s+=>\s+(.*)$/s
            or die "not a row: $row";
        my @words = split ' ', $words;

        $lines =~ s/\n\s+/ /g;
        $lines =~ s/\bZ\b/bloom_zone zone=z capacity=1k fpr=0.1/;
        $lines =~ s/^(?!.*>\w)/>/;

        if ($words[0] eq 'ok') {
            is_accepted($where, $lines);
        } elsif ($words[0] eq 'quiet') {
            is_warned($where, $lines);
        } elsif ($words[0] eq 'warns') {
            is_warned($where, $lines, @words[1 .. $#words]);
        } else {
            is_refused($where, $lines, @words);
        }
    }
}


# ---- the parameters of directives, by their tables ----

# The files with tables of parameters, by table.

my %table = (
    zone     => ['conf_zone', 'conf_zone_table'],
    key      => ['conf_key', 'conf_key_table'],
    audit    => ['audit', 'audit_table'],
    feedback => ['feedback', 'feedback_table'],
    endpoint => ['api/ngx_http_bloom_endpoint', 'endpoint_table'],
);

# Directives: their table, the groups of rows that they take, the block, and the
# lines, where parameters are put in place of %s.

my %directive = (
    bloom_zone => ['zone', 'ZONE', 'http',
                   'bloom_zone zone=z capacity=1k fpr=0.1 %s;'],
    bloom_guard => ['zone', 'GUARD', 'http',
                    'Z; bloom_guard zone=z %s;'],
    bloom_source => ['zone', 'SOURCE', 'http',
                     'Z; bloom_source zone=z name=s %s;'],
    bloom_lookup => ['key', 'KEY', 'http',
                     'bloom_lookup $uri $known zone=ids %s;'],
    bloom_reject => ['key', 'KEY REJECT RULE', 'location',
                     'bloom_reject absent $uri zone=ids %s;'],
    bloom_pass => ['key', 'KEY RULE', 'location',
                   'bloom_pass absent $uri zone=ids %s;'],
    bloom_route => ['key', 'KEY ROUTE RULE', 'location',
                    'bloom_route absent $uri zone=ids to=@known %s;'],
    bloom_add => ['key', 'KEY CHANGE', 'location',
                  'bloom_add $uri zone=ids %s;'],
    bloom_remove => ['key', 'KEY CHANGE', 'location',
                     'bloom_remove $uri zone=ids %s;'],
    bloom_audit => ['audit', 'AUDIT', 'server', 'bloom_audit 1% %s;'],
    bloom_feedback => ['feedback', 'FEEDBACK', 'http',
                       'bloom_feedback 404 %s;'],
    bloom_api => ['endpoint', 'ENDPOINT', 'location', 'bloom_api %s;'],
);

# Values, by table and parameter: those that are refused, and those that are
# accepted.  The empty value is refused by each parameter.

my %value = (
    'zone zone=' => [[], ['z']],
    'zone file=' => [[], ['ids.bloom']],
    'zone capacity=' => [
        [qw(0 0k k -1 1.5 1x 1kk 4399g 18446744073709551616
            18446744073709551615g 0x10)], [qw(1 10k 1M 1g)]],
    'zone fpr=' => [
        [qw(0 1 0.51 51% 9e-10 -0.1 +0.1 .1x x 0x1p-3 inf nan 1e-400 0.1%%),
         '0,1', '1' x 100], [qw(0.5 1% 1e-9)]],
    'zone layout=' => [[qw(round Blocked blockedx fuse)], [qw(blocked classic)]],
    'zone hash=' => [[qw(md5 murmur)], [qw(murmur3 siphash)]],
    'zone form=' => [[qw(cooked URL)], [qw(raw lower host url)]],
    'zone max_keys=' => [
        [qw(0 0k -1 1.5k 1x off 4399g 18446744073709551616 0x10)],
        [qw(1001 2K 131071000)]],
    'zone removals=' => [
        [qw(-1 1.5 1x off 10000001 11m 1g 18446744073709551616 0x10)],
        [qw(0 1 10k 100K)]],
    'zone expire=' => [
        [qw(0 1s 1999ms -1h 1x off 3651d 99999999d)], [qw(2000ms 8s 1d 3650d)]],
    'zone watch=' => [['0', '-1s', 'x'], ['1ms', '1h']],
    'zone max_age=' => [['0', '-1s', 'x'], ['1s', '1h']],
    'zone required=' => [['yes'], [qw(on off)]],
    'zone journal=' => [[qw(yes On 1)], [qw(auto on off)]],
    'zone label=' => [
        ['x' x 101, "a\tb", "\x7f", "\xc3", "\xc2\x85", "a\xe2\x80\xaeb",
         "a\xd8\x9cb", "\xf0\x9f\x98", 'R&D', '<b>', '"URLhaus"'],
        ['x', 'x' x 100, "Abuse.ch \xc3\x96 \$1 \xf0\x9f\x98\x80"]],
    'zone must_have=' => [[], ['a']],
    'zone must_not_have=' => [[], ['a']],
    'zone min_keys=' => [[qw(0 -1 1.5k 10% 9999g)], ['1k']],
    'zone max_loss=' => [
        [qw(-1% -1 1.5 .5% 1e2% 20%% 100.1% 4399g off)],
        [qw(0.5% 100% 0 4398g)]],
    'zone max_growth=' => [
        [qw(-1% -1 1.5 .5% 1e2% 20%% 1000001% 4399g off)],
        [qw(1000000% 0% 10k)]],
    'zone name=' => [['a+b', 'a,b', 's' x 256], ['s', 'a.b_c:d/e-f']],
    'zone max_lag=' => [[qw(0 999ms x -1s on)], [qw(1s off)]],

    'key zone=' => [['ids:1m'], ['ids']],
    'key decode=' => [[qw(on url Form)], [qw(uri form off)]],
    'key if=' => [['reads', 1], ['$uri']],
    'key status=' => [
        [qw(200 302 399 600 404x -404 99999999999999999999)], [qw(400 599)]],
    'key to=' => [
        [qw(@ name known http://example.com/ $uri @$arg_x)],
        [qw(@known / /x?y=$arg_z)]],
    'key split=' => [[',,', 'comma'], [',']],
    'key match=' => [[qw(every All)], ['any split=,', 'all split=,']],
    'key invalid=' => [[qw(on off Fire firex passed)], [qw(fire pass)]],
    'key empty=' => [[qw(on off Fire)], [qw(fire pass)]],
    'key exact' => [[], ['']],
    'key dry_run' => [[], ['']],
    'key name=' => [[], ['list']],

    'audit add=' => [['yes'], [qw(on off)]],
    'audit rate=' => [
        [qw(1 r/s 0r/s -1r/s 1r/h 1.5r/s 1000001r/s 10r/sx on)],
        [qw(1r/m 1000000r/s)]],
    'feedback except=' => [['yes'], [qw(on off)]],
    'feedback rate=' => [[qw(0r/s 1000001r/s 10r/sx)], ['10r/s']],
    'feedback after=' => [
        [qw(0 999ms 601s 11m 1d -1m x 1sx)], [qw(1s 10m)]],
    'endpoint write=' => [['maybe'], [qw(on off)]],
    'endpoint image=' => [['maybe'], [qw(on off)]],
    'endpoint zone=' => [['ids:1m'], ['ids']],
);


# Returns a table of the source.  `file` is a part of a name in src/http/.

sub source_table {
    my ($file, $name) = @_;

    $file = "ngx_http_bloom_$file" if $file !~ m{/};

    return map { $_->{columns} }
               Tables::table("$top/src/http/$file.c", "ngx_http_bloom_$name");
}


# Returns the text of a macro of the header for directives.

sub macro {
    my ($name) = @_;

    open my $in, '<', "$top/src/http/ngx_http_bloom_conf.h" or die "header: $!";
    my $header = do { local $/; <$in> };
    my ($text) = $header =~ /^#define $name\b[\s\\]*"((?:[^"\\]|\\.)*)"/m
        or die "no text $name";

    return $text =~ s/\\(.)/$1/gr;
}


# Returns the texts that a message about a wrong value has: what the row says
# that it must be, or the names of its choice.

sub wanted {
    my ($file, $post, $want) = @_;

    return ref $want ? $$want : $want eq 'NULL' ? () : macro($want)
        if $post eq 'NULL' || $want ne 'NULL';

    $file = 'conf' if $post eq 'ngx_http_bloom_conf_on_off';

    return map { "\"$$_\"" } grep { ref }
           map { $_->[0] } source_table($file, $post =~ s/^ngx_http_bloom_//r);
}


# The rows of each table: name, whether a directive takes it, whether it is gone,
# the texts about a wrong value, and what it goes with.

my %rows;

for my $name (keys %table) {
    my ($file) = @{ $table{$name} };

    for (source_table(@{ $table{$name} })) {
        my ($parameter, $where, $read, undef, $post, $want) = @$_;
        next if !ref $parameter;

        my %in = map { s/NGX_HTTP_BLOOM_CONF_//r => 1 } split /\|/, $where;

        push @{ $rows{$name} },
             { name => $$parameter, in => \%in, gone => $read eq 'NULL',
               want => [$read =~ /range/ ? () : wanted($file, $post =~ /\(/
                                                       ? 'NULL' : $post, $want)] };
    }
}


# Returns the rows that a directive takes.

sub taken {
    my ($table, $groups) = @{ $directive{$_[0]} };

    return grep { my $in = $_->{in}; grep { $in->{$_} } split ' ', $groups }
                @{ $rows{$table} };
}


# Returns the block and the lines of a directive with a parameter, which replaces
# one of the same name.

sub lines_with {
    my ($directive, $parameter) = @_;

    my (undef, undef, $where, $lines) = @{ $directive{$directive} };
    my ($name) = $parameter =~ /^'?(\w+=)/;

    $lines =~ s/\bZ\b/bloom_zone zone=z capacity=1k fpr=0.1/;
    $lines =~ s/^(.*)(?=\b$directive\b)/$1>/s;
    $lines =~ s/>$directive\b.*?\K \Q$name\E\S+(?= )// if defined $name;
    $lines =~ s/%s/$parameter/;

    return ($where, $lines);
}


for my $directive (sort keys %directive) {
    my ($table) = @{ $directive{$directive} };
    my @taken = taken($directive);

    subtest "the parameters of $directive" => sub {
        is_refused(lines_with($directive, $_),
                   "invalid parameter \"$_\"", "\"$directive\" takes",
                   map { "\"$_->{name}\"" } grep { !$_->{gone} } @taken)
            for 'colour=red', 'exact=on',
                $directive eq 'bloom_feedback' ? () : ('capacity', 'exac', '=');

        for my $row (@taken) {
            my $name = $row->{name};

            if ($row->{gone}) {
                is_refused(lines_with($directive, "$name$_"),
                           "invalid parameter \"$name$_\"", @{ $row->{want} })
                    for '', '1';
                next;
            }

            my ($refused, $accepted) = @{ $value{"$table $name"}
                                          // die "no values of $name" };

            if ($name =~ /=$/) {
                is_refused(lines_with($directive, "'$name$_'"),
                           "invalid value \"$_\" of \"$name\"",
                           @{ $row->{want} })
                    for '', @$refused;
            }

            # each line has a zone

            for my $value ($name eq 'zone=' ? () : @$accepted) {
                my ($where, $lines) = lines_with($directive, "'$name$value'"
                                                 =~ s/ split=,'/' split=,/r);

                $lines =~ s/ capacity=1k fpr=0.1// if $name eq 'file=';
                $lines =~ s/capacity=1k fpr=0.1/file=ids.bloom/
                    if $row->{in}{FILE};
                is_accepted($where, $lines);
            }

            my $twice = "$name$accepted->[0]";

            is_refused(lines_with($directive, "$twice $name$accepted->[0]"),
                       "duplicate parameter \"$name");
        }

        for my $row (grep { $_->{in}{MUST} } @taken) {
            my ($where, $lines) = lines_with($directive, "$row->{name}x ");

            $lines =~ s/ \Q$row->{name}\Ex//;
            is_refused($where, $lines, "\"$directive\" directive must have",
                       "\"$row->{name}\"");
        }
    };
}


subtest 'a parameter of another directive with zones is named' => sub {
    my %of = map { $_ => { map { $_->{name} => 1 } taken($_) } }
                 qw(bloom_zone bloom_guard bloom_source);

    for my $directive (sort keys %of) {
        for my $other (grep { $_ ne $directive } sort keys %of) {
            is_refused(lines_with($directive, "${_}1"),
                       "invalid parameter \"${_}1\"", "parameter of \"$other\"")
                for grep { !$of{$directive}{$_} }
                    map { $_->{gone} ? () : $_->{name} } taken($other);
        }
    }
};


subtest 'parameters that do not go together' => sub {
    for my $row (taken('bloom_zone')) {
        my ($has, $goes) = $row->{in}{FILE} ? ('capacity=1k fpr=0.1', 'file=')
                                            : ('file=ids.bloom', 'capacity=');
        my ($in) = $has =~ /^(\w+=)/;

        next if $row->{name} =~ /^(?:file|capacity)=$/
                || !$row->{in}{FILE} && !$row->{in}{CAPACITY};

        my $value = $value{"zone $row->{name}"}[1][0];

        is_refused('http', ">bloom_zone zone=z $has $row->{name}$value;",
                   '"z"', "\"$in\"", "\"$row->{name}\"", "\"$goes\" only");
    }
};


# ---- other errors ----

subtest 'zones, guards and sources' => sub { verdicts(<<'END') };
[http]
bloom_zone;                                     => arguments "bloom_zone"
bloom_zone file=ids.bloom;                      => "bloom_zone" "zone="
bloom_zone zone= file=ids.bloom;                => zone= name of a zone
bloom_zone zone=:1m file=ids.bloom;             => zone= name of a zone
bloom_zone zone=z;                              => "z" file= fpr= neither
bloom_zone zone=z fpr=0.1;                      => "z" file= fpr= neither
bloom_zone zone=z file=ids.bloom capacity=1k fpr=0.1;  => "z" both leave out
bloom_zone zone=z capacity=1k;                  => "z" without fpr=0.001
bloom_zone zone=z capacity=4398g fpr=1e-9;      => =4398000000000 "z" 1 TiB
bloom_zone zone=ids capacity=1k fpr=0.1;        => "ids" already BEFORE write
Z; >limit_req_zone $uri zone=z:1m rate=1r/s;    => "z" different use
limit_req_zone $uri zone=z:1m rate=1r/s; >Z;    => "z" different use
Z max_keys=1;                                   => max_keys=1" 1001 131071000
Z max_keys=999;                                 => max_keys=999" 1001
Z max_keys=1000;                                => max_keys=1000" 1001
Z max_keys=131071001;                           => max_keys=131071001" 131071000
bloom_zone zone=z capacity=1 fpr=1e-9 max_keys=2;      => ok
bloom_zone zone=z file=ids.bloom max_keys=1;    => ok
Z expire=24h layout=classic;                    => "z" expire= leave "layout="
Z expire=24h max_keys=1;                        => max_keys=1" 1001 4125
Z expire=24h max_keys=4126;                     => max_keys=4126" 1001 4125
Z expire=24h max_keys=4125;                     => ok
Z expire=24h max_keys=1001 layout=blocked form=url;    => ok
Z hash=siphash form=raw layout=blocked;         => ok
bloom_zone zone=z fpr=0.1 capacity=1k;          => ok
bloom_state_path off; >Z journal=on;            => "z" journal=on path off: set
>Z journal=on; bloom_state_path off;            => "z" journal=on path off: set
bloom_state_path off; Z;                        => ok
bloom_state_path off; Z journal=auto;           => ok
bloom_state_path off; Z journal=off;            => ok

Z; >bloom_guard min_keys=1;                     => "bloom_guard" "zone="
Z; >bloom_guard zone=z;                         => guard "max_loss=1%"
Z; >bloom_guard zone=ids:1m min_keys=1;         => "ids:1m" zone= name
bloom_guard zone=nope min_keys=1;               => "nope" zone=nope declare
Z; bloom_guard zone=z min_keys=1; >bloom_guard zone=z max_loss=1%;
    => "z" bloom_guard already BEFORE write
Z; bloom_guard zone=z min_keys=1k must_have=a must_not_have=b max_loss=1%;
    => ok
bloom_guard zone=z max_loss=1% max_growth=2; Z;  => ok
Z expire=24h; >bloom_guard zone=z min_keys=1;   => "z" guard expire= remove
>bloom_guard zone=z min_keys=1; Z expire=24h;   => "z" guard expire= remove

Z; >bloom_source name=s;                        => "bloom_source" "zone="
bloom_source zone=nope name=s;                  => "nope" zone=nope declare
Z; bloom_source zone=z name=s; >bloom_source zone=z name=s max_lag=30s;
    => "z" bloom_source already BEFORE write
bloom_source zone=z name=s max_lag=off; Z form=url;  => ok
Z max_keys=2k; bloom_source zone=z name=s;      => ok
Z expire=1h; >bloom_source zone=z name=s;       => "z" expire= remove
>bloom_source zone=z name=s; Z expire=1h;       => "z" expire= remove
Z journal=off; >bloom_source zone=z name=s;     => "z" journal=off remove
>bloom_source zone=z name=s; Z journal=off;     => "z" journal=off remove
Z; bloom_state_path off; >bloom_source zone=z name=s;
    => "z" no journal "bloom_state_path" set a path
>bloom_source zone=z name=s; Z; bloom_state_path off;
    => "z" no journal "bloom_state_path" set a path
Z; bloom_add $arg_id zone=z; >bloom_source zone=z name=s;
    => "z" "bloom_add" remove "bloom_source"
>bloom_source zone=z name=s; Z; bloom_add $arg_id zone=z;
    => "z" "bloom_add" remove "bloom_source"
Z; bloom_remove $arg_id zone=z; >bloom_source zone=z name=s;
    => "z" "bloom_remove" remove "bloom_source"
>bloom_source zone=z name=s; Z; bloom_remove $arg_id zone=z;
    => "z" "bloom_remove" remove "bloom_source"
Z; bloom_audit 1% add=on; bloom_reject absent $arg_k zone=z;
    >bloom_source zone=z name=s;
    => "z" "add=on" of bloom_audit remove "bloom_source"
Z; bloom_feedback 404 except=on; bloom_reject absent $arg_k zone=z;
    >bloom_source zone=z name=s;
    => "z" "except=on" of bloom_feedback remove "bloom_source"

bloom_state_path a; >bloom_state_path b;        => "bloom_state_path" duplicate
bloom_state_path;                               => arguments "bloom_state_path"
bloom_zone zone=z file=ids.bloom journal=off watch=500ms max_age=1d;  => ok

[server]
bloom_state_path a;
    => "bloom_state_path" not allowed
bloom_zone zone=z capacity=1k fpr=0.1;          => "bloom_zone" not allowed here
bloom_guard zone=ids min_keys=1;
    => "bloom_guard" not allowed here
END


subtest 'lookups and rules' => sub { verdicts(<<'END') };
[http]
bloom_lookup $uri $known zone=nope;             => "nope" zone=nope declare
bloom_lookup $uri $known zone=later;
    bloom_zone zone=later capacity=1k fpr=0.1;
    => ok
bloom_lookup $uri known zone=ids;               => name "known" "$"
bloom_lookup $uri $ zone=ids;                   => name "$" must
bloom_lookup $uri $uri zone=ids;                => duplicate "uri"
bloom_lookup $uri $args zone=ids;               => duplicate "args"
bloom_lookup $uri $bloom_status zone=ids;       => duplicate "bloom_status"
map $uri $known { default 1; } >bloom_lookup $uri $known zone=ids;
    => duplicate "known"
bloom_lookup $uri $known zone=ids; >bloom_lookup $args $known zone=ids;
    => duplicate "known"
bloom_reject absent $uri zone=nope;             => "nope" zone=nope declare
bloom_route absent $uri zone=ids to=@unknown;   => "@unknown" SERVER add
bloom_rules off;                                => "bloom_rules" not allowed
bloom_unavailable reject;
    => "bloom_unavailable" "bloom_unknown"
server { listen 127.0.0.1:%%PORT_8080%%; location /b {
    bloom_api zone=later zone=ids;
    } } bloom_zone zone=later capacity=1k fpr=0.1;
    => ok

[server]
bloom_lookup $uri $known zone=ids;
    => "bloom_lookup" not allowed here
bloom_reject absent $uri zone=nope;             => "nope" zone=nope declare
bloom_route absent $uri zone=ids to=@know;      => "@know" SERVER add
bloom_reject absent $uri zone=ids; >bloom_unknown to=@none;
    => "@none" "bloom_unknown" SERVER add
bloom_reject absent $uri zone=ids; bloom_unknown to=@known;  => ok

bloom_api;                                      => "bloom_api" not allowed here
location ~ /b { >bloom_api; }                   => "bloom_api" location
location @b { >bloom_api; }                     => "bloom_api" location
location ^~ /b { bloom_api write=off; }         => ok
bloom_add $arg_k zone=ids; location /b { bloom_add off; }  => ok
bloom_add $arg_k zone=ids; bloom_add x$uri zone=ids if=$arg_i;  => ok
bloom_remove $arg_k zone=ids; location /b { bloom_remove off; }  => ok

[location]
bloom_add off on;                               => "bloom_add"
bloom_api on;                                   => "on" "write="
bloom_api; >bloom_api;                          => "bloom_api" duplicate
bloom_reject absent $uri zone=nope;             => "nope" zone=nope declare
bloom_api zone=ids zone=nope;                   => "nope" zone=nope declare
bloom_reject missing $uri zone=ids;             => "missing" "absent" "present"
bloom_reject Absent $uri zone=ids;              => "Absent" "absent" "present"
bloom_reject absentx $uri zone=ids;             => "absentx" "absent" "present"
bloom_reject zone=ids $uri zone=ids;            => "zone=ids" "absent" "present"
bloom_reject absent;                            => arguments "bloom_reject"
bloom_reject absent $uri zone=ids match=all;    => "match=" without "split="
bloom_route absent $uri zone=ids to=name;       => "to=" "@name" "/"
bloom_route absent $uri zone=ids to=@known2;    => "@known2" SERVER add
bloom_unknown to=/x?y=$arg_z;                   => ok
if ($uri) { >bloom_reject absent x zone=ids; }
    => "bloom_reject" not allowed here
bloom_add $uri zone=ids; >bloom_add off;        => "bloom_add off" remove
bloom_add off; >bloom_add $uri zone=ids;        => "bloom_add off" remove
bloom_add off; >bloom_add off;                  => "bloom_add off" remove
bloom_add $uri zone=ids; bloom_remove off;      => ok
bloom_remove $uri zone=ids; >bloom_remove off;  => "bloom_remove off" remove
bloom_remove off; >bloom_remove $uri zone=ids;  => "bloom_remove off" remove
bloom_remove off; >bloom_remove off;            => "bloom_remove off" remove
bloom_remove $uri zone=ids; bloom_add off;      => ok
bloom_rules on;                                 => "on" "off"
bloom_rules offf;                               => "offf" "off"
bloom_rules off; >bloom_rules off;              => "bloom_rules" duplicate
bloom_pass absent $uri zone=ids; bloom_rules off;  => ok
bloom_rules off; bloom_pass absent $uri zone=ids;  => ok
END


subtest 'every server that inherits a route needs its location' => sub {
    my $rule = 'bloom_route absent $uri zone=ids to=@known;';
    my $second = 'server { listen 127.0.0.1:%%PORT_8081%%;';

    my $line = write_conf('http', ">$rule\n$second\nlocation / { } }");
    my ($exit, $output) = $t->test_config;
    my $next = $line + 1;

    ok($exit != 0,
       'nginx refuses a server that lacks the location of an inherited route');
    like($output, qr/"\@known" .* in \S+:$line: .* server in \S+:$next, /,
         'the message names the server that lacks the location');

    is_accepted('http', "$rule $second location \@known { } }");
    is_accepted('http', "$rule $second bloom_rules off; }");
    is_accepted('http', "$rule $second bloom_reject absent x zone=ids; }");
};


# These directives are read by the same functions in each block.

subtest 'settings' => sub {
    for my $where (qw(http server location)) {
        verdicts("[$where]\n" . <<'END');
bloom_dry_run maybe;                    => "maybe" "bloom_dry_run" "on" "off"
bloom_unknown off;                      => "off" "pass" "reject" "to=@exact"
bloom_unknown fail;                     => "fail" "pass" "reject" "to=@exact"
bloom_unknown @x;                       => "@x" "pass" "reject" "to=@exact"
bloom_unknown to=;                      => "" "to=" "@name" "/"
bloom_unknown to=@;                     => "@" "to=" "@name" "/"
bloom_unknown to=exact;                 => "exact" "to=" "@name" "/"
bloom_unknown to=$uri;                  => "$uri" "to=" "@name" "/"
bloom_log_level debug;                  => "debug" "info" "warn" "error"
bloom_log_level warning;                => "warning" "info" "warn" "error"
bloom_dry_run on; >bloom_dry_run on;          => "bloom_dry_run" duplicate
bloom_unknown pass; >bloom_unknown pass;      => "bloom_unknown" duplicate
bloom_log_level info; >bloom_log_level info;  => "bloom_log_level" duplicate
bloom_audit 1%; >bloom_audit off;             => "bloom_audit" duplicate
bloom_feedback off; >bloom_feedback 404;      => "bloom_feedback" duplicate
bloom_feedback except=on;               => "bloom_feedback" status 404
bloom_feedback except=off;              => "bloom_feedback" status 404
bloom_feedback except=on rate=1r/s;     => "bloom_feedback" status 404
END
    }

    is_refused('http', ">bloom_feedback $_;", 'status "' . s/^404 //r . '"',
               'from 400 to 499', '"off" alone')
        for qw(399 500 200 x on 404x), '404 off', '404 4040', '404 except';
    is_refused('http', ">bloom_audit $_;", "fraction \"$_\"",
               'from 0.001% to 100%', '"off" alone')
        for qw(0% 0.0009% 0.0001% 100.001% 101% -1% % x% on 1%% 0 0.0001
               100.001 -1 1 0.1 100 0.001),
            '99999999999999999999%', '9' x 40;
};


subtest 'variables of arguments, cookies and headers' => sub {
    for my $directive (qw(bloom_arg bloom_cookie bloom_header)) {
        verdicts("[http]\n" . <<'END' =~ s/\bD\b/$directive/gr);
D id id;                                => name "id" "$"
D id $;                                 => name "$" must
D id $id escaped;                       => name "escaped" "$"
D id $id $id;                           => duplicate "id"
D id $uri;                              => duplicate "uri"
D id $id; >D ID $ID;                    => duplicate "ID"
bloom_arg id $id; >D id $id;            => duplicate "id"
map $uri $id { default x; } >D id $id;  => duplicate "id"
D id;                                   => arguments "D"
D id $a $b $c;                          => arguments "D"
[server]
D id $id;                               => "D" not allowed here
END
    }

    my %wrong = (arg => [''], cookie => ['', 'a=', 'a b', 'a,', 'é'],
                 header => ['', 'X-Id:', 'X Id', 'Host', 'hOST']);
    my %must = (arg => ['argument', 'not empty'], cookie => ['cookie', '"="'],
                header => ['header', '"$host"']);

    for my $source (sort keys %wrong) {
        is_refused('http', ">bloom_$source \"$_\" \$id;",
                   "invalid $must{$source}[0] name \"$_\"", $must{$source}[1])
            for @{ $wrong{$source} };
    }

    verdicts(<<'END');
[http]
bloom_arg id $arg_id; bloom_arg id $same $escaped; bloom_arg "a b[]" $odd;
    bloom_lookup $same $known zone=ids;
    => ok
bloom_cookie id $id; bloom_header id $same;
    bloom_cookie a.b-c_D $odd $odd_escaped; bloom_lookup $odd $known zone=ids;
    => ok
bloom_cookie Host $a; bloom_header Hosts $b;    => ok
END
};


subtest 'sizes of zones' => sub {
    is_refused('http', ">bloom_zone zone=z:$_ file=ids.bloom;",
               "invalid zone size \"$_\"", 'such as 64m')
        for '', qw(64x 0 0m m -1m 1.5m 1mm 18446744073709551616 17179869184g
                   0x10);
    is_accepted('http', "bloom_zone zone=z:$_ file=ids.bloom;")
        for qw(1048576 1024k 4096K 64m 2M 1g 1G);

    # the size that the message asks for is the smallest that is enough

    for my $zone ('file=ids.bloom', 'capacity=100k fpr=0.001') {
        my $line = write_conf('http', ">bloom_zone zone=z:4k $zone;");
        my $output = $t->run_fails;
        my ($needed) = $output =~ /\[emerg\] .* bloom zone "z" is too small: it needs (\d+k) .*; omit the size, or write "zone=z:\1" in \Q$dir\E\/nginx.conf:$line$/m;

        ok(defined $needed, "nginx says which size a zone with $zone needs")
            or diag($output);

        write_conf('http', "bloom_zone zone=z:$needed $zone;");
        $t->run;
        ok($t->master, "nginx starts with $needed for a zone with $zone");
        $t->stop;

        my $less = $needed =~ s/(\d+)/$1 - 1/er;
        write_conf('http', "bloom_zone zone=z:$less $zone;");
        like($t->run_fails, qr/it needs $needed/,
             "nginx refuses $less for a zone with $zone");
    }
};


# ---- warnings ----

subtest 'rules that drop inherited ones' => sub {
    my $list = 'bloom_reject absent $uri zone=ids;';

    is_warned('server', ">$list\nlocation /a {\n$list }",
              'not inherited', '"bloom_rules off"');
    is_warned('http', ">$list\nserver {\n$list }", 'not inherited');
    is_warned('server', "$list\n>location /a { $_ }")
        for "bloom_rules off;\n$list", "$list bloom_rules off;",
            'bloom_rules off;', '';

    my $line = write_conf('server', ">$list\nlocation /a {\n$list }");

    like(($t->test_config)[1],
         qr/rules from \S+:$line on .* rules from \S+:@{[ $line + 2 ]} on/,
         'nginx names the rule that is dropped and the rule that drops');
};


subtest 'keys that are not there yet' => sub {
    my %when = map { ${ $_->[0] } => ${ $_->[2] } } grep { ref $_->[0] }
               source_table('conf_warn', 'conf_warn_names');

    for my $key ('$request_body', 'x${request_body}y', '$request_body_file',
                 '$host:$upstream_http_x_id', '$upstream_cache_status',
                 '$sent_http_x')
    {
        my ($why) = map { $when{$_} } grep { index($key, $_) >= 0 } keys %when;
        my ($variable) = $key =~ /(\w+)\}?y?$/;

        is_warned('location', ">bloom_reject present \"$key\" zone=ids;",
                  'the key of the rule in', $variable =~ s/y$//r, $why);
        is_warned('location', '>bloom_reject present $uri zone=ids'
                              . " \"if=$key\";", '"if=" of the rule in', $why);
    }

    is_warned('location', ">bloom_reject present \"$_\" zone=ids;")
        for '$arg_request_body', '$uri', '$host:$http_sent_x', '$request_uri',
            '$cookie_upstream_x';
    verdicts(<<'END');
[location]
bloom_add $upstream_http_x_id zone=ids;     => quiet
[server]
location /accel { internal;
    >bloom_reject present $upstream_http_x_id zone=ids; }
    => quiet
END
};


subtest 'keys that no zone can take' => sub {
    verdicts(<<'END');
[http]
bloom_zone zone=full capacity=10 fpr=0.1 removals=0;
    bloom_remove $uri zone=full;
    => warns "full" "bloom_remove" "removals=0"
bloom_zone zone=fixed file=ids.bloom journal=off; bloom_add $uri zone=fixed;
    => warns "fixed" none "bloom_add" "journal=off"
bloom_state_path off; >bloom_zone zone=fixed file=ids.bloom;
    bloom_add $uri zone=fixed;
    => warns "fixed" none "bloom_add"
bloom_zone zone=fixed file=ids.bloom journal=off; bloom_remove $uri zone=fixed;
    => warns "fixed" none "bloom_remove" "journal=off"
bloom_zone zone=fixed file=ids.bloom journal=off;
    bloom_reject absent $uri zone=fixed; bloom_audit 1% add=on;
    => warns "fixed" none "add=on" "journal=off"
END

    # half of the room is for excepted keys

    for ([0, 'absent', 'on', 1], [1, 'absent', 'on', 1], [2, 'absent', 'on', 0],
         [0, 'absent', 'off', 0], [0, 'present', 'on', 0])
    {
        my ($removals, $on, $except, $warns) = @$_;

        is_warned('http', ">bloom_zone zone=few capacity=10 fpr=0.01"
                  . " removals=$removals; bloom_feedback 404 except=$except;"
                  . " bloom_reject $on \$uri zone=few;",
                  $warns ? ('"few"', '"except=on"', "\"removals=$removals\"",
                            'set it to 2 or more') : ());
    }
};


# In the rules, R stands for an enforced rule that an audit is for.

subtest 'an enforced bloom_audit above 10%' => sub {
    my $open = qr{\[warn\] .*"bloom_audit [\d.]+%" in .*nginx\.conf:(\d+) lets .* 10% or less, .*"bloom_dry_run on"};

    for (['R; >bloom_audit 100%;', 1], ['R; >bloom_audit 10.001%;', 1],
         ['R; >bloom_audit 100%; bloom_dry_run off;', 1],
         ['R dry_run; R; >bloom_audit 50%;', 1], ['R; R; >bloom_audit 50%;', 1],
         ['R; >bloom_audit 10%;', 0],
         ['R; >bloom_audit 100%; bloom_dry_run on;', 0],
         ['R dry_run; >bloom_audit 100%;', 0],
         ['bloom_reject present $uri zone=ids; >bloom_audit 100%;', 0],
         ['>bloom_audit 100%;', 0])
    {
        my ($rules, $warned) = @$_;
        $rules =~ s/\bR\b/bloom_reject absent \$uri zone=ids/g;

        for my $where (qw(server location)) {
            my $line = write_conf($where, $rules);
            my @lines = is_accepted($where, $rules) =~ /$open/g;

            is("@lines", $warned ? $line : '',
               ($warned ? 'nginx warns once of ' : 'nginx does not warn of ')
               . quoted($where, $rules));
        }
    }

    # the dry run that ends in one location leaves its audit open

    my $line = write_conf('server', "bloom_dry_run on;\n>bloom_audit 100%;\n"
        . 'bloom_reject absent $uri zone=ids;'
        . "\nlocation /on { }\nlocation /off { bloom_dry_run off; }");

    is(join(' ', ($t->test_config)[1] =~ /$open/g), $line,
       'nginx warns of the audit of a location whose dry run has ended');
};


# Allow lists before block lists.  In the rules, P stands for "bloom_pass
# present $uri", B for "bloom_reject present $uri", and the zones are named after
# the key form and the rate of their images.

subtest 'nginx warns of an allow list that opens a block list' => sub {
    for my $form (qw(raw host url)) {
        $t->build_image("$form$_.bloom", ['one'], '-p', "1e-$_", '--seed', 1,
                        '--form', $form) for 6, 9;
    }

    my $rest = qr/ the rule in .*nginx\.conf:(\d+): "bloom_pass present" in .*nginx\.conf:(\d+) comes first /;
    my $search = qr/\[warn\].* clients can bypass$rest.* use an exact allow list/;
    my $below = qr/\[warn\].* listed URLs pass$rest.*; add "exact" to it/;

    # rules, "PASS BLOCK" of each warning as numbers of rules

    for (['P=raw6 B=raw6', '1 2'], ['P=raw6 B=raw6 B=raw6', '1 2'],
         ['P=raw6 B=url6', '1 2'], ['P=url6,exact B=raw6', '1 2'],
         ['P=raw6 P=raw6 B=raw6', '1 3|2 3'], ['P=raw9 B=raw6', ''],
         ['B=raw6 P=raw6', ''], ['P=raw6', ''], ['P=raw6 P=raw6', ''],
         ['P=raw6,dry_run B=raw6', ''], ['P=raw6 B=raw6,dry_run', '1 2'],
         ['P=url9,exact B=url6', ''], ['P=host9,exact B=url6', ''],
         ['P=empty,exact B=url6', ''], ['P=gone,exact B=url6', '1 2'],
         ['P=url6,exact B=url6', '1 2'],
         ['P=goneurl B=url6', '1 2', '1 2'], ['P=url9 B=goneurl', '1 2', '1 2'],

         ['P=url9 B=url6', '1 2', '1 2'], ['P=host9 B=url6', '1 2', '1 2'],
         ['P=url6 B=url6 B=url6', '1 2', '1 2'],
         ['P=empty B=url6', '1 2', '1 2'],
         ['P=url9 B=raw6 B=url6', '1 2', '1 3'],
         ['B=url6 P=url9 B=url6', '2 3', '2 3'],
         ['P=url9 B=host6', '1 2'], ['P=host9 B=host6', '1 2'],
         ['P=url9,dry_run B=url6', ''], ['B=url6 P=url9', ''])
    {
        my ($rules, $searched, $opened) = @$_;
        my ($n, %rule) = 0;

        my @lines = map {
            my ($kind, $zone, $flag) = /^(.)=(\w+),?(.*)/;
            ($kind eq 'P' ? 'bloom_pass' : 'bloom_reject')
            . " present \$uri zone=$zone $flag;";
        } split ' ', $rules;

        for my $where ('location', $opened ? 'http' : ()) {
            my $first = write_conf($where, join "\n", ">$lines[0]",
                                                      @lines[1 .. $#lines]);

            my $conf = $t->read_file('nginx.conf');
            $conf =~ s/^(\s*)(bloom_zone .*)$/
                $1 . join ' ', $2,
                map({ "bloom_zone file=gone.bloom required=off $_;" }
                    'zone=gone', 'zone=goneurl form=url'),
                'bloom_zone zone=empty capacity=9 fpr=1e-9 form=url;',
                map { my $form = $_;
                      map { "bloom_zone zone=$form$_ file=$form$_.bloom;" }
                          6, 9 } qw(raw host url)/me;
            $t->write_file('nginx.conf', $conf);

            my ($exit, $output) = $t->test_config;
            is($exit, 0, "nginx accepts $rules in $where");

            for (['can be searched', $search, $searched],
                 ['allows what is below', $below, $opened // ''])
            {
                my ($what, $warning, $want) = @$_;
                my @found;

                push @found, join ' ', map { $_ - $first + 1 } $2, $1
                    while $output =~ /$warning/g;

                is(join('|', @found), $want,
                   "nginx warns of what $what, rules PASS BLOCK of $rules in"
                   . " $where");
            }
        }
    }
};


# ---- images ----

subtest 'images that nginx cannot load' => sub {
    my $good = $t->read_file('ids.bloom');
    my $size = length $good;
    my $put = sub {
        my ($at, $bytes) = @_;
        substr(my $image = $good, $at, length $bytes) = $bytes;
        return $image;
    };

    # what the image is, its bytes, and what the message says; that about a
    # damaged payload does not name the line

    for (['missing', undef, '(2: No such file', '"required=off"'],
         ['empty', '', 'is empty', 'build it again'],
         ['text', "ids\nof\nmine\n", 'not a Bloom filter', 'ngx-bloom build'],
         ['of a newer version', $put->(8, pack 'V', 4), 'version 4', 'newer'],
         ['of a newer key form', patch_header($good, 76 => pack 'V', 77),
          'key form 77', 'newer'],
         ['big-endian', $put->(12, pack 'N', 0x01020304), 'big-endian'],
         ['truncated', substr($good, 0, -1), 'truncated', $size - 1, $size],
         ['too long', "$good\n", 'too long', $size + 1, $size, 'again'],
         ['damaged in its header', $put->(100, "\x01"), 'its header', 'again'],
         ['damaged in its table', $put->(8191, "\x01"), 'bytes 4096 to 8191'],
         ['damaged in its payload', $put->(8192, ~substr $good, 8192, 1),
          'bytes 8192 to ' . ($size - 1), 'again'],
         ['a symbolic link to itself', sub { symlink $_[0], "$dir/$_[0]" },
          'cannot be opened ('],
         ['a directory', sub { mkdir "$dir/$_[0]" }, 'not a regular file'],
         ['a FIFO', sub { POSIX::mkfifo("$dir/$_[0]", 0600) },
          'not a regular file'])
    {
        my ($what, $content, @texts) = @$_;

        my $name = "$what.bloom" =~ tr/ /-/r;
        $t->write_file($name, $content) if defined $content && !ref $content;
        $content->($name) or die "$name: $!" if ref $content;

        my $line = write_conf('http', ">bloom_zone zone=z file=$name;");
        my @all = ("image \"$dir/$name\" of bloom zone \"z\" ", @texts,
                   $what =~ /payload/ ? () : "$dir/nginx.conf:$line");

        for (['nginx -t', ($t->test_config)[1]], ['a start', $t->run_fails]) {
            my ($who, $output) = @$_;
            my ($message) = $output =~ /^$program: \[emerg\] (.*)$/m;
            my @missing = grep { index($message // '', $_) < 0 } @all;

            is("@missing", '', "$who refuses an image that is $what")
                or diag($output);
        }
    }
};


# A filter that grows is made for all its layers: "small" for 300 + 600 keys.

subtest 'images without room for additions' => sub {
    my @keys = map { "k$_" } 1 .. 1000;

    $t->build_image('full.bloom', \@keys);
    $t->build_image('over.bloom', \@keys, '-n', 900);
    $t->build_image('nearly.bloom', [@keys[0 .. 990]], '-n', 1000);
    $t->build_image('roomy.bloom', [@keys[0 .. 989]], '-n', 1000);
    $t->build_image('small.bloom', \@keys, '-n', 300);

    verdicts(<<'END');
[http]
bloom_zone zone=z file=full.bloom; bloom_add $arg_k zone=z;
    => warns "z" full.bloom" no room 1000 keys for 1000; "-n" than 1000
bloom_zone zone=z file=over.bloom; bloom_add $arg_k zone=z;
    => warns "z" over.bloom" no room 1000 keys for 900; "-n" than 1000
bloom_zone zone=z file=nearly.bloom; bloom_add $arg_k zone=z;
    => warns "z" nearly.bloom" hardly room 991 keys for 1000; "-n" than 1000
bloom_zone zone=z file=small.bloom max_keys=400; bloom_add $arg_k zone=z;
    => warns "z" small.bloom" no room 1000 keys for 900; "-n" than 1000
bloom_zone zone=z file=full.bloom; bloom_audit 1% add=on;
    bloom_reject absent $uri zone=z;
    => warns "z" full.bloom" no room
bloom_zone zone=z file=full.bloom; server { listen 127.0.0.1:%%PORT_8081%%;
    location / { bloom_api write=on; } }
    => warns "z" full.bloom" no room
bloom_zone zone=z file=full.bloom; server { listen 127.0.0.1:%%PORT_8081%%;
    location / { bloom_api; } }
    => quiet
bloom_zone zone=z file=full.bloom; server { listen 127.0.0.1:%%PORT_8081%%;
    location / { bloom_api write=on zone=ids; } }
    => quiet
bloom_zone zone=z file=roomy.bloom; bloom_add $arg_k zone=z;    => quiet
bloom_zone zone=z file=full.bloom max_keys=2k; bloom_add $arg_k zone=z;
    => quiet
bloom_zone zone=z file=full.bloom; bloom_reject absent $uri zone=z;  => quiet
bloom_zone zone=z file=full.bloom journal=off; server {
    listen 127.0.0.1:%%PORT_8081%%; location / { bloom_api write=on; } }
    => quiet
bloom_state_path off; bloom_zone zone=z file=full.bloom; server {
    listen 127.0.0.1:%%PORT_8081%%; location / { bloom_api write=on; } }
    => quiet
END

    write_conf('http', 'bloom_zone zone=z file=full.bloom;'
                       . ' bloom_add $arg_k zone=z;');
    my $mark = $t->log_mark;

    $t->run;
    is(() = $t->log_since($mark) =~ /\[warn\] .*has no room/g, 1,
       'a start warns, too, and once');
    $t->stop;
};


# The master is not root.  It runs copies of nginx and of the module, since it
# may not be allowed to read the checkout.

subtest 'an image that the master cannot read' => sub {
    my $nobody = 65534;
    my $root = $> == 0;

    mkdir "$dir/own" or die "$dir/own: $!";
    copy($t->{binary}, "$dir/own/nginx") or die "$t->{binary}: $!";
    chmod 0755, $dir, "$dir/own", "$dir/own/nginx";

    my $load = '';
    if ($t->{module}) {
        copy($t->{module}, "$dir/own/module.so") or die "$t->{module}: $!";
        chmod 0644, "$dir/own/module.so";
        $load = "load_module $dir/own/module.so;";
    }

    my $temporary = join ' ', map { "${_}_temp_path $dir/own/$_;" }
                              qw(client_body proxy fastcgi uwsgi scgi);

    $t->write_file('own/nginx.conf', <<"CONF");
$load
pid $dir/own/nginx.pid;
error_log stderr;
events { }
http {
    access_log off;
    $temporary
    bloom_zone zone=secret file=$dir/secret.bloom;
}
CONF
    $t->write_file('secret.bloom', $t->read_file('ids.bloom'));
    chown $nobody, $nobody, "$dir/own" if $root;

    my @test = (($root ? ('setpriv', "--reuid=$nobody", "--regid=$nobody",
                          '--clear-groups') : ()),
                "$dir/own/nginx", '-t', '-e', 'stderr', '-p', "$dir/own/",
                '-c', "$dir/own/nginx.conf");

    chmod 0644, "$dir/secret.bloom";
    my ($exit, $out, $err) = run_command(\@test, env => $t->{env});
    is($exit, 0, 'nginx -t accepts an image that the master may read')
        or diag($err);

    chmod 0000, "$dir/secret.bloom";
    ($exit, $out, $err) = run_command(\@test, env => $t->{env});
    isnt($exit, 0, 'nginx -t refuses an image that the master cannot read');

    like($err, qr/\[emerg\] .*"\Q$dir\E\/secret.bloom" of bloom zone "secret" .*\(13: Permission denied\).*"required=off" in \S+nginx.conf:8$/m,
         'the message names the image, the reason, the remedy and the line');
};


done_testing;
