#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_cookie and bloom_header: the variable is the value of exactly one
# name, and a key made of it is invalid if backends may read another value.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Protocols;
use BloomTest::Rules;

my $t = BloomTest->new;
my $listen = listen_for_all($t);

# In a zone of key form raw, only an ambiguous key is invalid.

my $cookie = 'bloom_reject present $sid zone=bad';
my $header = 'bloom_reject present $api_key zone=bad';

my %rules = (
    cookie => 'bloom_reject present $sid zone=empty invalid=fire status=409;
               try_files /none /shown-cookie',
    header => 'bloom_reject present $api_key zone=empty invalid=fire status=409;
               try_files /none /shown-header',
    'shown-cookie' => 'return 200 "<$sid>"',
    'shown-header' => 'return 200 "<$api_key>"',
    'bad-cookie' => "$cookie invalid=fire",
    'bad-header' => "$header invalid=fire",
    decoded => "$cookie invalid=fire decode=uri",
    two     => "$cookie status=481 invalid=fire;
                $header status=482 invalid=fire",
    passing => "$cookie invalid=pass",
    default => $cookie,
    sent    => "$cookie invalid=fire;
                proxy_set_header Cookie \"SID=\$sid_escaped\";
                proxy_set_header X-Api-Key \$api_key_escaped;
                proxy_pass http://127.0.0.1:%%PORT_8085%%",
    names   => 'return 200 "<$host_cookie><$token><$auth>"',
    listed  => 'set $x "$sid_listed|$both_listed"; return 200 $x',
);

configure_rules($t, { bad => ['evil', "two words", 'a,b', 'e%20f', 'e f'] },
                <<'CONF' . locations(\%rules, 8081) . <<"CONF", backend => 8081);
    bloom_zone zone=empty capacity=1k fpr=1e-9;

    bloom_cookie SID $sid $sid_escaped;
    bloom_cookie __Host-a.b $host_cookie;
    bloom_header X-Api-Key $api_key $api_key_escaped;
    bloom_header x_token $token;
    bloom_header Authorization $auth;

    bloom_lookup $sid $sid_listed zone=bad;
    bloom_lookup "$sid:$api_key" $both_listed zone=bad;

    underscores_in_headers on;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        add_header X-Escaped "<$sid_escaped><$api_key_escaped>" always;
        location /bloom/ { bloom_api; }
CONF
    }

    server {
        add_header X-Bloom "\$bloom_status \$bloom_zone" always;
        location / {
            $cookie invalid=fire;
            $header invalid=fire;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        $listen
    }
CONF

my $backend = $t->backend(8085, sub { 'backend' });

$t->run;


# Returns what the module reads: "<value>", or "several".

sub read_as {
    my ($path, @headers) = @_;

    my $response = $t->get($path, headers => \@headers);

    return $response->status == 409 ? 'several' : $response->body;
}


sub cookies { return map { (Cookie => $_) } @_ }
sub keys_of { return map { ('X-Api-Key' => $_) } @_ }
sub shown { return join ' | ', map { s/([^ -~])/sprintf '\\x%02x', ord $1/ger }
                               @_ }


subtest 'the variable is the cookie of exactly this name' => sub {
    for (# value, Cookie headers
         ['<>'], ['<x>', 'SID=x'], ['<>', 'sid=x'], ['<x>', 'sid=y; SID=x'],
         ['<x>', 'SID=x; sid=y'], ['<y>', 'Sid=x', 'SID=y'],
         ['<x>', 'a=1;SID=x'], ['<x>', "a=1;\t SID \t= \tx\t ; b=2"],
         ['<x>', ';;SID=x;;'], ['<>', 'SIDX=x; XSID=y; X-SID=z'],
         ['<>', 'SID'], ['<>', 'SID='], ['<>', 'a=SID=x'], ['<>', '=x; x'],
         ['<x=y>', 'SID=x=y'], ['<%41>', 'SID=%41'], ['<a+b>', 'SID=a+b'],
         ['<x>', 'SID="x"'], ['<>', 'SID=""'], ['<x>', 'a="1, 2"; SID=x'],
         ['<x>', 'd=Mon, 1 Jan; SID=x; u=http://a/?SID=y'],
         ['<x>', '$Version=1; SID=x; $Path=/'], ['<>', '%53ID=x'])
    {
        my ($value, @cookies) = @$_;
        is(read_as('/cookie', cookies(@cookies)), $value,
           'the cookie in ' . shown(@cookies));
    }
};


subtest 'a cookie that backends may read differently is ambiguous' => sub {
    for (['several', 'SID=x; SID=y'], ['several', 'SID=x', 'SID=y'],
         ['<x>', 'SID=x; a=1; SID=x', 'SID="x"'], ['several', 'SID; SID=x'],
         ['several', 'SID=x; SID='], ['several', 'SID=x; SID=X'],
         ['several', 'SID=%78; SID=x'], ['several', 'SID=x,y'],
         ['several', 'SID=x, SID=x'], ['several', 'a=1, SID=x'],
         ['several', 'a=1,SID=x; SID=x'], ['several', 'a=b SID=x'],
         ['several', "a=b\tSID \t=x"], ['several', 'SID=x y'],
         ['several', "SID=x\x0b"], ['several', "\x0bSID=x"],
         ['several', "SID\x0b=x"], ['several', "SID=x\xc2\xa0"],
         ['several', "a=1;\xc2\xa0SID=x"], ['several', "SID\xa0=x"],
         ['several', 'SID="x'], ['several', 'SID=x"'], ['several', 'SID="'],
         ['several', 'SID="x;y"'], ['several', 'SID="\\170"'],
         ['several', 'SID="a"b"'], ['several', 'a="; SID=x"; SID=y'])
    {
        my ($value, @cookies) = @$_;
        is(read_as('/cookie', cookies(@cookies)), $value,
           'the cookie in ' . shown(@cookies));
    }
};


subtest 'the variable is the header of this name' => sub {
    for (['<>'], ['<x>', 'X-Api-Key' => 'x'], ['<x>', 'x-API-kEY' => 'x'],
         ['<>', 'X-Api-Key2' => 'x', 'XApiKey' => 'y', 'X-Api' => 'z'],
         ['<>', 'X-Api-Key' => ''], ['<x>', 'X_Api_Key' => 'x'],
         ['<x>', keys_of("\t x \t")], ['<a b>', keys_of('a b')],
         ["<a\tb>", keys_of("a\tb")], ['<a, b>', keys_of('a, b')],
         ['<%41>', keys_of('%41')], ['<"x">', keys_of('"x"')],
         ["<\xc3\xa9>", keys_of("\xc3\xa9")],
         ['<x>', keys_of('x', " x\t"), 'x_api-key' => 'x'],
         ['several', keys_of('x', 'y')], ['several', keys_of('x', 'X')],
         ['several', keys_of('', 'x')], ['several', keys_of('x', '')],
         ['several', 'X-Api-Key' => 'x', 'X_Api_Key' => 'y'],
         ['several', keys_of('x', 'x', 'y')], ['several', keys_of("x\x0b")],
         ['several', keys_of("\x7fx")], ['several', keys_of('a', 'a, b')])
    {
        my ($value, @headers) = @$_;
        is(read_as('/header', @headers), $value,
           'the header in ' . shown(@headers));
    }

    is(read_as('/names', Cookie => '__Host-a.b=1; __host-a.b=2',
               'X-Token' => 3, Authorization => 'Basic 4'),
       '<1><3><Basic 4>', 'several directives have their own names');
};


subtest 'no spelling gets past a list' => sub {
    for (# location, outcome, headers
         ['bad-cookie', '403 REJECTED bad', cookies('SID=evil')],
         ['bad-cookie', '403 REJECTED bad', cookies('sid=good; SID=evil')],
         ['bad-cookie', '403 INVALID bad', cookies('SID=good; SID=evil')],
         ['bad-cookie', '403 INVALID bad', cookies('SID=good', 'SID=evil')],
         ['bad-cookie', '403 REJECTED bad', cookies('SID="evil"')],
         ['bad-cookie', '403 INVALID bad', cookies('SID=evil,')],
         ['bad-cookie', '403 INVALID bad', cookies('SID=evil ;SID=a,b')],
         ['bad-cookie', '200 PASSED bad', cookies('SID=good; sid=evil')],
         ['bad-cookie', '200 ', cookies('sid=evil')],
         ['passing', '200 INVALID bad', cookies('SID=good; SID=evil')],
         ['default', '403 INVALID bad', cookies('SID=good; SID=evil')],
         ['default', '200 ', cookies('sid=evil')],
         ['decoded', '403 REJECTED bad', cookies('SID=%65vil')],
         ['decoded', '403 REJECTED bad', cookies('SID=e%20f')],
         ['decoded', '200 PASSED bad', cookies('SID=e%2525f')],
         ['bad-header', '403 REJECTED bad', keys_of('evil')],
         ['bad-header', '403 REJECTED bad', keys_of("evil\t")],
         ['bad-header', '403 INVALID bad', keys_of('good', 'evil')],
         ['bad-header', '403 INVALID bad', keys_of('evil', 'good')],
         ['bad-header', '403 REJECTED bad', 'X_API_KEY' => 'evil'],
         ['bad-header', '200 PASSED bad', keys_of('good')],
         ['bad-header', '403 REJECTED bad', keys_of('a,b')],
         ['two', '200 PASSED bad', cookies('SID=good'), keys_of('good')],
         ['two', '482 REJECTED bad', cookies('SID=good'), keys_of('evil')],
         ['two', '481 INVALID bad', cookies('SID=good; SID=evil'),
          keys_of('evil')],
         ['two', '482 INVALID bad', cookies('SID=good'),
          keys_of('good', 'evil')])
    {
        my ($name, $expected, @headers) = @$_;
        is(outcome($t, "/$name", headers => \@headers), $expected,
           "the outcome of $name for " . shown(@headers));
    }

    is($t->get('/listed', headers => [cookies('SID=evil')])->body, '1|0',
       'bloom_lookup looks a single cookie up');
    is($t->get('/listed', headers => [cookies('SID=evil; SID=x')])->body, '|',
       'bloom_lookup is empty for an ambiguous cookie, also in a longer key');
};


subtest 'the escaped value is safe in a request to the backend' => sub {
    $t->get('/sent', headers => [Cookie => 'SID=a&b=c; sid=evil; x=y',
                                 'X-Api-Key' => "a b\t%"]);

    my ($seen) = $backend->requests;

    is($seen->{headers}{cookie}, 'SID=a%26b%3Dc',
       'the backend gets the checked cookie and no other');
    is($seen->{headers}{'x-api-key'}, 'a%20b%09%25',
       'the backend gets the checked header');
};


# If the module reads a value, no backend may read another one.  The readers are
# models of what libraries do: each returns the values of the cookie SID.

subtest 'no backend reads another cookie than the one that was checked' => sub {
    my $quoted = sub { $_[0] =~ /^"(.*)"\z/s ? $1 : $_[0] };
    my $split = sub {
        my ($separator, $blank) = @_;

        return sub {
            map {
                my ($name, $value) = map { s/^$blank+|$blank+\z//gr }
                                         split(/=/, $_, 2);
                ($name // '') eq 'SID' ? $quoted->($value // '') : ();
            } split /$separator/, $_[0];
        };
    };
    my %readers = (
        'a reader that splits at semicolons' => $split->(';', '[ \t]'),
        'a reader that trims more' => $split->(';', '[\s\x0b\xa0]'),
        'a reader that splits at commas' => $split->('[;,]', '[ \t]'),
        'a reader that splits at blanks' => sub {
            my @pairs = grep { /=/ } split /[;\s]/, $_[0] =~ s/\s*=\s*/=/gr;
            return $split->(';', ' ')->(join ';', @pairs);
        },
        'a reader of quotes' => sub {
            my @found;
            while ($_[0] =~ /\G\s*([^=;]*?)\s*=\s*
                             ("(?:[^"\\]|\\.)*"(?=\s*(?:;|\z))|[^;]*)
                             [^;]*(?:;|\z)/gx)
            {
                push @found, $quoted->($2 =~ s/\s+\z//r) if $1 eq 'SID';
            }
            return @found;
        },
    );

    srand 1;

    my @pieces = ('SID', 'SID', 'SID=', 'SID=x', 'SID=y', '=', '=', ';', ';',
                  '; ', ',', ' ', "\t", '"', '"', '\\', 'x', 'y', 'sid=', 'a=',
                  "\x0b", "\xa0", '%78', 'b');
    my (@wrong, %got);

    for (1 .. 60) {
        my @cookies = map {
            'a=1;' . join '', map { $pieces[rand @pieces] } 1 .. 1 + int rand 9
        } 1 .. 50;
        my @r = $t->pipeline(map {
            $t->request_text(GET => '/cookie', headers => [Cookie => $_],
                             keepalive => 1)
        } @cookies);

        for my $i (0 .. $#cookies) {
            my $sent = $cookies[$i] =~ s/^[ ]+|[ ]+\z//gr;
            my $got = $r[$i]->status == 409 ? 'several'
                      : $r[$i]->status == 200 ? $r[$i]->body
                      : 'status ' . $r[$i]->status;
            my ($value) = $got =~ /^<(.*)>\z/s;

            $got{ $got eq 'several' ? $got : $got eq '<>' ? 'none' : 'one' }++;
            next if $got eq 'several';

            for my $name (sort keys %readers) {
                push @wrong, shown($sent) . ": $got, but $name reads " . shown($_)
                    for grep { !defined $value || $_ ne $value }
                             $readers{$name}->($sent);
            }
        }
    }

    is(join("\n", @wrong), '',
       'the readers of 3,000 random cookies read what was checked or nothing');
    cmp_ok($got{$_} // 0, '>', 100, "some of the cookies have the result $_")
        for qw(one none several);
};


over_each($t, sub {
    my ($class) = @_;

    my $c = $class->new($t);

    for (['200 PASSED bad', cookie => 'SID=good', 'x-api-key' => 'good'],
         ['200 PASSED bad', cookie => 'a=1', cookie => 'SID=good',
          cookie => 'sid=evil'],
         ['403 REJECTED bad', cookie => 'a=1', cookie => 'SID=evil'],
         ['403 INVALID bad', cookie => 'SID=good', cookie => 'SID=evil'],
         ['403 REJECTED bad', 'x-api-key' => 'evil'],
         ['403 INVALID bad', 'x-api-key' => 'good', 'x-api-key' => 'evil'],
         ['403 INVALID bad', 'x-api-key' => 'good', 'x-api-key' => ''],
         ['403 INVALID bad', 'x-api-key' => '', 'x-api-key' => 'good'])
    {
        my ($expected, @headers) = @$_;
        my $r = $c->ask(GET => '/', headers => \@headers);
        is($r->status . ' ' . $r->header('X-Bloom'), $expected,
           'the outcome for ' . shown(@headers));
    }
});


subtest 'long headers are read in linear time' => sub {
    is(read_as('/cookie', cookies('x;' x 3000 . 'SID=1')), '<1>',
       'a header of 3,000 cookies is read');
    is(read_as('/cookie', cookies('SID=1;' x 1200)), '<1>',
       'a cookie that is given 1,200 times is read');
    is(read_as('/cookie', cookies('a=' . 'SID ' x 1500)), '<>',
       'a name that is repeated 1,500 times in a value is no cookie');
    is(read_as('/header', keys_of(('1') x 500, '2')), 'several',
       'a header whose last of 501 values differs has several values');
};


done_testing;
