#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests how locations inherit rules and bloom_dry_run from server and http: a
# level that has rules inherits none, and "bloom_rules off" cancels them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

# A location passes what its rules let through, and so does one within it.

my $pass = 'proxy_pass http://127.0.0.1:%%PORT_8090%%;';

sub rule { return "bloom_reject absent \$arg_id zone=ids status=$_[0];" }

configure_rules($t, { ids => ['one', 'UP'] }, <<"CONF", backend => 8090);
    bloom_zone zone=empty capacity=10 fpr=0.1;

    add_header X-Bloom "\$bloom_status \$bloom_zone" always;

    @{[ rule(410) ]}

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location / { $pass }
        location /own { @{[ rule(411) ]} $pass }
        location /pass { bloom_pass absent \$arg_id zone=empty; $pass }
        location /off {
            bloom_rules off; $pass
            location /off/inner { $pass }
            location /off/on { @{[ rule(412) ]} $pass }
        }
        location /dry {
            bloom_dry_run on; $pass
            location /dry/inner { $pass }
            location /dry/wet { bloom_dry_run off; $pass }
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        @{[ rule(420) ]}

        location / { $pass }
        location /nested {
            @{[ rule(421) ]}
            location /nested/same { $pass }
            location /nested/own {
                @{[ rule(422) ]} $pass
                location /nested/own/off { bloom_rules off; $pass }
            }
        }
        location /if {
            if (\$arg_case = other) { set \$x 1; $pass }
            @{[ rule(423) ]} $pass
        }
        location /limit {
            limit_except GET { allow 127.0.0.1; }
            @{[ rule(424) ]} $pass
        }
        location ~ ^/item/(?<id>[^/]+)/(.+)\$ {
            bloom_reject absent \$id zone=ids status=425;
            bloom_reject absent \$2 zone=ids status=426; $pass
        }
        location = /rewritten { rewrite ^ /nested/own?id=none? last; }
    }

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        bloom_rules off;
        bloom_dry_run on;

        location / { $pass }
        location /again { @{[ rule(404) ]} $pass }
        location /wet { bloom_dry_run off; @{[ rule(404) ]} }
    }
CONF

$t->run;


# The tables are outcomes of the servers at three ports.

subtest 'locations inherit the rules of http' => sub {
    outcomes_are($t, <<'END');
/?id=none            410 REJECTED ids      a location without rules
/?id=one             200 PASSED ids        a location without rules
/own?id=none         411 REJECTED ids      a location with a bloom_reject
/pass?id=none        200 PASSED empty      a location with a bloom_pass
/off?id=none         200                   a location with bloom_rules off
/off/inner?id=none   200                   a location in one without rules
/off/on?id=none      412 REJECTED ids      rules within bloom_rules off
/dry?id=none         200 REJECTED_DRY_RUN ids  a location with a dry run
/dry/inner?id=none   200 REJECTED_DRY_RUN ids  a location in one with a dry run
/dry/wet?id=none     410 REJECTED ids      a location that ends the dry run
END
};


subtest 'locations inherit the rules of server, and of locations' => sub {
    outcomes_are($t, <<'END', port => 8081);
/?id=none                420 REJECTED ids  a server with rules inherits none
/nested/same?id=none     421 REJECTED ids  a location inherits those around it
/nested/own?id=none      422 REJECTED ids  a location with rules inherits none
/nested/own/off?id=none  200               bloom_rules off in a location
/if?id=none              423 REJECTED ids  an "if" that is false
/if?id=none&case=other   423 REJECTED ids  an "if" inherits a rule that rejects
/if?id=one&case=other    200 PASSED ids    an "if" inherits a rule that passes
/rewritten?id=one        422 REJECTED ids  a rewrite leads to other rules
/limit?id=none           424 REJECTED ids  a method outside of limit_except
POST /limit?id=none      424 REJECTED ids  a method within limit_except
POST /limit?id=one       200 PASSED ids    a method within limit_except
END
    outcomes_are($t, <<'END', port => 8082);
/?id=none       200                       a server with bloom_rules off
/again?id=none  200 REJECTED_DRY_RUN ids  rules within it, and its dry run
/wet?id=none    404 REJECTED ids          a location that ends the dry run
END
};


subtest 'captures of a location are keys' => sub {
    outcomes_are($t, <<'END', port => 8081);
/item/one/UP       200 PASSED ids    both captures are present
/item/none/UP      425 REJECTED ids  the named capture is absent
/item/one/down     426 REJECTED ids  the numbered capture is absent
/item/%6fn%65/UP   200 PASSED ids    a capture is decoded
/item/one?id=none  420 REJECTED ids  without captures, the rules of the server
END
};


done_testing;
