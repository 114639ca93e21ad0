/* key.h - names of objects: data/<producer>/<epoch>-<sequence>.tgb, manifest/<20 digits>, checkpoint/<name>, floor/<20 digits>.
 *
 * Inside the protocol a name is this small struct, so a simulated request formats nothing; real stores get the text.
 * Producer, epoch and sequence are decimal; version and floor are zero-padded to 20 digits, so that text order is numeric order.
 */
#ifndef LS_KEY_H
#define LS_KEY_H

#include "manifest/base.h"

typedef enum ls_object_kind {
    LS_OBJECT_DATA = 1,       /* one TGB */
    LS_OBJECT_MANIFEST = 2,   /* one manifest version */
    LS_OBJECT_CHECKPOINT = 3, /* one checkpoint */
    LS_OBJECT_FLOOR = 4       /* versions below `number` are void (PROTOCOL.md) */
} ls_object_kind;

typedef struct ls_key {
    ls_object_kind kind;
    uint32_t epoch;    /* data: the producer's epoch */
    uint64_t number;   /* data: producer id; manifest, floor: version; checkpoint: its number */
    uint64_t sequence; /* data: upload number within the epoch */
} ls_key;

#define LS_KEY_TEXT_BYTES 96 /* enough for every key with its terminating NUL */

ls_key ls_key_manifest(uint64_t version);
ls_key ls_key_floor(uint64_t version);
ls_key ls_key_data(uint64_t producer, uint32_t epoch, uint64_t sequence);

/* Writes the key's text (without any prefix) into text and returns its length. */
size_t ls_key_format(const ls_key *key, char text[LS_KEY_TEXT_BYTES]);

/* Reads a key from NUL-terminated text that came from a store. Returns LS_ERROR_INVALID for anything that ls_key_format
 * would not have written, to the letter (so a foreign object under the prefix is never taken for ours). */
ls_result ls_key_parse(const char *text, ls_key *key);

/* Total order: kind, then number, epoch, sequence. Negative, zero or positive. */
int ls_key_compare(const ls_key *left, const ls_key *right);

#endif
