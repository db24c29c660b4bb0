#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that an image of Adblock-style lists finds no URL that uBlock Origin's
# engine would not block as a page, and those that it blocks and that keys can
# stand for.  The engine says what is expected (t/reference/lists-engine.mjs).
# "make lists" compares published lists.

use strict;
use warnings;

use File::Basename qw(dirname);
use JSON::PP ();

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(tool_test);

my $root = dirname(__FILE__) . '/../..';

-d "$root/dashboard/node_modules/\@gorhill/ubo-core"
    or plan(skip_all => 'ubo-core is not installed; run: '
                        . 'make dashboard-packages');

my $t = tool_test();
my $dir = $t->testdir;

# Returns for each URL of each case whether the engine blocks it.

sub engine {
    my (@cases) = @_;

    my $given = JSON::PP->new->utf8->encode(
        [map { { files => $_->{files}, urls => $_->{urls} } } @cases]);
    my ($exit, $out, $err)
        = run_command(['node', "$root/t/reference/lists-engine.mjs"],
                      stdin => $given, limit => 300);

    is($exit, 0, 'the engine answers') or diag($err);

    return map { [map { $_->{verdict} =~ /^(?:document|host|beyond)\z/ ? 1 : 0 }
                      @$_] }
               @{ JSON::PP::decode_json($out) };
}

# Returns for each URL whether the images of the files find it, but not that of
# the files' exceptions.

sub image {
    my ($case) = @_;

    my @build = ('build', '-q', '--form', 'url', '--allow-empty', '-p', '1e-9',
                 '--max-errors', '100%');
    my ($exit, undef, $err)
        = $t->run_tool(@build, '-o', "$dir/image", '--from', 'adblock',
                       '--exceptions', "$dir/allowed.txt", @{ $case->{files} });

    is($exit, 0, "$case->{name}: the build exits with 0") or diag($err);
    $t->run_tool(@build, '-o', "$dir/allowed", "$dir/allowed.txt");

    my @found = map {
        my (undef, $out) = $t->run_tool('test', "$dir/$_", '-f', '-',
            { stdin => join '', map { "$_\n" } @{ $case->{urls} } });
        [map { /^present/ ? 1 : 0 } split /\n/, $out];
    } 'image', 'allowed';

    return [map { $found[0][$_] && !$found[1][$_] ? 1 : 0 }
                0 .. $#{ $case->{urls} }];
}

my $files = 0;

sub file {
    my ($text) = @_;

    $t->write_file('list' . ++$files, $text);
    return "$dir/list$files";
}


# ---- lists in which keys can stand for all rules ----

my @cases = (
    { name => 'types', hosts => ['a' .. 'h'],
      lists => ["||a.example^\$document,subdocument\n"
                . "||b.example^\$document,popup\n||c.example^\$all,popup\n"
                . "||d.example^\$doc,frame\n||e.example^\$popup,doc\n"
                . "||f.example^\$popup\n||g.example^\$script,image\n"
                . "||h.example^\n"] },
    { name => '$badfilter', hosts => ['a' .. 'f'],
      lists => ["||a.example^\n||b.example^\n||c.example^\$all\n"
                . "||d.example/x\n||e.example^\n||a.example^\$badfilter\n"
                . "||c.example^\$all,badfilter\n||d.example/x\$badfilter\n",
                "||e.example^\$badfilter\n||f.example^\$popup,doc\n"
                . "||f.example^\$doc,badfilter\n"] },
    { name => 'conditions', hosts => ['a' .. 'h'],
      lists => ["||a.example^\n!#if false\n||b.example^\n!#endif\n"
                . "!#if env_mobile\n||c.example^\n!#else\n||d.example^\n"
                . "!#if !cap_html_filtering && ext_ublock\n||e.example^\n"
                . "!#endif\n!#endif\n!#if (env_firefox || env_safari)\n"
                . "||f.example^\n!#endif\n||g.example^\n!#endif\n"
                . "!#if cap_ipaddress\n||h.example^\n"] },
    { name => 'elements', hosts => ['a' .. 'c'],
      lists => ["a.example\nb.example##[aria-label=\"To the top\"]\n"
                . "c.example#?#.x:has-text(cookies)\n"] },
    { name => 'a rule with several lines', hosts => ['a' .. 'c'],
      lists => ["||a.example^\$domain= \\\n    b.example| \\\n    c.example\n"] },
    { name => 'exceptions', hosts => ['a' .. 'f'],
      lists => ["||a.example^\n||b.example^\$all\n||c.example^\$doc\n"
                . "||d.example^\n||e.example^\n||f.example^\n",
                "\@\@||a.example^\n\@\@||b.example^\n\@\@||c.example^\n"
                . "\@\@||d.example^\$document\n\@\@||e.example^\$ghide\n"
                . "\@\@||f.example^\$script\n"] },
    { name => 'lines of hosts files', hosts => ['a' .. 'e'],
      lists => ["0.0.0.0 a.example\n127.0.0.1 b.example # why\n"
                . "0.0.0.0 c.example d.example\n0.0.0.0 e.example/x\n"] },
);

for my $case (@cases) {
    $case->{urls} = [map { ("https://$_.example/", "http://w.$_.example/x") }
                         @{ $case->{hosts} }];
}


# ---- rules with random options ----

my @types = qw(document doc all stylesheet css image object script xhr
               subdocument frame font media websocket ping beacon other popup
               popunder generichide ghide specifichide elemhide inline-font
               inline-script);
my @others = qw(important _ 3p ~3p strict1p domain=a.test method=get to=x.test
                denyallow=x.test header=x match-case csp=x redirect=noop
                redirect-rule=noop empty mp4 removeparam=x permissions=x
                webrtc genericblock cname wonder Document all= document=1
                ~all ~important);

sub one_of { return $_[rand @_] }

sub options {
    my @options = map {
        rand() < 0.2 ? one_of(@others, ('important', '_') x 9)
        : (rand() < 0.2 ? '~' : '')
          . one_of(@types, ('document', 'doc', 'all', 'popup', 'script') x 4)
    } 1 .. one_of(0, 1, 1, 2, 2, 3, 4);

    return @options;
}


sub rule {
    my ($pattern, @options) = @_;

    return $pattern . (@options ? '$' : '') . join ',', @options;
}


# Each host has a rule, and some have an exception or a $badfilter rule.

sub random_options {
    my ($count, $cancels) = @_;

    my (@rules, @urls);

    for (map { "h$_.example" } 1 .. $count) {
        my $host = $_;
        my $pattern = one_of("||$host^", "||$host^", $host, "||$host/x",
                             "||$host/x^");
        my @options = options();

        push @rules, rule($pattern, @options);
        push @rules, '@@' . rule($pattern, options()) if rand() < 0.2;
        push @rules, rule($pattern, 'badfilter',
                          rand() < 0.7 ? reverse @options : options())
            if $cancels && rand() < 0.5;
        push @urls, "https://$host/x";
    }

    return ([join '', map { "$_\n" } sort { rand() <=> 0.5 } @rules], \@urls);
}


# ---- rules with random patterns ----

sub random_patterns {
    my ($count) = @_;

    my (@rules, @urls);

    for (map { "h$_.example" } 1 .. $count) {
        my $host = one_of(($_) x 12, "a.$_", "A.$_", "$_:8081", "*.$_", ".$_",
                          "$_.", "-$_", "$_.test", "u\@$_", "$_.*");
        my $path = join '', map {
            '/' . one_of('page', 'a', 'b', 'C', 'x-', 'd.zip', '%41', '.', '..',
                         '', 'v*w', 'e^f', 'a;b', '$x', 'a b', '#f', '\\y', '|')
        } 1 .. one_of(0, 0, 1, 1, 2, 3, 6);

        $path .= '/' if rand() < 0.3;
        $path .= '?' . one_of('', 'id', 'id=5', 'a=b&c=d', '/p/') if rand() < 0.2;

        push @rules, one_of(('') x 8, '  ', '0.0.0.0 ')
                     . one_of(('||') x 10, '', '|', '|http://', '||http://', '*')
                     . $host . $path
                     . one_of('', '', '', '^', '^', '|', '^|', '*', '^*', '/*',
                              '^$all', '$document', '$doc,popup', ' # why');

        my $plain = $path =~ s/[*^| ]//gr =~ s/#.*//r;

        $plain = "/$plain" if $plain !~ m,^/,;

        for my $on ($_, "a.$_", "www.$_", "$_.test") {
            push @urls, map { "https://$on$_" }
                '/', '/other', '/?id=5', $plain, "${plain}x", "$plain/",
                "$plain/x/y", "$plain?q=1", $plain =~ s/\?.*//r, lc $plain,
                $plain =~ s,[^/]*\z,,r, $plain =~ s,[^/]*\z,new?id=5,r;
        }
    }

    return ([join '', map { "$_\n" } @rules], [browsed(@urls)]);
}


# Returns URLs as a browser requests them.

sub browsed {
    my (undef, $out) = run_command(
        ['node', '-e', 'let s = ""; process.stdin.on("data", d => s += d)'
         . '.on("end", () => { for (const u of s.split("\n"))'
         . ' if (u) console.log(new URL(u).href); })'],
        stdin => join '', map { "$_\n" } @_);

    return split /\n/, $out;
}

my $seed = $ENV{LISTS_SEED} // 1;

srand $seed;
note("LISTS_SEED=$seed");

my @random = (
    ['random options', random_options(3000)],
    ['random patterns', random_patterns(1000)],
    ['random options and $badfilter', random_options(3000, 1)],
);

push @cases, map { { name => $_->[0], lists => $_->[1],
                     urls => $_->[2], random => 1 } } @random;

for my $case (@cases) {
    $case->{files} = [map { file($_) } @{ $case->{lists} }];
}


# ---- the comparison ----

# Returns the rules that name the host of a URL.

sub about {
    my ($case, $url) = @_;

    my ($name) = $url =~ /(\w+)\.example/ or return;

    return "$url:\n", map { grep { /\b$name\./i } split /^/ } @{ $case->{lists} };
}

my @expected = engine(@cases);

for my $i (0 .. $#cases) {
    my $case = $cases[$i];
    my ($blocked, $found) = ($expected[$i], image($case));
    my @urls = @{ $case->{urls} };
    my @both = grep { $blocked->[$_] && $found->[$_] } 0 .. $#urls;
    my @only_found = grep { !$blocked->[$_] && $found->[$_] } 0 .. $#urls;

    is_deeply([@urls[@only_found]], [],
              "$case->{name}: an image finds no URL that the engine passes")
        or diag(map { about($case, $_) } @urls[@only_found]);

    if ($case->{random}) {
        cmp_ok(scalar @both, '>', @urls / 50,
               "$case->{name}: an image finds URLs that the engine blocks");
        next;
    }

    is_deeply([@urls[grep { $found->[$_] } 0 .. $#urls]],
              [@urls[grep { $blocked->[$_] } 0 .. $#urls]],
              "$case->{name}: an image finds what the engine blocks");
    cmp_ok(scalar @both, '>', 0, "$case->{name}: the engine blocks a URL")
        if $case->{name} !~ /several lines/;
}

done_testing;
