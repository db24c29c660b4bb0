#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests how "ngx-bloom build" finds the separator, the header and the columns of
# CSV, and that it reads the fields that Perl's Text::CSV_XS reads.

use strict;
use warnings;

use List::Util qw(shuffle);
use Text::CSV_XS;

use BloomTest;
use BloomTest::Tool qw(build_text payload tool_test);

my $t = tool_test();
my $dir = $t->testdir;


# Tests that a text gives exactly these keys.  Keys may have line ends.

sub gives {
    my ($name, $text, $options, $keys, $said) = @_;

    my ($image, $json, $err) = build_text($text, '-p', '1e-9', '--seed', 1,
                                          '--max-skipped', '100%', @$options);

    is($json->{received}, scalar @$keys, "$name: the number of keys");
    is(($t->run_tool('test', '-0', $image,
                     { stdin => join '', map { "$_\0" } @$keys }))[1],
       join('', map { "present $_\0" } @$keys),
       "$name: the image has the keys");
    is($err =~ s/^[^\n]*: line \d+: .*\n//gmr,
       defined $said ? "ngx-bloom build: standard input: is read with"
                       . " --from $said\n" : '',
       "$name: the build says what it guessed");

    return $json;
}

sub refuses {
    my ($name, $text, $options, $why) = @_;

    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none",
                                           @$options, { stdin => $text });

    is($exit, 2, "$name: the list is refused");
    like($err, qr/\Angx-bloom build: standard input: $why.*\n/,
         "$name: the message says why");
}


# ---- fields ----

my @c = ('--from', 'csv:c');

for (
    ['an unquoted field', "a,c\n1,x\n", ['x']],
    ['blanks around an unquoted field', "a, c\n1,  x y \t\n", ['x y']],
    ['blanks in quotes', qq(a,c\n1,"  x\t "\n), ["  x\t "]],
    ['blanks around quotes', qq("a" , "c"\t\n1 ,\t" x" \n), [' x']],
    ['only blanks in quotes', qq(a,c\n1," "\n), [' ']],
    ['no byte in quotes', qq(a,c\n1,""\n2,x\n), ['x']],
    ['no byte', "a,c\n1,\n2,  \n3,x\n", ['x']],
    ['doubled quotes', qq(a,c\n1,"""x"""\n2,""""\n3,"a""b"\n),
     ['"x"', '"', 'a"b']],
    ['separators in quotes', qq(a,c\n1,"x,y"\n"1,2",z\n), ['x,y', 'z']],
    ['line ends in quotes', qq(a,c\n1,"x\ny"\n2,"\n"\n"3\n3",z\n),
     ["x\ny", "\n", 'z']],
    ['CR LF', qq(a,c\r\n1,x\r\n2,"y"\r\n\r\n), ['x', 'y']],
    ['CR LF in quotes', qq(a,c\r\n1,"x\r\ny"\r\n), ["x\r\ny"]],
    ['no line end at the end', "a,c\n1,x", ['x']],
    ['quotes at the end of the file', qq(a,c\n1,"x"), ['x']],
    ['quotes within a field', qq(a,c\n1,x"y"\n2,5" z\n), ['x"y"', '5" z']],
    ['empty lines', "\n\na,c\n\n1,x\n  \n\n2,y\n\n", ['x', 'y']],
    ['comments', "# one\na,c\n1,x\n  # two, \"\n#3,y\n", ['x']],
    ['a quoted #', qq(c,a\n"#x",1\n), ['#x']],
    ['further columns', "a,c\n1,x,2,3\n", ['x']],
    ['a byte order mark', qq(\xef\xbb\xbf"c","a"\n"x","1"\n), ['x']],
    ['one column', "c\nx\ny,z\n", ['x', 'y,z']],
    ['one column in quotes', qq("c"\n"x"\n" y"\n), ['x', ' y']],
    ['names in another case', "A,C\n1,x\n", ['x']],
    ['fields of tabs with blanks', qq(a\tc\n\t"x" \n \t y\n), ['x', 'y'],
     'csv:c, separated by tabs'],
) {
    my ($name, $text, $keys, $said) = @$_;

    gives($name, $text, \@c, $keys, $said);
}

for (
    ['text after quotes', qq(a,c\n1,"x"y\n),
     qr/line 2: .* has a quoted field that does not end properly/],
    ['quotes that do not end', qq(a,c\n1,x\n2,"y\n3,z\n),
     qr/line 3: quotes begin here and do not end/],
    ['too few columns', "a,b,c\n1,x\n",
     qr/line 2: "1,x" has fewer columns than --from names/],
) {
    my ($name, $text, $why) = @$_;

    refuses($name, $text, \@c, $why);
}

for (
    ['an empty file', ''], ['only comments', "# a,c\n"],
    ['only a header', "a,c\n"], ['only a quoted header', qq("a","c"\r\n)],
) {
    my ($name, $text) = @$_;

    my $json = gives($name, $text, [@c, '--allow-empty'], []);
    is($json->{errors}, 0, "$name: no line is invalid");
}


# ---- separators ----

for (
    ['a comma', "a,c\n1,x;y|z\tw\n", 'csv:c', ["x;y|z\tw"]],
    ['a semicolon', "a;c\n1;x,y|z\n", 'csv:c', ['x,y|z'], 'separated by ";"'],
    ['a tab', "a\tc\n1\tx,y;z\n", 'csv:c', ['x,y;z'], 'separated by tabs'],
    ['a bar', "a|c\n1|x,y;z\n", 'csv:c', ['x,y;z'], 'separated by "|"'],
    ['other separators in quotes', qq("a,b";c\n"1,2";"x,y"\n), 'csv:c',
     ['x,y'], 'separated by ";"'],
    ['a comma with which more records agree', "a,b|c,c\n1,2|3,x\n1,2,y\n",
     'csv:c', ['x', 'y']],
    ['a number', "1;x;a,b\n2;y;c\n", 'csv:2', ['x', 'y'],
     'separated by ";"'],
    ['a number, with commas in the records', "1,2\tx,3\n1\ty\n3,4\tz\n",
     'csv:2', ['x,3', 'y', 'z'], 'separated by tabs'],
    ['a number of one column', "x\ny\n", 'csv:1', ['x', 'y']],
    ['the first column of semicolons', "x;1\ny;2\n", 'csv:1', ['x', 'y'],
     'separated by ";"'],
    ['a number with two separators that are as good', "1,x;2\n3,y;4\n",
     'csv:2', ['x;2', 'y;4']],
) {
    my ($name, $text, $format, $keys, $said) = @$_;

    gives($name, $text, ['--from', $format], $keys,
          defined $said ? "$format, $said" : undef);
}


# ---- the header ----

my $plain = '--form=raw';
my $url = '--form=url';
my $host = '--form=host';

for (
    ['a name that stands again in its column', "type,v\ntype,1\n", 'csv:type',
     $plain, qr/line 1 has "type", but is no header: line 2 has it in the same column; use csv:NUMBER/],
    ['a name that stands again in another column', "domain,type\nx,domain\n",
     'csv:domain', $plain, ['x']],
    ['a dotted name beside the name', "domain,x.example\ny,z.example\n",
     'csv:domain', $url, qr/line 1 has "domain", but is no header: it has a host/],
    ['a URL beside the name', "domain,http://x/\ny,http://z/\n",
     'csv:domain', $host, qr/line 1 has "domain", but is no header: it has a host/],
    ['an address beside the name', "domain,192.0.2.1\ny.example,192.0.2.2\n",
     'csv:domain', $url, qr/line 1 has "domain", but is no header: it has a host/],
    ['a dotted name beside the name of raw keys',
     "domain,x.example\ny,z.example\n", 'csv:domain', $plain, ['y']],
    ['a dotted name that was asked for', "url.domain,n\ny.example,1\n",
     'csv:url.domain', $url, ['y.example']],
    ['a column that is missing', "a;b\n1;2\n", 'csv:c', $plain,
     qr/line 1 is taken for the header, and has no column "c" but "a", "b" \(separated by ";"\); use csv:COLUMN with one of these names, or with a number/],
    ['a column that is missing in one column', "a\n1\n", 'csv:c', $plain,
     qr/line 1 is taken for the header, and has no column "c" but "a" \(not separated\)/],
    ['a comment', "# a,c\n1,x\n", 'csv:c', $plain, ['x']],
    ['a comment with quotes and blanks', qq(#  "a" , "c"\n1,x\n), 'csv:c',
     $plain, ['x']],
    ['a comment of semicolons', "#a;c\n1;x\n", 'csv:c', $plain, ['x'],
     'separated by ";"'],
    ['a comment that lacks the column', "# a,b\n1,c\n", 'csv:c', $plain,
     qr/line 1 is taken for the header, and has no column "c" but "a", "b"/],
    ['a comment with other fields', "# one, two, three\na,c\n1,x\n", 'csv:c',
     $plain, ['x']],
    ['a remark with as many fields', "# made by us, daily\na,c\n1,x\n2,y\n",
     'csv:c', $plain, ['x', 'y']],
    ['comments below the header', "# one\n# a,c\n#\n#####\n1,x\n", 'csv:c',
     $plain, ['x']],
    ['the last one of two comments', "# c,a\n# a,c\n1,x\n", 'csv:c', $plain,
     ['x']],
    ['a comment and a record', "# a,c\na,c\n1,x\n", 'csv:c', $plain, ['x']],
    ['a comment and a record, by number', "# a,c\na,c\n1,x\n", 'csv:2', $plain,
     ['c', 'x']],
    ['a remark and a record, by number',
     "# made by us, daily\na,c\n1,x\n2,y\n", 'csv:2', $plain, ['c', 'x', 'y']],
    ['a comment of one column', "# c\nx\n", 'csv:c', $plain,
     qr/line 2 is taken for the header, and has no column "c" but "x"/],
    ['a number above no header', "a,x\nb,y\n", 'csv:2', $plain, ['x', 'y']],
    ['a number above words', "id,name\nx,y\nv,w\n", 'csv:2', $plain,
     ['name', 'y', 'w']],
    ['a number above numbers', "id,name\n1,y\n2,w\n", 'csv:2', $plain,
     ['name', 'y', 'w']],
    ['a number above one record', "id,name\n1,y\n", 'csv:2', $plain,
     ['name', 'y']],
    ['a number above a date, with semicolons', "day;name\n2026-01-01;y\n2.2;w\n",
     'csv:2', $plain, ['name', 'y', 'w'], 'separated by ";"'],
    ['a first record with a number', "id,1\n1,2\n2,3\n", 'csv:1', $plain,
     ['id', '1', '2']],
    ['a number that is too large', "a;b\nc;d\n", 'csv:3', $plain,
     qr/line 1 has fewer columns than csv:3: "a", "b" \(separated by ";"\)/],
) {
    my ($name, $text, $format, $form, $expected, $said) = @$_;
    my @options = ('--from', $format, $form);

    if (ref $expected eq 'ARRAY') {
        gives($name, $text, \@options, $expected,
              defined $said ? "$format, $said" : undef);
    } else {
        refuses($name, $text, \@options, $expected);
    }
}


# ---- a header above the values of another column ----

my $threatfox = <<'CSV';
################################################################
# Indicators - CSV format                                      #
################################################################
#
# "first_seen_utc","ioc_id","ioc_value","ioc_type","threat_type","fk_malware"
CSV

sub row {
    my ($value, $type) = @_;

    return qq("2026-01-08 15:23:26", "1003", "$value", "$type", "c2", "win.x"\n);
}

my $domains = $threatfox . join '', map { row("$_.example", 'domain') } 1 .. 3;
my $urls = $threatfox . row('https://c2.example/a', 'url')
           . row('evil.example', 'domain') . row('https://c2.example/b', 'url');
my $all = $threatfox . row('c2.example', 'domain')
          . row('192.0.2.71:433', 'ip:port')
          . row('https://pay.example/dl/x.exe', 'url');

for (
    ['domains', $domains, $url, [map { "$_.example" } 1 .. 3]],
    ['domains', $domains, $host, [map { "$_.example" } 1 .. 3]],
    ['domains', $domains, $plain, [map { "$_.example" } 1 .. 3]],
    ['URLs', $urls, $url,
     ['https://c2.example/a', 'evil.example', 'https://c2.example/b']],
    ['URLs', $urls, $host, ['evil.example']],
    ['URLs', $urls, $plain,
     ['https://c2.example/a', 'evil.example', 'https://c2.example/b']],
    ['all', $all, $url, ['c2.example', 'https://pay.example/dl/x.exe']],
    ['all', $all, $host, ['c2.example']],
    ['all', $all, $plain,
     ['c2.example', '192.0.2.71:433', 'https://pay.example/dl/x.exe']],
) {
    my ($name, $text, $form, $keys) = @$_;

    gives("ThreatFox, $name, $form", $text, ['--from', 'auto', $form], $keys,
          'csv:ioc_value');
    refuses("ThreatFox, $name, $form, a column that is a value", $text,
            ['--from', 'csv:domain', $form],
            qr/line 5 is taken for the header, and has no column "domain" but "first_seen_utc", "ioc_id", "ioc_value"/);
}


# ---- columns that auto knows ----

for (
    ['a URL before a host', "host,url\nx.example,http://y.example/\n", $url,
     ['http://y.example/'], 'csv:url'],
    ['a hostname', "hostname,n\nx.example,1\n", $host, ['x.example'],
     'csv:hostname'],
    ['a host with a path', "host,path\nx.example,/y\n", $url,
     qr/is a csv with hosts and paths in two columns/],
    ['values without types', "value,n\nx.example,1\n", $url,
     qr/line 1 is taken for the header, and has "value", "n" .*none of the columns/],
    ['values with other types', "value,type\nx.example,phishing\n", $url,
     qr/line 1 is taken for the header, and has "value", "type" .*none of the columns/],
    ['values with types', "type;value\ndomain;x.example\nmd5;00\n", $url,
     ['x.example'], 'csv:value, separated by ";"'],
    ['a column that is called like a type', "domain\nx.example\n", $host,
     ['x.example'], 'csv:domain'],
    ['one column', "url\nhttp://x.example/a,b\nhttp://y.example/\n", $url,
     ['http://x.example/a,b', 'http://y.example/'], 'csv:url'],
) {
    my ($name, $text, $form, $expected, $said) = @$_;
    my @options = ('--from', 'auto', $form);

    if (ref $expected eq 'ARRAY') {
        gives("auto: $name", $text, \@options, $expected, $said);
    } else {
        refuses("auto: $name", $text, \@options, $expected);
    }
}


# ---- types and statuses ----

for my $form ($url, $host) {
    my $json = gives("types in the form $form", <<'CSV',
type,value
domain|ip,one.example|192.0.2.1
domain|ip,two.example
domain|ip,|192.0.2.2
ip:port,192.0.2.3:80
Domain,*.three.example
SHA256,00
nonsense,four.example
,five.example
CSV
        ['--from', 'csv:value', $form, '--max-errors', 1],
        [qw(one.example 192.0.2.1 two.example three.example)]);

    is_deeply({ map { $_->{reason} => $_->{count} }
                @{ $json->{skipped_by_reason} } },
              { 'is an address with a port, which has no key of its own' => 1,
                'is the hash of a file' => 1,
                'is of a type that stands for no host, URL or address' => 2 },
              "types in the form $form: the reasons to skip");
    is($json->{errors}, 1,
       "types in the form $form: a pair without a host is invalid");
}

gives('blanks in the quotes of a URL',
      qq(id,url\n1," http://x.example/a\n"\n2,"\ty.example "\n),
      ['--from', 'csv:url', $url], ['http://x.example/a', 'y.example']);
is_deeply([map { $_->{reason} }
           @{ gives('blanks around a range', qq(id,url\n1,"\n 192.0.2.0/24 "\n),
                    ['--from', 'csv:url', $url, '--allow-empty'],
                    [])->{skipped_by_reason} }],
          ['is a range of addresses'],
          'a range of addresses with blanks in its quotes is skipped');
gives('types of raw keys', "type,value\nmd5,00\ndomain,x\n",
      ['--from', 'csv:value'], ['00', 'x']);
gives('a type of another column', "type,url\nphishing,x.example/\n",
      ['--from', 'csv:url', $url], ['x.example/']);
gives('a type behind the value, by number',
      "value,type\n192.0.2.3,ip:port\nx.example,domain\n",
      ['--from', 'csv:1', $url], ['value', '192.0.2.3', 'x.example']);
gives('a status of another list', "url,verified,online\nx.example,no,no\n",
      ['--from', 'csv:url', $url], ['x.example']);


# ---- blocks and threads ----

# Records of several lines lie across the ends of blocks.

{
    my @keys = map { "key $_\n" . 'x' x ($_ % 50) } 1 .. 80_000;
    my $text = "id;c\n" . join '', map { "\"$_;\n\";\"$keys[$_]\"\n" } 0 .. $#keys;
    my @images = map {
        my ($image, $json) = build_text($text, @c, '-j', $_, '--seed', 1, '-p',
                                        '1e-6');
        is($json->{received}, 80_000, "all records of many blocks are read by $_"
                                      . ' threads');
        $image;
    } 1, 4;

    cmp_ok(length $text, '>', 3 << 20, 'the records take many blocks');
    is(payload($images[0]), payload($images[1]),
       'the keys do not depend on the number of threads');
    is(($t->run_tool('test', '-0', '-c', $images[1],
                     { stdin => join '', map { "$_\0" } @keys }))[1],
       "80000 present, 0 absent\n", 'the image has the keys of all blocks');
}

# Quotes lie at the end of a block.

{
    my $record = qq(1,"a""b\nc" , 2\n);

    for my $at (1 .. length $record) {
        my $text = "a,c,d\n";

        $text .= '1,,' . 'x' x 1000 . "\n" for 1 .. 1040;
        $text .= '1,,' . 'x' x ((1 << 20) - length($text) - $at - 4) . "\n";
        $text .= $record x 3;

        my (undef, $json) = build_text($text, @c, '-p', '1e-9');
        is_deeply([@$json{qw(received items errors)}], [3, 1, 0],
                  "byte $at of a record is the first one of a block");
    }
}

refuses('a record that is longer than a block',
        "a,c\n" . '1,' . 'x' x (2 << 20) . "\n", \@c,
        qr/byte \d+: a line of 1 MiB or more begins here/);
refuses('a quoted field that is longer than a block',
        "a,c\n1,\"" . "x\n" x (1 << 20) . "\"\n", \@c,
        qr/line 2: quotes begin here and do not end within 1 MiB/);

# The word of a column may stand anywhere in the first block.

refuses('a name that stands again far below',
        "type,v\n" . "x,1\n" x 100_000 . "type,2\n", ['--from', 'csv:type'],
        qr/line 1 has "type", but is no header: line 100002 has it/);


# ---- another reader ----

# Writes fields as people and programs write them.

sub written {
    my ($field, $separator) = @_;

    my $plain = $field !~ /[\r\n"\Q$separator\E]|\A\s|\s\z|\A#|\A\z/;

    return $field if $plain && rand() < 0.4;

    my $blanks = sub { (' ', $separator eq "\t" ? ' ' : "\t", '  ', '', '',
                        '')[rand 6] };

    return $blanks->() . $field . $blanks->() if $plain && rand() < 0.4;
    return $blanks->() . '"' . $field =~ s/"/""/gr . '"' . $blanks->();
}

srand 41;

for my $separator (',', ';', "\t", '|') {
    my @pieces = ('a' .. 'f', 0 .. 9, ' ', '  ', "\t", "\n", "\r\n", '"', '""',
                  "\xc3\xa9", ',', ';', '|', '#', '\\', "'", '\\N', '=1+1');
    my $text = join($separator, qw(column1 column2 column3 column4)) . "\n";

    for my $number (1 .. 5000) {
        my @fields = map { join '', (shuffle @pieces)[0 .. rand 7] } 1 .. 3;

        s/\A\\([N.])\z/$1/ for @fields;      # NULL of a database is no key

        $fields[rand 3] = '' if rand() < 0.1;
        $text .= join($separator, map { written($_, $separator) }
                                  "$number-", @fields)
                 . ("\n", "\n", "\r\n")[rand 3];
        $text .= ("# remark, \"\n", "\n", "\r\n")[rand 3] if rand() < 0.05;
    }

    my $reader = Text::CSV_XS->new({
        binary => 1, sep_char => $separator, allow_whitespace => 1,
        comment_str => '#', decode_utf8 => 0, auto_diag => 2,
    });

    open my $in, '<:raw', \$text or die "in memory: $!";
    my @rows = grep { @$_ > 1 } @{ $reader->getline_all($in) };
    my $name = 'Text::CSV_XS, separator ' . unpack 'H*', $separator;

    is(scalar @rows, 5001, "$name: it reads all records");
    shift @rows;

    for my $column (1 .. 4) {
        my @keys = grep { $_ ne '' } map { $_->[$column - 1] } @rows;
        my ($image, $json) = build_text($text, '--from', "csv:column$column", '-p',
                                        '1e-9', '--seed', 1);
        my %distinct = map { $_ => 1 } @keys;

        is_deeply([@$json{qw(received items errors)}],
                  [scalar @keys, scalar keys %distinct, 0],
                  "$name: column $column has so many fields");
        is(($t->run_tool('test', '-0', '-c', $image,
                         { stdin => join '', map { "$_\0" } keys %distinct }))[1],
           scalar(keys %distinct) . " present, 0 absent\n",
           "$name: column $column has the same fields");
    }
}

done_testing();
