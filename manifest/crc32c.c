/* crc32c.c - CRC32C by processor instruction where there is one, by tables otherwise (see crc32c.h).
 *
 * portable  "Slicing-by-8" (Kounavis and Berry, "A systematic approach to building high performance, software-based,
 * CRC
 *           generators", ISCC 2005): eight look-ups take eight bytes at once. A CRC is linear over GF(2), so a table's
 *           256 values are the XORs of the eight values for single bits; only those 64 numbers are written down here,
 *           and the compiler makes the tables from them.
 * sse4.2    The instruction crc32 takes 8 bytes a cycle but answers after three, so one running CRC wastes two cycles
 * of
 *           three. Three lanes run side by side over three neighbouring pieces; then lanes 1 and 2 are carried over the
 *           bytes to their right by a carry-less multiplication (Gopal et al., "Fast CRC computation for iSCSI
 *           polynomial using CRC32 instruction", Intel, 2011). In the reflected representation crc32(0, a * k) is a * k
 *           * x^33 mod P, so moving a CRC over n bytes takes the constant k = x^(8n - 33) mod P.
 * armv8     The instruction crc32cx, one lane.
 *
 * Which one is decided at each call from what the C library already knows of the processor: a load and a test, without
 * a function pointer that could be read before it is set.
 */
#include "manifest/crc32c.h"

#include "manifest/bytes.h"

#define ENTRY(i, b0, b1, b2, b3, b4, b5, b6, b7)                                                                       \
    (((i) & 1 ? b0 : 0u) ^ ((i) & 2 ? b1 : 0u) ^ ((i) & 4 ? b2 : 0u) ^ ((i) & 8 ? b3 : 0u) ^ ((i) & 16 ? b4 : 0u) ^    \
     ((i) & 32 ? b5 : 0u) ^ ((i) & 64 ? b6 : 0u) ^ ((i) & 128 ? b7 : 0u))
#define ENTRIES_4(i, ...)                                                                                              \
    ENTRY(i, __VA_ARGS__), ENTRY(i + 1, __VA_ARGS__), ENTRY(i + 2, __VA_ARGS__), ENTRY(i + 3, __VA_ARGS__)
#define ENTRIES_16(i, ...)                                                                                             \
    ENTRIES_4(i, __VA_ARGS__), ENTRIES_4(i + 4, __VA_ARGS__), ENTRIES_4(i + 8, __VA_ARGS__),                           \
        ENTRIES_4(i + 12, __VA_ARGS__)
#define ENTRIES_64(i, ...)                                                                                             \
    ENTRIES_16(i, __VA_ARGS__), ENTRIES_16(i + 16, __VA_ARGS__), ENTRIES_16(i + 32, __VA_ARGS__),                      \
        ENTRIES_16(i + 48, __VA_ARGS__)
#define TABLE(...)                                                                                                     \
    {                                                                                                                  \
        ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__),                         \
            ENTRIES_64(192, __VA_ARGS__)                                                                               \
    }

/* tables[k][v]: what a byte v does to the CRC once k further bytes have passed. */
static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

uint32_t ls_crc32c_portable(uint32_t crc, const void *bytes, size_t length)
{
    const uint8_t *next = bytes;
    uint32_t state = ~crc;
    for (; length >= 8; length -= 8, next += 8) {
        uint32_t low = ls_load_u32(next) ^ state, high = ls_load_u32(next + 4);
        state = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
                tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
                tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; length > 0; length--, next++) state = state >> 8 ^ tables[0][(state ^ *next) & 0xff];
    return ~state;
}

#if defined(__x86_64__)

#include <nmmintrin.h>
#include <wmmintrin.h>

/* Two lane lengths: long lanes waste little on the multiplications, short ones serve what is left. */
#define LONG_LANE_BYTES  2048u
#define SHORT_LANE_BYTES 256u
#define LONG_OVER_ONE    0xa51b6135u /* x^(8 * 2048 - 33) mod P, reflected; and so on */
#define LONG_OVER_TWO    0x82f89c77u
#define SHORT_OVER_ONE   0xb9e02b86u
#define SHORT_OVER_TWO   0xdd7e3b0cu

__attribute__((target("sse4.2"))) static uint64_t one_lane(uint64_t state, const uint8_t *bytes, size_t length)
{
    for (; length >= 8; length -= 8, bytes += 8) state = _mm_crc32_u64(state, ls_load_u64(bytes));
    for (; length > 0; length--, bytes++) state = _mm_crc32_u8((uint32_t)state, *bytes);
    return state;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t carried_over(uint64_t state, uint32_t constant)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state), _mm_cvtsi64_si128(constant), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t three_lanes(uint64_t state, const uint8_t *bytes,
                                                                      size_t lane_bytes, uint32_t over_one,
                                                                      uint32_t over_two)
{
    const uint8_t *end = bytes + lane_bytes;
    uint64_t second = 0, third = 0;
    for (; bytes < end; bytes += 8) {
        state = _mm_crc32_u64(state, ls_load_u64(bytes));
        second = _mm_crc32_u64(second, ls_load_u64(bytes + lane_bytes));
        third = _mm_crc32_u64(third, ls_load_u64(bytes + 2 * lane_bytes));
    }
    return carried_over(state, over_two) ^ carried_over(second, over_one) ^ third;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t many_lanes(uint64_t state, const uint8_t *bytes, size_t length)
{
    for (; length >= 3 * LONG_LANE_BYTES; length -= 3 * LONG_LANE_BYTES, bytes += 3 * LONG_LANE_BYTES) {
        state = three_lanes(state, bytes, LONG_LANE_BYTES, LONG_OVER_ONE, LONG_OVER_TWO);
    }
    for (; length >= 3 * SHORT_LANE_BYTES; length -= 3 * SHORT_LANE_BYTES, bytes += 3 * SHORT_LANE_BYTES) {
        state = three_lanes(state, bytes, SHORT_LANE_BYTES, SHORT_OVER_ONE, SHORT_OVER_TWO);
    }
    return one_lane(state, bytes, length);
}

uint32_t ls_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    if (!__builtin_cpu_supports("sse4.2")) return ls_crc32c_portable(crc, bytes, length);
    if (length < 3 * SHORT_LANE_BYTES || !__builtin_cpu_supports("pclmul"))
        return ~(uint32_t)one_lane(~crc, bytes, length);
    return ~(uint32_t)many_lanes(~crc, bytes, length);
}

const char *ls_crc32c_method(void)
{
    if (!__builtin_cpu_supports("sse4.2")) return "portable";
    return __builtin_cpu_supports("pclmul") ? "sse4.2+pclmul" : "sse4.2";
}

#elif defined(__aarch64__) && defined(__linux__)

#include <stdbool.h>
#include <sys/auxv.h>

static bool has_instruction(void)
{
#if defined(__ARM_FEATURE_CRC32)
    return true;
#else
    return (getauxval(AT_HWCAP) & 1ul << 7) != 0; /* HWCAP_CRC32 */
#endif
}

/* Written as assembly because compilers offer the intrinsic only when the whole file is compiled for it. */
static uint32_t one_lane(uint32_t state, const uint8_t *bytes, size_t length)
{
    for (; length >= 8; length -= 8, bytes += 8) {
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(ls_load_u64(bytes)));
    }
    for (; length > 0; length--, bytes++) {
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"((uint32_t)*bytes));
    }
    return state;
}

uint32_t ls_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    if (!has_instruction()) return ls_crc32c_portable(crc, bytes, length);
    return ~one_lane(~crc, bytes, length);
}

const char *ls_crc32c_method(void)
{
    return has_instruction() ? "armv8" : "portable";
}

#else

uint32_t ls_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    return ls_crc32c_portable(crc, bytes, length);
}

const char *ls_crc32c_method(void)
{
    return "portable";
}

#endif
