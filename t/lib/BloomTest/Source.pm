# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Source;

# Sends changes, signs of life and gaps to zones of the source "s".

use strict;
use warnings;

use Exporter qw(import);
use Test::More ();

use BloomTest::Api;

our @EXPORT = qw(changes part alive gap position source_state is_applied);


# Sends changes, "+KEY" or "-KEY", between two positions, and returns the
# response.

sub changes {
    my ($t, $zone, $after, $position, @changes) = @_;

    return api($t, POST => "zones/$zone/changes?source=s&after=$after"
                           . "&position=$position",
               body => join('', map { "$_\n" } @changes));
}


# Sends a part of the changes between two positions: those from number `offset`
# on; `more` is true if others follow.  Returns the response.

sub part {
    my ($t, $zone, $after, $position, $offset, $more, @changes) = @_;

    return api($t, POST => "zones/$zone/changes?source=s&after=$after"
                           . "&position=$position&offset=$offset&more="
                           . ($more ? 'true' : 'false'),
               body => join('', map { "$_\n" } @changes));
}


sub alive { return changes(@_[0, 1, 2], $_[2]) }


sub gap {
    my ($t, $zone, $position) = @_;

    return api($t, POST => "zones/$zone/gap?source=s&position=$position");
}


# Tests that changes are applied, and returns the response.

sub is_applied {
    my ($response, $position, $name) = @_;

    my $json = eval { $response->json } // {};

    Test::More::ok($response->status == 200 && $json->{applied}
                   && $json->{position} eq $position, $name)
        or Test::More::diag($response);

    return $json;
}


sub position { return zone_state(@_)->{source}{position} }
sub source_state { return zone_state(@_)->{source}{state} }


1;
