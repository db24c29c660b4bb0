#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests an allow list of 100 hosts before a list of 1,000 URLs on these hosts,
# as a redirector has them.  With exact, no listed URL passes because its host
# is allowed.  The same rule without exact, which lets all of them pass, is the
# control.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my @hosts = map { "code-$_.example" } 1 .. 100;
my @spelled = ('http://%s', 'HTTPS://WWW.%s?q=1', 'http://user@%s#x',
               'https:\\\\%s');
my (@listed, @urls);

for my $i (0 .. 999) {
    my $page = $hosts[$i % @hosts] . "/user-$i/archive/file-$i.zip";

    push @listed, $page;
    push @urls, sprintf $spelled[$i / @hosts % @spelled], $page;
}

my $t = BloomTest->new;

$t->build_image("$_->[0].bloom", $_->[1], '-p', '1e-9', '--seed', 1, '--key',
                'url')
    for ['allowed', [map { "$_/" } @hosts]], ['bad', \@listed];

my $pass = 'bloom_pass present $url zone=allowed';
my $block = 'bloom_reject present $url zone=bad invalid=fire';

configure_rules($t, { allowed => [], bad => [] }, <<"CONF");
    bloom_arg url \$url;
    keepalive_requests 10000;
    large_client_header_buffers 4 64k;

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location = /parents { $pass; $block; empty_gif; }
        location = /exact   { $pass exact; $block; empty_gif; }
        location = /last    { $block; $pass; empty_gif; }
    }
CONF
$t->run;


# Returns how many of these URLs pass.

sub passing {
    my ($location, @urls) = @_;

    my @responses = $t->pipeline(map { "/$location?url=" . encoded($_) } @urls);

    is(scalar(grep { $_->status =~ /^(?:200|403)\z/ } @responses), @urls,
       "each of these URLs is passed or refused at /$location");

    return scalar grep { $_->status == 200 } @responses;
}


is(passing('exact', @urls), 0,
   'no listed URL passes behind an exact list of allowed hosts');
is(passing('last', @urls), 0,
   'no listed URL passes if the block list comes before the allowed hosts');
is(passing('parents', @urls), @urls,
   'without exact, an allowed host lets every URL below it pass');

is(passing('exact', map { "http://$_/" } @hosts), @hosts,
   'the allowed hosts themselves pass behind an exact list');
is(passing('exact', map { "http://$_/user/other" } @hosts), @hosts,
   'pages of allowed hosts that are not listed pass');

done_testing;
