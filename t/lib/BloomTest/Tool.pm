# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Tool;

# Serves the tests of ngx-bloom: it runs the tool without nginx, checks its exit
# status and its standard error, and reads images.  It reads an image's header
# and bits as docs/image-format.md says, not through the tool.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use JSON::PP ();
use List::Util qw(product sum);

use BloomTest;
use BloomTest::Image qw(patch_header);
use BloomTest::Process qw(run_command);

our @EXPORT_OK = qw(
    tool_test tool_path example_keys example_image tool tool_ok
    tool_redirected tool_memory build_text info present json json_lines lines_of
    text_line
    content_of near members_are
    header payload count_bits rate_of_bits copy_with copy_with_header
);

my $t;


# Creates and returns the test's object, whose directory the functions below
# use.

sub tool_test { return $t = BloomTest->new(module => 0, @_) }

sub tool_path {
    return abs_path($ENV{TEST_BLOOM_TOOL}
                    // dirname(__FILE__) . '/../../../build/ngx-bloom');
}


# Returns the keys key-1 to key-1000.

sub example_keys { return map { "key-$_" } 1 .. 1000 }

# Builds the image ids, classic or siphash of these keys, whose properties the
# tests compare, and returns its path.

my %example = (
    ids => ['--seed', '4294967295', '-n', '2k', '--as-of',
            '2020-01-31T12:00:00.25Z'],
    classic => ['--layout', 'classic', '-p', '1e-4'],
    siphash => ['--hash', 'siphash', '--seed',
                '00112233445566778899aabbccddeeff', '-p', '1e-6'],
);

sub example_image {
    my ($name) = @_;

    return $t->build_image("$name.bloom", [example_keys()],
                           @{ $example{$name} });
}


# Runs the tool; checks its exit status and standard error, which is empty or
# matches; returns standard output.

sub tool {
    my ($status, $complaint, @arguments) = @_;

    my $dir = $t->testdir;
    my ($exit, $out, $err) = $t->run_tool(@arguments);
    my $shown = join ' ', 'ngx-bloom', map { ref $_ ? () : substr($_, 0, 60) }
                                           @arguments;
    $shown =~ s/\Q$dir\E\///g;
    $shown =~ s/[^ -~]/?/g;

    is($exit, $status, "\"$shown\" exits with $status") or diag($err);

    if (defined $complaint) {
        like($err, $complaint, "\"$shown\" prints the expected message");
    } else {
        is($err, '', "\"$shown\" prints no message");
    }

    return $out;
}


# Runs the tool, and tests only if it fails.  Returns standard output and, in
# list context, standard error.

sub tool_ok {
    my @arguments = @_;

    my ($exit, $out, $err) = $t->run_tool(@arguments);
    $exit == 0 or fail("ngx-bloom @arguments"), diag("exit $exit: $err");

    return wantarray ? ($out, $err) : $out;
}


# Runs the tool with its standard output redirected by a shell; returns what
# run_command() does.

sub tool_redirected {
    my ($redirection, @arguments) = @_;

    return run_command(['sh', '-c', "\"\$0\" \"\$@\" $redirection", tool_path(),
                        @arguments], env => $t->{env});
}


# Runs the tool.  Returns what run_command() returns, and the most memory that
# the tool had at any time, in bytes.

sub tool_memory {
    my ($option, @arguments) = @_;

    my $peak = $t->testdir . '/peak-memory';
    my @result = run_command([$^X, '-e', <<'PERL', $peak, tool_path(),
        require 'syscall.ph';
        my $peak = shift;
        my $pid = fork // die "fork: $!";
        if ($pid == 0) { exec @ARGV or die "exec: $!" }
        waitpid $pid, 0;
        my $status = $? & 127 ? 128 + ($? & 127) : $? >> 8;
        my $usage = "\0" x 256;
        syscall(&SYS_getrusage, -1, $usage) == 0 or die "getrusage: $!";
        open my $file, '>', $peak or die "$peak: $!";
        print $file 1024 * unpack 'x32 q', $usage;
        exit $status;
PERL
                              @arguments], env => $t->{env}, %$option);

    return (@result, content_of($peak));
}


# Builds an image from a text.  Returns the image's path, what the build prints
# as JSON, and its standard error.

my $built = 0;

sub build_text {
    my ($text, @options) = @_;

    my $image = $t->testdir . '/built' . ++$built;
    my ($exit, $out, $err)
        = $t->run_tool('build', '--json', '-o', $image, @options,
                       { stdin => $text });

    is($exit, 0, "build @options exits with 0") or diag($err);

    return ($image, $exit == 0 ? json($out) : {}, $err);
}


sub info { return json(scalar tool_ok('info', '--json', $_[0])) }

# Returns how many of these keys are present.

sub present {
    my ($image, @keys) = @_;

    my (undef, $out) = $t->run_tool('test', $image,
                                    { stdin => lines_of(@keys) });

    return scalar(() = $out =~ /^present /mg);
}


sub json { return JSON::PP->new->utf8->decode($_[0]) }
sub json_lines { return map { json($_) } split /\n/, $_[0] }
sub lines_of { return join '', map { "$_\n" } @_ }


# Returns a pattern of a line with exactly this text and a number in the place
# of each %%.

sub text_line {
    my ($text) = @_;

    my $pattern = join '[0-9.e-]+', map { quotemeta } split /%%/, $text, -1;

    return qr/\A$pattern\n\z/;
}


sub content_of {
    my ($path) = @_;

    open my $fh, '<:raw', $path or die "$path: $!";
    local $/;

    return <$fh> // '';
}


# Tests some members of an object that a command has printed as JSON.

sub members_are {
    my ($name, $object, %expected) = @_;

    is_deeply({ map { $_ => $object->{$_} } keys %expected }, \%expected, $name);
}


sub near {
    my ($got, $wanted, $name) = @_;

    ok(abs($got - $wanted) <= 1e-9 * abs $wanted, $name)
        or diag("$got is not $wanted");
}


# Returns the fields of an image's header, and its bits as payload.

sub header {
    my ($path) = @_;

    my $file = content_of($path);
    my %field;

    @field{qw(version file_size at size layout k lines flags bits hash form
              seed capacity items fpr created as_of build_id)}
        = unpack 'x8 L< x4 Q< Q< Q< x8 L< L< L< L< Q< L< L< L< x12 Q< Q< d<'
                 . ' Q< Q< H32', $file;
    $field{payload} = substr $file, $field{at};

    return \%field;
}

sub payload { return header($_[0])->{payload} }

sub count_bits { return unpack '%64b*', $_[0] }

# Returns the rate of exactly these bits of a blocked image with one line a key.

sub rate_of_bits {
    my ($header) = @_;

    my $sector = 64 / $header->{k};
    my @lines = map {
        product(map { count_bits($_) / (8 * $sector) } unpack "(a$sector)*", $_)
    } unpack '(a64)*', $header->{payload};

    return sum(@lines) / @lines;
}


# Makes a changed copy of a file of the test; returns its path.

sub copy_with {
    my ($from, $to, $change) = @_;

    my $content = $t->read_file($from);
    $change->($content);

    return $t->write_file($to, $content);
}

# Makes a copy of an image with other bytes in its header, under a checksum that
# belongs to them; returns its path.

sub copy_with_header {
    my ($from, $to, %change) = @_;

    return $t->write_file($to, patch_header($t->read_file($from), %change));
}


1;
