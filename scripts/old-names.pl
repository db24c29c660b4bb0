#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# old-names.pl finds names that the surface of 1.0 has replaced.
#
#   old-names.pl [DIRECTORY]    checks a checkout, by default this one
#   old-names.pl --files        prints the files that are checked
#   old-names.pl --table        prints the context, the old name, the new name
#                               and an example (file, text) of each row, with
#                               tabs between
#
# The table below has a row for each old name: the context that makes the word
# an old name, the old name, and what replaces it.  A name that means nothing
# else is found wherever it stands.  A name that is still good elsewhere, such
# as key= in a query, is found in its context alone.
#
# Prints "FILE:LINE: CONTEXT: OLD is now NEW: TEXT" for each find, and exits 1
# if there is one.  The places that refuse an old name and say the new one are
# listed below, line by line; an entry that fits no line is an error, too.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Find qw(find);

# what is checked: the files of the checkout, but not what is built or fetched

my @skipped = ('build', '.git', 'dashboard/node_modules', 't/fuzz/corpus',
               'scripts/old-names.pl');

# a name that no other character of a name touches

sub word { return qr/(?<![\w\$])(?:$_[0])(?!\w)/ }

# a parameter of a directive, in a configuration or in prose: it follows the
# name of the directive, or else the zone's name in a directive with file= or
# capacity=, up to the end of the directive, of the paragraph or of the row, or
# up to the next directive

sub parameter {
    my ($directive, $name) = @_;

    return qr/(?:\b$directive\b
                |(?<!\bbloom_guard\ )(?<!\bbloom_source\ )\bzone=\S+(?=[ ])
                 (?=[^;\n]*\b(?:capacity|file)=))
              (?:(?!\bbloom_|\n\s*[\n|])[^;]){0,600}?
              (?<![\w?&-])\K(?:$name)=/x;
}

# the option --key, which "export" still has: there it names a key in Redis

my $key_option = qr/(?<![\w-])--key(?:=|\s+|',\s*')(?:raw|lower|host|url|FORM)\b
                    |^(?!.*(?:export|--to\b|bitmap|redisbloom|in\ Redis))
                     .*?(?<![\w-])\K--key(?![\w-])/mx;

# a value or the name of a member, in quotes

sub value { return qr/(?:["'`{]|\\")\K(?:$_[0])(?=["'`}]|\\")/ }

# a name that C has as an identifier, too: in C only within strings

sub in_strings { return { strings => $_[0] } }

my @old = (
    # context, old name, new name, how it is found, an example: file and line

    ['directive', 'bloom_unavailable', 'bloom_unknown',
     word('bloom_unavailable'),
     'conf-examples/x.conf', 'bloom_unavailable reject;'],

    ['parameter of bloom_zone', 'key=', 'form=',
     qr/${\ parameter('bloom_zone', 'key') }
        |(?<![\w?&-])key=(?:raw|lower|host|url)\b
        |(?:zone|form|with|wants|Give|Set|another)\b[^.\n]*
         [`"]\Kkey=(?:%s)?[`"]/x,
     'docs/x.md', "bloom_zone zone=hosts file=hosts.bloom\n    key=host;"],
    ['parameter of bloom_zone', 'max_change=', 'max_loss= and max_growth=',
     word('max_change'),
     'README.md', 'bloom_zone zone=a file=a max_change=20%;'],
    ['parameter of bloom_zone', 'huge_pages=', 'nothing',
     qr/${\ word('huge_pages') }=?/,
     't/http/x.t', q(my $zone = 'zone=a capacity=1k huge_pages=off';)],
    ['parameter of bloom_zone', 'slices=', 'nothing', qr/(?<![\w.\$-])slices=/,
     'docs/x.md', 'bloom_zone zone=a capacity=1m expire=24h slices=8;'],
    (map { ['parameter of bloom_zone', "$_=", "$_= of bloom_guard",
            parameter('bloom_zone', $_),
            'docs/x.md', "bloom_zone zone=a file=a.bloom $_=a;"] }
         qw(must_have must_not_have min_keys max_loss max_growth)),
    ['parameter of bloom_zone', 'source=', 'name= of bloom_source',
     parameter('bloom_zone', 'source'),
     'docs/x.md', 'bloom_zone zone=a capacity=1m fpr=0.1 source=ids;'],
    ['parameter of bloom_zone', 'max_lag=', 'max_lag= of bloom_source',
     parameter('bloom_zone', 'max_lag'),
     't/zone/x.t', q(my $zone = 'zone=a capacity=1m fpr=0.1 max_lag=off';)],
    ['values of journal=', 'on|off', 'auto|on|off',
     qr/\bjournal=\Kon\\?\|off/,
     'docs/x.md', '| Syntax | `bloom_zone zone=z [journal=on\|off];` |'],

    ['parameter of bloom_audit and bloom_feedback', 'learn=',
     'add= or except=', qr/(?<![\w?&])learn=/,
     'docs/x.md', 'bloom_audit 0.1% learn=on;'],
    ['parameter of bloom_audit and bloom_feedback', 'learn_rate=', 'rate=',
     word('learn_rate'),
     'conf-examples/x.conf', 'bloom_audit 0.1% add=on learn_rate=1r/s;'],
    ['parameter of bloom_feedback', 'learn_after=', 'after=',
     word('learn_after'),
     'conf-examples/x.conf', 'bloom_feedback 404 except=on learn_after=1m;'],

    ['option', '--key', '--form', $key_option,
     'conf-examples/nightly/x.sh', 'ngx-bloom build -o "$IMAGE" \\' . "\n"
                                   . '    --key "$FORM" "$KEYS"'],
    ['option', '--max-change', '--max-loss and --max-growth',
     qr/(?<![\w-])--max-change(?![\w-])/,
     'conf-examples/pull/x.env', 'GUARDS=--min-keys 1000 --max-change 20%'],
    ['setting of rebuild.sh', 'MAX_CHANGE', 'MAX_LOSS and MAX_GROWTH',
     word('MAX_CHANGE'),
     'conf-examples/nightly/x.env', '#MAX_CHANGE=20%'],

    ['member or label', 'key_form', 'form', in_strings(word('key_form')),
     'conf-examples/prometheus/x.yml', '{{ $labels.key_form }}'],
    ['member or metric', 'learned', 'added (audit) or excepted (feedback)',
     qr/(?<![a-zA-Z])learned(?![a-z])|(?<=Bloom)Learned/,
     'dashboard/src/x.js', 'zone.feedback.not_learned_rate'],
    ['member', 'measured_fpr_without_learning',
     'measured_fpr_without_excepted', word('measured_fpr_without_learning'),
     't/api/x.t', '$state->{feedback}{measured_fpr_without_learning}'],
    ['member', 'memory.pages', 'memory.huge_bytes',
     qr/\bmemory(?:\.|"\]?\s*:\s*\{\s*"|\}?(?:->)?\{)\Kpages\b/,
     't/api/x.t', '$state->{memory}{pages}{huge_bytes}'],
    ['metric', 'pages_huge_bytes', 'huge_bytes',
     qr/(?<![a-z])pages_huge_bytes\b/,
     'src/http/api/x.c', '"pages_huge_bytes", NULL,'],
    ['member or value', 'unavailable', 'unknown',
     qr/${\ value('unavailable') }|(?<=\w)\.\Kunavailable\b/,
     'docs/x.md', '| `unavailable` | what the rule does |'],
    ['value of $bloom_status', 'UNAVAILABLE', 'UNKNOWN', word('UNAVAILABLE'),
     'conf-examples/x.conf', 'map $bloom_status $x { UNAVAILABLE 1; }'],

    ['member', 'unparsable', 'invalid', qr/(?<![a-z])unparsable(?![a-z])/,
     't/api/x.t', '$response->json->{first_unparsable}'],
    ['member', 'took_ms', 'duration_ms', word('took_ms'),
     'docs/x.md', '{"generation":2,"took_ms":3}'],
    ['member', 'under_way', 'in_progress',
     qr/(?<![a-zA-Z])(?:load_)?under_way\b/,
     'dashboard/src/x.js', 'zone.load.under_way'],
    ['member', 'kept_keys', 'owing_workers', qr/(?<=journal[._])kept_keys\b/,
     'conf-examples/prometheus/x.yml', 'nginx_bloom_journal_kept_keys > 0'],
    ['member', 'pending_keys', 'owing_workers',
     qr/(?:(?<![a-z_])|(?<=journal_))pending_keys\b/,
     'dashboard/src/x.js', 'if (zone.journal.pending_keys > 0) {'],
    ['member', 'filter.ones', 'filter.bits_set',
     qr/\bfilter(?:\.|\}?(?:->)?\{)\Kones\b/,
     'lua/x.lua', 'state.filter.ones'],
    ['member', 'expected_fpr', 'estimated_fpr',
     in_strings(word('expected_fpr')),
     't/tool/x.t', 'is($json->{expected_fpr}, 0.1);'],
    ['member', 'predicted_fpr', 'estimated_fpr',
     in_strings(word('predicted_fpr')),
     'docs/x.md', 'the member `predicted_fpr`'],
    ['metric', 'false_positive_ratio', 'estimated_fpr or image_fpr',
     qr/nginx_bloom_\w*\Kfalse_positive_ratio\b/,
     'conf-examples/prometheus/x.json',
     '"expr": "nginx_bloom_target_false_positive_ratio"'],
    ['metric', 'capacity_items', 'image_capacity',
     qr/(?<=nginx_bloom_)capacity_items\b/,
     'conf-examples/prometheus/x.json', '"expr": "nginx_bloom_capacity_items"'],
    ['format', 'adblock-domains', 'adblock', word('adblock-domains'),
     'conf-examples/block-list-job/x.env', 'FROM="--from adblock-domains"'],
    ['command', 'ngx-bloom play', 'the page of the endpoint',
     qr/\bngx-bloom\s+play\b/, 'docs/x.md', '    $ ngx-bloom play'],
    ['command', 'ngx-bloom bench', 'build/bench/lookups',
     qr/\bngx-bloom\s+bench\b/, 'bench/x.pl', 'system("ngx-bloom bench");'],

    ['member of GET keys', 'summary', 'nothing',
     qr/(?:->\{|\w\.|`)\Ksummary\b|\\?"\Ksummary(?=\\?":)/,
     'docs/x.md', '| `summary` | a sentence for each rule |'],
    ['member of GET keys', 'server_at', 'file and line', word('server_at'),
     'dashboard/src/x.js', 'place.server_at'],
    (map { ['member of GET keys', $_, 'effect and decided',
            in_strings(
                qr/(?:(?<=\w)\.|->\{|\\?")\K$_(?=\}|\\?":|\s*[!=&|)])/),
            't/api/x.t', qq(ok(\$rule->{$_}, 'it does');)] }
         qw(fires decides)),

    ['query', '?version=1', 'nothing', qr/[?&]version=1/,
     'docs/x.md', 'curl -o ids.bloom .../zones/ids/image?version=1'],
    ['header', 'If-Match', '?serving=TOKEN', qr/(?<![\w-])[Ii]f-[Mm]atch\b/,
     'lua/x.lua', 'headers["If-Match"] = etag'],
    ['event of follow', 'blocked', 'invalid_keys or too_large',
     qr/event"?[ =:]+"?\Kblocked\b/,
     'docs/x.md', '{"event":"blocked"}'],
);

# The places that refuse an old name, and their tests: the file, the old name,
# and a part of the line.

my @refusing = (
    ['ngx_http_bloom_module.c', 'bloom_unavailable',
     'ngx_string("bloom_unavailable"),'],
    ['src/http/api/ngx_http_bloom_error.c', 'If-Match',
     'change has `If-Match`'],
    ['src/http/ngx_http_bloom_conf_zone.c', 'max_change=',
     'ngx_string("max_change="),'],
    ['src/http/ngx_http_bloom_conf_zone.c', 'slices=',
     'ngx_string("slices="),'],
    ['src/http/ngx_http_bloom_audit.c', 'learn=', 'ngx_string("learn="),'],
    ['src/http/ngx_http_bloom_audit.c', 'learn_rate=',
     'ngx_string("learn_rate="),'],
    ['src/http/ngx_http_bloom_feedback.c', 'learn=', 'ngx_string("learn="),'],
    ['src/http/ngx_http_bloom_feedback.c', 'learn_rate=',
     'ngx_string("learn_rate="),'],
    ['src/http/ngx_http_bloom_feedback.c', 'learn_after=',
     'ngx_string("learn_after="),'],
    ['src/cli/terminal/options.c', '--max-change',
     '{ "--max-change", '],
    ['src/cli/intake/list_format.c', 'adblock-domains',
     'strcmp(text, "adblock-domains")'],
    ['src/http/api/ngx_http_bloom_token.c', 'If-Match',
     '"nothing was changed, since \"If-Match\" never "'],
    ['src/http/api/ngx_http_bloom_token.h', 'If-Match',
     '*error if they differ, or if the request has If-Match.'],
    ['conf-examples/nightly/rebuild.sh', 'MAX_CHANGE',
     'MAX_CHANGE is no setting: set MAX_LOSS'],
    ['docs/api.md', 'If-Match', 'A change with `If-Match` gets 412'],
    ['docs/api.md', 'If-Match', '| 412 | `generation_changed` |'],

    ['t/http/conf-errors.t', 'bloom_unavailable', 'bloom_unavailable reject;'],
    ['t/http/conf-errors.t', 'bloom_unavailable',
     '=> "bloom_unavailable" "bloom_unknown"'],
    ['src/cli/terminal/options.c', '--key', '{ "--key", '],
    ['t/tool/build.t', '--key', 'unknown option "--key=url"; use --form;'],
    ['t/tool/build.t', '--max-change', 'unknown option "--max-change=20%"'],
    ['t/tool/build.t', '--max-change', q('--max-change=20%')],
    ['t/tool/build-lists.t', 'adblock-domains',
     '--from "adblock-domains": is called adblock now'],
    ['t/tool/build-lists.t', 'adblock-domains',
     q('--from', 'adblock-domains')],
    ['t/tool/nightly.t', 'MAX_CHANGE', 'qr/MAX_CHANGE is no setting'],
    ['t/tool/nightly.t', 'MAX_CHANGE', q(MAX_CHANGE => '20%')],
    ['t/api/write.t', 'If-Match', 'qr/"If-Match" never matches'],
    ['t/api/write.t', 'If-Match', q("If-Match: $_", 'If-Match' => $_)],
    ['t/api/write.t', 'If-Match', q('If-Match' => '"x"', 'If-None-Match')],
    ['t/api/why.t', 'If-Match', q('If-Match' => '"x"')],
    ['t/api/why.t', 'If-Match', 'If-Match does not prevent reading'],
);

my $failed = 0;

if (($ARGV[0] // '') eq '--table') {
    for (@old) {
        my ($context, $old, $new, undef, $file, $text) = @$_;

        print join("\t", $context, $old, $new, $file, $text =~ s/\n/\\n/gr),
              "\n";
    }
    exit 0;
}

my $files = @ARGV && $ARGV[0] eq '--files' ? shift : '';

chdir($ARGV[0] // dirname(__FILE__) . '/..') or die "cannot enter: $!\n";

if ($files) {
    print map { "$_\n" } files();
    exit 0;
}

my %used;

for my $file (files()) {
    my $text = slurp($file);

    find_in($file, $text, $_) for @old;
}

for (grep { !$used{"@$_"} } @refusing) {
    my ($file, $old, $part) = @$_;

    print "$file: no line refuses \"$old\" with: $part\n";
    $failed = 1;
}

exit $failed;


# Prints the finds of a row in a file, once for each line.
sub find_in {
    my ($file, $original, $row) = @_;
    my ($context, $old, $new, $pattern) = @$row;
    my $text = $original;
    my %seen;

    if (ref $pattern eq 'HASH') {
        $pattern = $pattern->{strings};
        return if $text !~ $pattern;
        $text = strings($text) if $file =~ /\.[ch]$/;
    }

    while ($text =~ /$pattern/g) {
        my $at = $-[0];
        my $begin = rindex($text, "\n", $at - 1) + 1;

        $begin = 0 if $at == 0;

        my $end = index $original, "\n", $at;
        my $line = substr $original, $begin,
                          ($end < 0 ? length $original : $end) - $begin;

        next if $seen{$begin}++ || refuses($file, $old, $line);

        my $number = 1 + (substr($text, 0, $begin) =~ tr/\n//);

        $line =~ s/^\s+//;
        print "$file:$number: $context: $old is now $new: ",
              substr($line, 0, 120), "\n";
        $failed = 1;
    }
}


# Returns the text of a C file with spaces in place of what is not within a
# string.
sub strings {
    my ($text) = @_;

    my $blank = sub { $_[0] =~ s/[^\n]/ /gr };

    $text =~ s{("(?:[^"\\\n]|\\.)*")|('(?:[^'\\\n]|\\.)+'|/\*.*?\*/|.)}
              { $1 // $blank->($2) }gsex;

    return $text;
}


# Returns whether a line is one of those that refuse an old name.
sub refuses {
    my ($file, $old, $line) = @_;

    for (@refusing) {
        if ($_->[0] eq $file && $_->[1] eq $old && index($line, $_->[2]) >= 0) {
            return $used{"@$_"} = 1;
        }
    }

    return 0;
}


# Returns the text files of the checkout.
sub files {
    my (@files, %skip);

    @skip{@skipped} = ();

    find({ no_chdir => 1, wanted => sub {
        my $file = s,^\./,,r;

        if (exists $skip{$file}) {
            $File::Find::prune = 1;
            return;
        }
        push @files, $file if -f && !-l && -T;
    } }, '.');

    return sort @files;
}


# Returns the text of a file; of a manual page, with its hyphens as others read
# them.
sub slurp {
    my ($file) = @_;

    open my $fh, '<', $file or die "cannot read $file: $!\n";
    local $/;
    my $text = <$fh> // '';

    return $file =~ /\.1(?:\.in)?\z/ ? $text =~ s/\\-/-/gr : $text;
}
