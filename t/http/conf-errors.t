#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that nginx refuses wrong directives and images of the module, and that
# its message names the file, the line and the reason.

use strict;
use warnings;

use File::Copy qw(copy);
use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new;
my $dir = $t->testdir;
my $program = qr/(?:nginx|angie)/;    # Angie's messages begin with its own name

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);


# Writes an nginx.conf with these lines in its block http, server or location.
# Returns the number of the line that is marked with >, where the error is.

sub write_conf {
    my ($where, $lines) = @_;

    my %text = (http => '', server => '', location => '', $where => $lines);

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


# Tests that nginx refuses the lines with exactly this message.  The file and
# the line follow it unless it contains %FILE%, %LINE% or, for the line of the
# server, %SERVER%.

sub is_refused {
    my ($where, $lines, $message, $what) = @_;

    my $line = write_conf($where, $lines);
    my $server = line_of($t->read_file('nginx.conf'), qr/server \{/);
    my ($exit, $output) = $t->test_config;

    $message .= ' in %FILE%:%LINE%' unless $message =~ /%FILE%/;
    $message =~ s/%FILE%/$dir\/nginx.conf/g;
    $message =~ s/%LINE-1%/$line - 1/ge;
    $message =~ s/%LINE%/$line/g;
    $message =~ s/%SERVER%/$server/g;

    $what //= quoted($where, $lines);

    ok($exit != 0 && $output =~ /^$program: \[emerg\] \Q$message\E$/m,
       "nginx refuses $what")
        or diag("exit status $exit, expected:\n$message\ngot:\n$output");
}


# Returns the message about a parameter that the directive does not take.

sub invalid {
    my ($directive, @takes) = @_;

    return "invalid parameter \"%s\": \"$directive\" takes "
           . join ', ', map { /^(?:exact|dry_run)$/ ? "\"$_\"" : "\"$_=\"" }
                            @takes;
}


sub is_accepted {
    my ($where, $lines) = @_;

    write_conf($where, $lines);
    my ($exit, $output) = $t->test_config;

    is($exit, 0, 'nginx accepts ' . quoted($where, $lines)) or diag($output);
}


# Returns lines of a configuration as they are called in the name of a test.

sub quoted {
    my ($where, $lines) = @_;

    my $text = $lines =~ s/^\s*>//mr =~ s/\s+/ /gr;

    return "'$text' in $where";
}


# Tests that nginx refuses the lines with each of the values in place of %s.

sub table {
    my ($where, $case, $message, @values) = @_;

    for my $value (@values) {
        is_refused($where, '>' . $case =~ s/%s/$value/r,
                   $message =~ s/%s/$value/r);
    }
}


subtest 'nginx refuses wrong parameters of bloom_zone' => sub {
    is_refused('http', '>bloom_zone zone=ids capacity=1k fpr=0.1;',
        'bloom zone "ids" has a "bloom_zone" already, in %FILE%:%LINE-1%;'
        . ' write all parameters there in %FILE%:%LINE%', 'a zone that is declared twice');
    is_refused('http', "bloom_zone zone=z capacity=1k fpr=0.1;\n"
        . '>limit_req_zone $uri zone=z:1m rate=1r/s;',
        'the shared memory zone "z" is already declared for a different use',
        'a zone whose name another module uses later');
    is_refused('http', "limit_req_zone \$uri zone=z:1m rate=1r/s;\n"
        . '>bloom_zone zone=z capacity=1k fpr=0.1;',
        'the shared memory zone "z" is already declared for a different use',
        'a zone whose name another module uses before');

    my $unknown = 'unknown bloom zone "nope" in %FILE%:%LINE%: declare it with'
                  . ' "bloom_zone zone=nope ..."';

    is_refused('http', '>bloom_lookup $uri $known zone=nope;', $unknown);
    is_refused($_, '>bloom_reject absent $uri zone=nope;', $unknown,
               "a rule with an unknown zone in $_")
        for qw(http server location);
    is_accepted('http', 'bloom_lookup $uri $known zone=later;'
                        . 'bloom_zone zone=later capacity=1k fpr=0.1;');

    is_refused('location', '>bloom_api zone=ids zone=nope;', $unknown);
    is_refused('location', '>bloom_api zone=ids zone=ids;',
               'duplicate parameter "zone=ids"');
    table('location', 'bloom_api zone=%s;',
          'invalid value "%s" of "zone=": it must be the name of a zone', '',
          'ids:1m');
    is_refused('location', '>bloom_api zones=ids;',
               'invalid parameter "zones=ids": "bloom_api" takes "write=", '
               . '"image=", "zone="');
    is_refused('location', '>bloom_api write=maybe;',
               'invalid value "maybe" of "write=": it must be "on" or "off"');
    is_refused('location', '>bloom_api write=on write=off;',
               'duplicate parameter "write=off"');
    is_accepted('http', 'server { listen 127.0.0.1:%%PORT_8081%%;'
                        . 'location /b { bloom_api zone=later zone=ids; } }'
                        . 'bloom_zone zone=later capacity=1k fpr=0.1;');

    my $either = 'bloom zone "z" must have either "file=", or "capacity="'
                 . ' and "fpr="';

    is_refused('http', '>bloom_zone zone=z fpr=0.1;',
               "$either; it has neither");
    is_refused('http',
               '>bloom_zone zone=z file=ids.bloom capacity=1k fpr=0.1;',
               "$either; it has both: leave out one of them");
    is_refused('http', '>bloom_zone zone=z file=;',
               'invalid value "" of "file=": it must be the path of an image');

    is_refused('http', '>bloom_zone zone=z;', "$either; it has neither");
    is_refused('http', '>bloom_zone;',
               'invalid number of arguments in "bloom_zone" directive');
    is_refused('http', '>bloom_zone file=ids.bloom;',
               '"bloom_zone" directive must have the "zone=" parameter');
    table('http', 'bloom_zone zone=%s file=ids.bloom;',
          'invalid value "" of "zone=": it must be the name of a zone',
          '', ':1m');

    my %only = ('file=ids.bloom'
                    => [capacity => qw(fpr=0.1 layout=classic hash=murmur3
                                       expire=24h)],
                'capacity=1k fpr=0.1' => [file => qw(watch=1h max_age=1h)]);

    for my $with (sort keys %only) {
        my ($other, @parameters) = @{ $only{$with} };
        my ($has) = $with =~ /^(\w+=)/;

        for my $parameter (@parameters) {
            my ($name) = $parameter =~ /^(\w+=)/;

            is_refused('http', ">bloom_zone zone=z $parameter $with;",
                       "bloom zone \"z\" has \"$has\" and \"$name\", which goes"
                       . " with \"$other=\" only: leave out one of them");
        }
    }

    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 %s;',
          invalid('bloom_zone', qw(zone file capacity fpr layout hash form
                                   max_keys removals expire watch max_age
                                   required journal label)),
          qw(colour=red status=404 to=@x decode=uri capacity Capacity=1k
             huge_pages=off =));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 %s;',
          'duplicate parameter "%s"', qw(zone=y capacity=1k fpr=0.1));

    table('http', "bloom_zone zone=z capacity=1k fpr=0.1 'label=%s';",
          q(invalid value "%s" of "label=": it must be 1 to 100 bytes of printable UTF-8)
          . q( without any of "'<>&\; write a label with spaces as)
          . ' "label=A list"',
          '', 'x' x 101, "a\tb", "\x7f", "\xc3", "\xc2\x85",
          "a\xe2\x80\xaeb", "a\xd8\x9cb", "\xf0\x9f\x98", 'R&D', '<b>',
          '"URLhaus"');
    is_accepted('http', "bloom_zone zone=z capacity=1k fpr=0.1 'label=$_';")
        for 'x', 'x' x 100, "Abuse.ch \xc3\x96 \$1 \xf0\x9f\x98\x80";

    is_refused('server', '>bloom_zone zone=z capacity=1k fpr=0.1;',
               '"bloom_zone" directive is not allowed here');
};


subtest 'nginx refuses wrong parameters of bloom_guard' => sub {
    my $zone = 'bloom_zone zone=z capacity=1k fpr=0.1;';

    table('http', "$zone bloom_guard zone=z min_keys=%s;",
          'invalid value "%s" of "min_keys=": it must be a count such as 10m,'
          . ' up to 4398g', '', '0', '-1', '1.5k', '10%', '9999g');
    table('http', "$zone bloom_guard zone=z max_loss=%s;",
          'invalid value "%s" of "max_loss=": it must be a percentage such as'
          . ' 1%, up to 100%, or a number of keys such as 500',
          '', '-1%', '-1', '1.5', '.5%', '1e2%', '20%%', '100.1%', '4399g',
          'off');
    table('http', "$zone bloom_guard zone=z max_growth=%s;",
          'invalid value "%s" of "max_growth=": it must be a percentage such as'
          . ' 50%, or a number of keys such as 10k',
          '', '-1%', '-1', '1.5', '.5%', '1e2%', '20%%', '1000001%', '4399g',
          'off');
    table('http', "$zone bloom_guard zone=z $_=%s;",
          "invalid value \"%s\" of \"$_=\": it must be a file of keys", '')
        for 'must_have', 'must_not_have';
    table('http', "$zone bloom_guard zone=%s min_keys=1;",
          'invalid value "%s" of "zone=": it must be the name of a zone',
          '', 'ids:1m');
    table('http', "$zone bloom_guard zone=z %s;",
          'invalid parameter "%s": write "max_loss=" and "max_growth=" of'
          . ' "bloom_guard"',
          qw(max_change=20% max_change=));
    table('http', "$zone bloom_guard zone=z %s;",
          invalid('bloom_guard', qw(zone must_have must_not_have min_keys
                                    max_loss max_growth)),
          qw(image=a min_keys));
    table('http', "$zone bloom_guard zone=z %s;",
          'invalid parameter "%s": it is a parameter of "bloom_zone"',
          qw(file=a max_age=1d));
    is_refused('http', "$zone\n>bloom_guard min_keys=1;",
               '"bloom_guard" directive must have the "zone=" parameter');
    is_refused('http', "$zone\n>bloom_guard zone=z;",
               '"bloom_guard" directive must have a guard, such as'
               . ' "max_loss=1%"');
    is_refused('server', '>bloom_guard zone=ids min_keys=1;',
               '"bloom_guard" directive is not allowed here');

    # it may stand before the zone

    for my $guard (map { "bloom_guard zone=z min_keys=1k must_have=a"
                         . " must_not_have=b $_;" }
                   'max_loss=0.5% max_growth=1000000%',
                   'max_loss=100% max_growth=0%', 'max_loss=0 max_growth=10k',
                   'max_loss=4398g')
    {
        is_accepted('http', "$zone $guard");
        is_accepted('http', "$guard $zone");
    }

    is_refused('http', '>bloom_guard zone=nope min_keys=1;',
               'unknown bloom zone "nope" in %FILE%:%LINE%: declare it with'
               . ' "bloom_zone zone=nope ..."');
    is_refused('http', "$zone bloom_guard zone=z min_keys=1;\n"
                       . '>bloom_guard zone=z max_loss=1%;',
               'bloom zone "z" has a "bloom_guard" already, in'
               . ' %FILE%:%LINE-1%; write all parameters there'
               . ' in %FILE%:%LINE%', 'a zone that is guarded twice');
    is_refused('http', join("\n", @$_),
               '"bloom_guard" in %FILE%:%LINE% names bloom zone "z", which has'
               . ' "expire=" and loads no image; remove one of them')
        for ['bloom_zone zone=z capacity=1k fpr=0.1 expire=24h;',
             '>bloom_guard zone=z min_keys=1;'],
            ['>bloom_guard zone=z min_keys=1;',
             'bloom_zone zone=z capacity=1k fpr=0.1 expire=24h;'];

    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 %s;',
          'invalid parameter "%s": it is a parameter of "bloom_guard"',
          qw(must_have=a must_not_have=b min_keys=1 max_loss=1% max_growth=1));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 %s;',
          'invalid parameter "%s": write "max_loss=" and "max_growth=" of'
          . ' "bloom_guard"', qw(max_change=20% max_change=));
};


subtest 'nginx refuses wrong parameters of bloom_source' => sub {
    my $zone = 'bloom_zone zone=z capacity=1k fpr=0.1';

    table('http', "$zone; bloom_source zone=z name=%s;",
          'invalid value "%s" of "name=": it must be 1 to 255 letters, digits'
          . ' and characters of "._:/-"', '', 'a+b', 'a,b', 's' x 256);
    table('http', "$zone; bloom_source zone=z name=s max_lag=%s;",
          'invalid value "%s" of "max_lag=": it must be a time of at least 1s,'
          . ' such as 30s, or "off"', '', qw(0 999ms x -1s on));
    table('http', "$zone; bloom_source zone=z name=s %s;",
          invalid('bloom_source', qw(zone name max_lag)),
          qw(source=s lag=1s max_lag));
    is_refused('http', "$zone;\n>bloom_source zone=z max_lag=30s;",
               '"bloom_source" directive must have the "name=" parameter');
    is_refused('http', "$zone;\n>bloom_source name=s;",
               '"bloom_source" directive must have the "zone=" parameter');
    is_refused('http', '>bloom_source zone=nope name=s;',
               'unknown bloom zone "nope" in %FILE%:%LINE%: declare it with'
               . ' "bloom_zone zone=nope ..."');
    is_refused('http', "$zone; bloom_source zone=z name=s;\n"
                       . '>bloom_source zone=z name=s max_lag=30s;',
               'bloom zone "z" has a "bloom_source" already, in'
               . ' %FILE%:%LINE-1%; write all parameters there'
               . ' in %FILE%:%LINE%', 'a zone that has two sources');

    my $names = '"bloom_source" in %FILE%:%LINE% names bloom zone "z", which';
    my $remove = 'remove that or "bloom_source", or use another zone';

    for (['expire=1h;', 'has "expire=", and the keys of a source do not expire;'
                        . ' remove one of them'],
         ['journal=off;', 'has "journal=off", and the journal keeps the changes'
                          . ' of the source; remove one of them'],
         ['; bloom_state_path off;',
          'has no journal, which keeps the changes of the source, since'
          . ' "bloom_state_path" is off; set a path'],
         ['; bloom_add $arg_id zone=z;',
          "takes changes from \"bloom_add\", too; $remove"],
         ['; bloom_remove $arg_id zone=z;',
          "takes changes from \"bloom_remove\", too; $remove"])
    {
        my ($more, $why) = @$_;

        is_refused('http', "$zone $more\n>bloom_source zone=z name=s;",
                   "$names $why");
        is_refused('http', ">bloom_source zone=z name=s;\n$zone $more",
                   "$names $why");
    }

    for my $source (map { "bloom_source zone=z name=$_;" }
                    's', 'a.b_c:d/e-f', 's max_lag=1s', 's max_lag=off')
    {
        is_accepted('http', "$zone max_keys=2k form=url; $source");
        is_accepted('http', "$source $zone max_keys=2k form=url;");
    }

    table('http', "$zone %s;",
          'invalid parameter "%s": write "name=" of "bloom_source"',
          qw(source=s source=));
    table('http', "$zone %s;",
          'invalid parameter "%s": it is a parameter of "bloom_source"',
          qw(max_lag=30s max_lag=));
};


subtest 'nginx refuses wrong values of journal=' => sub {
    my $zone = 'bloom_zone zone=z capacity=1k fpr=0.1';

    table('http', "$zone journal=%s;",
          'invalid value "%s" of "journal=": it must be "auto", "on" or "off"',
          '', qw(yes On 1));
    is_refused('http', join("\n", @$_),
               'bloom zone "z" in %FILE%:%LINE% has "journal=on", but'
               . ' "bloom_state_path" is off: set a path, or leave out'
               . ' "journal=on"')
        for ['bloom_state_path off;', ">$zone journal=on;"],
            [">$zone journal=on;", 'bloom_state_path off;'];
    is_accepted('http', "bloom_state_path off; $zone $_;")
        for '', 'journal=auto', 'journal=off';
    is_accepted('http', "$zone journal=$_;") for qw(auto on off);
};


subtest 'nginx refuses wrong parameters of zones that start empty' => sub {
    table('http', 'bloom_zone zone=z capacity=%s fpr=0.1;',
          'invalid value "%s" of "capacity=": it must be a count such as 10m, up to 4398g',
          qw(0 0k k -1 1.5 1x 1kk 4399g 18446744073709551616
             18446744073709551615g 0x10));
    table('http', 'bloom_zone zone=z capacity=%s fpr=1e-9;',
          '"capacity=4398000000000" of bloom zone "z" is too large: the filter'
          . ' would exceed 1 TiB', qw(4398g));

    table('http', 'bloom_zone zone=z capacity=1k fpr=%s;',
          'invalid value "%s" of "fpr=": it must be a rate from 1e-9 to 0.5',
          '', '0,1', '1' x 100, qw(0 1 0.51 51% 9e-10 -0.1 +0.1 .1x x 0x1p-3 inf
                                   nan 1e-400 0.1%%));
    is_refused('http', '>bloom_zone zone=z capacity=1k;',
               'bloom zone "z" has "capacity=" without "fpr=": add one, such'
               . ' as "fpr=0.001"');

    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 layout=%s;',
          'invalid value "%s" of "layout=": it must be "blocked" or "classic"; a'
          . ' filter in layout fuse is an image, which "file=" names',
          '', qw(round Blocked blockedx fuse));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 hash=%s;',
          'invalid value "%s" of "hash=": it must be "murmur3" or "siphash"',
          '', qw(md5 murmur));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 %s;',
          'invalid parameter "%s": its name is "form="', qw(key=url key=));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 form=%s;',
          'invalid value "%s" of "form=": it must be "raw", "lower", "host" or "url"',
          '', qw(cooked));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 removals=%s;',
          'invalid value "%s" of "removals=": it must be a count such as 10k, up to 10m, or'
          . ' 0',
          '', qw(-1 1.5 1x off 10000001 11m 1g 18446744073709551616 0x10));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 max_keys=%s;',
          'invalid value "%s" of "max_keys=": it must be a count such as 10m, up to 4398g; leave it out if the filter must not grow',
          '', qw(0 0k -1 1.5k 1x off 4399g 18446744073709551616 0x10));
    table('http', 'bloom_zone zone=z file=ids.bloom max_keys=%s;',
          'invalid value "%s" of "max_keys=": it must be a count such as 10m, up to 4398g; leave it out if the filter must not grow',
          '', qw(0 many 4399g));
    table('http', 'bloom_zone zone=z capacity=1k fpr=0.1 max_keys=%s;',
          'invalid "max_keys=%s" of bloom zone "z": with "capacity=1000" it must'
          . ' be from 1001 to 131071000',
          qw(1 999 1000 131071001));
    is_accepted('http', "bloom_zone zone=z $_;")
        for map({ "capacity=1k fpr=0.1 max_keys=$_" } qw(1001 2K 131071000)),
            'capacity=1 fpr=1e-9 max_keys=2', 'file=ids.bloom max_keys=1';
    my $expires = 'bloom_zone zone=z capacity=1k fpr=0.1';

    table('http', "$expires expire=%s;",
          'invalid value "%s" of "expire=": it must be a time such as 24h, from 2s to'
          . ' 3650d',
          '', qw(0 1s 1999ms -1h 1x off 3651d 99999999d));
    table('http', "$expires expire=24h %s;",
          'invalid parameter "%s": the zone chooses the number of slices'
          . ' itself; leave it out', qw(slices=8 slices=));
    is_refused('http', ">$expires expire=24h layout=classic;",
               'bloom zone "z" has "expire=" and the layout classic: keys'
               . ' expire in the layout blocked only; leave out "layout="');
    table('http', "$expires expire=24h max_keys=%s;",
          'invalid "max_keys=%s" of bloom zone "z": with "capacity=1000" it must'
          . ' be from 1001 to 4125', qw(1 1000 4126 131071000));
    is_accepted('http', "$expires $_;")
        for 'expire=8s', 'expire=2000ms', 'expire=1d', 'expire=3650d',
            'expire=24h max_keys=4125',
            'expire=24h max_keys=1001', 'expire=24h layout=blocked form=url';

    table('http', 'bloom_zone zone=z file=ids.bloom form=%s;',
          'invalid value "%s" of "form=": it must be "raw", "lower", "host" or "url"',
          '', qw(cooked URL));

    is_accepted('http', "bloom_zone zone=z $_;")
        for 'capacity=1 fpr=0.5', 'capacity=10k fpr=1%', 'capacity=1M fpr=1e-9',
            'capacity=1g fpr=0.1', 'capacity=1k fpr=0.1 layout=classic',
            'fpr=0.1 capacity=1k hash=siphash form=raw layout=blocked',
            map({ "capacity=1k fpr=0.1 form=$_" } qw(lower host url)),
            map { "capacity=1k fpr=0.1 removals=$_" } qw(0 1 10k 100K);
};


subtest 'nginx refuses wrong sizes of zones' => sub {
    table('http', 'bloom_zone zone=z:%s file=ids.bloom;',
          'invalid zone size "%s": it must be a size such as 64m',
          '', qw(64x 0 0m m -1m 1.5m 1mm 18446744073709551616
                 17179869184g 0x10));
    is_accepted('http', "bloom_zone zone=z:$_ file=ids.bloom;")
        for qw(1048576 1024k 4096K 64m 2M 1g 1G);

    # the size that the message asks for is the smallest that is enough

    for my $zone ('file=ids.bloom', 'capacity=100k fpr=0.001') {
        my $line = write_conf('http', ">bloom_zone zone=z:4k $zone;");
        my $output = $t->run_fails;
        my ($needed) = $output =~ /\[emerg\]\ .*\ bloom\ zone\ "z"\ is\ too
            \ small:\ it\ needs\ (\d+k)\ for\ two\ images\ of\ \d+k,\ one\ that
            \ serves\ and\ one\ that\ is\ being\ loaded;\ omit\ the\ size,\ or
            \ write\ "zone=z:\1"\ in\ \Q$dir\E\/nginx.conf:$line$/mx;

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


subtest 'nginx refuses wrong parameters of rules' => sub {
    table('location', 'bloom_reject %s $uri zone=ids;',
          'invalid condition "%s": it must be "absent" or "present"',
          qw(missing Absent absentx zone=ids));

    is_refused('location', '>bloom_reject absent;',
               'invalid number of arguments in "bloom_reject" directive');
    is_refused('location', '>bloom_reject absent $uri;',
               '"bloom_reject" directive must have the "zone=" parameter');
    table('location', 'bloom_reject absent $uri zone=%s;',
          'invalid value "%s" of "zone=": it must be the name of a zone', '',
          'ids:1m');

    table('location', 'bloom_reject absent $uri zone=ids status=%s;',
          'invalid value "%s" of "status=": it must be a code from 400 to 599',
          '', qw(200 302 399 600 404x -404 99999999999999999999));
    table('location', 'bloom_reject absent $uri zone=ids decode=%s;',
          'invalid value "%s" of "decode=": it must be "uri", "form" or "off"',
          '', qw(on url Form));
    table('location', 'bloom_pass absent $uri zone=ids split=%s;',
          'invalid value "%s" of "split=": it must be one byte, such as split=,',
          '', ',,', 'comma');
    table('location', 'bloom_pass absent $uri zone=ids split=, match=%s;',
          'invalid value "%s" of "match=": it must be "any" or "all"', '', qw(every All));
    is_refused('location', '>bloom_reject absent $uri zone=ids match=all;',
               '"bloom_reject" directive has "match=" without "split="');

    my @rule = qw(split match invalid empty exact dry_run name);

    table('location', "$_ zone=ids if=%s;",
          'invalid value "%s" of "if=": it must be a condition with a variable, such as'
          . ' if=$variable', '', 'reads', 1)
        for 'bloom_reject absent $uri', 'bloom_pass absent $uri',
            'bloom_route absent $uri to=@known', 'bloom_add $uri',
            'bloom_remove $uri';

    table('location', 'bloom_reject absent $uri zone=ids %s;',
          invalid('bloom_reject', qw(zone decode if status), @rule),
          qw(to=@known file=ids.bloom fpr=0.1 x exact=on exactly exac
             dry_run=off dry_runs));
    table('location', 'bloom_pass absent $uri zone=ids %s;',
          invalid('bloom_pass', qw(zone decode if), @rule),
          qw(to=@known status=404));
    table('location', 'bloom_route absent $uri zone=ids to=@known %s;',
          invalid('bloom_route', qw(zone decode if to), @rule), qw(status=404));
    table('location', 'bloom_route absent $uri zone=ids to=@known %s;',
          'duplicate parameter "%s"', qw(zone=ids to=/x));
    table('location', 'bloom_pass absent $uri zone=ids exact dry_run %s;',
          'duplicate parameter "%s"', qw(exact dry_run));
    for my $parameter (qw(invalid empty)) {
        table('location', "bloom_pass absent \$uri zone=ids $parameter=%s;",
              "invalid value \"%s\" of \"$parameter=\": it must be \"fire\" or"
              . ' "pass"', '', qw(on off Fire firex passed));
        is_accepted('location', "bloom_reject absent \$uri zone=ids"
                                . " $parameter=$_;")
            for qw(fire pass);
        table('location',
              "bloom_pass absent \$uri zone=ids $parameter=fire %s;",
              'duplicate parameter "%s"', "$parameter=fire");
    }
    my %other = (bloom_add => 'bloom_remove', bloom_remove => 'bloom_add');
    my @others = ('match=all', 'invalid=fire', 'empty=fire', 'exact',
                  'dry_run');

    table('http', 'bloom_lookup $uri $known zone=ids %s;',
          invalid('bloom_lookup', qw(zone decode)), 'split=,', @others);

    for my $directive ('bloom_add', 'bloom_remove') {
        my $level = "a level with keys of its own inherits none anyway";

        table('location', "$directive \$uri zone=ids %s;",
              invalid($directive, qw(zone decode if split)), @others);
        table('location', "$directive \$uri zone=ids split=%s;",
              'invalid value "%s" of "split=": it must be one byte, such as split=,',
              '', ',,', 'comma');
        is_refused('location', "$directive \$uri zone=ids;\n>$directive off;",
                   "\"$directive off\" cannot be used together with another"
                   . " \"$directive\", because $level: remove it");
        is_refused('location', "$directive off;\n>$directive $_;",
                   "\"$directive off\" cannot be used together with another"
                   . " \"$directive\", because $level: remove it")
            for '$uri zone=ids', 'off';
        is_accepted('location', "$directive \$uri zone=ids; $other{$directive}"
                                . ' off;');
    }
    table('location', 'bloom_pass absent $uri zone=ids decode=uri %s;',
          'duplicate parameter "%s"', qw(decode=form));

    is_refused('location', "if (\$uri) {\n>bloom_reject absent x zone=ids; }",
               '"bloom_reject" directive is not allowed here',
               'a rule within "if"');
};


subtest 'nginx refuses wrong targets of routes' => sub {
    my $where = '"@name" without variables, or a URI that begins with "/"';

    table('location', 'bloom_route absent $uri zone=ids to=%s;',
          "invalid value \"%s\" of \"to=\": it must be $where",
          '', qw(@ name known http://example.com/ $uri @$arg_x));
    is_refused('location', '>bloom_route absent $uri zone=ids;',
               '"bloom_route" directive must have the "to=" parameter');
    is_accepted('location', "bloom_route absent \$uri zone=ids to=$_;")
        for qw(@known / /x?y=$arg_z);

    my $unknown = 'unknown location "@%s" for "bloom_route" in %FILE%:%LINE%:'
                  . ' the directive applies in the server in %FILE%:%SERVER%,'
                  . ' which has no "location @%s"; add one';

    for my $where (qw(http server location)) {
        for my $name (qw(unknown know known2)) {
            is_refused($where, ">bloom_route absent \$uri zone=ids to=\@$name;",
                       $unknown =~ s/%s/$name/gr,
                       "a route to an unknown location \@$name in $where");
        }
    }

    # every server that inherits the rule needs the location

    my $rule = 'bloom_route absent $uri zone=ids to=@known;';
    my $second = 'server { listen 127.0.0.1:%%PORT_8081%%;';

    my $line = write_conf('http', ">$rule\n$second\nlocation / { } }");
    my ($exit, $output) = $t->test_config;
    my $next = $line + 1;

    ok($exit != 0,
       'nginx refuses a server that lacks the location of an inherited route');
    like($output, qr/"\@known" .* in \S+:$line: the directive applies in the server in \S+:$next, /,
         'the message names the server that lacks the location');

    is_accepted('http', "$rule $second location \@known { } }");
    is_accepted('http', "$rule $second bloom_rules off; }");
    is_accepted('http', "$rule $second bloom_reject absent x zone=ids; }");
};


subtest 'nginx refuses wrong settings of bloom_rules' => sub {
    table('location', 'bloom_rules %s;', 'invalid value "%s": it must be "off"',
          qw(on offf));
    is_refused('location', "bloom_rules off;\n>bloom_rules off;",
               '"bloom_rules" directive is duplicate');
    is_accepted('location', 'bloom_pass absent $uri zone=ids; bloom_rules off;');
    is_accepted('location', 'bloom_rules off; bloom_pass absent $uri zone=ids;');
    is_refused('http', '>bloom_rules off;',
               '"bloom_rules" directive is not allowed here');
};


subtest 'nginx names what an old directive is called' => sub {
    is_refused('http', '>bloom_unavailable reject;',
               'unknown directive "bloom_unavailable": its name is'
               . ' "bloom_unknown"');
};


subtest 'nginx refuses bloom_unknown to= an unknown location' => sub {
    my $rule = 'bloom_reject absent $uri zone=ids;';

    my $line = write_conf('server', "$rule\n>bloom_unknown to=\@none;");
    my ($exit, $output) = $t->test_config;

    is($exit, 1, 'nginx refuses an unknown location');
    like($output, qr/unknown location "\@none" for "bloom_unknown" in \S+nginx\.conf:$line: the directive applies in the server in .* which has no "location \@none"; add one/,
         'the message names the directive and the location');
    is_accepted('server', "$rule bloom_unknown to=\@known;");
};


# Returns the warnings of a test of this configuration.

sub warnings {
    write_conf(@_);

    my ($exit, $output) = $t->test_config;
    is($exit, 0, 'nginx accepts ' . quoted(@_)) or diag($output);

    return join '', $output =~ /\[warn\] (.*\n)/g;
}


subtest 'nginx warns of rules that drop inherited ones' => sub {
    my $list = 'bloom_reject absent $uri zone=ids;';
    my $drops = qr/the rules from \S+:(\d+) on are not inherited where the rules from \S+:(??{ $1 + 2 }) on apply: .*write "bloom_rules off"/;

    like(warnings('server', "$list\n>location /a {\n$list }"), $drops,
         'nginx names the rule that drops and the rule that is dropped');
    is(warnings('server', "$list\n>location /a { bloom_rules off;\n$list }"),
       '', 'bloom_rules off beside the rule silences the warning');
    is(warnings('server', "$list\n>location /a {\n$list bloom_rules off; }"),
       '', 'so does bloom_rules off after the rule');
    is(warnings('server', "$list\n>location /a { bloom_rules off; }"),
       '', 'bloom_rules off alone is not warned of');
    is(warnings('server', "$list\n>location /a { }"),
       '', 'a location that inherits is not warned of');
    like(warnings('http', "$list\n>server {\n$list }"), qr/are not inherited/,
         'nginx warns of a server that drops the rules of http');
};


subtest 'nginx warns of keys that are not there yet' => sub {
    for my $case (['$request_body', 'has not read the body'],
                  ['x${request_body}y', 'has not read the body'],
                  ['$request_body_file', 'has not read the body'],
                  ['$host:$upstream_http_x_id', 'X-Accel-Redirect'],
                  ['$upstream_cache_status', 'X-Accel-Redirect'],
                  ['$sent_http_x', 'no response has been sent'])
    {
        my ($key, $when) = @$case;

        like(warnings('location', ">bloom_reject present \"$key\" zone=ids;"),
             qr/"\$\w+" in the key of the rule in \S+:\d+ has no value when rules run: .*\Q$when\E/,
             "nginx warns of the key $key, and says when it exists");
        like(warnings('location', '>bloom_reject present $uri zone=ids'
                                  . " \"if=$key\";"),
             qr/"\$\w+" in "if=" of the rule in \S+:\d+ has no value when rules run: .*\Q$when\E/,
             "nginx warns of the condition $key, and says when it exists");
    }

    for my $key ('$arg_request_body', '$uri', '$host:$http_sent_x',
                 '$request_uri', '$cookie_upstream_x')
    {
        is(warnings('location', ">bloom_reject present \"$key\" zone=ids;"),
           '', "nginx does not warn of the key $key");
    }

    is(warnings('location', '>bloom_add $upstream_http_x_id zone=ids;') =~ /has no value/,
       '', 'bloom_add may use a variable of the upstream');
    is(warnings('server', "location /accel { internal;\n"
                          . '>bloom_reject present $upstream_http_x_id zone=ids; }'),
       '', 'so may a rule in an internal location');
};


subtest 'nginx refuses wrong and duplicate settings' => sub {
    for my $where (qw(http server location)) {
        is_refused($where, '>bloom_dry_run maybe;',
            'invalid value "maybe" in "bloom_dry_run" directive, it must be'
            . ' "on" or "off"');
        table($where, 'bloom_unknown %s;',
              'invalid value "%s": it must be "pass", "reject", or where to'
              . ' route the request, such as "to=@exact"', 'off', 'fail', '@x');
        table($where, 'bloom_unknown to=%s;',
              'invalid value "%s" of "to=": it must be "@name" without variables, or a URI'
              . ' that begins with "/"', '', '@', 'exact', '$uri');
        is_accepted($where, 'bloom_unknown to=/x?y=$arg_z;');
        table($where, 'bloom_log_level %s;',
              'invalid value "%s" of "bloom_log_level": it must be'
              . ' "info", "notice", "warn" or "error"', 'debug', 'warning');
    }

    for my $setting ('bloom_dry_run on', 'bloom_unknown pass',
                     'bloom_log_level info')
    {
        my ($name) = split ' ', $setting;
        is_refused('server', "$setting;\n>$setting;",
                   "\"$name\" directive is duplicate");
    }
};


subtest 'nginx refuses wrong values of bloom_feedback and bloom_audit' => sub {
    for my $where (qw(http server location)) {
        my $feedback = 'invalid status "%s": it must be from 400 to 499, such'
            . ' as 404, or "off" alone';

        table($where, 'bloom_feedback %s;', $feedback,
              qw(399 500 200 x on 404x));
        table($where, 'bloom_feedback 404 %s;', $feedback,
              qw(off 4040 except));
        table($where, 'bloom_feedback 404 %s;',
              invalid('bloom_feedback', qw(except rate after)),
              qw(EXCEPT=on add=on));
        table($where, 'bloom_feedback 404 except=%s;',
              'invalid value "%s" of "except=": it must be "on" or "off"',
              '', 'yes');
        table($where, 'bloom_feedback 404 %s;',
              'invalid parameter "%s": its name is "except="',
              qw(learn=on learn=off));
        table($where, 'bloom_feedback 404 %s;',
              'invalid parameter "%s": its name is "rate="',
              'learn_rate=1r/s');
        table($where, 'bloom_feedback 404 %s;',
              'invalid parameter "%s": its name is "after="',
              'learn_after=1s');
        table($where, 'bloom_feedback 404 except=on rate=%s;',
              'invalid value "%s" of "rate=": it must be a number of keys from 1'
              . ' to 1000000, such as "10r/s" or "30r/m"',
              '', qw(0r/s 1000001r/s 10r/sx));
        table($where, 'bloom_feedback 404 except=on after=%s;',
              'invalid value "%s" of "after=": it must be a time from 1s to 10m',
              '', qw(0 999ms 601s 11m 1d -1m x 1sx));
        is_refused($where, ">bloom_feedback $_;",
                   '"bloom_feedback" directive needs at least one status, such'
                   . ' as 404')
            for 'except=on', 'except=off', 'except=on rate=1r/s';
        table($where, 'bloom_audit %s;',
              'invalid fraction "%s": it must be from 0.001% to 100%, with'
              . ' up to three decimals, or "off" alone',
              qw(0% 0.0009% 0.0001% 100.001% 101% -1% % x% on 1%% 0 0.0001
                 100.001 -1 1 0.1 100 0.001),
              '99999999999999999999%', '9' x 40);
        table($where, 'bloom_audit 1% %s;',
              invalid('bloom_audit', qw(add rate)),
              qw(add ADD=on except=on after=1s));
        table($where, 'bloom_audit 1% add=%s;',
              'invalid value "%s" of "add=": it must be "on" or "off"',
              '', 'yes');
        table($where, 'bloom_audit 1% %s;',
              'invalid parameter "%s": its name is "add="',
              qw(learn=on learn=off));
        table($where, 'bloom_audit 1% %s;',
              'invalid parameter "%s": its name is "rate="',
              'learn_rate=1r/s');
        table($where, 'bloom_audit 1% add=on rate=%s;',
              'invalid value "%s" of "rate=": it must be a number of keys from 1'
              . ' to 1000000, such as "10r/s" or "30r/m"',
              '', qw(1 r/s 0r/s -1r/s 1r/h 1.5r/s
                                             1000001r/s 10r/sx on));
    }
    is_refused('location', "bloom_audit 1%;\n>bloom_audit off;",
               '"bloom_audit" directive is duplicate');
    is_refused('location', "bloom_feedback off;\n>bloom_feedback 404;",
               '"bloom_feedback" directive is duplicate');
    table('location', 'bloom_reject absent $uri zone=ids name=%s;',
          'invalid value "%s" of "name=": it must be a name that is not empty',
          '');
};


subtest 'nginx warns of except=on where no key can be excepted' => sub {
    for ([0, 'absent', 'except=on', 1],
         [1, 'absent', 'except=on', 1],
         [2, 'absent', 'except=on', 0],
         [0, 'absent', 'except=off', 0],
         [0, 'present', 'except=on', 0])
    {
        my ($removals, $on, $parameters, $warns) = @$_;
        my $zone = "zone=few capacity=10 fpr=0.01 removals=$removals";

        write_conf('http', "bloom_zone $zone;\n"
            . ">bloom_reject $on \$uri zone=few;\n"
            . "bloom_feedback 404 $parameters;");

        my ($exit, $output) = $t->test_config;
        my $what = "$parameters with removals=$removals and a rule on $on";
        my $vain = qr/\[warn\] .*bloom zone "few" in .*nginx\.conf:\d+ excepts no key for "except=on" of "bloom_feedback", because it has "removals=$removals": excepted keys use up to half of that room; set it to 2 or more/;

        is($exit, 0, "nginx accepts $what");
        is(scalar(() = $output =~ /$vain/g), $warns,
           'nginx ' . ($warns ? 'warns' : 'does not warn') . " of $what")
            or diag($output);
    }
};


# Tests that nginx warns, or does not, of rules in a server and in a location.
# The pattern captures the number of the line.

sub warns_where {
    my ($pattern, $rules, $warned) = @_;

    for my $where (qw(server location)) {
        my $line = write_conf($where, $rules);
        my ($exit, $output) = $t->test_config;
        my $shown = quoted($where, $rules);
        is($exit, 0, "nginx accepts $shown");

        my @lines = $output =~ /$pattern/g;
        is("@lines", $warned ? $line : '',
           $warned ? "nginx warns once of $shown"
                   : "nginx does not warn of $shown");
    }
}


subtest 'nginx warns of an enforced bloom_audit above 10%' => sub {
    my $rule = 'bloom_reject absent $uri zone=ids;';
    my $tried = 'bloom_reject absent $uri zone=ids dry_run;';
    my $open = qr{\[warn\] .*"bloom_audit [\d.]+%" in .*nginx\.conf:(\d+) lets this share of the requests through that the rule in .*nginx\.conf:\d+ rejects: set it to 10% or less, such as "bloom_audit 0\.1%", or set "bloom_dry_run on" there to try the rule};

    for (["$rule\n>bloom_audit 100%;", 1],
         ["$rule\n>bloom_audit 10.001%;", 1],
         ["$rule\n>bloom_audit 100%;\nbloom_dry_run off;", 1],
         ["$tried\n$rule\n>bloom_audit 50%;", 1],
         ["$rule\n$rule\n>bloom_audit 50%;", 1],
         ["$rule\n>bloom_audit 10%;", 0],
         ["$rule\n>bloom_audit 100%;\nbloom_dry_run on;", 0],
         ["$tried\n>bloom_audit 100%;", 0],
         ["bloom_reject present \$uri zone=ids;\n>bloom_audit 100%;", 0],
         [">bloom_audit 100%;", 0])
    {
        warns_where($open, @$_);
    }

    # the dry run that ends in one location leaves its audit open

    my $line = write_conf('server', "bloom_dry_run on;\n>bloom_audit 100%;\n"
        . "$rule\nlocation /on { }\nlocation /off { bloom_dry_run off; }");
    my ($exit, $output) = $t->test_config;
    is($exit, 0, 'nginx accepts a dry run that ends in a location');
    is(join(' ', $output =~ /$open/g), $line,
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


subtest 'nginx warns of directives whose keys the zone cannot take' => sub {
    write_conf('server', '>bloom_remove $uri zone=full;');
    my $full = $t->read_file('nginx.conf');
    $full =~ s/^(\s*bloom_zone zone=ids .*)$/$1
    bloom_zone zone=full capacity=10 fpr=0.1 removals=0;/m;
    $t->write_file('nginx.conf', $full);
    my ($code, $said) = $t->test_config;

    is($code, 0, 'nginx accepts bloom_remove for a zone with removals=0');
    like($said, qr/\[warn\] .*bloom zone "full" in .* takes none of the keys of "bloom_remove", because it has "removals=0"/,
         'nginx warns of bloom_remove for a zone with removals=0');

    for my $adds ('bloom_add $uri zone=fixed;', 'bloom_remove $uri zone=fixed;',
                  "bloom_reject absent \$uri zone=fixed;\n"
                  . 'bloom_audit 1% add=on;')
    {
        write_conf('server', ">$adds");
        my $conf = $t->read_file('nginx.conf');
        $conf =~ s/^(\s*bloom_zone zone=ids .*)$/$1
    bloom_zone zone=fixed file=ids.bloom journal=off;/m;
        $t->write_file('nginx.conf', $conf);

        my ($exit, $output) = $t->test_config;
        my $shown = quoted('server', $adds);
        is($exit, 0, "nginx accepts $shown");
        like($output, qr/\[warn\] .*bloom zone "fixed" in .* takes none of the keys of "bloom_add", "bloom_remove" or "add=on": a zone with "file=" needs a journal for them, but it has "journal=off"/,
             "nginx warns of $shown");
    }
};


subtest 'nginx refuses wrong parameters of bloom_arg' => sub {
    table('http', 'bloom_arg id %s;',
          'invalid variable name "%s": it must be a name with "$" before it',
          qw(id $));
    table('http', 'bloom_arg id $id %s;',
          'invalid variable name "%s": it must be a name with "$" before it',
          qw(escaped $));
    is_refused('http', '>bloom_arg "" $id;',
               'invalid argument name "": it must be a name that is not empty');
    is_refused('http', '>bloom_arg id $id $id;', 'the duplicate "id" variable');
    is_refused('http', "bloom_arg id \$id;\n>bloom_arg ID \$ID;",
               'the duplicate "ID" variable');
    is_refused('http', "map \$uri \$id { default x; }\n>bloom_arg id \$id;",
               'the duplicate "id" variable');
    is_refused('http', '>bloom_arg id $uri;', 'the duplicate "uri" variable');
    is_refused('http', '>bloom_arg id;',
               'invalid number of arguments in "bloom_arg" directive');
    is_refused('http', '>bloom_arg id $a $b $c;',
               'invalid number of arguments in "bloom_arg" directive');
    is_refused('server', '>bloom_arg id $id;',
               '"bloom_arg" directive is not allowed here');
    is_accepted('http', 'bloom_arg id $arg_id; bloom_arg id $same $escaped;'
                        . 'bloom_arg "a b[]" $odd;'
                        . 'bloom_lookup $same $known zone=ids;');
};


subtest 'nginx refuses wrong parameters of bloom_cookie and bloom_header' => sub {
    for my $source (qw(cookie header)) {
        table('http', "bloom_$source id %s;",
              'invalid variable name "%s": it must be a name with "$" before it',
              qw(id $));
        is_refused('http', ">bloom_$source id \$id \$id;",
                   'the duplicate "id" variable');
        is_refused('http', "bloom_arg id \$id;\n>bloom_$source id \$id;",
                   'the duplicate "id" variable');
        is_refused('http', ">bloom_$source id;",
                   "invalid number of arguments in \"bloom_$source\" directive");
        is_refused('server', ">bloom_$source id \$id;",
                   "\"bloom_$source\" directive is not allowed here");
        is_accepted('http', "bloom_$source id \$id; bloom_$source id \$same;"
                            . "bloom_$source a.b-c_D \$odd \$odd_escaped;"
                            . 'bloom_lookup $odd $known zone=ids;');
    }

    table('http', 'bloom_cookie "%s" $id;',
          'invalid cookie name "%s": it must be letters, digits and other'
          . ' characters that a cookie\'s name may have, without "="',
          '', 'a=', 'a b', 'a,', 'é');
    table('http', 'bloom_header "%s" $id;',
          'invalid header name "%s": it must be letters, digits and "-",'
          . ' without ":", and not "Host": the host of a request is in "$host"',
          '', 'X-Id:', 'X Id', 'Host', 'hOST');
    is_accepted('http', 'bloom_cookie Host $a; bloom_header Hosts $b;');
};


subtest 'nginx refuses wrong parameters of bloom_lookup' => sub {
    table('http', 'bloom_lookup $uri %s zone=ids;',
          'invalid variable name "%s": it must be a name with "$" before it',
          qw(known $));
    table('http', 'bloom_lookup $uri $%s zone=ids;',
          'the duplicate "%s" variable', qw(uri args bloom_status));
    is_refused('http', "map \$uri \$known { default 1; }\n"
                       . '>bloom_lookup $uri $known zone=ids;',
               'the duplicate "known" variable');
    is_refused('http', "bloom_lookup \$uri \$known zone=ids;\n"
                       . '>bloom_lookup $args $known zone=ids;',
               'the duplicate "known" variable');
    is_refused('http', '>bloom_lookup $uri $known;',
               '"bloom_lookup" directive must have the "zone=" parameter');
    table('http', 'bloom_lookup $uri $known zone=ids %s;',
          invalid('bloom_lookup', qw(zone decode)), qw(status=404 to=@known));
    table('http', 'bloom_lookup $uri $known zone=ids decode=%s;',
          'invalid value "%s" of "decode=": it must be "uri", "form" or "off"', qw(x));
    is_refused('server', '>bloom_lookup $uri $known zone=ids;',
               '"bloom_lookup" directive is not allowed here');
};


subtest 'nginx refuses images that it cannot load' => sub {
    my $good = $t->read_file('ids.bloom');
    my $put = sub {
        my ($at, $bytes) = @_;
        substr(my $image = $good, $at, length $bytes) = $bytes;
        return $image;
    };

    my $size = length $good;
    my $sum = 'is damaged: the checksum of';
    my $again = 'copy or build it again';

    my @images = (
        ['missing', undef, 'cannot be opened (2: No such file or directory);'
                           . ' put an image there that nginx can read, or, to'
                           . ' start without it, add "required=off"'],
        ['empty', '', 'is empty; build it again'],
        ['text', "ids\nof\nmine\n", 'is not a Bloom filter image; build'
         . ' one with "ngx-bloom build"'],
        ['of a newer version', $put->(8, pack 'V', 3), 'has version 3, but'
         . ' this program reads versions up to 2; use a newer program'],
        ['big-endian', $put->(12, pack 'N', 0x01020304), 'was written in'
         . ' big-endian byte order, but an image is little-endian on'
         . ' every machine; correct the program that wrote it'],
        ['truncated', substr($good, 0, -1), 'is truncated: it has '
         . ($size - 1) . " bytes, but its header says $size; $again"],
        ['too long', "$good\n", 'is too long: it has '
         . ($size + 1) . " bytes, but its header says $size; $again"],
        ['damaged in its header', $put->(100, "\x01"),
         "$sum its header differs; $again"],
        ['damaged in its table', $put->(8191, "\x01"),
         "$sum its table, bytes 4096 to 8191, differs; $again"],
        ['damaged in its payload', $put->(8192, ~substr $good, 8192, 1),
         "$sum bytes 8192 to " . ($size - 1) . " differs; $again", 'late'],
        ['a directory', sub { mkdir "$dir/$_[0]" },
         'is not a regular file'],
        ['a FIFO', sub { POSIX::mkfifo("$dir/$_[0]", 0600) },
         'is not a regular file'],
    );

    for (@images) {
        my ($what, $content, $message, $late) = @$_;

        my $name = "$what.bloom" =~ tr/ /-/r;
        $t->write_file($name, $content) if defined $content && !ref $content;
        $content->($name) or die "$name: $!" if ref $content;

        my $line = write_conf('http', ">bloom_zone zone=z file=$name;");
        my $full = "image \"$dir/$name\" of bloom zone \"z\" ";

        # nginx itself puts errno before the file and the line

        my ($said, $errno) = $message =~ /^(.*?)( \(\d+: .*\))?$/;
        $full .= $said . ($errno // '');
        $full .= " in $dir/nginx.conf:$line" unless $late;

        my ($exit, $output) = $t->test_config;
        ok($exit != 0 && $output =~ /^$program: \[emerg\] \Q$full\E$/m,
           "nginx -t refuses an image that is $what")
            or diag("expected: $full\ngot: $output");

        $output = $t->run_fails;
        ok($output =~ /^$program: \[emerg\] \Q$full\E$/m,
           "nginx says at start why it refuses an image that is $what")
            or diag("expected: $full\ngot: $output");
    }
};


# The master is not root.  It runs copies of nginx and of the module, since it
# may not be allowed to read the checkout.

subtest 'nginx refuses an image that its master cannot read' => sub {
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

    my $message = "image \"$dir/secret.bloom\" of bloom zone \"secret\" cannot"
                  . ' be opened (13: Permission denied); put an image there'
                  . ' that nginx can read, or, to start without it, add'
                  . " \"required=off\" in $dir/own/nginx.conf:8";
    like($err, qr/\[emerg\] .*: \Q$message\E$/m,
         'the message gives the reason why the image cannot be opened');
};


done_testing;
