/* test_crc32c.c - published known answers, and every implementation against the definition, bit by bit. */
#include "manifest/crc32c.h"
#include "manifest/random.h"
#include "tests/suite.h"

#include <string.h>

typedef uint32_t (*crc_function)(uint32_t crc, const void *bytes, size_t length);
static const crc_function functions[] = {ls_crc32c, ls_crc32c_portable};

/* The definition: polynomial division, one bit at a time. */
static uint32_t by_definition(uint32_t crc, const uint8_t *bytes, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms (CRC-32/ISCSI). */
static void test_known_answers(void)
{
    static const uint8_t read_command[48] = {0x01, 0xc0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0,
                                             0x14, 0,    0, 0, 0,    0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                             0x28, 0,    0, 0, 0,    0, 0, 0, 2, 0, 0, 0, 0,    0, 0, 0};
    uint8_t zeros[32] = {0}, ones[32], rising[32], falling[32];
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++) {
        rising[i] = i;
        falling[i] = (uint8_t)(31 - i);
    }
    for (size_t f = 0; f < 2; f++) {
        CU_ASSERT_EQUAL(functions[f](0, zeros, 32), 0x8a9136aa);
        CU_ASSERT_EQUAL(functions[f](0, ones, 32), 0x62a8ab43);
        CU_ASSERT_EQUAL(functions[f](0, rising, 32), 0x46dd794e);
        CU_ASSERT_EQUAL(functions[f](0, falling, 32), 0x113fdb5c);
        CU_ASSERT_EQUAL(functions[f](0, read_command, 48), 0xd9963a56);
        CU_ASSERT_EQUAL(functions[f](0, "123456789", 9), 0xe3069283);
        CU_ASSERT_EQUAL(functions[f](0, "", 0), 0);
    }
}

#define CONTENT_BYTES 16384u

static void fill(uint8_t *bytes, size_t length)
{
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    for (size_t i = 0; i < length; i++) bytes[i] = (uint8_t)ls_random_next(&random);
}

/* Lengths around every border of the lanes (8, 768 and 6144 bytes and multiples), from unaligned addresses. */
static void test_against_definition(void)
{
    static const size_t lengths[] = {1,    7,    8,    9,    47,   48,   767,  768,   769,  775,
                                     1535, 1536, 2304, 6143, 6144, 6145, 6912, 12288, 15000};
    static uint8_t bytes[CONTENT_BYTES];
    fill(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t start = 0; start < 8; start += 3) {
            uint32_t expected = by_definition(0x12345678, bytes + start, lengths[i]);
            for (size_t f = 0; f < 2; f++) {
                CU_ASSERT_EQUAL(functions[f](0x12345678, bytes + start, lengths[i]), expected);
            }
        }
    }
}

static void test_continuation(void)
{
    static uint8_t bytes[CONTENT_BYTES];
    fill(bytes, sizeof bytes);
    ls_random random = ls_random_open(2, 0, LS_RANDOM_TEST, 0);
    uint32_t whole = by_definition(0, bytes, sizeof bytes);
    for (int round = 0; round < 50; round++) {
        size_t cut = (size_t)ls_random_below(&random, sizeof bytes + 1);
        for (size_t f = 0; f < 2; f++) {
            CU_ASSERT_EQUAL(functions[f](functions[1 - f](0, bytes, cut), bytes + cut, sizeof bytes - cut), whole);
        }
    }
}

LS_SUITE(crc32c, {"known answers of RFC 3720", test_known_answers},
         {"every length and alignment as defined", test_against_definition}, {"in pieces as in one", test_continuation})
