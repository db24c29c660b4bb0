#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests scripts/old-names.pl, which finds names that the surface of 1.0 has
# replaced: it finds none in this checkout, and finds one of each context that
# is put into a copy.

use strict;
use warnings;

use BloomTest::Process qw(run_command);
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/..');
my $script = "$top/scripts/old-names.pl";

my ($exit, @finds) = finds($top);

is_deeply(\@finds, [], 'the checkout has no old name');
is($exit, 0, 'the script succeeds');

# each name below is put into a file of its own, in a copy

my $copy = copy_of_checkout();

my @table = map { [split /\t/] } (run_script('--table'))[1] =~ /(.+)\n/g;
my @planted;

cmp_ok(scalar @table, '>', 15, 'the table has rows');

for my $i (0 .. $#table) {
    my ($context, $old, $new, $file, $text) = @{ $table[$i] };

    $file =~ s/x\./"x$i."/e;
    $text =~ s/\\n/\n/g;
    plant($file, "first\n$text\nlast\n");

    # the old name is on the last line of the example

    my $line = 1 + (() = $text =~ /\n/g) + 1;

    push @planted,
         { file => $file,
           find => "$file:$line: $context: $old is now $new: " };
}

($exit, @finds) = finds($copy);
is($exit, 1, 'the script fails if there are old names');

for my $planted (@planted) {
    my @of_it = grep { /^\Q$planted->{file}\E:/ } @finds;

    is(scalar(grep { index($_, $planted->{find}) == 0 } @of_it), 1,
       "it finds $planted->{find}") or diag("found: @of_it");
}

my %of = map { $_->{file} => 1 } @planted;

is_deeply([grep { !$of{s/:.*//sr} } @finds], [], 'and nothing else');

remove($_->{file}) for @planted;

# a manual page, with its hyphens

plant('docs/x.1.in', ".B \\-\\-key host\n");
($exit, @finds) = finds($copy);
is_deeply([map { s/:.*//r } @finds], ['docs/x.1.in'],
          'it finds an old option in a manual page');
remove('docs/x.1.in');

# names that are good in another context

plant('docs/x.md', <<'END');
    $ curl -s 'http://127.0.0.1:8080/bloom/keys?key=host'
    $ ngx-bloom export --to redisbloom --key ids -o ids.resp ids.bloom
    $ ngx-bloom import 'redis://127.0.0.1/0?layout=bitmap&key=ids'
    $ ngx-bloom-pull URL FILE --public-key images.pub
    503 Service Unavailable: `journal_unavailable`

    bloom_zone zone=a file=a.bloom form=host;
    proxy_cache_key $uri key=$arg_key;
END

my ($form) = old_names('member or label');

plant('src/http/x.c', <<"END");
    image->$form = NGX_HTTP_SERVICE_UNAVAILABLE;
    log("a", image->$form, "b");
END

is_deeply([finds($copy)], [0], 'names that are good elsewhere are not found');

# an entry of the list of places that refuse old names

my $conf = 'src/http/ngx_http_bloom_feedback.c';
my ($after) = old_names('parameter of bloom_feedback');

plant($conf, read_file("$copy/$conf") =~ s/"\Q$after\E"/"other="/r);
($exit, @finds) = finds($copy);
is($exit, 1, 'the script fails if a place that refuses an old name is gone');
is_deeply([map { s/ with: .*//r } @finds],
          ["$conf: no line refuses \"$after\""], 'and says which');

done_testing();


# Returns the old names of a context.
sub old_names { return map { $_->[1] } grep { $_->[0] eq $_[0] } @table }


# Runs the script.  Returns its status and its output.
sub run_script {
    my @result = run_command([$script, @_], limit => 300);

    die "the script says: $result[2]" if $result[2] ne '';

    return @result[0, 1];
}


# Returns the status of the script for a checkout, and its lines.
sub finds {
    my ($exit, $out) = run_script(@_);

    return $exit, $out =~ /(.+)\n/g;
}


# Copies the files that the script checks.  Returns the directory.
sub copy_of_checkout {
    my $dir = File::Temp->newdir;
    my (undef, $files) = run_script('--files', $top);

    for my $file ($files =~ /(.+)\n/g) {
        make_path(dirname("$dir/$file"));
        write_file("$dir/$file", read_file("$top/$file"));
    }

    return $dir;
}


sub plant { write_file("$copy/$_[0]", $_[1]) }

sub remove { unlink "$copy/$_[0]" or die "cannot remove $_[0]: $!" }


sub read_file {
    my ($file) = @_;

    open my $fh, '<:raw', $file or die "cannot read $file: $!";
    local $/;
    return <$fh> // '';
}


sub write_file {
    my ($file, $text) = @_;

    make_path(dirname($file));
    open my $fh, '>:raw', $file or die "cannot write $file: $!";
    print $fh $text;
    close $fh or die "cannot write $file: $!";
}
