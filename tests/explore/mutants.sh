#!/bin/sh
# Builds the program once for each planted bug of manifest/mutant.h and prints, as a Markdown table, in which small world the explorer
# finds it, after how many states and in how many transitions, and the first seed of 20,000 with which the fuzzer does. Fails when
# neither finds one. Usage: mutants.sh BUILD-FOLDER
set -eu
build=$1
folder=$build/mutants
mkdir -p "$folder"
rm -f "$folder/missed"
libraries=$(pkg-config --libs libcurl sqlite3 gsl libcjson expat libcrypto)
row='| %-2s | %-22s | %-86s | %9s | %6s | %6s |\n'
# shellcheck disable=SC2059
printf "$row" n mutant "world of the explorer" states length seed
# shellcheck disable=SC2059
printf "$row" -- -------- ---------------- -----: -----: -----:
grep -o 'LS_MUTANT_[A-Z0-9_]* = [0-9]*' manifest/mutant.h | while read -r name _ number; do
    for file in producer consumer checkpoint reclaimer manifest; do
        ${CC:-gcc} -std=c17 -O2 -D_GNU_SOURCE -I. -DLS_MUTANT="$number" -c -o "$folder/$file.o" "manifest/$file.c"
    done
    # shellcheck disable=SC2086
    ${CC:-gcc} -o "$folder/lakestream" "$build/experiments/main.o" "$folder/producer.o" "$folder/consumer.o" \
        "$folder/checkpoint.o" "$folder/reclaimer.o" "$folder/manifest.o" \
        "$build/liblakestream.a" $libraries -lm
    short=$(echo "${name#LS_MUTANT_}" | tr 'A-Z_' 'a-z-')
    found=no world=- states=- length=-
    seed=$("$folder/lakestream" fuzz --seeds 20000 --json 2>/dev/null | sed -n 's/.*"failed":\([0-9]*\).*/\1/p') || true
    limit=2000000
    [ -z "$seed" ] || limit=300000 # a second witness is welcome, not worth minutes
    while read -r world; do
        # shellcheck disable=SC2086
        answer=$("$folder/lakestream" explore $world --json --states-max $limit -o "$folder/$number.txt" 2>/dev/null) || true
        case $answer in
        *'"violated"'*)
            found=yes
            states=$(echo "$answer" | sed 's/.*"states":\([0-9]*\).*/\1/')
            length=$(echo "$answer" | sed 's/.*"depth":\([0-9]*\).*/\1/')
            replayed=0
            "$folder/lakestream" explore --replay "$folder/$number.txt" >/dev/null || replayed=$?
            if [ $replayed -ne 1 ]; then
                echo "    its replay file does not reproduce it"
                echo "$number" >>"$folder/missed"
            fi
            break ;;
        esac
    done <<WORLDS
--producers 1 --batches 1
--producers 1 --batches 2
--producers 2 --batches 1
--producers 1 --batches 1 --ambiguous 1
--producers 1 --batches 1 --crashes 1
--producers 1 --batches 1 --zombies 1
--producers 1 --batches 2 --lingering 1
--producers 1 --batches 2 --zombies 1
--producers 1 --batches 2 --crashes 1
--producers 2 --batches 1 --lingering 1
--producers 1 --batches 2 --consumers 1
--producers 2 --batches 1 --consumers 1
--producers 1 --batches 2 --ambiguous 1 --lingering 1
--producers 1 --batches 2 --crashes 1 --lingering 1
--producers 1 --batches 1 --reclaimers 1 --orphans
--producers 1 --batches 1 --reclaimers 1 --orphans --zombies 1 --reduced
--producers 1 --batches 1 --consumers 1 --reclaimers 1 --checkpoints 1 --reduced
--producers 1 --batches 2 --consumers 1 --reclaimers 1 --checkpoints 1 --reduced
--producers 1 --batches 1 --consumers 2 --reclaimers 1 --checkpoints 1 --reduced
--producers 1 --batches 1 --consumers 1 --reclaimers 1 --checkpoints 1 --ambiguous 1 --reduced
--producers 1 --batches 2 --consumers 1 --reclaimers 1 --checkpoints 2 --rewinds 1 --reduced
--producers 1 --batches 1 --reclaimers 1 --lingering 1 --reduced
--producers 1 --batches 1 --consumers 1 --reclaimers 1 --checkpoints 1 --lingering 1 --reduced
WORLDS
    [ $found = yes ] || world=-
    # shellcheck disable=SC2059
    printf "$row" "$number" "$short" "$world" "$states" "$length" "${seed:--}"
    [ $found = yes ] || [ -n "$seed" ] || { echo "neither finds mutant $number" >&2; echo "$number" >>"$folder/missed"; }
done
if [ -s "$folder/missed" ]; then
    rm "$folder/missed"
    exit 1
fi
