#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the outputs of commands.  A command refuses at once an output that is
# one of its inputs or has no name, and a number of threads that cannot be had.
# The temporary file is in the right directory.  Several commands may write the
# same image at the same time.

use strict;
use warnings;

use Cwd qw(abs_path);
use Fcntl qw(:flock);

use BloomTest;
use BloomTest::Process qw(run_command spawn title wait_until);
use BloomTest::Tool qw(content_of present tool_path tool_test);

my $t = tool_test(user => 'nobody');
my $dir = $t->testdir;
my $tool = tool_path();
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

    is($exit, 2, "a build that cannot begin fails ($what)");
    like($err, $complaint, "a build that cannot begin says what to do ($what)");
    is($t->read_file('keys.txt'), $keys,
       "a build that cannot begin leaves the keys as they were ($what)");
    is_deeply([glob "$dir/*.tmp-*"], [],
              "a build that cannot begin leaves no temporary file ($what)");
}


subtest 'an output that is an input is refused' => sub {
    my $source = $t->write_file('source', pack('C C l>', 1, 7, 2)
                                          . "\x12\x34\x56\x78" x 4);
    my $image = "$dir/imported.bloom";
    my @guava = ('--from', 'guava');

    # a file that is not an input may be replaced

    $t->write_file('imported.bloom', 'anything');
    is(($t->run_tool('import', @guava, '-o', $image, $source))[0], 0,
       'an import replaces a file that is not its source');

    symlink 'source', "$dir/source.link" or die "cannot link: $!";
    link $source, "$dir/source.hard" or die "cannot link: $!";
    symlink 'imported.bloom', "$dir/imported.link" or die "cannot link: $!";
    $t->write_file('shard', 'a');

    my @shards = ('--from', 'bitmap', '--scheme', 'double', '--hashes', 3,
                  '--bits', 16, '--shard', 8, "$dir/shard");
    my $text = "$dir/keys.txt";
    my @inputs = qw(keys.txt source imported.bloom);
    my %was = map { $_ => $t->read_file($_) } @inputs;

    # Each row has a command, how the output is an input, the input as the
    # message names it, and the arguments.

    for (['build', 'by its name', $text, '-o', $text, $text],
         ['build', 'among others', $text, '-o', $text, "$dir/more.txt", $text],
         ['build', 'by a link', $text, '-o', "$dir/link", $text],
         ['build', 'by another name', "$dir/hard", '-o', $text, "$dir/hard"],
         ['build', 'on standard input', 'standard input', '-o', $text,
          '<', $text],
         ['build', 'as "-"', 'standard input', '-o', $text, '-', '<', $text],
         ['import', 'by its name', $source, @guava, '-o', $source, $source],
         ['import', 'by a link', $source, @guava, '-o', "$dir/source.link",
          $source],
         ['import', 'by another name', "$dir/source.hard", @guava, '-o', $source,
          "$dir/source.hard"],
         ['import', 'among others', $source, @shards, '-o', $source, $source],
         ['import', 'as "-"', 'standard input', @guava, '-o', $source, '-', '<',
          $source],
         ['export', 'by its name', $image, '--to', 'guava', '-o', $image,
          $image],
         ['export', 'by a link', $image, '--to', 'guava', '-o',
          "$dir/imported.link", $image])
    {
        my ($command, $how, $input, @arguments) = @$_;
        my ($exit, undef, $err)
            = shell("\"\$0\" $command " . join ' ', map { $_ eq '<' ? $_ : "'$_'" }
                                                        @arguments);
        my $what = "$command, $how";

        is($exit, 2, "an output that is an input is an error ($what)");
        like($err, qr/\Angx-bloom $command: \Q$input\E: is also the output, and the (?:image|filter) would replace the [a-z ]+; write to another file\n\z/,
             "the message says which file is both ($what)");
        is_deeply({ map { $_ => $t->read_file($_) } @inputs }, \%was,
                  "the inputs are unchanged ($what)");
        is_deeply([glob "$dir/*.tmp-*"], [],
                  "no temporary file is left ($what)");
    }

    # the image of --like is no input that is lost

    my $ids = $t->build_image('ids.bloom', ['one']);
    is(($t->run_tool('build', '-o', $ids, '--like', $ids, $text))[0], 0,
       'an image is replaced by one that is made like it');
    is(present($ids, 'two'), 1,
       'the image that was made like the old one has the new keys');

    is(($t->run_tool('export', '--to', 'guava', '-o', $source, $image))[0], 0,
       'an export writes another output than its image');
    is($t->read_file('source'), $was{source},
       'an export equals the source before the import');
};


refused('an empty name',
        qr/\Angx-bloom build: the name of the output is empty; name a file\n\z/,
        $t->run_tool('build', '-o', '', "$dir/keys.txt"));


SKIP: {
    skip 'the sanitizers need more address space than that', 4
        if $ENV{TEST_NGINX_SANITIZED};

    refused('threads without memory',
            qr/\Angx-bloom\ build:\ cannot\ start\ a\ thread:\ .+;
               \ use\ a\ smaller\ -j\n\z/x,
            shell('ulimit -s 65536; ulimit -v 524288;'
                  . ' "$0" build -j 64 -o "$1/new.bloom" "$1/keys.txt"'));
}


# ------------------------------------------------- several write the same image

# Starts a command that reads keys from a pipe, and so runs until the pipe is
# closed.

sub begin {
    my ($command, @arguments) = @_;

    pipe my $reader, my $writer or die "cannot make a pipe: $!";
    open my $err, '+>', undef or die "cannot make a file: $!";
    my $pid = spawn([$tool, $command, @arguments], stdin => $reader,
                    stderr => $err, env => $t->{env});

    return { pid => $pid, writer => $writer, err => $err };
}

# Ends such a command.  Returns its exit status and its messages.

sub finish {
    my ($begun, $keys) = @_;

    local $SIG{PIPE} = 'IGNORE';

    syswrite $begun->{writer}, $keys if defined $keys;
    close $begun->{writer};
    waitpid $begun->{pid}, 0;

    my $exit = $? & 127 ? 128 + ($? & 127) : $? >> 8;

    seek $begun->{err}, 0, 0;
    local $/;

    return ($exit, readline($begun->{err}) // '');
}

# Returns 1 if the process runs the tool and has this file open.

sub has_open {
    my ($begun, $file) = @_;

    return wait_until(sub {
        title($begun->{pid}) =~ /^\Q$tool\E /
            && grep { (readlink $_ // '') eq $file }
                    glob "/proc/$begun->{pid}/fd/*";
    });
}

# Builds an image that can be merged with the others.

sub image {
    my ($name, @keys) = @_;

    return $t->build_image($name, \@keys, '-p', '1e-9', '-n', 1000, '--seed',
                           4711);
}

# Tests that a command failed and left no temporary file.

sub gave_up {
    my ($what, $image, $exit, $err) = @_;

    is($exit, 2, "a command whose image was replaced meanwhile fails ($what)");
    like($err, qr/\A\Qngx-bloom \E\w+\Q: $image: another program changed, \E
                  \Qreplaced or removed it meanwhile, so nothing was \E
                  \Qwritten; try again\E\n\z/x,
         "the command says that the image was replaced ($what)");
    is_deeply([glob "$image.tmp-*"], [],
              "a command that fails leaves no temporary file ($what)");
}

my $real = abs_path($dir);
my @old = map { "old$_" } 1 .. 100;
my @new = map { "new$_" } 1 .. 100;


subtest 'a command that a signal ends leaves the old image' => sub {
    my $image = image('r.bloom', @old);
    my $was = $t->read_file('r.bloom');
    my %number = (INT => 2, TERM => 15, HUP => 1, XCPU => 24);

    for my $command (['build', '-o', $image], ['add', $image]) {
        for my $signal (sort keys %number) {
            my $what = "$command->[0], SIG$signal";
            my $begun = begin(@$command);

            ok(scalar wait_until(sub { () = glob "$image.tmp-*" }),
               "a command waits for its keys ($what)");
            syswrite $begun->{writer}, "a\nb\n";
            kill $signal, $begun->{pid};

            is((finish($begun))[0], 128 + $number{$signal},
               "a signal ends a command as it ends any program ($what)");
            ok($t->read_file('r.bloom') eq $was,
               "the old image stays if a signal ends a command ($what)");
            is_deeply([glob "$image?*"], ["$image.keys"],
                      "a command that a signal ends leaves nothing ($what)");
        }
    }
};


subtest 'an image that is replaced while keys are added stays replaced' => sub {
    for (['by build', 'build', "extra\n"],
         ['by build, without a new key', 'build', "old1\n"],
         ['by rename', 'rename', "extra\n"],
         ['by writing to it', 'write', "extra\n"],
         ['by nothing: it is removed', 'unlink', "extra\n"])
    {
        my ($what, $how, $keys) = @$_;

        my $image = image('r.bloom', @old);
        utime 1, 1, $image;
        my $next = image('next.bloom', @new);
        my $adding = begin('add', $image);

        ok(scalar wait_until(sub { () = glob "$image.tmp-*" }),
           "an addition waits for its keys ($what)");

        if ($how eq 'build') {
            my ($exit, undef, $err)
                = $t->run_tool('build', '-q', '-p', '1e-9', '-o', $image,
                               "$dir/next.bloom.keys");
            is("$exit $err", '0 ',
               "build does not wait for an addition ($what)");

        } elsif ($how eq 'rename') {
            rename $next, $image or die "cannot rename: $!";

        } elsif ($how eq 'write') {
            open my $fh, '+<:raw', $image or die "cannot open: $!";
            print $fh $t->read_file('next.bloom');
            close $fh or die "cannot write: $!";

        } else {
            unlink $image;
        }

        gave_up($what, $image, finish($adding, $keys));

        if ($how eq 'unlink') {
            ok(!-e $image,
               "an image that was removed does not come back ($what)");

        } else {
            is(present($image, @new), 100,
               "keys of the image in its place are present ($what)");
            is(present($image, 'extra', @old), 0,
               "the keys of the old image and of the addition are absent"
               . " ($what)");
        }
    }
};


subtest 'nothing is added through a link that leads elsewhere meanwhile' => sub {
    my $one = image('one.bloom', @old);
    my $two = image('two.bloom', @new);
    symlink 'one.bloom', "$dir/current" or die "cannot link: $!";

    my $adding = begin('add', "$dir/current");
    ok(scalar wait_until(sub { () = glob "$one.tmp-*" }),
       'an addition through a link waits for its keys');

    symlink 'two.bloom', "$dir/later" or die "cannot link: $!";
    rename "$dir/later", "$dir/current" or die "cannot rename: $!";

    gave_up('a link', "$dir/current", finish($adding, "extra\n"));
    is_deeply([glob "$dir/*.tmp-*"], [],
              'an addition through a link leaves no temporary file');
    is(present($one, 'extra', @old), 100,
       'no key is added to the image that the link led to');
    is(present($two, 'extra', @new), 100,
       'no key is added to the image that the link leads to now');
};


subtest 'an addition and a merge of one image wait for each other' => sub {
    my $image = image('r.bloom', @old);
    my $new = image('new.bloom', @new);

    my $adding = begin('add', $image);
    ok(scalar wait_until(sub { () = glob "$image.tmp-*" }),
       'an addition waits for its keys while a merge begins');

    # the command has a temporary file, and waits when it has opened the image

    my $merging = begin('merge', '-o', $image, $new, $image, $image);
    ok(has_open($merging, "$real/r.bloom"), 'a merge has opened the image');

    is((finish($adding, "extra\n"))[0], 0, 'the addition succeeds');
    is((finish($merging))[0], 0,
       'the merge that waited for the addition succeeds');
    is(present($image, @old, @new, 'extra'), 201,
       'the keys of addition and merge are all present');
};


# While this test locks the directory, commands wait before they rename.

subtest 'an image that is replaced just before a rename stays replaced' => sub {
    for (['an addition', 'add', "$dir/r.bloom", "$dir/keys.txt"],
         ['a merge', 'merge', '-o', "$dir/r.bloom", "$dir/r.bloom",
          "$dir/new.bloom"])
    {
        my ($what, @command) = @$_;

        my $image = image('r.bloom', @old);
        my $new = image('new.bloom', 'a key');
        my $next = image('next.bloom', @new);

        open my $lock, '<', $dir or die "cannot open: $!";
        flock $lock, LOCK_EX or die "cannot lock: $!";

        my $waiting = begin(@command);
        ok(has_open($waiting, $real), "$what is about to rename its image");
        rename $next, $image or die "cannot rename: $!";
        close $lock;

        gave_up($what, $image, finish($waiting));
        is(present($image, @new), 100,
           "keys of the image in its place are present ($what)");
    }
};


subtest 'a locked directory does not stop a build' => sub {
    open my $lock, '<', $dir or die "cannot open: $!";
    flock $lock, LOCK_EX or die "cannot lock: $!";

    unlink "$dir/new.bloom";
    my $building = begin('build', '-q', '-o', "$dir/new.bloom");

    is((finish($building, "one\n"))[0], 0,
       'a build does not wait for ever for the lock of the directory');
    is(present("$dir/new.bloom", 'one'), 1,
       'a build makes its image although the directory is locked');
};


subtest 'of two builds of one image, the last one to end counts' => sub {
    unlink "$dir/new.bloom";
    my @building = map { begin('build', '-q', '-o', "$dir/new.bloom") } 1, 2;

    is((finish($building[1], "one\n"))[0], 0,
       'the second build of an image succeeds');
    is((finish($building[0], "two\n"))[0], 0,
       'the first build of an image succeeds');
    is(present("$dir/new.bloom", 'one'), 0,
       'the keys of the build that ended first are absent');
    is(present("$dir/new.bloom", 'two'), 1,
       'the keys of the build that ended last are present');
};


# ------------------------------------------------ where the temporary file goes

# Permissions do not apply to root, so the tool is copied and runs as nobody.

subtest 'a directory without permission is named' => sub {
    my $copy = $t->write_file('tool', content_of($tool));
    chmod 0755, $copy;

    mkdir "$dir/ro";
    my $image = image('ro/a.bloom', @old);
    my $keys = $t->write_file('ro/keys', "extra\n");
    chmod 0666, $image;
    chmod 0555, "$dir/ro";

    my @command = ('sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', $dir,
                   $> != 0 ? () : ('setpriv', '--reuid', 65534, '--regid',
                                   65534, '--clear-groups'), $copy);

    for (['add', 'a.bloom', 'add', '-q', 'ro/a.bloom', 'ro/keys'],
         ['build', 'a.bloom', 'build', '-q', '-o', 'ro/a.bloom', 'ro/keys'],
         ['build', 'b.bloom', 'build', '-q', '-o', 'ro/b.bloom', 'ro/keys'])
    {
        my ($what, $name, @arguments) = @$_;
        my ($exit, undef, $err) = run_command([@command, @arguments],
                                              env => $t->{env});

        is($exit, 2, "$what of $name in a directory without permission fails");
        is($err, "ngx-bloom $what: ro/$name: cannot be written: a temporary"
                 . " file cannot be created in $real/ro: Permission denied; get"
                 . " write access to that directory; access to the file is not"
                 . " enough\n",
           "$what of $name names the directory that lacks permission");
    }

    chmod 0755, "$dir/ro";
    is(present($image, @old, 'extra'), 100,
       'an image in a directory without permission is unchanged');

    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none/a.bloom",
                                           $keys);
    is($exit, 2, 'a build into a directory that does not exist fails');
    like($err, qr{\ in\ \Q$real\E/none:\ No\ such\ file\ or\ directory;
                  \ create\ that\ directory\ first\n\z}x,
         'a build says that a missing directory must be created first');
};


subtest 'outputs with long names are written' => sub {
    for (['of 252 bytes', ('n' x 246) . '.bloom'],
         ['of 255 bytes', ('n' x 249) . '.bloom'],
         ['of 126 characters', "\xc3\xa9" x 126],
         ['of 127 characters', "\xc3\xa9" x 127])
    {
        my ($what, $name) = @$_;
        my $image = "$dir/$name";
        my $building = begin('build', '-q', '-n', 10, '-o', $image);

        my $temporary = wait_until(sub { (glob "$dir/*.tmp-*")[0] });
        ok(utf8::decode(my $text = $temporary),
           "the temporary name of a file $what has whole characters");

        my ($exit, $err) = finish($building, "one\n");
        is("$exit $err", '0 ', "an image with a name $what is built");

        ($exit, $err) = finish(begin('add', '-q', $image), "two\n");
        is("$exit $err", '0 ', "an image with a name $what is added to");
        is(present($image, 'one', 'two'), 2,
           "an image with a name $what has its keys");
    }

    is_deeply([glob "$dir/*.tmp-*"], [],
              'no temporary file of a long name is left');

    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/" . 'n' x 256,
                                           "$dir/keys.txt");
    is($exit, 2, 'a name of 256 bytes is an error');
    like($err, qr/: cannot be written: File name too long\n\z/,
         'a build says that a name of 256 bytes is too long');
};


done_testing;
