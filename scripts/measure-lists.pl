#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# measure-lists.pl [--only PATTERN] [--files DIR] [--most N]: the body of `make
# lists`
#
# Downloads lists as they are published in packages of Debian and npm, makes an
# image of each with `ngx-bloom build --from auto`, and serves the images with
# nginx.  A second reader of the lists (t/reference/Lists.pm) says which URLs
# each entry blocks; the script requests each of them and counts how many nginx
# finds.  It also requests URLs beside the entries, which nginx must not find.
# It asks the engines that Adblock-style lists are written for about 20,000 URLs
# in each of these lists and beside it (t/reference/lists-engine.mjs), and
# compares.
# Then it measures how many listed URLs pass behind a list of allowed hosts, and
# what popular sites as good keys (--except) cost a build.
#
#   --only PATTERN  only the lists whose name matches
#   --files DIR     a directory with the files of the rows "file", which no
#                   package contains; without it these rows are left out
#   --most N        entries of a list to ask about at most (default: 100000)
#
# apt-get and npm download with this machine's own configuration.  What they
# download stays in build/lists, and the report goes to build/lists/report.md.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Getopt::Long qw(GetOptions);
use IO::Socket::INET;
use JSON::PP ();
use List::Util qw(min sum0);
use POSIX qw(strftime);

my $checkout;

BEGIN { $checkout = abs_path(dirname(__FILE__) . '/..') }

use lib "$checkout/t/lib", "$checkout/t/reference";

use BloomTest ();
use Lists;

# Each row has a name, where the list comes from (deb, npm or file), the
# package, the file in it, and the format.

my $ublock = 'webext-ublock-origin-firefox';

my @lists = (
    ['URLhaus, online', 'deb', $ublock, '*/urlhaus-filter-online.txt',
     'adblock'],
    ['EasyList', 'deb', $ublock, '*/easylist/easylist.txt', 'adblock'],
    ['EasyPrivacy', 'deb', $ublock, '*/easylist/easyprivacy.txt', 'adblock'],
    ['uBlock, badware', 'deb', $ublock, '*/ublock/badware.min.txt', 'adblock'],
    ['uBlock, privacy', 'deb', $ublock, '*/ublock/privacy.min.txt', 'adblock'],
    ['uBlock, filters', 'deb', $ublock, '*/ublock/filters.min.txt', 'adblock'],
    ['redirectors', 'deb', 'rspamd', '*/maps.d/redirectors.inc', 'lines'],
    ['SURBL, allowed', 'deb', 'rspamd', '*/maps.d/surbl-whitelist.inc',
     'lines'],
    ['Spam404', 'npm', 'ad-block', '*/spam404-main-blacklist.txt', 'adblock'],
    ['Disconnect, malware', 'npm', 'ad-block',
     '*/disconnect-simple-malware.txt', 'lines'],
    ['URLs of 500 sites', 'npm', 'ad-block', '*/top500-sitelist.txt',
     'lines'],
    ['Ethereum phishing', 'npm', 'eth-phishing-detect', '*/src/hosts.txt',
     'hosts'],
    ['TrackerDB', 'npm', '@ghostery/trackerdb', '*/trackerdb.txt', 'adblock'],
    ['disposable mail', 'npm', 'disposable-email-domains', '*/index.json',
     'lines', \&json_array],

    ['URLhaus, dnsmasq', 'file', '', 'urlhaus-filter-dnsmasq.conf', 'dnsmasq'],
    ['URLhaus, RPZ', 'file', '', 'urlhaus-filter-rpz.conf', 'rpz'],
    ['URLhaus, hosts', 'file', '', 'urlhaus-filter-hosts.txt', 'hosts'],
    ['URLhaus, `$all`', 'file', '', 'urlhaus-filter-ag.txt', 'adblock'],
    ['URLhaus, wildcards', 'file', '', 'urlhaus-filter-wildcard.txt', 'lines'],
    ['Citizen Lab, CSV', 'file', '', 'citizenlab-global.csv', 'csv:url'],
);

my %with = (only => '', most => 100_000);

GetOptions(\%with, 'only=s', 'files=s', 'most=i')
    or die "usage: $0 [--only PATTERN] [--files DIR] [--most N]\n";

my $dir = "$checkout/build/lists";
my $tool = $ENV{TEST_BLOOM_TOOL} // "$checkout/build/ngx-bloom";
my $adguard = '@adguard/tsurlfilter@2.2.23';
my $at_once = 100;          # requests that are sent before answers are read

make_path($dir);
unlink glob "$dir/list*.missed";


# ---- lists ----

# Runs a command in a directory. Returns its lines.

sub lines_of {
    my ($where, @command) = @_;

    my $pid = open my $out, '-|';

    defined $pid or die "cannot fork: $!\n";

    if ($pid == 0) {
        chdir $where or die "$where: $!\n";
        exec @command or die "$command[0]: $!\n";
    }

    chomp(my @lines = <$out>);
    close $out or die "`@command` failed\n";

    return @lines;
}


# Downloads a package, unless that has been done. Returns its file and version.

my %package;

sub package_of {
    my ($kind, $name) = @_;

    return @{ $package{"$kind $name"} //= [downloaded($kind, $name)] };
}


sub downloaded {
    my ($kind, $name) = @_;

    my $to = "$dir/$kind-" . $name =~ tr{/@}{-}dr;
    my $files = "$to/*." . ($kind eq 'deb' ? 'deb' : 'tgz');

    make_path($to);

    if (!glob $files) {
        print STDERR "downloading $name\n";
        lines_of($to, $kind eq 'deb' ? qw(apt-get download -q)
                                     : qw(npm pack --silent), $name);
    }

    my ($file) = glob $files or die "$name has not come\n";

    return ($file, $kind eq 'npm' ? $file =~ /-(\d[^-].*)\.tgz\z/
                   : lines_of($to, 'dpkg-deb', '-f', $file, 'Version'));
}


# Returns the path of a list, taken out of its package, and a text that names
# the package.

sub located {
    my ($kind, $name, $pattern) = @_;

    if ($kind eq 'file') {
        my $path = ($with{files} // '') . "/$pattern";

        return defined $with{files} && -e $path ? ($path, "file `$pattern`")
                                                : ();
    }

    my ($file, $version) = package_of($kind, $name);
    my $path = dirname($file) . '/' . $pattern =~ s,.*/,,r;

    lines_of($dir, 'bash', '-o', 'pipefail', '-c',
             ($kind eq 'deb' ? 'dpkg-deb --fsys-tarfile' : 'gunzip -c')
             . ' "$0" | tar xO --wildcards "$1" > "$2"',
             $file, $pattern, $path);
    -s $path or die "$name $version has no $pattern\n";

    return ($path, "$kind `$name` $version");
}


# Writes the elements of a JSON array as lines.

sub json_array {
    my ($path) = @_;

    my $to = "$path.txt";

    open my $in, '<:raw', $path or die "$path: $!\n";
    my $array = JSON::PP->new->utf8->decode(do { local $/; <$in> });

    open my $out, '>:utf8', $to or die "$to: $!\n";
    print $out map { "$_\n" } @$array;
    close $out or die "$to: $!\n";

    return $to;
}


# ---- images ----

# Builds an image. Returns what the tool prints as JSON, or the last line of its
# errors.

sub build {
    my ($image, $from, $path, @more) = @_;

    my ($exit, $out, $err) = BloomTest::Process::run_command(
        [$tool, 'build', '--json', '-o', $image, '--form', 'url', '-p', '1e-8',
         '--max-errors', '1000000', '--from', $from, @more, $path],
        limit => 600);

    return $exit == 0 ? JSON::PP::decode_json($out)
                      : { failed => (split /\n/, $err)[-1] // "exit $exit" };
}


# ---- requests ----

sub escaped {
    return $_[0] =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ger;
}


# Requests URIs on one connection. Returns the statuses.

sub statuses {
    my ($port, @uris) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port")
        or die "cannot connect to nginx: $!\n";
    my @statuses;

    while (my @some = splice @uris, 0, $at_once) {
        my ($got, $end, $buffer) = (0, 0, '');

        print $socket map { "GET $_ HTTP/1.1\r\nHost: x\r\n\r\n" } @some
            or die "cannot send to nginx: $!\n";

        while ($got < @some) {
            sysread $socket, $buffer, 65536, length $buffer
                or die "nginx closed the connection\n";

            while ($buffer =~ /HTTP\/1\.1 (\d{3}).*?\r\n\r\n/gs) {
                push @statuses, $1;
                $got++;
                $end = pos $buffer;
            }

            substr $buffer, 0, $end, '';
            $end = 0;
        }
    }

    return @statuses;
}


# nginx with a zone for each image. A request for /NAME?url=... passes with 200
# if the URL is not found in the zone, and is refused with 403 if it is.

sub served {
    my ($rules, %images) = @_;

    my $t = BloomTest->new(log_level => 'warn');

    $t->write_file_expand('nginx.conf', join "\n",
        '%%TEST_GLOBALS%%', 'events { }',
        'http {', '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
        'keepalive_requests 1000000000;', 'client_header_buffer_size 64k;',
        'bloom_arg url $url;',
        (map { "bloom_zone zone=$_ file=$images{$_};" } sort keys %images),
        'server {', 'listen 127.0.0.1:%%PORT_8080%%;',
        (map { "location = /$_ { $rules->{$_} empty_gif; }" }
             sort keys %$rules),
        '}', '}', '');
    $t->run;

    return $t;
}


# Returns the URLs that are refused, of those that are requested.

sub refused {
    my ($t, $name, @urls) = @_;

    my @statuses = statuses($t->port(8080),
                            map { "/$name?url=" . escaped($_) } @urls);

    return map { $urls[$_] } grep { $statuses[$_] == 403 } 0 .. $#urls;
}


# Every n-th of a list, so that there are at most $most.

sub sample {
    my ($most, @list) = @_;

    return @list if @list <= $most;
    return @list[map { int $_ * @list / $most } 0 .. $most - 1];
}


# ---- the report ----

open my $report, '>', "$dir/report.md" or die "$dir/report.md: $!\n";

sub line {
    print $_[0], "\n";
    print $report $_[0], "\n";
}


sub table {
    line('| ' . join(' | ', @$_) . ' |') for @_;
}


sub thousands { return scalar reverse reverse($_[0]) =~ s/(\d{3})(?=\d)/$1,/gr }

sub percent {
    my ($part, $all) = @_;

    return $all == 0 ? '-'
           : $part == $all ? '100 %'
           : sprintf '%.2f %%', min(99.99, 100 * $part / $all);
}


# The most frequent reasons, and how many lines have others.

sub reasons {
    my (%count) = @_;

    my @names = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    my @others = splice @names, min(scalar @names, 5);

    return join ', ', (map { "$_: " . thousands($count{$_}) } @names),
                      @others ? 'other reasons: '
                                . thousands(sum0(@count{@others})) : ();
}


# ---- lists through nginx ----

my @measured;

for (grep { $_->[0] =~ /$with{only}/ } @lists) {
    my ($name, $kind, $package, $pattern, $format, $prepare) = @$_;
    my ($path, $from) = located($kind, $package, $pattern);

    next if !defined $path;

    $path = $prepare->($path) if $prepare;

    my %m = (name => $name, from => $from, format => $format, path => $path,
             zone => 'list' . @measured, list => Lists::read_list($format,
                                                                  $path));

    $m{image} = "$dir/$m{zone}.bloom";
    $m{built} = build($m{image}, 'auto', $path);
    $m{named} = build("$m{image}.named", $format, $path);
    push @measured, \%m;
}

my $built = sub { return grep { !$_->{built}{failed} } @measured };

my $t = served({ map { $_->{zone} => 'bloom_reject present $url zone='
                                     . "$_->{zone} status=403;" }
                     $built->() },
               map { $_->{zone} => $_->{image} } $built->());

for my $m ($built->()) {
    my @entries = sample($with{most}, @{ $m->{list}{entries} });
    my %found = map { $_ => 1 }
                refused($t, $m->{zone}, map { @{ $_->{urls} } } @entries);
    my @beside = sample(20_000, Lists::beside($m->{list}));

    $m->{asked} = @entries;
    $m->{missed} = [grep { grep { !$found{$_} } @{ $_->{urls} } } @entries];
    $m->{beside} = @beside;
    $m->{wrong} = [refused($t, $m->{zone}, @beside)];

    open my $out, '>', "$dir/$m->{zone}.missed" or die "$m->{zone}: $!\n";
    print $out "$m->{name}\n",
        (map { my ($url) = grep { !$found{$_} } @{ $_->{urls} };
               "line $_->{line}: $_->{keys}[0]: $url\n" } @{ $m->{missed} }),
        map { "wrongly found: $_\n" } @{ $m->{wrong} };
    close $out or die "$m->{zone}: $!\n";
}

$t->stop;

line('# Published lists');
line('');
line('Made by `make lists` on ' . strftime('%F', gmtime) . '.');
line('');
table(['list', 'from', 'format', 'lines', 'kept', 'keys', 'asked about',
       'found', 'wrongly found'],
      [('---') x 3, ('--:') x 6]);

for (@measured) {
    my ($lines) = lines_of('/', 'wc', '-l', $_->{path});
    my $b = $_->{built};

    $lines =~ s/ .*//;

    table([$_->{name}, $_->{from}, "`$_->{format}`", thousands($lines),
           $b->{failed} ? ($b->{failed}, ('') x 4)
           : (thousands($lines - sum0(@$b{qw(comments empty skipped errors)})),
              thousands($b->{items}), thousands($_->{asked}),
              percent($_->{asked} - @{ $_->{missed} }, $_->{asked}),
              @{ $_->{wrong} } . ' of ' . thousands($_->{beside}))]);
}

line('');
table(['list', 'comments', 'duplicates', 'invalid', 'skipped'],
      ['---', ('--:') x 3, '---']);

for (grep { !$_->{built}{failed} } @measured) {
    my $b = $_->{built};

    table([$_->{name}, (map { thousands($b->{$_}) }
                            qw(comments duplicates errors)),
           reasons(map { ($_->{reason} => $_->{count}) }
                       @{ $b->{skipped_by_reason} })]);
}

line('');

for (grep { ($_->{built}{items} // -1) != ($_->{named}{items} // -1) }
          @measured)
{
    line("$_->{name}: `--from auto` gives other keys than `--from"
         . " $_->{format}`.");
}


# ---- the engine of Adblock-style lists ----

# URLs that rules name and URLs beside them, as browsers request them.

sub drawn {
    my ($path) = @_;

    my %urls;

    open my $in, '<:raw', $path or die "$path: $!\n";

    while (<$in>) {
        my ($host, $page) = m,^(?:\@\@)?(?:\|\|)?([\w.-]+\.\w+)
                               (/[^\s\$*^|\#"<>\\`{}]*)?(?:[\$*^|]|\s*$),x
            or next;

        $page //= '/';

        my $own = $page =~ s/\?.*//r;
        my $in = $own =~ s,/?\z,/,r;
        my @beside = $host =~ /\.\d+\z/ ? () : ("www.$host", "not-$host",
                                                $host =~ s/^[^.]+\.//r);

        $urls{$_} = 1
            for map({ "https://$_$page" } $host, "$host.example", @beside),
                map { "http://$host$_" }
                    '/', '/other/page?q=1', $own, "$own?q=1", "${own}x",
                    "${in}page", uc $page, $page =~ s,[^/]+/?\z,,r,
                    $page =~ /\?./ ? ("$page&more=1", "${page}1") : ();
    }

    return sort keys %urls;
}


# The verdicts of an engine, each with the rule that decided: AdGuard's if its
# directory is given, else uBlock Origin's.

sub engine {
    my ($where, $path, @urls) = @_;

    my ($exit, $out, $err) = BloomTest::Process::run_command(
        ['node', "$checkout/t/reference/lists-engine.mjs", $where // ()],
        limit => 600,
        stdin => JSON::PP->new->utf8->encode([{ files => [$path],
                                                urls => \@urls }]));

    $exit == 0 or die "the engine failed: $err\n";

    return @{ JSON::PP::decode_json($out)->[0] };
}


# Installs AdGuard's engine, in the newest version whose dependencies the
# registry has. Returns its directory, or nothing.

sub adguard {
    my $to = "$dir/adguard";

    make_path($to);
    eval {
        lines_of($to, qw(npm install --silent --no-save --no-package-lock
                         --ignore-scripts --prefix), $to, $adguard)
            if !-d "$to/node_modules/\@adguard/tsurlfilter";
        1;
    } or warn "$adguard is left out: $@";

    return -d "$to/node_modules/\@adguard/tsurlfilter" ? $to : undef;
}


# Why only the engine blocks by this rule.

sub kind {
    my ($rule) = @_;

    my ($pattern, $options) = $rule =~ m,^(.*?)(?:\$([\w~][^/|]*))?\z,;

    return 'regular expressions' if $pattern =~ m,^/.+/\z,;
    return 'options that narrow'
        if grep { !/^(?:document|important|all)\z/ } split /,/, $options // '';
    return 'no host at the beginning' if $pattern !~ /^\|\||^[\w.-]+\z/;
    return 'wildcards' if $pattern =~ /[*^]./;
    return 'any query' if $pattern =~ /\?\z/;
    return 'other URLs that begin like the rule, or in other letters';
}


my @compared = grep { $_->{format} eq 'adblock' } $built->();

if (@compared) {
    for my $m (@compared) {
        my $allowed = "$dir/$m->{zone}.allowed";

        build($m->{image}, 'adblock', $m->{path}, '--exceptions', $allowed);
        build("$allowed.bloom", 'lines', $allowed, '--allow-empty');
    }

    my $t = served(
        { map { $_->{zone} => "bloom_pass present \$url zone=$_->{zone}_allowed;"
                              . " bloom_reject present \$url zone=$_->{zone}"
                              . ' status=403;' } @compared },
        map { $_->{zone} => $_->{image},
              "$_->{zone}_allowed" => "$dir/$_->{zone}.allowed.bloom" }
            @compared);

    line('## The engine of Adblock-style lists');
    line('');
    table(['list', 'asked', 'both block', 'of these, beyond the host',
           'AdGuard passes', 'only the engine blocks', 'why',
           'only nginx blocks'],
          ['---', ('--:') x 5, '---', '--:']);

    my $other = adguard();

    for my $m (@compared) {
        my @urls = sample(20_000, drawn($m->{path}));
        my @verdicts = engine(undef, $m->{path}, @urls);
        my @others = $other ? engine($other, $m->{path}, @urls) : ();
        my %found = map { $_ => 1 } refused($t, $m->{zone}, @urls);
        my ($both, $beyond, $passed, %only, @only_we) = (0, 0, 0);

        for my $i (0 .. $#urls) {
            my ($verdict, $rule) = @{ $verdicts[$i] }{qw(verdict rule)};
            my $blocks = $verdict =~ /^(?:document|host|beyond)\z/;

            if ($found{$urls[$i]}) {
                $blocks ? $both++
                        : push @only_we, "$urls[$i] $verdict " . ($rule // '');
                $beyond += $verdict eq 'beyond';
                $passed += $blocks && $other
                           && $others[$i]{verdict} =~ /^(?:allowed|-)\z/;

            } elsif ($blocks) {
                $only{kind($rule)}++;
            }
        }

        table([$m->{name}, map({ thousands($_) } scalar @urls, $both, $beyond),
               $other ? thousands($passed) : '-', thousands(sum0(values %only)),
               reasons(%only), thousands(scalar @only_we)]);

        open my $out, '>>', "$dir/$m->{zone}.missed" or die "$m->{zone}: $!\n";
        print $out map { "only nginx blocks: $_\n" } @only_we;
        close $out or die "$m->{zone}: $!\n";
    }

    line('');
    $t->stop;
}


# ---- popular sites as good keys ----

# Returns how many keys of a file an image has, by the tool.

sub found {
    my ($image, $file) = @_;

    my (undef, $out) = BloomTest::Process::run_command(
        [$tool, 'test', '-c', '--json', '-f', $file, $image], limit => 600);

    return JSON::PP::decode_json($out)->{present};
}


# Writes the hosts and pages of the popular sites, and returns the file.

sub popular {
    my ($sites) = located('npm', 'top-sites', '*/top-sites.json');
    my ($pages) = located('npm', 'ad-block', '*/top500-sitelist.txt');
    my $to = "$dir/popular.txt";

    open my $in, '<:raw', $sites or die "$sites: $!\n";
    my $array = JSON::PP->new->utf8->decode(do { local $/; <$in> });

    open my $out, '>:utf8', $to or die "$to: $!\n";
    print $out map { "$_->{rootDomain}\n" } @$array;
    open $in, '<', $pages or die "$pages: $!\n";
    print $out grep { /^http/ } <$in>;
    close $out or die "$to: $!\n";

    return $to;
}


my %blocks = map { $_ => 1 } 'URLhaus, online', 'Spam404', 'Ethereum phishing',
                             'disposable mail';
my @blocking = grep { $blocks{$_->{name}} } $built->();

if (@blocking) {
    my $popular = popular();

    line('');
    line('## Popular sites as good keys');
    line('');
    table(['list', '`-p`', 'found without', 'found with', 'of these, listed',
           'exceptions', 'bytes of the exceptions',
           'bytes of the image without', 'with', 'build without', 'with'],
          ['---', ('--:') x 10]);

    for my $m (@blocking) {
        for my $rate ('1e-2', '1e-4') {
            my @how = ($m->{path}, '-p', $rate, '--seed', 1);
            my ($without, $with, @times);

            # the two take turns; a single build says little

            for (1 .. 21) {
                $without = build("$dir/without.bloom", $m->{format}, @how);
                $with = build("$dir/with.bloom", $m->{format}, @how,
                              '--except', $popular, '--except-wins');
                push @{ $times[0] }, $without->{duration_ms};
                push @{ $times[1] }, $with->{duration_ms};
            }

            table([$m->{name}, $rate,
                   thousands(found("$dir/without.bloom", $popular)),
                   found("$dir/with.bloom", $popular), $with->{conflicts},
                   $with->{excepted}, thousands($with->{exceptions_bytes}),
                   thousands($without->{size_bytes}),
                   thousands($with->{size_bytes}),
                   map { (sort { $a <=> $b } @$_)[10] . ' ms' } @times]);
        }
    }
}


# ---- a list of allowed hosts before a list of URLs ----

# The hosts below which most is listed, such as those where anybody can store a
# file, are allowed.  A listed page must not pass because of that.

my ($urls) = grep { $_->{name} eq 'URLhaus, online' } $built->();

exit 0 if !$urls;

my @hosts = map { $_->{keys}[0] =~ s,/.*,,r } @{ $urls->{list}{entries} };
my @pages = grep { $_->{keys}[0] =~ m,/., } @{ $urls->{list}{entries} };
my %listed = map { $_->{keys}[0] => 1 } @{ $urls->{list}{entries} };
my %below;

$below{ s/.*?([^.]+\.[^.]+)\z/$1/r }++ for grep { !/^[0-9.]+\z/ } @hosts;

my @allowed = sort { $below{$b} <=> $below{$a} || $a cmp $b }
              grep { !$listed{$_} } keys %below;

splice @allowed, 100 if @allowed > 100;

my $keys = "$dir/allowed.txt";

open my $out, '>', $keys or die "$keys: $!\n";
print $out map { "$_/\n" } @allowed;
close $out or die "$keys: $!\n";

build("$dir/allowed.bloom", 'lines', $keys);

my $pass = 'bloom_pass present $url zone=allowed';
my $block = 'bloom_reject present $url zone=list status=403;';
my @rules = (
    ["`$pass`, then the block list", "$pass; $block"],
    ["`$pass exact`, then the block list", "$pass exact; $block"],
    ["the block list, then `$pass`", "$block $pass;"],
);

$t = served({ map { ("rules$_" => $rules[$_][1]) } 0 .. $#rules },
            list => $urls->{image}, allowed => "$dir/allowed.bloom");

line('');
line('## Allowed hosts before a list of URLs');
line('');
table(['rules', 'listed pages', 'of these, pass', 'allowed hosts that pass'],
      ['---', ('--:') x 3]);

my @front = map { "http://$_/" } @allowed;

for (0 .. $#rules) {
    my @refused = refused($t, "rules$_", map { $_->{urls}[0] } @pages);
    my @refused_hosts = refused($t, "rules$_", @front);

    table([$rules[$_][0], thousands(scalar @pages),
           thousands(@pages - @refused), @front - @refused_hosts]);
}

line('');
line('The ' . @allowed . ' allowed hosts are those below which most is listed:'
     . ' the last two labels of listed hosts.');
