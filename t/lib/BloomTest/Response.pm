# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Response;

# A parsed HTTP response.  As a string it is its text, with the chunks of the
# body joined, so like($t->get('/'), qr/200 OK/) works.
#
#   status    the number; 0 if the connection ended without a response
#   headers   {name in lower case => value}; repeated headers joined by ", "
#   body      transfer coding removed
#   complete  false if the connection ended before the response did
#   interim   the 1xx statuses that came before

use strict;
use warnings;

use JSON::PP ();

use overload '""' => sub { $_[0]{head} . $_[0]{body} },
             'bool' => sub { 1 },
             fallback => 1;


sub new {
    my ($class, %field) = @_;

    my $self = bless { headers => {}, body => '', head => '', complete => 0,
                       interim => [], %field }, $class;

    my ($first, @lines) = split /\r?\n/, $self->{head};

    ($self->{status}) = ($first // '') =~ m{^HTTP/[\d.]+ (\d{3})}
        unless defined $self->{status};
    $self->{status} //= 0;

    for (@lines) {
        my ($name, $value) = /^([^:\s]+):\s*(.*?)\s*$/ or next;
        $_ = defined $_ ? "$_, $value" : $value
            for $self->{headers}{lc $name};
    }

    return $self;
}


sub status { return $_[0]{status} }
sub headers { return $_[0]{headers} }
sub body { return $_[0]{body} }
sub complete { return $_[0]{complete} }
sub interim { return @{ $_[0]{interim} } }
sub header { return $_[0]{headers}{lc $_[1]} }
sub json { return JSON::PP::decode_json($_[0]{body}) }


1;
