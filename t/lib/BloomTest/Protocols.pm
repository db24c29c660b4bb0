# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Protocols;

# Runs a test over HTTP/2 and over HTTP/3.
#
#   configure($t, [...], server => listen_for_all($t));
#   over_each($t, sub {
#       my ($class) = @_;                   BloomTest::Http2 or BloomTest::Http3
#       my $connection = $class->new($t);
#   });

use strict;
use warnings;

use Exporter qw(import);
use Test::More ();

use BloomTest::Http2;
use BloomTest::Http3;

our @EXPORT = qw(listen_for_all over_each);

my @protocols = qw(BloomTest::Http2 BloomTest::Http3);


# Returns the directives for the protocols that this nginx has.

sub listen_for_all {
    my ($t) = @_;

    return join "\n", map { $_->listen($t) }
                      grep { !$_->impossible($t) } @protocols;
}


# Calls the code in a subtest for each protocol, which is skipped if this nginx
# lacks it.

sub over_each {
    my ($t, $code) = @_;

    for my $class (@protocols) {
        my $why = $class->impossible($t);

        Test::More::subtest($class->name => sub {
            Test::More::plan(skip_all => $why) if $why;
            $code->($class);
        });
    }
}


1;
