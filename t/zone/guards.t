#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Guards of a zone: an image that has too few keys, too many more or fewer than
# the last one that was accepted, lacks a key of must_have, or has one of
# must_not_have, is refused wherever it comes from, and the old one serves on.

use strict;
use warnings;

use File::Path qw(remove_tree);
use POSIX qw(mkfifo);

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Hostile;
use BloomTest::Image qw(patch_header);
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

# Images of N keys id1, id2, ...; "more" has two keys that others lack.

sub image_of {
    my ($name, $count, @options) = @_;

    $t->build_image("$name.bloom", [keys_of('id', $count)], '-p', '1e-9', '-n',
                    '2k', @options);
}

image_of('hundred', 100);
image_of('again', 100);
image_of('fifty', 50);
image_of('most', 90);
image_of('double', 200);
$t->build_image('bad.bloom', [keys_of('id', 99), 'own'], '-p', '1e-9', '-n',
                '2k');

# An image that states a hundred keys and has no bit set.

$t->build_image('none.bloom', [], '-p', '1e-9', '-n', '2k', '--allow-empty');
$t->write_file('liar.bloom', patch_header($t->read_file('none.bloom'),
                                          104 => pack 'Q<', 100));

$t->write_file('must.txt', "# samples\n\n id1 \r\n! another comment\nid99 # x\n");
$t->write_file('must-not.txt', "\xef\xbb\xbfown\nother\n");

my $change = 'max_loss=20% max_growth=20%';
my $all = "must_have=must.txt must_not_have=must-not.txt min_keys=40 $change";

my @bad = (
    ['fifty', $all, qr/lacks the key "id99" of line 5 of "must_have=\Q$dir\E\/must\.txt"; check the list/],
    ['bad', $all, qr/has the key "own" of line 1 of "must_not_have=\Q$dir\E\/must-not\.txt"; take it out/],
    ['fifty', 'min_keys=60', qr/has 50 keys, and "min_keys" demands 60; check/],
    ['fifty', 'max_loss=49%', qr/has 50 keys, 50 fewer \(50 %\) than the 100 of the image that was accepted last, and "max_loss" allows 49 %; check .*\?force=true" or, to start with it, raise "max_loss"/],
    ['fifty', 'max_loss=49', qr/has 50 keys, 50 fewer \(50 %\) than the 100 of .*, and "max_loss" allows 49 keys;/],
    ['liar', 'min_keys=60', qr/states 100 keys, and its bits are those of fewer, about 0, so "min_keys" cannot be checked; build it again/],
    ['liar', 'max_loss=20%', qr/states 100 keys, and its bits are those of fewer, about 0, so "max_loss" cannot be checked/],
    ['liar', 'max_growth=20%', qr/states 100 keys, and its bits are those of fewer, about 0, so "max_growth" cannot be checked/],
    ['double', 'max_growth=99%', qr/has 200 keys, 100 more \(100 %\) than the 100 of .*, and "max_growth" allows 99 %; check .* raise "max_growth"/],
);

sub set_up {
    my ($parameters, %option) = @_;

    my ($guards, $others) = ('', '');

    for (split ' ', $parameters) {
        /^(?:must_have|must_not_have|min_keys|max_loss|max_growth)=/
            ? ($guards .= " $_") : ($others .= " $_");
    }

    $guards = "; bloom_guard zone=ids$guards" if length $guards;
    configure($t, ["zone=ids:2m file=ids.bloom$others$guards"], api => 1,
              %option);
}

sub serves_hundred {
    my ($name) = @_;

    is(ask($t, 'ids', 'id1', 'id100', 'id101', 'own'), '1100', $name);
}

sub start_with {
    my ($image, $parameters, %option) = @_;

    install_image($t, $image);
    set_up($parameters, %option);
    $t->run;
}

sub end {
    $t->stop;
    remove_tree("$dir/state");
}

sub reload { return api($t, POST => 'zones/ids/reload' . ($_[0] // '')) }

sub put {
    my ($image, $query) = @_;

    return api($t, PUT => 'zones/ids/image' . ($query // ''),
               body => $t->read_file("$image.bloom"));
}


for my $case (@bad) {
    my ($image, $parameters, $reason) = @$case;
    my $what = "$image with $parameters";

    subtest "each way in refuses $what" => sub {
        $parameters =~ s/ max_loss=.*// if $parameters =~ /must/;
        start_with('hundred', "$parameters watch=50ms");
        serves_hundred('a good image is accepted');
        $t->expect_log(qr/\[error\].*$reason/);

        my $mark = $t->log_mark;
        is_error(put($image), 422, qr/^the uploaded image for .*$reason/,
                 'PUT image is refused');
        serves_hundred('the old image serves after an upload');

        install_image($t, $image);
        $t->wait_for_log(qr/image "\Q$dir\E\/ids\.bloom" .*$reason/, $mark);
        serves_hundred('the old image serves after watch');

        is_error(reload(), 422, $reason, 'POST reload is refused');
        is(zone_state($t, 'ids')->{load}{result}, 'refused',
           'the state says so');
        serves_hundred('the old image serves after POST reload');

        my ($outcome, $output) = $t->try_reload;

        if ($parameters =~ /must/ || $image eq 'liar') {
            is($outcome, 'reloads',
               'a reload of nginx checks neither keys nor bits');
        } else {
            is($outcome, 'refused', 'a reload of nginx is refused');
            like($output, $reason, 'the log says why');
        }
        serves_hundred('the old image serves after a reload of nginx');
        $t->stop;

        my ($exit, $text) = $t->test_config;
        isnt($exit, 0, 'nginx -t reports what a start would');
        like($text, qr/\[emerg\].*$reason/, 'nginx -t says why');
        like($t->run_fails, qr/\[emerg\].*$reason/, 'a start is refused');

        set_up("$parameters required=off");
        ($exit, $text) = $t->test_config;
        is($exit, 0, 'nginx -t accepts it with required=off');
        like($text, qr/\[alert\].*$reason/, 'and says why in an alert');
        $t->run;
        $t->expect_log(qr/\[alert\].*$reason/);
        $t->expect_log(qr/\[alert\].*"ids" is not loaded/);
        is(ask($t, 'ids', 'id1', 'no'), '??', 'the zone answers unknown');
        is_error(reload(), 422, $reason, 'POST reload refuses it still');

        install_image($t, 'hundred');
        is(reload()->status, 200, 'POST reload loads a good image');
        serves_hundred('it serves');
        end();
    };
}


subtest 'each limit holds in its own direction' => sub {
    start_with('hundred', 'max_loss=10 max_growth=99%');
    $t->expect_log(qr/\[error\].*max_(?:loss|growth)/);

    is(put('most')->status, 200, 'exactly max_loss passes');
    is_error(put('double'), 422, qr/110 more \(122 %\) .*"max_growth" allows/,
             'max_growth refuses a growth');
    is(put('hundred')->status, 200, 'max_growth passes a growth');
    is_error(put('fifty'), 422, qr/50 fewer .*"max_loss" allows 10 keys/,
             'max_loss refuses a loss');
    end();

    start_with('hundred', 'max_loss=0');
    is(put('double')->status, 200, 'max_loss passes every growth');
    end();

    $t->expect_log(qr/\[warn\].*check the list/);
    start_with('hundred', 'max_growth=0%');
    is(put('fifty')->status, 200, 'max_growth passes every loss');
    end();
};


subtest 'without min_keys, max_loss and max_growth the bits are not compared' => sub {
    start_with('liar', '');
    is(zone_state($t, 'ids')->{image}{items}, 100, 'the image serves');
    is(ask($t, 'ids', 'id1'), '0', 'it has no key');
    end();

    start_with('hundred', $change);
    is(put('liar', '?force=true')->status, 200,
       '?force=true passes an image that only these two refuse');
    end();

    start_with('hundred', 'min_keys=60');
    $t->expect_log(qr/\[error\].*cannot be checked/);
    is(put('liar', '?force=true')->status, 422,
       '?force=true does not pass min_keys');
    end();
};


subtest 'an image that was saved while keys were added is no lie' => sub {
    configure($t, ['zone=ids capacity=40m fpr=0.001'], api => 1, workers => 2);
    $t->run;

    my $image = '/bloom/zones/ids/image';
    my $add = sub {
        my ($name, $count) = @_;

        return $t->post('/bloom/zones/ids/keys',
                        join '', map { "$name-$_\n" } 1 .. $count)->status;
    };

    is($add->('first', 100), 200, 'there are keys');

    my $pid = spawn(sub {
        for (1 .. 100) {
            $add->("more-$_", 20_000);
            last if -e "$dir/enough";
        }
    });

    ok(wait_until(sub { zone_state($t, 'ids')->{filter}{estimated_items}
                        > 1000 }), 'keys are added');

    for my $n (1 .. 3) {
        $t->write_file("saved$n.bloom", $t->get($image)->body);

        my ($exit, undef, $err) = $t->run_tool(
            'verify', '-q', '--min-keys', 1, "$dir/saved$n.bloom");
        is($exit, 0, "image $n passes") or diag($err);

        my (undef, $json) = $t->run_tool('verify', '--json',
                                         "$dir/saved$n.bloom");
        my ($states, $has) = $json =~ /"items": (\d+),.*"estimated_items": (\d+)/s;
        is($states, $has, "image $n states the number that its bits have");
    }

    $t->write_file('enough', '');
    wait_until(sub { waitpid($pid, 1) == $pid });
    end();
};


subtest 'the number of keys that was accepted last' => sub {
    start_with('hundred', $change);
    $t->expect_log(qr/\[error\].*max_(?:loss|growth)/);
    $t->expect_log(qr/\[warn\].*check the list/);

    install_image($t, 'most');
    is(reload()->status, 200, 'a small change passes');
    install_image($t, 'again');
    is(reload()->status, 200, 'a small change back passes');
    install_image($t, 'fifty');
    is(reload('?force=false')->status, 422, 'a great one is refused');
    is_error(reload('?force=maybe'), 400, qr/invalid "force" in the query/,
             'a wrong value is refused');
    is(reload('?force=true')->status, 200, 'and passes with ?force=true');
    is(reload()->status, 200, 'the same image again is no change');
    is(put('hundred')->status, 422, 'the forced image is compared with now');
    is_error(put('hundred', '?force=2'), 400, qr/"force"/,
             'a wrong value of an upload is refused');
    is(put('hundred', '?force=true')->status, 200,
       'an upload passes with ?force=true');
    is(zone_state($t, 'ids')->{image}{items}, 100, 'the upload serves');

    # the file is not checked, since a start uses the upload

    $t->stop;
    is(($t->test_config)[0], 0, 'nginx -t accepts the zone with its upload');
    $t->run;
    serves_hundred('the upload serves after a start');
    is(reload()->status, 422, 'the file is compared with the upload');
    end();
};


subtest 'the number survives a restart' => sub {
    start_with('hundred', $change);
    $t->stop;

    install_image($t, 'fifty');
    like(($t->test_config)[1], qr/\[emerg\].*50 fewer \(50 %\) than the 100/,
         'nginx -t compares');
    like($t->run_fails, qr/\[emerg\].*50 fewer \(50 %\) than the 100/,
         'a start compares');

    install_image($t, 'most');
    $t->run;
    is(zone_state($t, 'ids')->{image}{items}, 90, 'a small change serves');
    $t->stop;

    install_image($t, 'fifty');
    like($t->run_fails, qr/40 fewer \(44.4 %\) than the 90/,
         'the next start compares with what it accepted');

    # an image that was forced starts

    install_image($t, 'most');
    $t->run;
    $t->expect_log(qr/\[warn\].*check the list/);
    install_image($t, 'fifty');
    is(reload('?force=true')->status, 200, 'the change is forced');
    $t->stop;
    is(($t->test_config)[0], 0, 'nginx -t accepts the forced image');
    $t->run;
    is(zone_state($t, 'ids')->{image}{items}, 50, 'it serves after a start');
    end();
};


subtest 'a process dies while it records an image' => sub {
    my $faults = BloomTest::Faults->new($t);

    $faults->built_in
        or plan skip_all => 'needs a module built with NGX_BLOOM_FAULTS';

    start_with('hundred', $change);
    $t->expect_log(qr/\[error\].*the process that was loading its file died/);
    $t->expect_log(qr/\[error\].* exited on signal 9/);
    $t->expect_log(qr/\[error\].*max_(?:loss|growth)/);

    # the image serves already

    install_image($t, 'fifty');
    $faults->kill_at('accept');
    is(reload('?force=true')->status, 503, 'the helper dies');
    is(zone_state($t, 'ids')->{image}{items}, 50, 'the forced image serves');
    install_image($t, 'hundred');
    is(reload()->status, 422, 'the next helper has recorded it');
    install_image($t, 'fifty');
    $t->stop;
    $t->run;
    is(zone_state($t, 'ids')->{image}{items}, 50, 'it starts again');
    end();
};


subtest 'an upload is refused when its header has arrived' => sub {
    for my $parameters ('min_keys=60', 'max_loss=20%') {
        start_with('hundred', $parameters);
        $t->expect_log(qr/\[error\].*has 50 keys/);

        my $fifty = $t->read_file('fifty.bloom');
        my $client = $t->connect;

        $client->send("PUT /bloom/zones/ids/image HTTP/1.1\r\nHost: a\r\n"
                      . 'Content-Length: ' . length($fifty) . "\r\n\r\n"
                      . substr $fifty, 0, 4096);
        is_error($client->response, 422, qr/has 50 keys/,
                 "$parameters needs only the header");
        end();
    }
};


subtest 'a zone without a state directory' => sub {
    start_with('hundred', "$change journal=off");
    $t->expect_log(qr/\[error\].*max_(?:loss|growth)/);
    $t->expect_log(qr/\[warn\].*check the list/);

    install_image($t, 'fifty');
    is(reload()->status, 422, 'its shared memory has the number');
    my ($outcome) = $t->try_reload;
    is($outcome, 'refused', 'a reload of nginx compares');

    # memory that is recreated

    configure($t, ["zone=ids:3m file=ids.bloom journal=off;"
                   . " bloom_guard zone=ids $change"], api => 1);
    ($outcome) = $t->try_reload;
    is($outcome, 'refused', 'a reload that recreates the memory compares');
    install_image($t, 'hundred');
    $t->reload;
    install_image($t, 'fifty');
    is(reload()->status, 422, 'new memory has the number');
    is(reload('?force=true')->status, 200, 'a change can be forced');
    end();
};


subtest 'a zone that starts empty' => sub {
    configure($t, ["zone=ids capacity=2k fpr=1e-9; bloom_guard zone=ids $all"],
              api => 1);
    $t->run;
    $t->expect_log(qr/\[error\].*must_have/);

    is(ask($t, 'ids', 'id1'), '0', 'the empty filter is not checked');
    add($t, 'ids', ['id99']);
    $t->stop;
    is(($t->test_config)[0], 0, 'nginx -t accepts it');
    $t->run;
    is_error(put('fifty'), 422, qr/lacks the key "id99"/,
             'keys of the journal do not count');
    is(ask($t, 'ids', 'id99'), '1', 'though the zone has them');
    is(put('hundred')->status, 200, 'a good image is accepted');
    serves_hundred('it serves');
    $t->stop;

    # an image that was accepted once is not checked again

    $t->write_file('must.txt', "id1\nid99\nid1000\n");
    $t->run;
    serves_hundred('the upload serves after a start');
    end();
    $t->write_file('must.txt', "id1\nid99\n");
};


subtest 'files of keys that cannot be used' => sub {
    mkdir "$dir/directory" or die "mkdir: $!";
    mkfifo("$dir/fifo", 0644) or die "mkfifo: $!";
    symlink '/dev/zero', "$dir/device" or die "symlink: $!";
    $t->write_file('huge.txt', 'x' x (16 * 1024 * 1024 + 1));
    $t->write_file('empty.txt', '');
    $t->write_file('comments.txt', "# one\n\n  ! two\n");
    $t->write_file('long.txt', "id1\n" . 'x' x 65536 . "\n");
    $t->write_file('control.txt', "id1\n\e[2J\xff\"\n");
    $t->write_file('utf16.txt', "\xff\xfeo\0w\0n\0\n\0");
    $t->write_file('wide.txt', "o\0w\0n\0\n\0");
    $t->write_file('packed.txt', "\x1f\x8b\x08\0" . "\0" x 20);
    $t->write_file('page.txt', "\n<html>\nown\n");
    $t->write_file('quoted.txt', qq{"own"\n"other"\n});
    $t->write_file('null.txt', "id1\n\\N\n");

    my @files = (
        ['missing.txt', qr/"must_have=\Q$dir\E\/missing\.txt" cannot be opened; put a file there that the workers' user may read \(2: /],
        ['directory', qr/is not a regular file; put a file/],
        ['fifo', qr/is not a regular file/],
        ['device', qr/is not a regular file/],
        ['huge.txt', qr/has more than 16 MiB; keep only samples in it/],
        ['empty.txt', qr/has no key; write one into it, or remove the param/],
        ['comments.txt', qr/has no key/],
        ['long.txt', qr/"x{64}\.\.\." is longer than 65535 bytes; correct line 2 of/],
        ['control.txt', qr/lacks the key "\\x1b\[2J\\xff"" of line 2/],
        ['utf16.txt', qr/" is UTF-16, not a list of keys; "iconv -f UTF-16LE -t UTF-8 FILE" converts it/],
        ['wide.txt', qr/is UTF-16, not a list of keys/],
        ['packed.txt', qr/is compressed by gzip, not a list of keys; "gunzip -c FILE"/],
        ['page.txt', qr/is a web page or XML/],
        ['quoted.txt', qr/has nearly all lines in double quotes/],
        ['null.txt', qr/is not checked: "\\N" is how databases write NULL.*; correct line 2 of "must_have=/],
    );

    for (@files) {
        my ($file, $reason) = @$_;

        install_image($t, 'hundred');
        set_up("must_have=$file");
        like(($t->test_config)[1], qr/\[emerg\].*$reason/,
             "nginx -t reports $file");
        like($t->run_fails, qr/\[emerg\].*$reason/, "a start reports $file");
    }

    # as must_not_have, such a file would pass every image

    for my $file (qw(utf16.txt wide.txt packed.txt page.txt quoted.txt)) {
        install_image($t, 'bad');
        set_up("must_not_have=$file");
        like($t->run_fails, qr/\[emerg\].*is not checked: .*must_not_have=/,
             "no image is accepted with the must_not_have $file");
    }

    # a file that can be used again

    symlink 'must.txt', "$dir/link" or die "symlink: $!";
    start_with('hundred', 'must_have=link');

    for (@files) {
        my ($file, $reason) = @$_;

        unlink "$dir/link";
        symlink $file, "$dir/link" or die "symlink: $!";
        $t->expect_log(qr/\[error\].*must_have=/);

        install_image($t, 'again');
        $reason = qr/$1/ if $reason =~ /(cannot be opened.*)\)/;
        is_error(reload(), 422, $reason =~ s/missing/link/r,
                 "POST reload reports $file");
        serves_hundred("the old image serves on with $file");
    }

    unlink "$dir/link";
    symlink 'must.txt', "$dir/link" or die "symlink: $!";
    is(reload()->status, 200, 'a good file is read at the next load');
    end();
};


subtest 'a file that the workers may not read' => sub {
    my $user = hostile_user();

    $t->write_file('secret.txt', "id1\n");
    chmod 0600, "$dir/secret.txt";
    chmod 0755, $dir;
    install_image($t, 'hundred');
    set_up('must_have=secret.txt',
           main => "user $user->{conf};");
    like($t->run_fails, qr/\[emerg\].*secret\.txt" cannot be opened; put .* \(13: /,
         'root does not read it for them');
    remove_tree("$dir/state");
};


subtest 'keys in a key form' => sub {
    $t->build_image('urls.bloom', ['bad.example/', 'shop.example/sale'], '-p',
                    '1e-9', '--form', 'url');
    $t->write_file('must-url.txt', "http://user\@BAD.example:80/any?thing\n"
                                   . "https://www.shop.example/sale\n");
    $t->write_file('own.txt', "http://own.example/\n"
                              . "http://www.shop.example/sale?x\n");
    $t->write_file('invalid.txt', "http://own.example/\nhttp://\n");
    $t->write_file('rules.txt', "http://own.example/\n||bad.example^\n");
    $t->write_file('hosts.txt', "http://own.example/\n0.0.0.0 bad.example\n");

    install_image($t, 'urls');
    set_up('form=url must_have=must-url.txt');
    $t->run;
    is(ask($t, 'ids', 'http://bad.example/x'), '1',
       'keys are found by any of their expressions');
    end();

    for (['own.txt', qr/has the key "http:\/\/www\.shop\.example\/sale\?x", by "shop\.example\/sale", of line 2 of "must_not_have=/],
         ['invalid.txt', qr/is not checked: "http:\/\/" has no host; correct line 2 of "must_not_have=/],
         ['rules.txt', qr/is not checked: "\|\|bad\.example\^" has a byte that a host cannot have; correct line 2/],
         ['hosts.txt', qr/is not checked: "0\.0\.0\.0 bad\.example" has a byte that a host cannot have; correct line 2/])
    {
        my ($file, $reason) = @$_;

        install_image($t, 'urls');
        set_up("must_not_have=$file");
        like($t->run_fails, $reason, "$file is refused");
        like(($t->test_config)[1], $reason, "nginx -t refuses $file");
    }
};


subtest 'removed keys of an image are absent' => sub {
    start_with('bad', '');
    is(api($t, POST => 'zones/ids/remove', body => "own\nid1\n")->status, 200,
       'keys are removed');
    $t->write_file('removed.bloom', api($t, GET => 'zones/ids/image')->body);
    end();

    start_with('removed', 'must_not_have=must-not.txt');
    is(($t->test_config)[0], 0, 'nginx -t knows that the key is removed');
    is(ask($t, 'ids', 'id2'), '1', 'the image is accepted');
    end();

    set_up('must_have=must.txt');
    like(($t->test_config)[1], qr/lacks the key "id1" of line 1/,
         'nginx -t knows that a key of must_have is removed');
    like($t->run_fails, qr/lacks the key "id1" of line 1/, 'so does a start');
};


subtest 'many keys are looked up in steps' => sub {
    my @keys = keys_of('key', 60_000);

    $t->build_image('large.bloom', \@keys, '-p', '1e-9');
    $t->write_file('many.txt', join '', map { "$_\n" } @keys);
    install_image($t, 'large');
    set_up('must_have=many.txt');
    $t->run;
    is(ask($t, 'ids', 'key1', 'key60000', 'no'), '110', 'all are there');
    is(reload()->status, 200, 'the helper checks them');

    $t->write_file('many.txt', join '', map { "$_\n" } @keys, 'missing');
    $t->expect_log(qr/\[error\].*lacks the key "missing" of line 60001/);
    is_error(reload(), 422, qr/line 60001/, 'the last one counts');
    end();
};


subtest 'the log warns of a tenth fewer and of twice as many keys' => sub {
    image_of('eighty', 80);
    my $warns = qr/\[warn\].*its image has (\d+) keys, and the image before it had (\d+); check the list/;
    my $mark;
    my $warned = sub {
        my ($name, $wanted) = @_;

        my @found = $t->log_since($mark) =~ /$warns/g;
        is("@found", $wanted, "the log warns $name");
        $mark = $t->log_mark;
    };

    $t->expect_log($warns);
    start_with('hundred', 'watch=50ms');
    $mark = 0;
    $t->log_since(0);
    $mark = $t->log_mark;

    my $generation = generation($t, 'ids');
    install_image($t, 'most');
    ok(settled($t, 'ids', sub { $_[0]{generation} > $generation }), 'watch');
    $t->wait_for_log($warns, $mark);
    $warned->('after watch', '90 100');

    is(put('eighty')->status, 200, 'an upload');
    $t->wait_for_log($warns, $mark);
    $warned->('after an upload', '80 90');
    $t->stop;
    remove_tree("$dir/state");

    install_image($t, 'hundred');
    $t->run;
    $t->stop;
    $mark = $t->log_mark;
    $t->run;
    $warned->('of nothing at a start with the same image', '');
    $t->stop;
    install_image($t, 'fifty');
    $mark = $t->log_mark;
    $t->run;
    $warned->('at a start with another image', '50 100');
    is(reload()->status, 200, 'the same image again');
    $warned->('of nothing then', '');

    # fewer and more than the 50 keys before

    for my $count (46, 41, 82, 165) {
        image_of("image$count", $count);
        is(put("image$count")->status, 200, "an image of $count keys");
        $t->wait_for_log(qr/serves generation/, $mark);
        $warned->("of what $count keys are", { 41 => '41 46', 165 => '165 82' }
                                             ->{$count} // '');
    }
    end();
};


done_testing;
