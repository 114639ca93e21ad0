/* markup.c - see markup.h. The SVG is read by Expat and written anew from a list of what is known to be harmless:
 * a list of what is forbidden would never be complete. */
#include "experiments/markup.h"

#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at s that XML allows, 0 if there is none (RFC 3629; overlong forms and
 * surrogates are refused, U+FFFE and U+FFFF by XML). */
static size_t sequence_length(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
    if (s[0] == 0xed && s[1] > 0x9f) return 0;
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
    if (s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe) return 0;
    return length;
}

static void add_character(ls_text *text, const char *c, size_t length)
{
    switch (*c) {
    case '&': ls_text_add(text, "&amp;"); return;
    case '<': ls_text_add(text, "&lt;"); return;
    case '>': ls_text_add(text, "&gt;"); return;
    case '"': ls_text_add(text, "&quot;"); return;
    case '\'': ls_text_add(text, "&#39;"); return;
    default: break;
    }
    bool control = (unsigned char)*c < 0x20 && *c != '\n' && *c != '\t';
    ls_text_bytes(text, control || *c == 0x7f ? " " : c, length);
}

static void add_markup(ls_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t one = sequence_length((const unsigned char *)bytes + i);
        if (one == 0) ls_text_add(text, "\xef\xbf\xbd");
        if (one > 0) add_character(text, bytes + i, one);
        i += one > 0 ? one : 1;
    }
}

void ls_text_markup(ls_text *text, const char *string) { add_markup(text, string, strlen(string)); }

typedef struct svg_writer {
    ls_text *text;
    const char *prefix;
    const char *label;
    char **ids; /* seen so far */
    uint32_t id_count;
    int depth;    /* of elements written */
    int skipping; /* depth inside an element that is left out; 0: none */
    int in_text;  /* depth inside text elements */
    bool failed;  /* out of memory */
    bool is_svg;
    double width;
    double height;
} svg_writer;

static bool in_list(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], name) == 0) return true;
    }
    return false;
}

static bool element_allowed(const char *name)
{
    static const char *const allowed[] = {
        "svg",     "g",           "path",           "rect",           "circle",
        "ellipse", "line",        "polyline",       "polygon",        "text",
        "tspan",   "use",         "defs",           "symbol",         "marker",
        "mask",    "clipPath",    "stop",           "linearGradient", "radialGradient",
        "image",   "pattern",     "filter",         "feFlood",        "feBlend",
        "feMerge", "feComposite", "feGaussianBlur", "feOffset",       "feMergeNode"};
    return in_list(allowed, sizeof allowed / sizeof allowed[0], name);
}

/* First time seen? Remembers it. */
static bool new_id(svg_writer *w, const char *id)
{
    for (uint32_t i = 0; i < w->id_count; i++) {
        if (strcmp(w->ids[i], id) == 0) return false;
    }
    char **ids = ls_reallocate(w->ids, (w->id_count + 1) * sizeof *ids);
    if (ids != NULL) w->ids = ids;
    char *copy = ids != NULL ? ls_duplicate(id) : NULL;
    if (copy == NULL) {
        w->failed = true;
        return false;
    }
    w->ids[w->id_count++] = copy;
    return true;
}

static void add_attribute(svg_writer *w, const char *name, const char *before, const char *value)
{
    ls_text_format(w->text, " %s=\"%s", name, before);
    ls_text_markup(w->text, value);
    ls_text_add(w->text, "\"");
}

static void add_reference(svg_writer *w, const char *value)
{
    if (value[0] == '#') {
        ls_text_format(w->text, " href=\"#%s-", w->prefix);
        ls_text_markup(w->text, value + 1);
        ls_text_add(w->text, "\"");
    } else if (strncmp(value, "data:image/png;", 15) == 0) {
        add_attribute(w, "href", "", value);
    }
}

/* A value that names something of the page, "url(#x)": the name gets the prefix. Other urls are dropped. */
static void add_value(svg_writer *w, const char *name, const char *value)
{
    static const char *const openings[] = {"url(#", "url('#", "url(\"#"};
    if (strstr(value, "url") == NULL) {
        add_attribute(w, name, "", value);
        return;
    }
    for (int i = 0; i < 3; i++) {
        size_t opening = strlen(openings[i]), inner = strcspn(value + (strlen(value) > opening ? opening : 0), "'\")");
        if (strncmp(value, openings[i], opening) != 0) continue;
        ls_text_format(w->text, " %s=\"url(#%s-", name, w->prefix);
        add_markup(w->text, value + opening, inner);
        ls_text_add(w->text, ")\"");
        return;
    }
}

/* The level, 0 to 15, of a grey, black or white as gnuplot writes it: "black", "#dddddd", "rgb( 68,  68,  68)". */
static bool grey_level(const char *value, int *level)
{
    static const char *const names[] = {"black", "white", "gray", "grey", "lightgrey"};
    static const int levels[] = {0, 255, 128, 128, 211};
    int red = 0, green = 0, blue = 0, end = 0;
    for (int i = 0; i < 5; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        *level = (levels[i] + 8) / 17;
        return true;
    }
    bool hex = sscanf(value, "#%2x%2x%2x%n", (unsigned *)&red, (unsigned *)&green, (unsigned *)&blue, &end) == 3;
    if (!hex && sscanf(value, "rgb( %d , %d , %d )%n", &red, &green, &blue, &end) != 3) return false;
    if (end == 0 || value[end] != '\0' || red != green || green != blue || red < 0 || red > 255) return false;
    *level = (red + 8) / 17;
    return true;
}

/* Greys are the page's to choose: light on dark becomes dark on light with its scheme. */
static bool add_colour(svg_writer *w, const char *name, const char *value)
{
    static const char *const colours[] = {"fill", "stroke", "color", "flood-color", "stop-color"};
    int level;
    if (!in_list(colours, sizeof colours / sizeof colours[0], name) || !grey_level(value, &level)) return false;
    ls_text_format(w->text, " %s=\"var(--grey-%x)\"", name, (unsigned)level);
    return true;
}

static const char *attribute_of(const char *const *attributes, const char *name)
{
    for (size_t i = 0; attributes[i] != NULL; i += 2) {
        if (strcmp(attributes[i], name) == 0) return attributes[i + 1];
    }
    return NULL;
}

static bool is_background(const svg_writer *w, const char *name, const char *const *attributes)
{
    const char *width = attribute_of(attributes, "width"), *height = attribute_of(attributes, "height");
    return strcmp(name, "rect") == 0 && width != NULL && height != NULL && w->width > 0 &&
           strtod(width, NULL) >= w->width && strtod(height, NULL) >= w->height;
}

static void add_attributes(svg_writer *w, const char *element, const char *const *attributes)
{
    bool background = is_background(w, element, attributes), root = w->depth == 0;
    for (size_t i = 0; attributes[i] != NULL; i += 2) {
        const char *name = attributes[i], *value = attributes[i + 1];
        bool reference = strcmp(name, "href") == 0 || strcmp(name, "xlink:href") == 0;
        bool dropped = strncmp(name, "on", 2) == 0 || strncmp(name, "xmlns", 5) == 0 || strcmp(name, "style") == 0 ||
                       strcmp(name, "class") == 0 || (background && strcmp(name, "fill") == 0) ||
                       (root && (strcmp(name, "width") == 0 || strcmp(name, "height") == 0)) ||
                       /* The page has a font for all figures; Symbol alone means other letters. */
                       (strcmp(name, "font-family") == 0 && strcmp(value, "Symbol") != 0);
        if (reference) {
            add_reference(w, value);
        } else if (strcmp(name, "id") == 0) {
            if (!new_id(w, value)) continue;
            ls_text_format(w->text, " id=\"%s-", w->prefix);
            ls_text_markup(w->text, value);
            ls_text_add(w->text, "\"");
        } else if (!dropped && (strchr(name, ':') == NULL || strcmp(name, "xml:space") == 0)) {
            if (!add_colour(w, name, value)) add_value(w, name, value);
        }
    }
    if (background) ls_text_add(w->text, " fill=\"none\"");
}

static void read_size(svg_writer *w, const char *const *attributes)
{
    const char *box = attribute_of(attributes, "viewBox");
    if (box == NULL) return;
    char *end;
    strtod(box, &end);
    strtod(end, &end);
    w->width = strtod(end, &end);
    w->height = strtod(end, NULL);
}

static void on_start(void *context, const char *name, const char **attributes)
{
    svg_writer *w = context;
    if (w->skipping > 0 || !element_allowed(name)) {
        w->skipping++;
        return;
    }
    if (w->depth == 0) {
        w->is_svg = strcmp(name, "svg") == 0;
        read_size(w, (const char *const *)attributes);
    }
    ls_text_format(w->text, "<%s", name);
    if (w->depth == 0) {
        ls_text_add(w->text, " xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"");
        ls_text_markup(w->text, w->label);
        ls_text_add(w->text, "\"");
    }
    add_attributes(w, name, (const char *const *)attributes);
    ls_text_add(w->text, ">");
    w->depth++;
    if (strcmp(name, "text") == 0) w->in_text++;
}

static void on_end(void *context, const char *name)
{
    svg_writer *w = context;
    if (w->skipping > 0) {
        w->skipping--;
        return;
    }
    if (strcmp(name, "text") == 0) w->in_text--;
    w->depth--;
    ls_text_format(w->text, "</%s>", name);
    if (w->in_text == 0) ls_text_add(w->text, "\n");
}

static void on_text(void *context, const char *bytes, int length)
{
    svg_writer *w = context;
    if (w->in_text > 0 && w->skipping == 0) add_markup(w->text, bytes, (size_t)length);
}

/* gnuplot copies titles as they are: what XML forbids in them would make the whole picture unreadable. */
static void add_clean(ls_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t one = sequence_length((const unsigned char *)bytes + i);
        unsigned char c = (unsigned char)bytes[i];
        bool control = c < 0x20 && c != '\n' && c != '\t' && c != '\r';
        bool section_end = c == '>' && i >= 2 && bytes[i - 1] == ']' && bytes[i - 2] == ']';
        if (one == 0) ls_text_add(text, "\xef\xbf\xbd");
        if (section_end) ls_text_add(text, "&gt;");
        if (one > 0 && !section_end) ls_text_bytes(text, control ? " " : bytes + i, one);
        i += one > 0 ? one : 1;
    }
}

ls_result ls_svg_inline(const char *svg, size_t length, const char *prefix, const char *label, ls_text *text,
                        double *width, ls_error *error)
{
    ls_text inner = {0}, clean = {0};
    svg_writer w = {.text = &inner, .prefix = prefix, .label = label};
    add_clean(&clean, svg, length);
    XML_Parser parser = clean.failed ? NULL : XML_ParserCreate("UTF-8");
    if (parser == NULL) {
        ls_text_free(&clean);
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    XML_SetUserData(parser, &w);
    XML_SetElementHandler(parser, on_start, on_end);
    XML_SetCharacterDataHandler(parser, on_text);
    bool good = clean.length < INT32_MAX && XML_Parse(parser, clean.bytes, (int)clean.length, 1) == XML_STATUS_OK;
    ls_result result = LS_OK;
    if (!good) {
        result = ls_fail(error, LS_ERROR_CORRUPT, "no well-formed SVG: line %lu: %s",
                         (unsigned long)XML_GetCurrentLineNumber(parser), XML_ErrorString(XML_GetErrorCode(parser)));
    } else if (!w.is_svg) {
        result = ls_fail(error, LS_ERROR_CORRUPT, "no SVG: its first element is another");
    } else if (w.failed || inner.failed) {
        result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    if (result == LS_OK) {
        ls_text_bytes(text, inner.bytes, inner.length);
        *width = w.width;
    }
    XML_ParserFree(parser);
    for (uint32_t i = 0; i < w.id_count; i++) ls_free(w.ids[i]);
    ls_free(w.ids);
    ls_text_free(&inner);
    ls_text_free(&clean);
    return result;
}
