/* tidy.c - the plotting table of tidy.h. */
#include "experiments/tidy.h"

#include <math.h>

ls_result ls_point_estimate(const ls_stored_point *point, uint32_t metric, double confidence, ls_estimate *estimate)
{
    uint64_t count = 0;
    double *values = ls_allocate_array((size_t)point->run_count + 1, sizeof *values);
    if (values == NULL) return LS_ERROR_MEMORY;
    for (uint32_t r = 0; r < point->run_count; r++) {
        if (!isnan(point->runs[r].values[metric])) values[count++] = point->runs[r].values[metric];
    }
    *estimate = ls_estimate_of(values, count, confidence);
    ls_free(values);
    return LS_OK;
}

static void add_number(ls_text *text, double value)
{
    if (isnan(value)) {
        ls_text_add(text, "nan");
    } else {
        ls_text_number(text, value);
    }
}

static void add_header(const ls_stored_experiment *experiment, ls_text *text)
{
    for (uint32_t k = 0; k < experiment->swept_key_count; k++) {
        ls_text_field(text, experiment->swept_keys[k]);
        ls_text_add(text, "\t");
    }
    ls_text_add(text, "replications");
    for (uint32_t m = 0; m < experiment->metric_count; m++) {
        ls_text_format(text, "\t%s\t%s.half_width", experiment->metric_names[m], experiment->metric_names[m]);
    }
    ls_text_add(text, "\n");
}

ls_result ls_tidy(const ls_stored_experiment *experiment, ls_text *text)
{
    add_header(experiment, text);
    for (uint32_t i = 0; i < experiment->point_count; i++) {
        const ls_stored_point *point = &experiment->points[i];
        for (uint32_t k = 0; k < experiment->swept_key_count; k++) {
            ls_text_field(text, point->labels[k]);
            ls_text_add(text, "\t");
        }
        ls_text_format(text, "%u", point->run_count);
        for (uint32_t m = 0; m < experiment->metric_count; m++) {
            ls_estimate estimate;
            ls_result result = ls_point_estimate(point, m, 0.95, &estimate);
            if (result != LS_OK) return result;
            ls_text_add(text, "\t");
            add_number(text, estimate.mean);
            ls_text_add(text, "\t");
            add_number(text, estimate.half_width);
        }
        ls_text_add(text, "\n");
    }
    return text->failed ? LS_ERROR_MEMORY : LS_OK;
}
