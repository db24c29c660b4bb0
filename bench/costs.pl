#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures what rules add to a request: one shield rule, one rule
# of the key form url, and three of them, beside nginx without the module.  All
# requests pass, as most requests do: the shield's ID is present, and no list
# has the URL.  Two nginxes take turns, one without the module and one with it.

use strict;
use warnings;

use Bench;
use BloomTest ();

my $rounds = rounds(300);
my $requests = quick() ? 100 : 200;       # of each kind in a round
my $warm = 1000;                          # before, because the first are fast
my $at_once = 3;                          # rounds of one nginx in turn

my $id = '7f1c9a528b1e4f0e';
my $url = 'https%3A%2F%2Fwww.shop-{100000-999999}.example'
          . '%2Fcatalog%2Fshoes%2Fitem.html%3Fid%3D{100000-999999}';
my $query = "?id=$id&url=$url";

my $pass = 'bloom_pass present $url zone=allowed;';
my $block = 'bloom_reject present $url zone=%s;';

# Each kind has a location of its own, with a name of the same length.

my @kinds = (
    ['plain', 'no rule', ''],
    ['limit', '`limit_req`',
     'limit_req zone=l burst=1000000 nodelay;'],
    ['id--1', 'one shield rule', 'bloom_reject absent $arg_id zone=ids;'],
    ['url-1', 'one `url` rule', sprintf $block, 'first'],
    ['url-3', 'three `url` rules', sprintf "$block $block $block",
     qw(first second third)],
);


sub nginx {
    my ($module, @wanted) = @_;

    my $t = BloomTest->new(log_level => 'notice', $module ? () : (module => 0));
    my @zones;

    if ($module) {
        my $image = $t->build_image('ids.bloom', [$id], '-p', '0.001', '-n',
                                    quick() ? '1m' : '100m');

        @zones = ("zone=ids file=$image",
                  map { "zone=$_ form=url fpr=1e-5 journal=off capacity="
                        . (quick() ? '10k' : '1m') } qw(first second third));
    }

    Bench::configure($t, \@zones, join "\n", map {
        "location = /$_->[0] { $_->[2] empty_gif; }"
    } @wanted);

    my $conf = $t->read_file('nginx.conf');

    $conf =~ s/^(keepalive_requests)/%s\n$1/m;
    $conf = sprintf $conf =~ s/%(?!s\n)/%%/gr,
        'limit_req_zone $binary_remote_addr zone=l:1m rate=1000000r/s;'
        . ($module ? ' bloom_arg url $url;' : '');
    $conf =~ s/^location \/bloom\/.*\n//m if !$module;

    $t->write_file('nginx.conf', $conf);
    $t->run;

    return { t => $t, worker => ($t->workers)[0], wanted => \@wanted };
}

my %us;

sub round {
    my ($nginx, $prefix) = @_;

    for my $line (client([second_on], 'send', '-p', $nginx->{t}->port(8080),
                         '-w', $nginx->{worker}, '-r', $at_once,
                         "warm,GET,/plain$query,$warm,0",
                         map { "$_->[0],GET,/$_->[0]$query,$requests,0" }
                             @{ $nginx->{wanted} }))
    {
        $line->{failed} == 0 or die "$line->{name}: requests have failed\n";
        push @{ $us{"$prefix$line->{name}"} }, $line->{cpu} / $requests * 1e6;
    }
}

my $with = nginx(1, @kinds);
my $without = nginx(0, $kinds[0]);

# first touches the pages of the zones

round($_, 'warm-') for $with, $without;

for (1 .. $rounds / $at_once) {
    round($without, 'without-');
    round($with, '');
}

section('Costs of rules');


# What a kind needs more than another, from the differences within a round.

sub row {
    my ($what, $name, $than, $is) = @_;

    my ($this, $base) = ($us{$name}, $us{$than});
    my $more = median(map { $this->[$_] - $base->[$_] } 0 .. $#$this);

    return [$what, sprintf('%.2f', median(@$this)),
            !defined $is ? ('') x 3
            : (sprintf('%.2f', $more),
               sprintf('%.1f %%', 100 * $more / median(@$base)), $is)];
}

table(['a request', 'us of a processor', 'more, us', 'more, in percent',
       'more than'],
      row('nginx without the module', ('without-plain') x 2),
      row('the module, no rule', 'plain', 'without-plain',
          'nginx without the module'),
      map { row("the module, $_->[1]", $_->[0], 'plain',
                'the module, no rule') } @kinds[1 .. $#kinds]);

line("The worker's time on a processor for a request that is answered by"
     . ' `empty_gif`, the cheapest response. All requests pass. The image of'
     . ' the shield has room for ' . (quick() ? '1' : '100') . ' million IDs at'
     . ' a rate of 0.1 %, the three lists of URLs each for '
     . (quick() ? '10,000' : 'a million') . ' at 0.001 %. Each request has'
     . ' another URL, of 10 expressions. ' . "$requests requests of each kind"
     . " in each of $rounds rounds.");
line('');
