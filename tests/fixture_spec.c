/* fixture_spec.c - see fixture_spec.h. */
#include "tests/fixture_spec.h"

#include "tests/suite.h"

#include <stdio.h>
#include <string.h>

#define ROW(path_, type_, field_, default_, low_, high_)                                                               \
    {                                                                                                                  \
        .path = path_, .type = type_, .offset = offsetof(ls_scenario, field_), .default_number = default_,             \
        .minimum = low_, .maximum = high_, .meaning = "a test option"                                                  \
    }

static const ls_option options[] = {
    {.path = "world",
     .type = LS_OPTION_CHOICE,
     .offset = offsetof(ls_scenario, world),
     .choices = "commit queue",
     .meaning = "kind"},
    ROW("duration_s", LS_OPTION_REAL, duration_s, 60, 0.5, 1000),
    ROW("producers.count", LS_OPTION_INTEGER, producers.count, 8, 1, 1000),
    ROW("producers.established", LS_OPTION_FLAG, producers.established, 1, 0, 1),
    ROW("manifest.initial_entries", LS_OPTION_INTEGER, manifest.initial_entries, 0, 0, 1000000),
    {.path = "manifest.discovery",
     .type = LS_OPTION_CHOICE,
     .offset = offsetof(ls_scenario, manifest.discovery),
     .default_number = 1,
     .choices = "list probe gallop",
     .meaning = "how"},
    {.path = "store.preset",
     .type = LS_OPTION_TEXT,
     .offset = offsetof(ls_scenario, store_preset),
     .default_text = "fast",
     .meaning = "which store"},
    ROW("store.put_s_per_mib", LS_OPTION_REAL, store.put_s_per_mib, 0, 0, 10),
    ROW("store.put.scale_s", LS_OPTION_REAL, store.put.scale_s, 0, 0, 10),
    ROW("store.put.shape", LS_OPTION_REAL, store.put.shape, 0, 0, 10),
    {.path = "store.put.law",
     .type = LS_OPTION_CHOICE,
     .offset = offsetof(ls_scenario, store.put.law),
     .choices = "constant exponential lognormal",
     .meaning = "law"},
    {.path = "store.put.file",
     .type = LS_OPTION_TEXT,
     .offset = offsetof(ls_scenario, store.put.file),
     .default_text = "",
     .meaning = "f"},
};

static const ls_store_preset presets[] = {
    {"fast", "a fast store", "made up", {.put = {.law = 1, .scale_s = 0.25}, .put_s_per_mib = 0.5}},
    {"slow", "a slow store", "made up", {.put = {.law = 2, .scale_s = 2, .shape = 1}, .put_s_per_mib = 4}},
};

static const ls_metric metrics[] = {
    {"speed", "1/s", "how fast"}, {"delay_s", "s", "how late"}, {"rare", "1", "does not apply to every run"}};

ls_vocabulary ls_test_vocabulary(void)
{
    return (ls_vocabulary){options, sizeof options / sizeof options[0], presets, 2, metrics, 3};
}

ls_spec *ls_test_spec(const char *text)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_error error = {""};
    ls_result result = ls_spec_parse("demo.json", text, strlen(text), &vocabulary, false, &spec, &error);
    CU_ASSERT_EQUAL_FATAL(result, LS_OK);
    if (result != LS_OK) printf("%s\n", error.text);
    return spec;
}
