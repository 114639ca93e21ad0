/* test_key.c - names of objects: exact texts, exact parsing, order; and the names of operations and replies. */
#include "manifest/exchange.h"
#include "tests/suite.h"

#include <string.h>

static const struct {
    ls_key key;
    const char *text;
} known[] = {
    {{LS_OBJECT_DATA, 0, 0, 0, 0, 0, 0}, "data/0/0-0.tgb"},
    {{LS_OBJECT_DATA, 3, 17, 42, 0, 0, 0}, "data/17/3-42.tgb"},
    {{LS_OBJECT_DATA, UINT32_MAX, UINT64_MAX, UINT64_MAX, 0, 0, 0},
     "data/18446744073709551615/4294967295-18446744073709551615.tgb"},
    {{LS_OBJECT_MANIFEST, 0, 7, 0, 0, 0, 0}, "manifest/00000000000000000007"},
    {{LS_OBJECT_MANIFEST, 0, UINT64_MAX, 0, 0, 0, 0}, "manifest/18446744073709551615"},
    {{LS_OBJECT_CHECKPOINT, LS_CHECKPOINT_AUTO, 1200, 7, 0, 0, 0}, "checkpoint/00000000000000001200-7.auto"},
    {{LS_OBJECT_CHECKPOINT, LS_CHECKPOINT_NAMED, 1, 0, 0, 0, 0}, "checkpoint/00000000000000000001-0.named"},
    {{LS_OBJECT_CHECKPOINT, LS_CHECKPOINT_PIN, UINT64_MAX, UINT64_MAX, 0, 0, 0},
     "checkpoint/18446744073709551615-18446744073709551615.pin"},
    {{LS_OBJECT_FLOOR, 0, 0, 0, 0, 0, 0}, "floor/00000000000000000000"},
};
#define KNOWN_KEYS (sizeof known / sizeof known[0])

static void test_text(void)
{
    for (size_t i = 0; i < KNOWN_KEYS; i++) {
        char text[LS_KEY_TEXT_BYTES];
        CU_ASSERT_EQUAL(ls_key_format(&known[i].key, text), strlen(known[i].text));
        CU_ASSERT_STRING_EQUAL(text, known[i].text);
        ls_key key = {.kind = LS_OBJECT_FLOOR, .epoch = 9, .number = 9, .sequence = 9};
        CU_ASSERT_EQUAL(ls_key_parse(known[i].text, &key), LS_OK);
        CU_ASSERT_EQUAL(ls_key_compare(&key, &known[i].key), 0);
    }
    ls_key nothing = {0};
    char text[LS_KEY_TEXT_BYTES] = "x";
    CU_ASSERT_EQUAL(ls_key_format(&nothing, text), 0);
    CU_ASSERT_STRING_EQUAL(text, "");
}

static void test_constructors(void)
{
    ls_key manifest = ls_key_manifest(7), floor = ls_key_floor(0), data = ls_key_data(17, 3, 42);
    CU_ASSERT_EQUAL(ls_key_compare(&manifest, &known[3].key), 0);
    CU_ASSERT_EQUAL(ls_key_compare(&floor, &known[8].key), 0);
    CU_ASSERT_EQUAL(ls_key_compare(&data, &known[1].key), 0);
    ls_key checkpoint = ls_key_checkpoint(1200, 7, LS_CHECKPOINT_AUTO);
    CU_ASSERT_EQUAL(ls_key_compare(&checkpoint, &known[5].key), 0);
}

static void test_foreign_names(void)
{
    static const char *const foreign[] = {"",
                                          "/",
                                          "data",
                                          "data/",
                                          "data/1",
                                          "data/1/",
                                          "data/1/1",
                                          "data/1/1-",
                                          "data/1/1-1",
                                          "data/1/1-1.tg",
                                          "data/1/1-1.tgb ",
                                          "data/1/1-1.tgb/",
                                          "data/1/1-1.TGB",
                                          "Data/1/1-1.tgb",
                                          "/data/1/1-1.tgb",
                                          "data/01/1-1.tgb",
                                          "data/1/01-1.tgb",
                                          "data/1/1-01.tgb",
                                          "data/+1/1-1.tgb",
                                          "data/-1/1-1.tgb",
                                          "data/ 1/1-1.tgb",
                                          "data/1/1--1.tgb",
                                          "data//1-1.tgb",
                                          "data/18446744073709551616/1-1.tgb",
                                          "data/1/4294967296-1.tgb",
                                          "data/1/1-18446744073709551616.tgb",
                                          "data/1/1-99999999999999999999999999.tgb",
                                          "manifest/",
                                          "manifest/7",
                                          "manifest/0000000000000000007",
                                          "manifest/000000000000000000007",
                                          "manifest/18446744073709551616",
                                          "manifest/0000000000000000000x",
                                          "manifest/00000000000000000007.tmp",
                                          "manifest/00000000000000000007/",
                                          "checkpoint/latest",
                                          "checkpoint/1",
                                          "checkpoint/00000000000000001200",
                                          "checkpoint/00000000000000001200-7",
                                          "checkpoint/00000000000000001200-7.",
                                          "checkpoint/00000000000000001200-07.auto",
                                          "checkpoint/00000000000000001200-7.auto2",
                                          "checkpoint/1200-7.pin",
                                          "floor/",
                                          "floors/00000000000000000007",
                                          "manifestx00000000000000000007"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        ls_key key = known[1].key;
        CU_ASSERT_EQUAL(ls_key_parse(foreign[i], &key), LS_ERROR_INVALID);
        CU_ASSERT_EQUAL(ls_key_compare(&key, &known[1].key), 0);
    }
}

static void test_order(void)
{
    const ls_key rising[] = {ls_key_data(1, 9, 9), ls_key_data(2, 0, 9), ls_key_data(2, 1, 0), ls_key_data(2, 1, 10),
                             ls_key_manifest(0), ls_key_manifest(UINT64_MAX), ls_key_floor(0)};
    const int count = sizeof rising / sizeof rising[0];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            int order = ls_key_compare(&rising[i], &rising[j]);
            CU_ASSERT_EQUAL((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
    char low[LS_KEY_TEXT_BYTES], high[LS_KEY_TEXT_BYTES];
    const ls_key nine = ls_key_manifest(9), ten = ls_key_manifest(10);
    ls_key_format(&nine, low);
    ls_key_format(&ten, high);
    CU_ASSERT(strcmp(low, high) < 0);
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(ls_operation_name(LS_DELETE), "delete");
    CU_ASSERT_STRING_EQUAL(ls_operation_name((ls_operation)99), "unknown operation");
    CU_ASSERT_STRING_EQUAL(ls_reply_status_name(LS_REPLY_CONFLICT_RETRY), "conflict, retry");
    CU_ASSERT_STRING_EQUAL(ls_reply_status_name((ls_reply_status)99), "unknown reply");
    for (int i = LS_REPLY_OK; i <= LS_REPLY_INVALID; i++) {
        for (int j = LS_REPLY_OK; j < i; j++) {
            CU_ASSERT_STRING_NOT_EQUAL(ls_reply_status_name((ls_reply_status)i),
                                       ls_reply_status_name((ls_reply_status)j));
        }
    }
}

LS_SUITE(key, {"texts and back", test_text}, {"constructors", test_constructors},
         {"foreign names refused", test_foreign_names}, {"order", test_order}, {"operations and replies", test_names})
