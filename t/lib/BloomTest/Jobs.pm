# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Jobs;

# Serves the tests of the jobs in conf-examples, which call ngx-bloom and nginx by
# their names and write files into directories of the test.

use strict;
use warnings;

use Exporter qw(import);

use BloomTest::Tool qw(tool_path);

our @EXPORT_OK = qw(job_path job_program text unsafe_directories);


# Writes a program that the jobs find by its name.

sub job_program {
    my ($t, $name, $body) = @_;

    my $path = $t->write_file("bin/$name", "#!/bin/sh\n$body");
    chmod 0755, $path or die "chmod: $!";
}


# Makes the directories bin, with ngx-bloom and nginx, and tmp.  Returns the PATH
# of the jobs.

sub job_path {
    my ($t) = @_;

    my $dir = $t->testdir;
    my $env = $t->{env} // {};

    mkdir "$dir/$_" or die "mkdir: $!" for 'bin', 'tmp';
    symlink tool_path(), "$dir/bin/ngx-bloom" or die "symlink: $!";
    job_program($t, 'nginx',
                join('', map { "export $_='$env->{$_}'\n" } sort keys %$env)
                . join(' ', 'exec', map({ "'$_'" } $t->_command), '"$@"')
                . "\n");

    return "$dir/bin:$ENV{PATH}";
}


# Makes an empty directory in which other users can replace files, in each way
# there is, and calls a function with what it is and its path.  Only root can
# make a directory of another user.

sub unsafe_directories {
    my ($t, $code) = @_;

    my $path = $t->testdir . '/shared';
    my @nobody = $> == 0 ? [0755, scalar getpwnam 'nobody'] : ();

    -d $path or mkdir $path or die "mkdir: $!";

    for ([0757, $>], [01777, $>], @nobody) {
        my ($mode, $user) = @$_;

        chown $user, -1, $path or die "chown: $!";
        chmod $mode, $path or die "chmod: $!";
        unlink glob "$path/*";
        $code->(sprintf('a directory of user %d and mode %o', $user, $mode),
                $path);
    }
}


sub text { return join '', map { "$_\n" } @_ }


1;
