/* crc32c.h - CRC32C (Castagnoli), the checksum of every format of the project; RFC 3720, appendix B.4.
 *
 * Chosen because processors compute it: with SSE4.2 or ARMv8's CRC instructions it runs near memory speed, so checking
 * is never worth leaving out. It finds every burst of up to 32 bits, and every two flipped bits in objects up to 256
 * MiB.
 */
#ifndef LS_CRC32C_H
#define LS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC32C of the bytes behind `crc` (0 to begin with) and these: crc32c(crc32c(0, a), b) is that of a and b
 * together. */
uint32_t ls_crc32c(uint32_t crc, const void *bytes, size_t length);

/* The same by tables alone, for machines without instructions for it and to check the others against. */
uint32_t ls_crc32c_portable(uint32_t crc, const void *bytes, size_t length);

/* How ls_crc32c computes on this machine: "sse4.2+pclmul", "sse4.2", "armv8" or "portable". */
const char *ls_crc32c_method(void);

#endif
