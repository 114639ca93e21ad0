# style.gp - what all figures share. The program sets before loading a script:
#   data      a tab-separated file: one row a point, columns by name: swept keys, metrics, and <metric>.half_width
#   output    the picture's file, its suffix decides the terminal
#   published the folder results/published
# Colours are those of Okabe and Ito (2008), told apart by colour-blind readers; dashes and marks differ too.

set encoding utf8
is_pdf = (strlen(output) > 4 && output[strlen(output)-3:*] eq ".pdf")
is_svg = (strlen(output) > 4 && output[strlen(output)-3:*] eq ".svg")
if (!exists("width")) width = 1400
if (!exists("height")) height = 950
if (is_svg) { set terminal svg size width,height dynamic enhanced font "DejaVu Sans,14" background "white" } \
else { if (is_pdf) { set terminal pdfcairo size width/95.0,height/95.0 enhanced font "DejaVu Sans,13" background "white" } \
else { set terminal pngcairo size width,height enhanced font "DejaVu Sans,12" background "white" } }
set output output
set datafile separator "\t"
set datafile missing "nan"
set grid back linecolor rgb "#dddddd" linewidth 1
set border 3 linecolor rgb "#444444"
set tics nomirror
set key noenhanced

set linetype  1 linecolor rgb "#0072b2" linewidth 2 pointtype 7  pointsize 0.8 dashtype 1
set linetype  2 linecolor rgb "#d55e00" linewidth 2 pointtype 5  pointsize 0.8 dashtype 1
set linetype  3 linecolor rgb "#009e73" linewidth 2 pointtype 9  pointsize 1.0 dashtype 1
set linetype  4 linecolor rgb "#cc79a7" linewidth 2 pointtype 13 pointsize 1.0 dashtype 1
set linetype  5 linecolor rgb "#e69f00" linewidth 2 pointtype 11 pointsize 1.0 dashtype 1
set linetype  6 linecolor rgb "#56b4e9" linewidth 2 pointtype 6  pointsize 0.9 dashtype 2
set linetype  7 linecolor rgb "#000000" linewidth 2 pointtype 4  pointsize 0.9 dashtype 1
set linetype  8 linecolor rgb "#0072b2" linewidth 2 pointtype 8  pointsize 1.0 dashtype 2
set linetype  9 linecolor rgb "#d55e00" linewidth 2 pointtype 12 pointsize 1.0 dashtype 2
set linetype 10 linecolor rgb "#009e73" linewidth 2 pointtype 10 pointsize 1.0 dashtype 3
set linetype 11 linecolor rgb "#cc79a7" linewidth 2 pointtype 1  pointsize 1.0 dashtype 4
set linetype 12 linecolor rgb "#e69f00" linewidth 2 pointtype 2  pointsize 1.0 dashtype 2
set linetype 13 linecolor rgb "#56b4e9" linewidth 2 pointtype 3  pointsize 1.0 dashtype 3
set linetype 14 linecolor rgb "#888888" linewidth 2 pointtype 7  pointsize 0.6 dashtype 2
set linetype 15 linecolor rgb "#000000" linewidth 2 pointtype 6  pointsize 1.0 dashtype 2
set linetype 16 linecolor rgb "#009e73" linewidth 2 pointtype 4  pointsize 1.0 dashtype 2
set linetype 17 linecolor rgb "#cc79a7" linewidth 2 pointtype 8  pointsize 1.2 dashtype 3
set linetype 18 linecolor rgb "#0072b2" linewidth 2 pointtype 12 pointsize 1.2 dashtype 4
set linetype 19 linecolor rgb "#d55e00" linewidth 2 pointtype 14 pointsize 1.0 dashtype 4
set linetype 20 linecolor rgb "#e69f00" linewidth 2 pointtype 15 pointsize 1.0 dashtype 3
set linetype 21 linecolor rgb "#56b4e9" linewidth 2 pointtype 10 pointsize 1.2 dashtype 4
set linetype 22 linecolor rgb "#888888" linewidth 2 pointtype 2  pointsize 1.0 dashtype 3

# The distinct values of a column, in order of appearance, as one string with | between them; word i of it by item().
column_values(name) = system(sprintf("awk -F '\\t' 'NR==1 {for (i=1;i<=NF;i++) if ($i==\"%s\") c=i; next} !seen[$c]++ {printf \"%%s%%s\", n++ ? \"|\" : \"\", $c}' '%s'", name, data))
first_of(list) = strstrt(list, "|") > 0 ? list[1:strstrt(list, "|")-1] : list
rest_of(list) = strstrt(list, "|") > 0 ? list[strstrt(list, "|")+1:*] : ""
item(list, i) = i <= 1 ? first_of(list) : item(rest_of(list), i - 1)
items(list) = list eq "" ? 0 : strstrt(list, "|") > 0 ? 1 + items(rest_of(list)) : 1
