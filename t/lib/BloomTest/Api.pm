# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Api;

# Makes requests to the endpoint, which `configure` of BloomTest::Zones puts at
# /bloom/, and tests its answers.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use Test::More ();

use BloomTest::Process qw(wait_until);

our @EXPORT = qw(api add upload_image lookup_keys zone_state generation
                 build_id is_error refusals_are is_added settled);


# Makes a request for a path below the prefix.

sub api {
    my ($t, $method, $path, %option) = @_;

    return $t->request($method, "/bloom/$path", %option);
}


# Adds keys and returns the endpoint's answer; dies if they are not added.

sub add {
    my ($t, $zone, $keys, %option) = @_;

    my $query = delete $option{durable} ? '?durable=true' : '';
    my $response = api($t, POST => "zones/$zone/keys$query",
                       body => join('', map { "$_\n" } @$keys), %option);

    $response->status == 200
        or croak "zone $zone: keys are not added:\n$response";

    return $response->json;
}


# Uploads the image NAME.bloom to a zone and returns the response.

sub upload_image {
    my ($t, $zone, $name) = @_;

    return api($t, PUT => "zones/$zone/image",
               body => $t->read_file("$name.bloom"));
}


# Returns the endpoint's answer for each key, as soon as no answer is unknown.

sub lookup_keys {
    my ($t, $zone, @keys) = @_;

    my @answers;

    wait_until(sub {
        my $response = api($t, POST => "zones/$zone/test",
                           body => join "\n", @keys);

        # a pattern, since parsing 100,000 of them takes a second

        my ($list) = $response->body =~ /"answers":\[(.*?)\]/
            or croak "zone $zone: unexpected answer:\n$response";

        @answers = $list =~ /"(\w+)"/g;
        return !grep { $_ eq 'unknown' } @answers;
    });

    return @answers;
}


sub zone_state {
    my ($t, $zone) = @_;

    my $response = api($t, GET => "zones/$zone");

    $response->status == 200 or croak "zone $zone: no state:\n$response";

    return $response->json;
}


sub generation { return zone_state(@_)->{generation} }
sub build_id { return zone_state(@_)->{image}{build_id} }


# Tests a refusal: its status, that its body is an error of the endpoint, and
# its message.  Returns the response.

sub is_error {
    my ($response, $status, $message, $name) = @_;

    Test::More::subtest($name => sub {
        Test::More::is($response->status, $status, "the status is $status")
            or Test::More::diag($response);
        Test::More::like($response->header('Content-Type') // '',
                         qr{^application/json\b}, 'the response is JSON');
        Test::More::like($response->header('Cache-Control') // '',
                         qr/no-store/, 'the response is not to be cached');

        my $error = eval { $response->json->{error} } // {};
        Test::More::like($error->{code} // '', qr/^[a-z][a-z0-9_]+$/,
                         'the error has a code');
        Test::More::like($error->{message} // '', $message,
                         'the error message gives the reason');
    });

    return $response;
}


# Tests a table of refusals.  A row has a request (a method, a path and perhaps a
# body, in which \n ends a line), the status and the code, and words that the
# message has, with two spaces or more between.  Options are those of a request.

sub refusals_are {
    my ($t, $table, %option) = @_;

    for (grep { /\S/ } split /\n/, $table) {
        my ($request, $refusal, $words) = split /\s{2,}/, $_, 3;
        my ($method, $path, $body) = split ' ', $request, 3;
        my ($status, $code) = split ' ', $refusal;

        my $response = is_error(
            api($t, $method, $path,
                defined $body ? (body => $body =~ s/\\n/\n/gr) : (), %option),
            $status, qr/\w/, "$request is refused");
        my $error = eval { $response->json->{error} } // {};
        my @missing = grep { index($error->{message} // '', $_) < 0 }
                           split ' ', $words // '';

        Test::More::is("@missing", '', "the message about $request says why")
            or Test::More::diag($response);
        Test::More::is($error->{code}, $code, "the code is $code");
    }
}


# Tests the counts in a response about added keys: received, added, already
# present, durable.  A count of undef is not tested.

sub is_added {
    my ($response, $received, $added, $present, $durable, $name) = @_;

    my $got = eval { $response->json } // {};
    my %want = (received => $received, added => $added,
                already_present => $present);

    delete $want{$_} for grep { !defined $want{$_} } keys %want;
    my %have = map { $_ => $got->{$_} } keys %want;

    if (defined $durable) {
        $want{durable} = $durable ? 'true' : 'false';
        $have{durable} = !defined $got->{durable} ? undef
                         : $got->{durable} ? 'true' : 'false';
    }

    Test::More::is_deeply(\%have, \%want, $name)
        or Test::More::diag($response);

    return $response;
}


# Waits until the zone's state is as wanted.  Returns the state, or nothing if
# it does not come.

sub settled {
    my ($t, $zone, $wanted) = @_;

    return wait_until(sub {
        my $state = zone_state($t, $zone);
        return $wanted->($state) && $state;
    });
}


1;
