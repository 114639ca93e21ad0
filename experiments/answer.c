/* answer.c - the templates of answer.h: a recursive-descent parser that evaluates as it reads. An expression inside
 * min, max, mean, highest, lowest or list is read once for each point, from the same place in the text. Without an
 * experiment (check) it is read once, every value is 1 and names alone are looked up. Depth is bounded, and so is the
 * work: aggregates do not nest. */
#include "experiments/answer.h"

#include "experiments/pretty.h"
#include "experiments/tidy.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32
#define NO_POINT  UINT32_MAX

typedef struct parser {
    const char *term; /* the term in force, for messages */
    size_t term_length;
    const char *at;
    const char *end;
    const ls_stored_experiment *experiment; /* NULL: check only */
    const ls_published_rows *rows;
    const ls_answer_names *names; /* check only */
    uint32_t point;               /* the point in turn; NO_POINT outside aggregates */
    int depth;
    ls_error *error;
} parser;

static ls_result fail(const parser *p, const char *message, const char *name)
{
    int length = (int)(p->term_length > 200 ? 200 : p->term_length);
    return ls_fail(p->error, LS_ERROR_INVALID, "answer: {%.*s}: %s%s%.100s%s", length, p->term, message,
                   name != NULL ? " \"" : "", name != NULL ? name : "", name != NULL ? "\"" : "");
}

static ls_result memory(const parser *p) { return ls_fail(p->error, LS_ERROR_MEMORY, "answer: out of memory"); }

static void skip_space(parser *p)
{
    while (p->at < p->end && isspace((unsigned char)*p->at)) p->at++;
}

static bool take(parser *p, char wanted)
{
    skip_space(p);
    if (p->at >= p->end || *p->at != wanted) return false;
    p->at++;
    return true;
}

static bool name_character(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-'; }

/* A name: letter first; a hyphen belongs to it, so minus needs spaces around. NULL at anything else. */
static char *take_name(parser *p, bool *failed)
{
    skip_space(p);
    const char *start = p->at;
    *failed = false;
    if (start >= p->end || !isalpha((unsigned char)*start)) return NULL;
    while (p->at < p->end && name_character(*p->at)) p->at++;
    ls_text text = {0};
    ls_text_bytes(&text, start, (size_t)(p->at - start));
    char *name = ls_text_take(&text);
    *failed = name == NULL;
    return name;
}

static ls_result expect_name(parser *p, const char *what, char **name)
{
    bool failed;
    *name = take_name(p, &failed);
    if (failed) return memory(p);
    return *name != NULL ? LS_OK : fail(p, what, NULL);
}

/* Takes the word if it comes next, as a whole word. */
static bool take_word(parser *p, const char *word)
{
    skip_space(p);
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || strncmp(p->at, word, length) != 0) return false;
    if (p->at + length < p->end && name_character(p->at[length])) return false;
    p->at += length;
    return true;
}

static bool find_name(char *const *names, uint32_t count, const char *name, uint32_t *index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *index = i;
        return true;
    }
    return false;
}

static ls_result find_key(const parser *p, const char *name, uint32_t *index)
{
    *index = 0;
    if (p->experiment == NULL) return p->names->key(p->names->context, name, p->error);
    if (find_name(p->experiment->swept_keys, p->experiment->swept_key_count, name, index)) return LS_OK;
    return fail(p, "these results do not sweep", name);
}

static ls_result find_metric(const parser *p, const char *name, uint32_t *index)
{
    *index = 0;
    if (p->experiment == NULL) return p->names->metric(p->names->context, name, p->error);
    if (find_name(p->experiment->metric_names, p->experiment->metric_count, name, index)) return LS_OK;
    return fail(p, "these results do not have", name);
}

static bool label_number(const char *label, double *value)
{
    char *end;
    *value = strtod(label, &end);
    return end != label && *end == '\0';
}

/* The label of a key that is the greatest (or least) number; NULL when none is a number. */
static const char *extreme_label(const ls_stored_experiment *e, uint32_t key, bool largest)
{
    const char *best = NULL;
    double best_value = 0, value;
    for (uint32_t i = 0; i < e->point_count; i++) {
        const char *label = e->points[i].labels[key];
        if (!label_number(label, &value)) continue;
        if (best != NULL && (largest ? value <= best_value : value >= best_value)) continue;
        best = label;
        best_value = value;
    }
    return best;
}

/* The label of a key that a selector names: whole if some point has it so, else by the first word. */
static const char *named_label(const ls_stored_experiment *e, uint32_t key, const char *wanted)
{
    const char *best = NULL;
    int best_match = 0;
    for (uint32_t i = 0; i < e->point_count; i++) {
        int match = ls_label_matches(e->points[i].labels[key], wanted);
        if (match <= best_match) continue;
        best_match = match;
        best = e->points[i].labels[key];
    }
    return best;
}

/* Up to the next ',' or ']' (one label), trimmed. */
static char *take_label(parser *p)
{
    skip_space(p);
    const char *start = p->at;
    while (p->at < p->end && *p->at != ',' && *p->at != ']') p->at++;
    const char *stop = p->at;
    while (stop > start && isspace((unsigned char)stop[-1])) stop--;
    ls_text text = {0};
    ls_text_bytes(&text, start, (size_t)(stop - start));
    return ls_text_take(&text);
}

static ls_result resolve_label(const parser *p, uint32_t key, const char *wanted, const char **label)
{
    const ls_stored_experiment *e = p->experiment;
    *label = "";
    if (wanted[0] == '\0') return fail(p, "a selector needs a label after =", NULL);
    if (e == NULL) return LS_OK;
    bool largest = strcmp(wanted, "largest") == 0, smallest = strcmp(wanted, "smallest") == 0;
    *label = largest || smallest ? extreme_label(e, key, largest) : named_label(e, key, wanted);
    return *label != NULL ? LS_OK : fail(p, "no point has the label", wanted);
}

/* "[key=label, ...]" into wanted, one entry a swept key; entries not named stay. */
static ls_result read_selector(parser *p, const char **wanted)
{
    if (!take(p, '[')) return LS_OK;
    do {
        char *key = NULL;
        uint32_t index;
        ls_result result = expect_name(p, "expected a swept key in [ ]", &key);
        if (result == LS_OK) result = find_key(p, key, &index);
        ls_free(key);
        if (result != LS_OK) return result;
        if (!take(p, '=')) return fail(p, "expected = after the key in [ ]", NULL);
        char *label_text = take_label(p);
        if (label_text == NULL) return memory(p);
        const char *label;
        result = resolve_label(p, index, label_text, &label);
        ls_free(label_text);
        if (result != LS_OK) return result;
        if (p->experiment != NULL) wanted[index] = label;
    } while (take(p, ','));
    return take(p, ']') ? LS_OK : fail(p, "expected ] at the end of a selector", NULL);
}

static bool point_agrees(const ls_stored_experiment *e, uint32_t point, const char *const *wanted)
{
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (wanted[k] != NULL && strcmp(e->points[point].labels[k], wanted[k]) != 0) return false;
    }
    return true;
}

static ls_result metric_value(parser *p, uint32_t metric, const char *const *wanted, double *value)
{
    const ls_stored_experiment *e = p->experiment;
    uint32_t found = 0, at = 0;
    for (uint32_t i = 0; i < e->point_count; i++) {
        if (!point_agrees(e, i, wanted)) continue;
        at = i;
        found++;
    }
    *value = NAN;
    if (p->point != NO_POINT && found != 1) return LS_OK; /* passed over */
    if (found == 0) return fail(p, "no point has all these labels", NULL);
    if (found > 1) return fail(p, "several points have these labels; name more keys, or use min, max or mean", NULL);
    ls_estimate estimate;
    if (ls_point_estimate(&e->points[at], metric, 0.95, &estimate) != LS_OK) return memory(p);
    *value = estimate.mean;
    return LS_OK;
}

static ls_result read_metric(parser *p, const char *name, double *value)
{
    uint32_t metric;
    ls_result result = find_metric(p, name, &metric);
    if (result != LS_OK) return result;
    *value = 1;
    if (p->experiment == NULL) return read_selector(p, NULL);
    uint32_t keys = p->experiment->swept_key_count;
    const char **wanted = ls_allocate_array((size_t)keys + 1, sizeof *wanted);
    if (wanted == NULL) return memory(p);
    for (uint32_t k = 0; p->point != NO_POINT && k < keys; k++) wanted[k] = p->experiment->points[p->point].labels[k];
    result = read_selector(p, wanted);
    if (result == LS_OK) result = metric_value(p, metric, wanted, value);
    ls_free(wanted);
    return result;
}

static ls_result read_sum(parser *p, double *value);

typedef enum aggregate { AGGREGATE_MIN, AGGREGATE_MAX, AGGREGATE_MEAN } aggregate;

/* Evaluates the expression that begins at p->at for one point; p->at ends behind it. */
static ls_result at_point(parser *p, uint32_t point, double *value)
{
    uint32_t before = p->point;
    p->point = point;
    ls_result result = read_sum(p, value);
    p->point = before;
    return result;
}

static uint32_t turns(const parser *p) { return p->experiment != NULL ? p->experiment->point_count : 1; }

static ls_result read_aggregate(parser *p, aggregate kind, double *value)
{
    if (p->point != NO_POINT) return fail(p, "min, max and mean do not nest", NULL);
    if (turns(p) == 0) return fail(p, "there are no points", NULL);
    const char *start = p->at;
    double sum = 0, low = INFINITY, high = -INFINITY;
    uint32_t count = 0;
    for (uint32_t i = 0; i < turns(p); i++) {
        double one;
        p->at = start;
        ls_result result = at_point(p, i, &one);
        if (result != LS_OK) return result;
        if (isnan(one)) continue;
        sum += one;
        low = fmin(low, one);
        high = fmax(high, one);
        count++;
    }
    *value = count == 0 ? NAN : kind == AGGREGATE_MIN ? low : kind == AGGREGATE_MAX ? high : sum / count;
    return take(p, ')') ? LS_OK : fail(p, "expected ) here", NULL);
}

static ls_result read_deviation(parser *p, double *value)
{
    char *name = NULL;
    uint32_t metric;
    ls_result result = expect_name(p, "deviation: expected a metric", &name);
    if (result == LS_OK) result = find_metric(p, name, &metric);
    ls_free(name);
    if (result != LS_OK) return result;
    *value = p->experiment == NULL ? 1 : NAN;
    for (uint32_t i = 0; p->experiment != NULL && p->rows != NULL && i < p->rows->count; i++) {
        const ls_published_row *row = &p->rows->rows[i];
        if (row->metric != metric || row->published == 0.0) continue;
        double off = fabs(row->simulated / row->published - 1.0);
        if (isnan(*value) || off > *value) *value = off;
    }
    if (isnan(*value)) return fail(p, "nothing published belongs to these points", NULL);
    return take(p, ')') ? LS_OK : fail(p, "expected ) here", NULL);
}

static ls_result read_named(parser *p, const char *name, double *value)
{
    static const char *const functions[] = {"min", "max", "mean"};
    const char *before = p->at;
    if (take(p, '(')) {
        for (int i = 0; i < 3; i++) {
            if (strcmp(name, functions[i]) == 0) return read_aggregate(p, (aggregate)i, value);
        }
        if (strcmp(name, "deviation") == 0) return read_deviation(p, value);
        p->at = before;
        return fail(p, "no function", name);
    }
    uint32_t key = 0;
    bool is_key = p->experiment != NULL
                      ? find_name(p->experiment->swept_keys, p->experiment->swept_key_count, name, &key)
                      : p->names->is_key(p->names->context, name);
    if (!is_key) return read_metric(p, name, value);
    *value = 1;
    if (p->point == NO_POINT)
        return fail(p, "a key is a number only inside min, max, mean, highest, lowest, list", name);
    if (p->experiment != NULL && !label_number(p->experiment->points[p->point].labels[key], value)) *value = NAN;
    return LS_OK;
}

static ls_result read_factor(parser *p, double *value)
{
    bool failed;
    skip_space(p);
    if (take(p, '(')) {
        ls_result result = read_sum(p, value);
        if (result != LS_OK) return result;
        return take(p, ')') ? LS_OK : fail(p, "expected ) here", NULL);
    }
    if (p->at < p->end && (isdigit((unsigned char)*p->at) || *p->at == '.')) {
        char *end;
        *value = strtod(p->at, &end);
        if (end == p->at || end > p->end) return fail(p, "expected a number", NULL);
        p->at = end;
        return LS_OK;
    }
    char *name = take_name(p, &failed);
    if (failed) return memory(p);
    if (name == NULL) return fail(p, "expected a metric, a number or (", NULL);
    ls_result result = read_named(p, name, value);
    ls_free(name);
    return result;
}

static ls_result read_product(parser *p, double *value)
{
    ls_result result = read_factor(p, value);
    while (result == LS_OK) {
        double right;
        bool times = take(p, '*');
        if (!times && !take(p, '/')) return LS_OK;
        result = read_factor(p, &right);
        if (result == LS_OK) *value = times ? *value * right : *value / right;
    }
    return result;
}

static ls_result read_sum(parser *p, double *value)
{
    if (++p->depth > DEPTH_MAX) return fail(p, "too many parentheses", NULL);
    ls_result result = read_product(p, value);
    while (result == LS_OK) {
        double right;
        bool plus = take(p, '+');
        if (!plus && !take(p, '-')) break;
        result = read_product(p, &right);
        if (result == LS_OK) *value = plus ? *value + right : *value - right;
    }
    p->depth--;
    return result;
}

/* ": FORM", and nothing behind it. */
static ls_result read_form(parser *p, ls_pretty *form, int *digits)
{
    static const char *const forms[] = {"percent", "count", "bytes", "seconds", "dollars"};
    static const ls_pretty values[] = {LS_PRETTY_PERCENT, LS_PRETTY_COUNT, LS_PRETTY_BYTES, LS_PRETTY_SECONDS,
                                       LS_PRETTY_DOLLARS};
    *form = LS_PRETTY_DIGITS;
    *digits = 3;
    if (!take(p, ':')) return LS_OK;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (!take_word(p, forms[i])) continue;
        *form = values[i];
        return LS_OK;
    }
    skip_space(p);
    char *end;
    long count = strtol(p->at, &end, 10);
    if (end == p->at || count < 1 || count > 15) {
        return fail(p, "expected a form after the colon: 1 to 15 digits, percent, count, bytes, seconds or dollars",
                    NULL);
    }
    p->at = end;
    *digits = (int)count;
    return LS_OK;
}

static ls_result read_number_term(parser *p, ls_text *text)
{
    double value;
    ls_pretty form;
    int digits;
    ls_result result = read_sum(p, &value);
    if (result == LS_OK) result = read_form(p, &form, &digits);
    if (result != LS_OK) return result;
    if (!isfinite(value)) return fail(p, "has no value in these results", NULL);
    ls_text_pretty(text, value, form, digits);
    return LS_OK;
}

static ls_result read_key(parser *p, uint32_t *key)
{
    char *name = NULL;
    ls_result result = expect_name(p, "expected a swept key", &name);
    if (result == LS_OK) result = find_key(p, name, key);
    ls_free(name);
    return result;
}

static ls_result read_extreme_term(parser *p, bool largest, ls_text *text)
{
    uint32_t key;
    double value = 0;
    ls_pretty form = LS_PRETTY_DIGITS;
    int digits;
    ls_result result = read_key(p, &key);
    skip_space(p);
    bool formed = p->at < p->end && *p->at == ':';
    if (result == LS_OK) result = read_form(p, &form, &digits);
    if (result != LS_OK || p->experiment == NULL) return result;
    const char *label = extreme_label(p->experiment, key, largest);
    if (label == NULL || !label_number(label, &value)) return fail(p, "no label is a number", NULL);
    if (formed) {
        ls_text_pretty(text, value, form, digits);
    } else if (value == floor(value)) {
        ls_text_pretty(text, value, LS_PRETTY_COUNT, 1);
    } else {
        ls_text_add(text, label);
    }
    return LS_OK;
}

/* A label as a sentence names it: its first word, where no other label begins with the same. */
static void add_label(const ls_stored_experiment *e, uint32_t key, const char *label, ls_text *text)
{
    size_t word = strcspn(label, " ");
    bool shared = false;
    for (uint32_t i = 0; i < e->point_count && !shared; i++) {
        const char *other = e->points[i].labels[key];
        shared = strcmp(other, label) != 0 && strncmp(other, label, word) == 0 &&
                 (other[word] == ' ' || other[word] == '\0');
    }
    ls_text_bytes(text, label, shared ? strlen(label) : word);
}

typedef enum relation { RELATION_LESS, RELATION_AT_MOST, RELATION_MORE, RELATION_AT_LEAST } relation;

static ls_result read_relation(parser *p, relation *found)
{
    bool less = take(p, '<');
    if (!less && !take(p, '>')) return fail(p, "expected < <= > or >=", NULL);
    bool equal = p->at < p->end && *p->at == '=';
    if (equal) p->at++;
    *found = less ? (equal ? RELATION_AT_MOST : RELATION_LESS) : (equal ? RELATION_AT_LEAST : RELATION_MORE);
    return LS_OK;
}

static bool holds(double left, relation by, double right)
{
    switch (by) {
    case RELATION_LESS: return left < right;
    case RELATION_AT_MOST: return left <= right;
    case RELATION_MORE: return left > right;
    case RELATION_AT_LEAST: return left >= right;
    }
    return false;
}

static ls_result condition_at(parser *p, uint32_t point, bool *met)
{
    double left, right;
    relation by = RELATION_LESS;
    ls_result result = at_point(p, point, &left);
    if (result == LS_OK) result = read_relation(p, &by);
    if (result == LS_OK) result = at_point(p, point, &right);
    if (result == LS_OK) *met = holds(left, by, right); /* false for NaN */
    return result;
}

static void add_list(const ls_stored_experiment *e, uint32_t key, const bool *met, ls_text *text)
{
    uint32_t total = 0, done = 0;
    for (uint32_t i = 0; i < e->point_count; i++) total += met[i];
    for (uint32_t i = 0; i < e->point_count; i++) {
        if (!met[i]) continue;
        ls_text_add(text, done == 0 ? "" : done + 1 == total ? " and " : ", ");
        add_label(e, key, e->points[i].labels[key], text);
        done++;
    }
    if (total == 0) ls_text_add(text, "none");
}

/* Marks the first point of each label for which the condition holds at any point. */
static ls_result read_condition(parser *p, uint32_t key, const char *except, bool *met)
{
    const char *start = p->at;
    for (uint32_t i = 0; i < turns(p); i++) {
        bool here = false;
        p->at = start;
        ls_result result = condition_at(p, i, &here);
        if (result != LS_OK) return result;
        if (p->experiment == NULL || !here) continue;
        const char *label = p->experiment->points[i].labels[key];
        bool listed = except != NULL && strcmp(label, except) == 0;
        for (uint32_t k = 0; k < i && !listed; k++) {
            listed = met[k] && strcmp(p->experiment->points[k].labels[key], label) == 0;
        }
        met[i] = !listed;
    }
    return LS_OK;
}

/* "except LABEL": up to the next keyword. */
static ls_result read_except(parser *p, uint32_t key, const char *keyword, const char **except)
{
    *except = NULL;
    if (!take_word(p, "except")) return LS_OK;
    skip_space(p);
    const char *start = p->at;
    while (p->at < p->end && strncmp(p->at, keyword, strlen(keyword)) != 0) p->at++;
    if (p->at >= p->end) return fail(p, "after \"except\" expected a label and then", keyword);
    ls_text label = {0};
    ls_text_bytes(&label, start, (size_t)(p->at - start));
    ls_result result = label.failed ? memory(p) : resolve_label(p, key, label.bytes, except);
    ls_text_free(&label);
    return result;
}

/* One point's turn of "by EXPRESSION [where CONDITION]"; value is NaN where the condition does not hold. */
static ls_result best_at(parser *p, uint32_t point, double *value)
{
    bool met = true;
    ls_result result = at_point(p, point, value);
    if (result == LS_OK && take_word(p, "where")) result = condition_at(p, point, &met);
    if (result == LS_OK && !met) *value = NAN;
    return result;
}

static ls_result read_best_term(parser *p, bool highest, ls_text *text)
{
    uint32_t key;
    const char *except = NULL;
    ls_result result = read_key(p, &key);
    if (result == LS_OK) result = read_except(p, key, " by ", &except);
    if (result != LS_OK) return result;
    if (!take_word(p, "by")) return fail(p, "expected \"by\" and an expression", NULL);
    const char *start = p->at, *best = NULL;
    double best_value = 0;
    for (uint32_t i = 0; i < turns(p); i++) {
        double value;
        p->at = start;
        result = best_at(p, i, &value);
        if (result != LS_OK) return result;
        if (p->experiment == NULL || isnan(value)) continue;
        const char *label = p->experiment->points[i].labels[key];
        if (except != NULL && strcmp(label, except) == 0) continue;
        if (best != NULL && (highest ? value <= best_value : value >= best_value)) continue;
        best = label;
        best_value = value;
    }
    if (p->experiment == NULL) return LS_OK;
    if (best == NULL) return fail(p, "has no value in these results", NULL);
    add_label(p->experiment, key, best, text);
    return LS_OK;
}

static ls_result read_list_term(parser *p, ls_text *text)
{
    uint32_t key;
    const char *except = NULL;
    ls_result result = read_key(p, &key);
    if (result == LS_OK) result = read_except(p, key, " where ", &except);
    if (result != LS_OK) return result;
    if (!take_word(p, "where")) return fail(p, "expected \"where\" and a condition", NULL);
    bool *met = ls_allocate_array((size_t)turns(p) + 1, sizeof *met);
    if (met == NULL) return memory(p);
    result = read_condition(p, key, except, met);
    if (result == LS_OK && p->experiment != NULL) add_list(p->experiment, key, met, text);
    ls_free(met);
    return result;
}

static ls_result read_term(parser *p, ls_text *text)
{
    const char *start = p->at;
    ls_result result;
    if (take_word(p, "largest")) {
        result = read_extreme_term(p, true, text);
    } else if (take_word(p, "smallest")) {
        result = read_extreme_term(p, false, text);
    } else if (take_word(p, "highest")) {
        result = read_best_term(p, true, text);
    } else if (take_word(p, "lowest")) {
        result = read_best_term(p, false, text);
    } else if (take_word(p, "list")) {
        result = read_list_term(p, text);
    } else {
        p->at = start;
        result = read_number_term(p, text);
    }
    skip_space(p);
    if (result == LS_OK && p->at != p->end) return fail(p, "not understood from here on:", p->at < p->end ? p->at : "");
    return result;
}

static ls_result read_template(parser *p, const char *text, ls_text *sentence)
{
    for (const char *at = text; *at != '\0';) {
        if (at[0] == '{' && at[1] == '{') {
            ls_text_add(sentence, "{");
            at += 2;
            continue;
        }
        if (*at != '{') {
            bool before_unit = at[0] == ' ' && at[1] == '%';
            ls_text_add(sentence, before_unit ? "\xc2\xa0" : "");
            ls_text_bytes(sentence, at, before_unit ? 0 : 1);
            at++;
            continue;
        }
        const char *close = strchr(at, '}');
        if (close == NULL)
            return ls_fail(p->error, LS_ERROR_INVALID, "answer: a { without its }; {{ stands for a brace");
        p->term = p->at = at + 1;
        p->end = close;
        p->term_length = (size_t)(close - p->at);
        p->depth = 0;
        ls_result result = read_term(p, sentence);
        if (result != LS_OK) return result;
        at = close + 1;
    }
    return sentence->failed ? memory(p) : LS_OK;
}

ls_result ls_answer_check(const char *template_text, const ls_answer_names *names, ls_error *error)
{
    parser p = {.names = names, .point = NO_POINT, .error = error};
    ls_text ignored = {0};
    ls_result result = read_template(&p, template_text, &ignored);
    ls_text_free(&ignored);
    return result;
}

ls_result ls_answer(const char *template_text, const ls_stored_experiment *experiment, const ls_published_rows *rows,
                    ls_text *text, ls_error *error)
{
    parser p = {.experiment = experiment, .rows = rows, .point = NO_POINT, .error = error};
    ls_text sentence = {0};
    ls_result result = read_template(&p, template_text, &sentence);
    if (result == LS_OK && sentence.length > 0) ls_text_bytes(text, sentence.bytes, sentence.length);
    ls_text_free(&sentence);
    return result;
}
