# gnuplot -c analyze.gnuplot CAPACITY RATE BLOCKED.csv CLASSIC.csv > FILE.svg
#
# Draws the output of `ngx-bloom analyze --csv` for a filter in layout blocked
# and one in layout classic, both made for CAPACITY keys at a false-positive
# rate of RATE.

if (ARGC != 4) {
    print "usage: gnuplot -c analyze.gnuplot CAPACITY RATE BLOCKED.csv " \
        . "CLASSIC.csv"
    exit status 2
}

capacity = real(ARG1)
target = 100 * real(ARG2)
blocked = ARG3
classic = ARG4

set datafile separator comma
set datafile columnheaders
most = 0

do for [file in sprintf("\"%s\" \"%s\"", blocked, classic)] {
    undefine items_*
    stats file using (column("items")) name "items" nooutput

    if (!exists("items_max")) {
        print sprintf("%s cannot be read, or has no column of items", file)
        exit status 2
    }

    most = items_max > most ? items_max : most
}

set terminal svg size 900,560 dynamic noenhanced background "white" \
    font "sans-serif,14"
set title sprintf("Filters made for %.0f keys at %g %%", capacity, target)
set xlabel "keys in the filter, of those it is made for"
set ylabel "false-positive rate"
set key left top Left reverse
set format "%g %%"
set xrange [0:100 * most / capacity]
set yrange [0:*]
set grid lc "#dddddd"
set arrow from 100, graph 0 to 100, graph 1 nohead dashtype 2 lc "#666666"

share(items) = 100 * items / capacity
percent(rate) = rate < 0 ? 0 : 100 * rate

plot blocked using (share(column("items"))) \
                 :(percent(column("measured_fpr") - column("deviation"))) \
                 :(percent(column("measured_fpr") + column("deviation"))) \
         with filledcurves lc "#b3d1ea" \
         title "blocked, a run: standard deviation", \
     classic using (share(column("items"))) \
                 :(percent(column("measured_fpr") - column("deviation"))) \
                 :(percent(column("measured_fpr") + column("deviation"))) \
         with filledcurves lc "#f3d3b0" \
         title "classic, a run: standard deviation", \
     blocked using (share(column("items"))):(percent(column("estimated_fpr"))) \
         with lines lw 2 lc "#333333" title "blocked, estimated", \
     classic using (share(column("items"))):(percent(column("estimated_fpr"))) \
         with lines lw 2 dashtype 3 lc "#333333" title "classic, estimated", \
     blocked using (share(column("items"))):(percent(column("measured_fpr"))) \
         with points pt 7 ps 0.6 lc "#1f6fb2" \
         title "blocked, measured: mean of the runs", \
     classic using (share(column("items"))):(percent(column("measured_fpr"))) \
         with points pt 5 ps 0.6 lc "#b2631f" \
         title "classic, measured: mean of the runs", \
     target with lines dashtype 2 lc "#c03028" title "target"
