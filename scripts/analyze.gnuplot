# gnuplot -c analyze.gnuplot FILE.csv TITLE CAPACITY RATE > FILE.svg
#
# Draws the output of `ngx-bloom analyze --csv` for filters made for CAPACITY
# keys at a false-positive rate of RATE. TITLE names the filter.

if (ARGC != 4) {
    print "usage: gnuplot -c analyze.gnuplot FILE.csv TITLE CAPACITY RATE"
    exit status 2
}

file = ARG1
capacity = real(ARG3)
target = 100 * real(ARG4)

set datafile separator comma
set datafile columnheaders
stats file using (column("items")) name "items" nooutput

if (!exists("items_max")) {
    print sprintf("%s cannot be read, or has no column of items", file)
    exit status 2
}

set terminal svg size 900,560 dynamic noenhanced background "white" \
    font "sans-serif,14"
set title sprintf("%s, made for %.0f keys at %g %%", ARG2, capacity, target)
set xlabel "keys in the filter, of those it is made for"
set ylabel "false-positive rate"
set key left top Left reverse
set format "%g %%"
set xrange [0:100 * items_max / capacity]
set yrange [0:*]
set grid lc "#dddddd"
set arrow from 100, graph 0 to 100, graph 1 nohead dashtype 2 lc "#666666"

share(items) = 100 * items / capacity
percent(rate) = rate < 0 ? 0 : 100 * rate

plot file using (share(column("items"))) \
              :(percent(column("measured_fpr") - column("deviation"))) \
              :(percent(column("measured_fpr") + column("deviation"))) \
         with filledcurves lc "#b3d1ea" title "a run: standard deviation", \
     file using (share(column("items"))):(percent(column("estimated_fpr"))) \
         with lines lw 2 lc "#333333" title "estimated", \
     file using (share(column("items"))):(percent(column("measured_fpr"))) \
         with points pt 7 ps 0.6 lc "#1f6fb2" title "measured: mean of the runs", \
     target with lines dashtype 2 lc "#c03028" title "target"
