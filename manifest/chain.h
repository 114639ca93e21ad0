/* chain.h - an entry as 48 bytes, and the chain: the running CRC32C over every entry a lake ever committed.
 *
 * The chain at step s is the CRC32C of the encodings of entries 0 .. s-1 one after the other, trimmed ones included; at
 * step 0 it is 0. It belongs to the history, not to an object: each in-memory version carries its chain forward in
 * O(what it adds), an encoder writes it down without looking at the old entries again, and a reader who holds the chain
 * at step s checks entries s, s+1, ... alone and learns at the same time that the object continues the history he
 * knows. (A world that begins with a trim point above 0 and no past begins its chain there, with 0.)
 */
#ifndef LS_CHAIN_H
#define LS_CHAIN_H

#include "manifest/manifest.h"

/* Entries to and from their encodings, each LS_MANIFEST_ENTRY_BYTES long: producer, sequence, source_begin, source_end,
 * size_bytes (8 bytes each), epoch, footer_bytes (4 bytes each), little-endian. Encodings to be loaded lie stride bytes
 * apart, at least LS_MANIFEST_ENTRY_BYTES. */
void ls_entries_store(uint8_t *bytes, const ls_entry *entries, uint64_t count);
void ls_entries_load(ls_entry *entries, const uint8_t *bytes, size_t stride, uint64_t count);

/* The chain after these entries, given the chain before them. */
uint32_t ls_chain_extend(uint32_t chain, const ls_entry *entries, uint64_t count);

#endif
