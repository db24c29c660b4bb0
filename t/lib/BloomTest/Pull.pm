# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Pull;

# Serves the tests of ngx-bloom-pull: it makes keys of minisign, builds, signs
# and publishes images, runs pulls, and checks what they leave.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use Test::More;

use BloomTest::Process qw(run_command);

our @EXPORT = qw(pull_test pull_path public_key image publish install pull
                 pull_command pull_is file_is content samples_of);

my $top = abs_path(dirname(__FILE__) . '/../../..');
my ($t, $dir);


# Takes the test's object.  Skips the test if a program is missing.  Makes www/,
# which a server publishes, and node/, into which pulls write.

sub pull_test {
    ($t) = @_;

    for my $program ('curl --version', 'minisign -v') {
        plan skip_all => "there is no \"$program\""
            if (run_command(['sh', '-c', $program]))[0] != 0;
    }

    $dir = $t->testdir;
    mkdir "$dir/$_" or croak "mkdir: $!" for qw(bin home keys images www node);
    symlink abs_path($ENV{TEST_BLOOM_TOOL} // "$top/build/ngx-bloom"),
            "$dir/bin/ngx-bloom" or croak "symlink: $!";

    return $t;
}

sub pull_path { return "$top/src/cli/ngx-bloom-pull" }


sub content {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return;
    local $/;

    return <$fh> // '';
}

sub command {
    my @command = @_;

    my ($exit, undef, $err) = run_command(\@command);
    croak "@command: $err" if $exit != 0;
}


# Returns the path of a public key, which it makes at the first call.

sub public_key {
    my ($name) = @_;

    my $path = "$dir/keys/$name";
    command('minisign', '-GWp', "$path.pub", '-s', "$path.key")
        unless -e "$path.pub";

    return "$path.pub";
}


# Builds an image that is complete as of so many seconds after 2026, and
# returns its content.

sub image {
    my ($second, $keys, @options) = @_;

    my $path = "$dir/images/" . join('-', $second, $keys, @options) =~ s/[^\w-]/_/gr;
    $t->build_image($path =~ s/^\Q$dir\E\///r, [map { "key$_" } 1 .. $keys],
                    '--as-of', 1767225600 + $second, @options)
        unless -e $path;

    return content($path);
}


# Publishes an image as www/NAME, with its signature by the key, if one is
# given.  Each file is replaced by a rename.  Its time differs from that of all
# others by a second or more, because nginx's ETag is the time in seconds and the
# length.

my $published = time - 1_000_000;

sub publish {
    my ($name, $image, $key, @options) = @_;

    $t->write_file("images/$name", $image);

    if (defined $key) {
        public_key($key);
        command('minisign', '-Sm', "$dir/images/$name", '-s',
                "$dir/keys/$key.key", @options);
        rename "$dir/images/$name.minisig", "$dir/www/$name.minisig"
            or croak "rename: $!";
    } else {
        unlink "$dir/www/$name.minisig";
    }

    utime((++$published) x 2, "$dir/images/$name") or croak "utime: $!";
    rename "$dir/images/$name", "$dir/www/$name" or croak "rename: $!";
}


# Replaces a node's file, as an administrator would.

sub install {
    my ($name, $image, $mode) = @_;

    my $path = $t->write_file("node/$name.installed", $image);
    chmod $mode // 0644, $path or croak "chmod: $!";
    rename $path, "$dir/node/$name" or croak "rename: $!";
}


# Returns a command that pulls into node/NAME, and its environment.

sub pull_command {
    my ($url, $name, @options) = @_;

    return ([pull_path(), $url, "$dir/node/$name", @options],
            env => { PATH => "$dir/bin:$ENV{PATH}", HOME => "$dir/home",
                     http_proxy => '', no_proxy => '*',
                     %{ $t->{env} // {} } });
}

sub pull {
    my ($url, $name, @options) = @_;

    return run_command(pull_command($url, $name, @options), limit => 120);
}


# Tests the exit status of a pull and its line, which must be the only one.

sub pull_is {
    my ($status, $line, $what, @pull) = @_;

    my ($exit, $out, $err) = pull(@pull);
    my ($said, $silent) = $status == 2 ? ($err, $out) : ($out, $err);
    my $kind = (qw(new unchanged), '(?:refused|error)')[$status];

    is($exit, $status, "$what: the exit status is $status")
        or diag("$out$err");
    like($said, qr/\Angx-bloom-pull: $kind: .*\n\z/,
         "$what: the pull prints one line");
    like($said, $line, "$what: the line says what and why");
    is($silent, '', "$what: the pull prints nothing else");
}


# Tests that node/NAME has this content and this mode.

sub file_is {
    my ($name, $image, $what, $mode) = @_;

    my $found = content("$dir/node/$name");

    ok(defined $found && $found eq $image, $what)
        or diag(defined $found ? 'the file differs' : 'there is no file');
    is(sprintf('%03o', (stat "$dir/node/$name")[2] & 07777),
       sprintf('%03o', $mode), "$what: the file has its mode")
        if defined $mode;
}


# Returns the metrics of a file as name => value.

sub samples_of {
    my ($path) = @_;

    return map { /^ngx_bloom_pull_(\w+)\{file="[^"]*"\} (\d+)$/
                 ? ($1 => $2) : () } split /\n/, content($path) // '';
}


1;
