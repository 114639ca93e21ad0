/* fuzz_spec.c - arbitrary bytes as a spec (libFuzzer): refused with a message, or resolved to points whose canonical
 * form reads back to the same scenario. Uses the small vocabulary of the tests and needs none of the simulator. */
#include "experiments/sensitivity.h"
#include "experiments/spec.h"
#include "experiments/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ls_option options[] = {
    {.path = "duration_s",
     .type = LS_OPTION_REAL,
     .offset = offsetof(ls_scenario, duration_s),
     .default_number = 60,
     .maximum = 1000,
     .meaning = "m"},
    {.path = "producers.count",
     .type = LS_OPTION_INTEGER,
     .offset = offsetof(ls_scenario, producers.count),
     .default_number = 8,
     .maximum = 1e6,
     .meaning = "m"},
    {.path = "producers.established",
     .type = LS_OPTION_FLAG,
     .offset = offsetof(ls_scenario, producers.established),
     .meaning = "m"},
    {.path = "world",
     .type = LS_OPTION_CHOICE,
     .offset = offsetof(ls_scenario, world),
     .choices = "commit queue",
     .meaning = "m"},
    {.path = "store.preset",
     .type = LS_OPTION_TEXT,
     .offset = offsetof(ls_scenario, store_preset),
     .default_text = "fast",
     .meaning = "m"},
    {.path = "store.put.scale_s",
     .type = LS_OPTION_REAL,
     .offset = offsetof(ls_scenario, store.put.scale_s),
     .minimum = -10,
     .maximum = 10,
     .meaning = "m"},
    {.path = "store.put.file",
     .type = LS_OPTION_TEXT,
     .offset = offsetof(ls_scenario, store.put.file),
     .default_text = "",
     .meaning = "m"},
};

static const ls_store_preset presets[] = {{"fast", "m", "s", {.put = {.scale_s = 0.25}}},
                                          {"slow", "m", "s", {.put = {.scale_s = 2}}}};
static const ls_metric metrics[] = {{"speed", "1/s", "m"}, {"delay_s", "s", "m"}};

static void require(bool condition)
{
    if (!condition) abort();
}

static void check_round_trip(const ls_vocabulary *vocabulary, const ls_spec_point *point)
{
    ls_text text = {0};
    ls_spec *again = NULL;
    ls_error error;
    ls_text_add(&text, "{\"base\":");
    ls_text_add(&text, point->resolved);
    ls_text_add(&text, "}");
    require(!text.failed);
    require(ls_spec_parse("again.json", text.bytes, text.length, vocabulary, false, &again, &error) == LS_OK);
    require(again->point_count == 1 && strcmp(again->points[0].hash, point->hash) == 0);
    ls_spec_free(again);
    ls_text_free(&text);
}

/* What a spec says of its assumptions makes a second spec that reads. */
static void check_second(const ls_vocabulary *vocabulary, const ls_spec *spec)
{
    ls_spec *second = NULL;
    ls_error error;
    if (spec->sensitivity == NULL || spec->sensitivity->samples > 64) return;
    char *text = ls_sensitivity_spec_text(spec);
    require(text != NULL);
    require(ls_spec_parse("second.json", text, strlen(text), vocabulary, spec->quick, &second, &error) == LS_OK);
    ls_free(text);
    ls_spec_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ls_vocabulary vocabulary = {options, sizeof options / sizeof options[0], presets, 2, metrics, 2};
    for (int quick = 0; quick < 2; quick++) {
        ls_spec *spec = NULL;
        ls_error error = {""};
        ls_result result = ls_spec_parse("fuzz.json", (const char *)data, size, &vocabulary, quick == 1, &spec, &error);
        require((result == LS_OK) == (spec != NULL));
        require(result == LS_OK || error.text[0] != '\0');
        if (spec == NULL) continue;
        require(spec->point_count >= 1 && spec->replications.minimum <= spec->replications.maximum);
        check_round_trip(&vocabulary, &spec->points[spec->point_count - 1]);
        check_second(&vocabulary, spec);
        ls_spec_free(spec);
    }
    return 0;
}
