#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests which hosts and URLs "ngx-bloom build --from adblock" finds in
# Adblock-style lists, and why it skips each other rule.  engine.t asks the
# engine that these lists are written for.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(build_text json tool_test);

my $t = tool_test();
my $dir = $t->testdir;

# Checks which of these keys a lookup finds.

sub finds {
    my ($image, $what, $present, $absent) = @_;

    my (undef, $out) = $t->run_tool('test', $image, '--', @$present, @$absent);

    is($out, join('', map({ "present $_\n" } @$present),
                  map { "absent $_\n" } @$absent), $what);
}

# Each case is a rule, and either what is found and not found, or the reason to
# skip it.

sub cases {
    my ($form, @cases) = @_;

    for (@cases) {
        my ($rule, $expected, @absent) = @$_;
        my ($image, $json)
            = build_text("[Adblock Plus 2.0]\n! Title: list\n$rule\n", '--from',
                         'adblock', '--form', $form, '--allow-empty', '-p',
                         '1e-9', '-n', 1000);

        if (ref $expected) {
            finds($image, "$form: $rule is found", $expected, \@absent);
            is($json->{skipped} + $json->{errors}, 0, "$form: $rule is kept");
            next;
        }

        is_deeply([$json->{received}, $json->{lines_read},
                   map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                  [0, 1, $expected], "$form: $rule is skipped");
    }
}

# Builds an image of files, given by their texts. Returns how many lines were
# skipped for which reason, and the keys that are found.

sub of_files {
    my ($texts, @keys) = @_;

    my @files;

    for (@$texts) {
        push @files, "$dir/file" . @files;
        open my $out, '>', $files[-1] or die "$files[-1]: $!\n";
        print $out $_;
        close $out or die "$files[-1]: $!\n";
    }

    my ($exit, $out, $err)
        = $t->run_tool('build', '--json', '-o', "$dir/files", '--form', 'url',
                       '--from', 'adblock', '--allow-empty', '-p', '1e-9', '-n',
                       1000, @files);

    is($exit, 0, 'the build exits with 0') or diag($err);

    (undef, my $found) = $t->run_tool('test', "$dir/files", '--', @keys);

    return ({ map { $_->{reason} => $_->{count} }
                  @{ json($out)->{skipped_by_reason} } },
            [$found =~ /^present (.*)$/mg]);
}


# ---- patterns ----

cases('url',
    ['||one.example^', ['http://one.example/', 'https://a.one.example/x?y'],
     'http://none.example/'],
    map({ [$_, ['http://one.example/', 'http://a.one.example/x']] }
        '||ONE.example^', '||one.example^*', '||one.example/', '||one.example/*',
        '||one.example', ' one.example ', 'one.example # why',
        '||one.example^$all # why', '0.0.0.0 one.example',
        '127.0.0.1 one.example # why'),
    ['||one.example/page^$all',
     ['http://one.example/page', 'http://one.example/page?q',
      'http://one.example/page/', 'http://one.example/page/more'],
     'http://one.example/', 'http://one.example/pages'],
    map({ [$_, ['http://a.one.example/page', 'http://one.example/page/']] }
        '||one.example/page', '||one.example/page*', '||one.example/page^*',
        '||one.example/page$doc'),
    map({ [$_, ['http://one.example/a/b/c/', 'http://one.example/a/b/c/d/e'],
          'http://one.example/a/b/c'] }
        '||one.example/a/b/c/', '||one.example/a/b/c/*'),
    ['||one.example/a/b/c/d/e^',
     ['http://one.example/a/b/c/d/e', 'http://one.example/a/b/c/d/e/']],
    ['||one.example/p?id=5^$all', ['http://one.example/p?id=5'],
     'http://one.example/p', 'http://one.example/p?id=6'],
    ['||one.example/p?id=5|', ['http://one.example/p?id=5'],
     'http://one.example/p?id=55'],
    ['1.2.3.4', ['http://1.2.3.4/x']], ['2001:db8::1', ['http://[2001:db8::1]/']],
    ['||[2001:db8::1]^', ['http://[2001:db8::1]/']],
    ["||b\xc3\xbccher.example^", ['http://xn--bcher-kva.example/']],

    map({ [$_, 'is a directory so deep that no lookup finds what is in it'] }
        '||one.example/a/b/c/d/', '||one.example/a/b/c/d/*$all'),
    map({ [$_, 'is a regular expression'] }
        '/banner[0-9]+/', '/x/$doc', '@@/x/', '/ads/', '/^https?:.*x$/'),
    map({ [$_, 'does not begin with a host'] }
        '/ads/x.js', '-ads-', '&ad=', 'one.example/page', '*', 'one.example^',
        'http://one.example/', '|ftp://one.example/', '||^',
        '.one.example', '||.one.example^', '||a@one.example^',
        '0.0.0.0 one.example two.example', '0.0.0.0 one.example/page'),
    map({ [$_, 'has a wildcard'] }
        '||wild*.example^', '||one.example/*/x^', '||one.example^x',
        '||one.*^', '||one.example^*/x'),
    map({ [$_, 'is only the beginning of a host'] }
        '||one.', '||www-one$all', '||one.example-', '||216.21.13', '||one.x',
        '||216.21.13^', '||one.example.^'),
    map({ [$_, 'is only the beginning of a name'] }
        '||one.example/x-', '||one.example/p?id=', '||one.example/x.'),
    ['||one.example/p?id', 'is only the beginning of a query'],
    map({ [$_, 'is a whole top-level domain, which no key can stand for'] }
        '||example^', '||example/x/'),
    ['127.0.0.1 localhost', 'has only names for the machine itself'],
);

# What a key says of more URLs than the rule.

cases('url',
    map({ [$_, 'is for one scheme, and a key is for all'] }
        '|https://one.example/', '|http://one.example/page^'),
    map({ [$_, 'is for one port, and a key is for all'] }
        '||one.example:8080^', '||192.0.2.1:81/page', '||[2001:db8::1]:80^'),
    map({ [$_, 'is for subdomains, but not for their host'] }
        '||*.one.example^', '||*.one.example/page'),
    map({ [$_, 'is for a URL without a query, and a key is for any query'] }
        '||one.example/page|', '||one.example^|'),
    map({ [$_, 'is for any query, and a key without a query is for the page too']
        } '||one.example/p?', '||one.example/dir/?'),
    map({ [$_, 'is for the own page of a directory, and a key is for all in it']
        } '||one.example/a/b/c/^', '||one.example/^'),
    map({ [$_, 'ends with //, which keys have as /'] }
        '||one.example//', '||one.example/a//*', '||one.example//?a=b'),
    map({ [$_, 'has # or \\, which no request for a page has'] }
        '||one.example/#part', '||one.example/a\b'),
    ['||http://one.example^', 'has a scheme behind ||, so it matches nothing'],
    ['||one.example?x', 'has a query without a path, so it matches nothing'],
    ['||one.example/../x', 'has . or .. in its path, so it matches nothing'],
    ['||one.example/a b', 'has a blank in it'],
    ['||one.example/' . 'x' x 1024,
     'has more than 1,024 bytes, which uBlock Origin ignores'],
);

for my $form ('host', 'lower') {
    cases($form,
        ['||one.example^', ['one.example']],
        ['||one.example/*', ['one.example']],
        ['||one.example/page^', 'has a path; use --form url']);
}

cases('host',
      ['||one.example^', ['ONE.example', 'a.one.example'], 'b.example']);


# ---- options ----

cases('url',
    map({ [$_, ['http://one.example/', 'http://a.one.example/x']] }
        map({ "||one.example^\$$_" }
            'all', 'document', 'doc', 'important', 'document,important',
            'document,popup', 'doc,frame', 'all,popup', 'popup,doc',
            'document,subdocument', 'script,image,document', 'all,~image',
            'document,~script,~xhr', '_,all,__', 'document,ghide',
            'all,~popup', 'inline-script,doc', '1p', 'all,~third-party',
            'strict1p',
            'css,image,object,script,xhr,frame,font,media,websocket,ping,other'),
        'one.example$all', 'one.example$doc,important'),
    map({ ["||one.example^\$$_->[0]", "has the option \$$_->[1]"] }
        ['image', 'image'], ['3p', 'third-party'], ['popup', 'popup'],
        ['script,image', 'image'], ['third-party,script', 'third-party'],
        ['script,third-party', 'third-party'], ['all,~1p', 'first-party'],
        ['frame', 'subdocument'], ['domain=a.example|b.example', 'domain'],
        ['document,domain=a.example', 'domain'],
        ['document,to=one.example', 'to'], ['document,method=get', 'method'],
        ['document,denyallow=a.example,from=b.example', 'denyallow'],
        ['csp=default-src *', 'csp'], ['document,redirect=noop.html', 'redirect'],
        ['removeparam=/^\\$x/', 'removeparam'], ['document,webrtc', 'webrtc'],
        ['~document', '~document'], ['all,~document', '~document'],
        ['important,match-case', 'match-case']),
    ['||one.example^$~image', 'has only types with ~'],
    ['||one.example^$~image,~script', 'has only types with ~'],
    map({ ["||one.example^\$$_", 'has an unknown option'] }
        'wonder', 'all,XHR', 'Document', 'all,', ',all', 'doc popup',
        'all.popup'),
    ['||one.example/$jquery.js', 'has an unknown option'],
    map({ ["||one.example^\$$_", 'has an option twice'] }
        'document,doc', 'all,all', 'document,~image,image'),
    map({ ["||one.example^\$$_", 'has ~ before an option that cannot have it'] }
        '~all', '~important', 'document,~badfilter', '~ghide'),
    map({ ["||one.example^\$$_", 'has a value for an option that takes none'] }
        'document=1', 'all='),
    map({ ["||one.example^\$$_", 'has options that exclude each other'] }
        'inline-script,all', 'document,ghide,inline-font'),
    ['||one.example^$badfilter', 'takes another rule away ($badfilter)'],
    ['@@||one.example^', 'is an exception, which --exceptions FILE collects'],
    ['@@||one.example/x', 'is an exception, which --exceptions FILE collects'],
    ['@@||one.example^$doc,popup',
     'is an exception, which --exceptions FILE collects'],
    ['@@||one.example^$genericblock,doc',
     'is an exception, which --exceptions FILE collects'],
    ['||one.example^$doc,cname', 'has the option $cname'],
    ['@@||one.example^$cname', 'has the option $cname'],
    ['@@||one.example^$ghide', 'has the option $generichide'],
    ['@@||one.example^$important', 'is an exception with $important'],
);


# ---- lines that are no rules about requests ----

cases('url',
    map({ [$_, 'is about elements of pages'] }
        '##.ad', '###ad', 'one.example##.ad', 'one.example#@#.ad',
        'one.example#?#.ad', 'one.example##+js(x, y)', 'one.example#%#x',
        'one.example#@#+js(x)', 'one.example#@?#.ad', 'one.example#$?#.ad',
        'one.example#@%#x', 'one.example#$#body { x: y }',
        'one.example$$script[x]', 'one.example$@$script[x]',
        '*##^script:has-text(x)', 'one.example##^responseheader(x)',
        '[$path=/x]one.example##.ad',
        'shop.example##[aria-label="Scroll to the top"]'),
    ['!#include other.txt', 'includes another file'],
    map({ ["$_", 'has no !#if before it'] } '!#endif', '!#else'),
);

{
    my (undef, $json) = build_text(
        "! a\n# b\n#\n######\n#### c ####\n#d\n[x]\n!#iffy\n##\n||a.b^\n",
        '--from', 'adblock');
    is_deeply([@$json{qw(comments received skipped)}], [9, 1, 0],
              'comments are counted');
}

{
    my ($skipped, $found) = of_files(
        ["||ads.example^\$domain= \\\n    good.example| \\\n    fine.example\n"
         . "||last.example^ \\\n    \$all\n||evil.example^\n"],
        map { "$_.example" } qw(ads good fine last evil));
    is_deeply($found, ['evil.example'],
              'the lines of a rule with several lines are no hosts');
    is_deeply($skipped, { 'is part of a rule with several lines' => 5 },
              'the lines of a rule with several lines are counted');
}


# ---- conditions ----

sub holds {
    my ($condition) = @_;

    my (undef, $found) = of_files(
        ["!#if $condition\n||then.example^\n!#else\n||else.example^\n!#endif\n"
         . "||after.example^\n"],
        map { "$_.example" } qw(then else after));

    return join ' ', map { s/\.example//r } @$found;
}

is(holds($_), 'then after', "!#if $_ holds") for
    'ext_ublock', 'env_chromium', '!false', '!env_mobile', '!cap_unheard_of',
    'ext_ublock && !env_firefox', 'env_safari || env_chromium',
    '(env_chromium)', '!(env_safari || env_mobile)', '!!ext_ublock',
    'false && false || env_chromium', '((env_chromium)&&(!adguard))',
    'cap_ipaddress', 'adguard_ext_chromium';

is(holds($_), 'else after', "!#if $_ does not hold") for
    'false', 'env_mobile', '!env_chromium', 'cap_html_filtering', 'ext_abp',
    'env_chromium && env_mobile', 'adguard', 'ext_ubol || env_mv3',
    'env_chromium || ext_ublock && false', 'cap_unheard_of';

is(holds($_), 'after', "!#if $_ is not decided") for
    '', 'unheard_of', '!unheard_of', 'env_chromium && unheard_of', '(false',
    'false)', 'env_chromium env_mobile', '&& false', 'false &&', '()',
    '(' x 40 . 'false' . ')' x 40, '!' x 40 . 'false';

{
    my @lines = ('||a.example^', '!#if false', '||b.example^',
                 '!#if env_chromium', '||c.example^', '!#else',
                 '||d.example^', '!#endif', '!#include x', '!#else',
                 '||e.example^', '!#if env_mobile', '||f.example^', '!#endif',
                 '!#endif # false', '||g.example^', '!#if what',
                 '||h.example^', '!#endif', '!#endif', ' !#if false',
                 '||i.example^', '!#if false', '||j.example^');

    for my $ends ("\n", "\r\n") {
        my ($skipped, $found) = of_files([map({ $_ . $ends } join $ends, @lines),
                                          "||k.example^\n"],
                                         map { "$_.example" } 'a' .. 'k');
        is_deeply($found, [map { "$_.example" } qw(a e g i k)],
                  'blocks may be nested, and end with the file');
        is_deeply($skipped,
                  { 'is in an !#if block that does not apply' => 6,
                    'is in an !#if block whose condition cannot be decided' => 1,
                    'has no !#if before it' => 1 },
                  'rules that a condition leaves out are counted');
    }
}


# ---- memory ----

{
    my $list = join '', map { "||$_." . 'x' x 60 . ".example^\n" } 1 .. 250_000;

    $t->write_file('large', $list);

    for (['16m', 2], ['32m', 0]) {
        my ($exit, undef, $err) = $t->run_tool(
            'build', '-q', '-o', "$dir/none", '--form', 'host', '--from',
            'adblock', '--memory', $_->[0], "$dir/large");
        is($exit, $_->[1], "a list of 19 MB with --memory $_->[0]");
        like($err, $_->[1] == 0 ? qr/\A\z/
                   : qr/large: lists in which a line .* take more than 16.* MiB; use a larger --memory/,
             "what a build with --memory $_->[0] says");
    }
}


# ---- $badfilter ----

for (
    ['in any order', ["||a.example^\$badfilter\n||a.example^\n||b.example^\n"],
     ['b.example']],
    ['also in another file', ["||a.example^\n", "||a.example^\$badfilter\n"],
     []],
    ['of exactly this pattern',
     ["||a.example/x^\n||a.example/y^\n||a.example/x^\$badfilter\n"],
     ['a.example/y']],
    ['of a rule with options in another order and with other names',
     ["||a.example^\$popup,document,~image\n"
      . "||a.example^\$doc,~image,badfilter,popup\n"], []],
    ['but no rule with other options',
     ["||a.example^\$important\n||b.example^\$doc\n||a.example^\$badfilter\n"
      . "||b.example^\$popup,badfilter\n||c.example^\n"
      . "||c.example^\$domain=x.example,badfilter\n"],
     ['a.example', 'b.example', 'c.example']],
    ['of a rule with further types', ["||a.example^\$document,popup\n"
      . "||a.example^\$document,badfilter\n"], []],
    ['of a part of $all, but not of the rest',
     ["||a.example^\$all\n||a.example^\$badfilter\n||b.example^\$all\n"
      . "||b.example^\$doc,badfilter\n||c.example^\$all\n"
      . "||c.example^\$all,badfilter\n"], ['a.example', 'b.example']],
    ['of other spellings of a host',
     ["||a.example^\n||b.example\n0.0.0.0 c.example\nd.example\n"
      . join '', map { "||$_.example^\$badfilter\n" } 'a' .. 'd'], []],
    ['also where a condition cannot be decided',
     ["||a.example^\n||b.example^\n!#if what\n||a.example^\$badfilter\n"
      . "!#endif\n!#if false\n||b.example^\$badfilter\n!#endif\n"],
     ['b.example']],
    ['of nothing if uBlock Origin ignores it',
     ["||a.example^\n||a.example^\$badfilter,badfilter\n"
      . "||b.example^\n||b.example^\$badfilter,wonder\n"],
     ['a.example', 'b.example']],
) {
    my ($what, $texts, $expected) = @$_;

    my (undef, $found) = of_files($texts, map({ "$_.example" } 'a' .. 'd'),
                                  'a.example/x', 'a.example/y');
    is_deeply([grep { !m,^a.example/, || !grep { $_ eq 'a.example' } @$found }
                    @$found], $expected, "\$badfilter takes rules away $what");
}

{
    my ($skipped) = of_files(["||a.example^\n||b.example^\n",
                              "||a.example^\$badfilter\n0.0.0.0 b.example\n"
                              . "||b.example^\$badfilter\n"]);
    is_deeply($skipped, { 'is taken away by a $badfilter rule' => 3,
                          'takes another rule away ($badfilter)' => 2 },
              'rules that are taken away are counted');

    $t->write_file('list', "\@\@||a.example^\n\@\@||b.example^\n"
                           . "\@\@||a.example^\$badfilter\n"
                           . "||b.example^\$badfilter\n");
    $t->run_tool('build', '-q', '-o', "$dir/none", '--form', 'host', '--from',
                 'adblock', '--allow-empty', '--exceptions', "$dir/exceptions",
                 "$dir/list");
    is($t->read_file('exceptions'), "b.example\n",
       '$badfilter takes exceptions away');
}

done_testing;
