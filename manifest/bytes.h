/* bytes.h - little-endian numbers in byte arrays, and a bounds-checked way through bytes that came from outside.
 *
 * Every format of the project is little-endian and unaligned, so numbers are put together byte by byte: compilers turn
 * each of these functions into one move on a little-endian machine, and a big-endian one gets the right answer too. No
 * struct is ever laid over a buffer.
 */
#ifndef LS_BYTES_H
#define LS_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline uint16_t ls_load_u16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t ls_load_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t ls_load_u64(const uint8_t *bytes)
{
    return (uint64_t)ls_load_u32(bytes) | (uint64_t)ls_load_u32(bytes + 4) << 32;
}

static inline void ls_store_u16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static inline void ls_store_u32(uint8_t *bytes, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

static inline void ls_store_u64(uint8_t *bytes, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

/* Bytes not yet taken. The end may be taken first: trailers tell what lies before them. */
typedef struct ls_cursor {
    const uint8_t *bytes;
    uint64_t left;
} ls_cursor;

/* The next `count` bytes from the front or from the back; NULL, and nothing taken, when fewer are left. */
static inline const uint8_t *ls_cursor_take(ls_cursor *cursor, uint64_t count)
{
    if (count > cursor->left) return NULL;
    const uint8_t *taken = cursor->bytes;
    cursor->bytes += count;
    cursor->left -= count;
    return taken;
}

static inline const uint8_t *ls_cursor_take_last(ls_cursor *cursor, uint64_t count)
{
    if (count > cursor->left) return NULL;
    cursor->left -= count;
    return cursor->bytes + cursor->left;
}

#endif
