#!/usr/bin/perl

# What ngx-bloom build refuses before it reads a key, so that nothing is lost
# and no time is: an output that is one of the inputs, an output without a
# name, threads that cannot be had.

use strict;
use warnings;

use FindBin;
use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $tool = $ENV{TEST_BLOOM_TOOL} // "$FindBin::Bin/../build/ngx-bloom";
my $keys = "one\ntwo\n";

$t->write_file('keys.txt', $keys);
$t->write_file('more.txt', "three\n");
symlink 'keys.txt', "$dir/link" or die "cannot link: $!";
link "$dir/keys.txt", "$dir/hard" or die "cannot link: $!";


sub shell {
    my ($script) = @_;

    return run_command(['sh', '-c', $script, $tool, $dir]);
}

sub refused {
    my ($what, $complaint, $exit, undef, $err) = @_;

    is($exit, 2, "$what: an error");
    like($err, $complaint, "$what: it says what and what to do");
    is($t->read_file('keys.txt'), $keys, "$what: the keys are as they were");
    is_deeply([glob "$dir/*.tmp-*"], [], "$what: nothing is left");
}

sub too {
    my ($name) = @_;

    return qr/\Qngx-bloom build: $name: is the output too: the image would \E
              \Qreplace the keys; name another output\E\n\z/x;
}


subtest 'an output that is an input' => sub {
    refused('by its name', too("$dir/keys.txt"),
            $t->run_tool('build', '-o', "$dir/keys.txt", "$dir/keys.txt"));
    refused('among others', too("$dir/keys.txt"),
            $t->run_tool('build', '-o', "$dir/keys.txt", "$dir/more.txt",
                         "$dir/keys.txt"));
    refused('by a symbolic link', too("$dir/keys.txt"),
            $t->run_tool('build', '-o', "$dir/link", "$dir/keys.txt"));
    refused('by another name', too("$dir/hard"),
            $t->run_tool('build', '-o', "$dir/keys.txt", "$dir/hard"));
    refused('as standard input', too('standard input'),
            shell('"$0" build -o "$1/keys.txt" < "$1/keys.txt"'));
    refused('as standard input by name', too('standard input'),
            shell('"$0" build -o "$1/keys.txt" - < "$1/keys.txt"'));

    # what is no input may be replaced, also by what is made like it

    my $image = $t->build_image('ids.bloom', ['one']);
    my ($exit) = $t->run_tool('build', '-o', $image, '--like', $image,
                              "$dir/keys.txt");
    is($exit, 0, 'an image is replaced by one that is made like it');
    is(($t->run_tool('test', $image, 'two'))[0], 0, 'and has the new keys');
};


refused('an empty name',
        qr/\Angx-bloom build: the output has an empty name; name a file\n\z/,
        $t->run_tool('build', '-o', '', "$dir/keys.txt"));


SKIP: {
    skip 'the sanitizers need more address space than that', 4
        if $ENV{TEST_NGINX_SANITIZED};

    refused('threads without memory',
            qr/\Angx-bloom\ build:\ a\ thread\ cannot\ be\ started:\ .+;
               \ give\ a\ smaller\ -j\n\z/x,
            shell('ulimit -s 65536; ulimit -v 524288;'
                  . ' "$0" build -j 64 -o "$1/new.bloom" "$1/keys.txt"'));
}


subtest 'out of processor time' => sub {
    pipe my $reader, my $writer or die "cannot make a pipe: $!";

    my $pid = spawn([$tool, 'build', '-o', "$dir/new.bloom"],
                    stdin => $reader);
    close $reader;

    ok(wait_until(sub { my @some = glob "$dir/new.bloom.tmp-*" }),
       'it has begun');
    kill 'XCPU', $pid;
    waitpid $pid, 0;

    is($? & 127, POSIX::SIGXCPU(), 'it dies of the signal');
    is_deeply([glob "$dir/new.bloom*"], [], 'and leaves nothing');
};


done_testing;
