/* fuzz_svg.c - arbitrary bytes as a picture (libFuzzer): refused, or made into an element that an XML parser takes, in
 * which nothing but known elements is left and no reference leaves the page. */
#include "experiments/markup.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static void on_start(void *context, const char *name, const char **attributes)
{
    (void)context;
    require(strcmp(name, "script") != 0 && strcmp(name, "a") != 0 && strcmp(name, "foreignObject") != 0);
    for (size_t i = 0; attributes[i] != NULL; i += 2) {
        const char *value = attributes[i + 1];
        require(strncmp(attributes[i], "on", 2) != 0 && strcmp(attributes[i], "style") != 0);
        if (strcmp(attributes[i], "href") == 0)
            require(strncmp(value, "#p-", 3) == 0 || strncmp(value, "data:image/png;", 15) == 0);
        if (strcmp(attributes[i], "id") == 0) require(strncmp(value, "p-", 2) == 0);
        bool named = strcmp(attributes[i], "id") == 0 || strcmp(attributes[i], "href") == 0;
        if (!named && strstr(value, "url(") != NULL) require(strncmp(value, "url(#p-", 7) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_text text = {0};
    double width;
    ls_error error = {""};
    char *svg = malloc(size + 1);
    require(svg != NULL);
    if (size > 0) memcpy(svg, data, size);
    svg[size] = '\0';
    ls_result result = ls_svg_inline(svg, size, "p", "label", &text, &width, &error);
    require(result == LS_OK || (result == LS_ERROR_CORRUPT && error.text[0] != '\0' && text.length == 0));
    if (result == LS_OK) {
        XML_Parser parser = XML_ParserCreate("UTF-8");
        require(parser != NULL);
        XML_SetElementHandler(parser, on_start, NULL);
        require(XML_Parse(parser, text.bytes, (int)text.length, 1) == XML_STATUS_OK);
        XML_ParserFree(parser);
    }
    ls_text_free(&text);
    free(svg);
    return 0;
}
