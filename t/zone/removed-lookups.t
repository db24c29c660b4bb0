#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that every kind of lookup knows removed keys, in every key form: a
# single rule, a second rule, a list that is split, a rule with "exact", a
# variable, POST test and GET keys. Each expression counts by itself.
# Keys that are crafted to have the MurmurHash3 of a removed key stay present.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Collision qw(crafted);
use BloomTest::Rules;

my $t = BloomTest->new;

# For each key form: a key that is asked for, and expressions that are added,
# the first of which is the canonical key.

my %forms = (
    raw => ['Key', 'Key'],
    lower => ['KEY', 'key'],
    host => ['WWW.Evil.example', 'www.evil.example', 'evil.example'],
    url => ['http://evil.example/a/b', 'evil.example/a/b', 'evil.example/'],
);

my $locations = join '', map { <<"CONF" } sort keys %forms;
        location = /variable/$_ { return 200 "\$known_$_"; }
        location = /single/$_ {
            bloom_reject present \$arg_k zone=$_ decode=uri;
            empty_gif;
        }
        location = /second/$_ {
            bloom_pass present \$arg_k zone=other decode=uri;
            bloom_reject present \$arg_k zone=$_ decode=uri;
            empty_gif;
        }
        location = /split/$_ {
            bloom_reject present \$arg_k zone=$_ decode=uri split=,;
            empty_gif;
        }
        location = /exact/$_ {
            bloom_reject present \$arg_k zone=$_ decode=uri exact;
            empty_gif;
        }
        location = /exact-second/$_ {
            bloom_pass present \$arg_k zone=other decode=uri;
            bloom_reject present \$arg_k zone=$_ decode=uri exact;
            empty_gif;
        }
        location = /exact-split/$_ {
            bloom_reject present \$arg_k zone=$_ decode=uri exact split=,;
            empty_gif;
        }
CONF

my $lookups = join '', map { <<"CONF" } sort keys %forms;
    bloom_zone zone=$_ capacity=10k fpr=1e-9 journal=off form=$_;
    bloom_lookup \$arg_k \$known_$_ zone=$_ decode=uri;
CONF

configure_rules($t, {}, <<"CONF");
    access_log off;
$lookups
    bloom_zone zone=other capacity=10k fpr=1e-9 journal=off;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        error_page 403 /refused;
        location = /refused { internal; return 403 "\$bloom_match"; }
        location /bloom/ { bloom_api write=on; }
$locations
    }
CONF
$t->run;


sub escaped { return $_[0] =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ger }

# What a request to a location finds: the expression that a rule has matched, or
# "absent".

sub found {
    my ($path, $key) = @_;

    my $r = $t->get("$path?k=" . escaped($key));
    return $r->status == 403 ? $r->body : $r->status == 200 ? 'absent' : $r;
}

# The expressions that GET keys calls present, and those it calls removed.

sub explained {
    my ($form, $key) = @_;

    my $r = api($t, GET => "zones/$form/keys?key=" . escaped($key))->json;
    my @present = map { $_->{key} } grep { $_->{present} }
                  @{ $r->{expressions} };
    my @removed = map { $_->{key} } grep { $_->{removed} }
                  @{ $r->{expressions} };

    return ($r->{answer}, "@present", "@removed");
}

sub change {
    my ($what, $form, $key) = @_;

    return api($t, POST => "zones/$form/$what", body => "$key\n")->status;
}

# Expects that every kind of lookup finds this expression, or none ("absent");
# that rules with "exact" find that one; and that these are called removed.

sub finds {
    my ($form, $found, $exact, $removed, $name) = @_;

    my $key = $forms{$form}[0];
    my $answer = $found eq 'absent' ? 'absent' : 'present';

    subtest "$form: $name" => sub {
        is(found("/single/$form", $key), $found, 'a single rule');
        is(found("/second/$form", $key), $found, 'the second rule');
        is(found("/split/$form", "no.example, $key"), $found, 'a list');
        is(found("/exact/$form", $key), $exact, 'a rule with "exact"');
        is(found("/exact-second/$form", $key), $exact,
           'a second rule with "exact"');
        is(found("/exact-split/$form", "$key,no.example"), $exact,
           'a list with "exact"');
        is($t->get("/variable/$form?k=" . escaped($key))->body,
           $answer eq 'present' ? 1 : 0, 'a variable');
        is(api($t, POST => "zones/$form/test",
               body => "no.example\n$key\n")->json->{answers}[1],
           $answer, 'POST test');

        my @got = explained($form, $key);
        is($got[0], $answer, 'the answer of GET keys');
        is($got[2], $removed, 'the removed expressions of GET keys');
        is((split ' ', $got[1])[0] // 'absent', $found,
           'the first expression that GET keys calls present');
    };
}


for my $form (sort keys %forms) {
    my ($key, $own, $parent) = @{ $forms{$form} };

    change(keys => $form, $_) for grep { defined } $own, $parent;
    finds($form, $own, $own, '', 'added keys are present');

    is(change(remove => $form, $own), 200, "$form: the key is removed");

    if (defined $parent) {
        finds($form, $parent, 'absent', $own,
              'without the key itself, its parent is found');
        change(keys => $form, $own);
        change(remove => $form, $parent);
        finds($form, $own, $own, $parent,
              'without the parent, the key itself is found');
        change(remove => $form, $own);
    }

    finds($form, 'absent', 'absent', join(' ', grep { defined } $own, $parent),
          'removed keys are absent');

    change(keys => $form, $own);
    finds($form, $own, $own, $parent // '', 'a key that returns is present');
}


subtest 'GET keys of all zones says that a key was removed' => sub {
    change(keys => 'raw', 'gone');
    change(remove => 'raw', 'gone');

    my $r = api($t, GET => 'keys?key=gone')->json;
    my ($zone) = grep { $_->{name} eq 'raw' } @{ $r->{zones} };

    is($zone->{answer}, 'absent', 'its answer is "absent"');
    ok($zone->{expressions}[0]{removed}, 'its expression is removed');
};


subtest 'removed keys among many others' => sub {
    my @keys = map { "many$_" } 1 .. 2000;
    my @gone = grep { $_ % 3 == 0 } 0 .. $#keys;
    my $body = join "\n", @keys;

    api($t, POST => 'zones/raw/keys', body => $body);
    is(api($t, POST => 'zones/raw/remove',
           body => join "\n", @keys[@gone])->json->{removed}, @gone,
       'a third of 2000 keys is removed');

    my $answers = api($t, POST => 'zones/raw/test', body => $body)
        ->json->{answers};
    my @absent = grep { $answers->[$_] eq 'absent' } 0 .. $#keys;
    is_deeply(\@absent, \@gone, 'these are absent, and no others');

    is(found('/split/raw', join ',', @keys[0, 3, 6]), 'absent',
       'a list of removed keys is absent');
    is(found('/split/raw', join ',', @keys[0, 3, 4, 5]), $keys[4],
       'a list with other keys is found by the first of these');
};


# ---- keys with the MurmurHash3 of another key, whatever the seed ----

subtest 'crafted keys with the hash of a removed key' => sub {
    my ($key) = grep { crafted($_) !~ /[\r\n,]|^[ \t]/ }
                map { "$_-a-key-of-at-least-24-bytes" } 1 .. 100;
    my $other = crafted($key);

    isnt($other, $key, 'a key with the same hash is crafted');
    is(crafted($other), $key, 'it is the only one of this kind');
    is(found('/single/raw', $other), 'absent', 'both keys are absent at first');

    change(keys => 'raw', $key);
    is(found('/single/raw', $other), $other,
       'the crafted key is present, since the filter knows hashes only');

    is(change(remove => 'raw', $key), 200, 'the key is removed');
    is(found('/single/raw', $key), 'absent', 'it is absent');

    for my $path (qw(single second split exact)) {
        is(found("/$path/raw", $other), $other,
           "the crafted key is still present: $path");
    }

    is((explained('raw', $other))[0], 'present',
       'the crafted key is still present: GET keys');

    change(remove => 'raw', $other);
    is(found('/single/raw', $other), 'absent',
       'the crafted key is absent after its own removal');
    change(keys => 'raw', $key);
    is(found('/single/raw', $other), 'absent',
       'an addition of the key does not bring the crafted one back');
    is(found('/single/raw', $key), $key, 'the key itself is present');
};

done_testing();
