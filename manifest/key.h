/* key.h - names of objects: data/<producer>/<epoch>-<sequence>.tgb, manifest/<20 digits>, floor/<20 digits>,
 *         checkpoint/<20 digits>-<step>.<auto, named or pin>.
 *
 * Inside the protocol a name is this small struct, so a simulated request formats nothing; real stores get the text.
 * Producer, epoch, sequence and step are decimal; version, floor and a checkpoint's number are zero-padded to 20 digits, so that
 * text order is numeric order. A checkpoint's name tells all that protects data: who reclaims needs to list, not to read.
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

/* What keeps a checkpoint (checkpoint.h). */
typedef enum ls_checkpoint_kind {
    LS_CHECKPOINT_AUTO = 1, /* the retention rule */
    LS_CHECKPOINT_NAMED,    /* pinned: stays until it is released */
    LS_CHECKPOINT_PIN       /* pinned: a trainer has rewound to it, or is about to */
} ls_checkpoint_kind;

typedef struct ls_key {
    ls_object_kind kind;
    uint32_t epoch;    /* data: the producer's epoch; checkpoint: its ls_checkpoint_kind */
    uint64_t number;   /* data: producer id; manifest, floor: version; checkpoint: its number */
    uint64_t sequence; /* data: upload number within the epoch; checkpoint: its step */
    uint64_t source_begin, source_end; /* data, names of version 2: what the batch holds. No part of the identity */
    uint32_t footer_bytes; /* the same: length of its footer; 0: a name of version 1, which says none of this */
} ls_key;

#define LS_KEY_TEXT_BYTES 120 /* enough for every key with its terminating NUL */

ls_key ls_key_manifest(uint64_t version);
ls_key ls_key_floor(uint64_t version);
ls_key ls_key_checkpoint(uint64_t number, uint64_t step, ls_checkpoint_kind kind);
ls_key ls_key_data(uint64_t producer, uint32_t epoch, uint64_t sequence);

/* The name of version 2 of the same object: data/<producer>/<epoch, 10 digits>-<sequence, 20 digits>-<source begin>-<source
 * end>-<footer bytes>.tgb. Text order is the order of upload, and the name tells what an entry needs, so that others can
 * publish the batch (PROTOCOL.md, section 11). All data names of a lake are of one version. footer_bytes at least 1. */
ls_key ls_key_data_told(uint64_t producer, uint32_t epoch, uint64_t sequence, uint64_t source_begin, uint64_t source_end,
                        uint32_t footer_bytes);

/* Writes the key's text (without any prefix) into text and returns its length; 0 for an unknown kind. A checkpoint of kind 0 is
 * written without step and kind: no name, but the place in a list before all checkpoints of its number. */
size_t ls_key_format(const ls_key *key, char text[LS_KEY_TEXT_BYTES]);

/* Reads a key from NUL-terminated text that came from a store. Returns LS_ERROR_INVALID for anything that ls_key_format
 * would not have written, to the letter (so a foreign object under the prefix is never taken for ours). */
ls_result ls_key_parse(const char *text, ls_key *key);

/* "auto", "named", "pin"; NULL for anything else. */
const char *ls_checkpoint_kind_name(ls_checkpoint_kind kind);

/* Total order: kind, then number, epoch, sequence; the version of a data name makes no difference. Negative, zero or positive. */
int ls_key_compare(const ls_key *left, const ls_key *right);

#endif
