#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that nginx takes the good keys of `ngx-bloom build --except` for absent,
# and all listed keys for present, in every key form; that an addition lifts an
# exception, and a clear of removed keys does not; and that the exceptions
# survive a reload, a restart and GET image with their kind.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Image qw(exceptions_in);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my %key = (
    raw => sub { "$_[0]$_[1]" },
    lower => sub { "$_[0]$_[1]" },
    host => sub { "www.$_[0]$_[1].example" },
    url => sub { "http://www.$_[0]$_[1].example/a/b" },
);
my @forms = sort keys %key;
my (%listed, %good);

for my $form (@forms) {
    $listed{$form} = [map { $key{$form}->('bad', $_) } 1 .. 500];
    $good{$form} = [map { $key{$form}->('good', $_) } 1 .. 1000];

    $t->write_file("$form.good", join '', map { "$_\n" } @{ $good{$form} });
    $t->build_image("$form.plain", $listed{$form}, '-p', '0.05', '--form', $form,
                    '--seed', 99);
    $t->build_image("$form.bloom", $listed{$form}, '-p', '0.05', '--form', $form,
                    '--seed', 99, '--except', "$dir/$form.good");
}

configure($t, [(map { "zone=$_ file=$_.bloom form=$_" } @forms),
               (map { "zone=plain_$_ file=$_.plain form=$_" } @forms)],
          api => 1, server => join '', map { <<"CONF" } @forms);
location = /reject/$_ {
    bloom_reject present \$arg_k zone=$_ decode=uri;
    empty_gif;
}
CONF
$t->run;


sub escaped { return $_[0] =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ger }

sub of_kind { return grep { $_->[0] == $_[0] } exceptions_in($_[1]) }

# Expects that no good key is found, and every listed key is.

sub holds {
    my ($when) = @_;

    for my $form (@forms) {
        is(scalar(grep { $_ ne 'absent' }
                  lookup_keys($t, $form, @{ $good{$form} })), 0,
           "no good key is found $when ($form)");
        is(scalar(grep { $_ ne 'present' }
                  lookup_keys($t, $form, @{ $listed{$form} })), 0,
           "every listed key is found $when ($form)");
    }
}

for my $form (@forms) {
    my @plain = lookup_keys($t, "plain_$form", @{ $good{$form} });
    my @false = map { $good{$form}[$_] } grep { $plain[$_] eq 'present' }
                0 .. $#plain;

    cmp_ok(scalar @false, '>', 10, "there are good keys that match ($form)");
    is(join(' ', map { $_->status }
                 $t->pipeline(map { "/reject/$form?k=" . escaped($_) } @false)),
       join(' ', (200) x @false), "a rule lets these pass ($form)");
    is(join(' ', map { $_->status }
                 $t->pipeline(map { "/reject/$form?k=" . escaped($_) }
                                  @{ $listed{$form} }[0 .. 99])),
       join(' ', (403) x 100), "a rule refuses listed keys ($form)");
}

holds('at first');

$t->reload;
holds('after a reload');

$t->stop;
$t->run;
holds('after a restart');

{
    my $before = exceptions_in($t->read_file('raw.bloom'));
    my ($one, $two) = map { $_->[2] } exceptions_in($t->read_file('raw.bloom'));

    api($t, POST => 'zones/raw/remove', body => "bad1\n");
    is(scalar of_kind(1, api($t, GET => 'zones/raw/image')->body), $before,
       'GET image has all exceptions of the builder');
    is(join(' ', map { $_->[2] }
                 of_kind(2, api($t, GET => 'zones/raw/image')->body)), 'bad1',
       'GET image has the removed key with its kind');
    unlike(api($t, GET => 'zones/raw/removed')->body, qr/"\Q$one\E"/,
           'GET removed lists no exception of the builder');

    add($t, 'raw', [$one]);
    is(join(' ', lookup_keys($t, 'raw', $one, $two)), 'present absent',
       'an added key is no longer an exception, and others are');

    is(api($t, POST => 'zones/raw/clear?only=removed')->status, 200,
       'removed keys are restored');
    is(join(' ', lookup_keys($t, 'raw', 'bad1', $one, $two)),
       'present present absent', 'an exception of the builder stays');

    $t->stop;
    $t->run;
    is(join(' ', lookup_keys($t, 'raw', 'bad1', $one, $two)),
       'present present absent', 'so it is after a restart');
}

done_testing;
