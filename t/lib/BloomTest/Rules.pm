# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Rules;

# Serves the tests of directives: it writes a configuration whose zones have
# given keys, and returns the outcome of a request.

use strict;
use warnings;

use Exporter qw(import);
use Test::More ();

our @EXPORT = qw(configure_rules locations outcome outcomes_are decisions_logged
                 encoded);


# Writes an nginx.conf with these lines in its http block and with a zone for
# each list of keys.  The zone "ids" serves the image ids.bloom, which is built
# here unless it exists.  Its false-positive rate is 1e-9 and its seed is fixed:
# whether a key is absent does not depend on chance.  Options: main (lines
# outside of the http block), backend (the number of a port on which nginx
# itself answers with "backend" and the URI it was asked for).

sub configure_rules {
    my ($t, $zones, $lines, %option) = @_;

    my @names = sort keys %$zones;

    $t->build_image("$_.bloom", $zones->{$_}, '-p', '1e-9', '--seed', 1)
        for grep { !-e $t->testdir . "/$_.bloom" } @names;

    # lines in the http block apply to the tested servers only

    my $backend = !$option{backend} ? '' : <<"CONF";
    server {
        listen 127.0.0.1:%%PORT_$option{backend}%%;
        access_log off;
        add_header X-Backend 1;
        bloom_rules off;
        location / { return 200 "backend \$request_uri"; }
    }
CONF

    $t->write_file_expand('nginx.conf', join "\n",
        '%%TEST_GLOBALS%%',
        $option{main} // '',
        'events { }',
        'http {',
        '%%TEST_GLOBALS_HTTP%%',
        (map { "bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;" } @names),
        $lines,
        $backend,
        '}',
        '');
}


# Returns a location for each rule list, by name: "shield" is /shield, and a name
# that begins with "=", "~" or "@" is that of such a location.  What the rules let
# through goes to the port, unless the list says what answers it.

sub locations {
    my ($rules, $port) = @_;

    return join '', map {
        my $name = /^[=~@]/ ? $_ : "/$_";
        my $own = qr/\b(?:proxy_pass|scgi_pass|return|try_files|ssi) /;
        my $answers = $rules->{$_} =~ $own
                      ? '' : " proxy_pass http://127.0.0.1:%%PORT_$port%%;";

        "location $name { $rules->{$_};$answers }\n"
    } sort keys %$rules;
}


# Tests a table of outcomes.  A row has a path, perhaps with a method before it,
# the outcome, and why it is so, with two spaces or more between.  An outcome in
# quotes is the body of the response.  Options are those of a request.

sub outcomes_are {
    my ($t, $table, %option) = @_;

    for my $row (grep { /\S/ } split /\n/, $table) {
        my ($path, $expected, $why) = split /\s{2,}/, $row =~ s/^\s+//r, 3;
        my ($method) = $path =~ s/^([A-Z]+) // ? $1 : 'GET';
        my $response = $t->request($method, $path, %option);
        my $got = $expected =~ /^"/ ? '"' . $response->body =~ s/\s+$//r . '"'
                  : join ' ', $response->status,
                              grep { length }
                                   $response->header('X-Bloom') // '';

        Test::More::is($got =~ s/\s+$//r, $expected,
                       ($why // "$method leads to $expected") . ": $path");
    }
}


# Asks for a path and returns the status of the response and its header
# X-Bloom, in which the tests' servers put "$bloom_status $bloom_zone".

sub outcome {
    my ($t, $path, %option) = @_;

    my $response = $t->get($path, %option);

    return $response->status . ' ' . ($response->header('X-Bloom') // '');
}


# Asks for a path and returns what the error log then says of decisions, from
# "rejecting request" to the name of the zone, separated by "|".

sub decisions_logged {
    my ($t, $path, %option) = @_;

    my $mark = $t->log_mark;
    $t->get($path, %option);

    return join '|', $t->log_since($mark)
        =~ /((?:rejecting|routing|passing) request.*? zone "\w+")/g;
}


# Returns a key as it is sent in an argument: every byte but letters, digits
# and commas is escaped.

sub encoded { return $_[0] =~ s/([^A-Za-z0-9,])/sprintf '%%%02X', ord $1/ger }


1;
