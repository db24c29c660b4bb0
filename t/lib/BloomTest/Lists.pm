# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Lists;

# Builds images from entries of lists, and checks what a lookup finds in them.

use strict;
use warnings;

use Exporter qw(import);

use BloomTest;
use BloomTest::Tool qw(build_text tool_path);
use BloomTest::Process qw(run_command);

our @EXPORT_OK = qw($Zone_head cases finds);


# The beginning of a zone of entries, with what a reader can stumble over.

our $Zone_head = <<'ZONE';
$TTL 1h
$ORIGIN rpz.test.
; a comment (
@ IN SOA localhost. root.localhost. ( 1 ; serial (
  1h 15m ; "
  30d 2h )
  IN NS localhost.
ZONE


# Checks which of these keys a lookup finds.

sub finds {
    my ($image, $what, $present, $absent) = @_;

    my (undef, $out) = run_command([tool_path(), 'test', $image, '--',
                                    @$present, @$absent]);

    is($out, join('', map({ "present $_\n" } @$present),
                  map { "absent $_\n" } @$absent), $what);
}

# Each case is an entry of a list, and either what is found and not found, or
# the reason to skip it.

sub cases {
    my ($format, $form, $before, @cases) = @_;

    for (@cases) {
        my ($entry, $expected, @absent) = @$_;
        my ($image, $json)
            = build_text("$before$entry\n", '--from', $format, '--form', $form,
                         '--allow-empty', '-p', '1e-9', '-n', 1000);
        my $what = "$format, $form: $entry" =~ s/\n/\\n/gr;

        if (ref $expected) {
            finds($image, "$what is found", $expected, \@absent);
            is($json->{skipped} + $json->{errors}, 0, "$what is kept");
            next;
        }

        is_deeply([$json->{received}, $json->{lines_read},
                   map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                  [0, 1, $expected], "$what is skipped");
    }
}


1;
