/* prices.h - what a store's requests and bytes cost, as providers publish it, and the bill of a run.
 *
 * A table holds the list prices of one storage class in one region for small customers: no free tier, no discount by
 * volume, no traffic out of the region. Prices move; each table says when and where it was read.
 */
#ifndef LS_PRICES_H
#define LS_PRICES_H

#include "sim/store_model.h"

typedef struct ls_price_table {
    const char *name;    /* of the store preset that it belongs to */
    const char *meaning; /* storage class and region */
    const char *read;    /* when the source was read, YYYY-MM */
    const char *source;
    double put_dollars; /* a request */
    double list_dollars;
    double get_dollars; /* head costs the same */
    double remove_dollars;
    double up_dollars_per_gib; /* on top of the requests */
    double down_dollars_per_gib;
    double held_dollars_per_gib_month;
    bool bills_refused; /* requests that end in 4xx (a lost put-if-absent, a name that is not there) cost as others do;
                           throttled ones (429, 503) are never billed */
} ls_price_table;

const ls_price_table *ls_price_tables(uint32_t *count);

/* The table of the scenario's choice "prices" (index as in LS_PRICE_CHOICES) for a store preset; NULL: none. */
#define LS_PRICE_CHOICES "by-store none s3-standard s3-express gcs azure-blob"
const ls_price_table *ls_price_table_for(uint32_t choice, const char *store_preset);

/* Dollars for the requests between two counts of one store, later - earlier, of one kind of object or of all others but
 * that kind. */
double ls_price_of_kind(const ls_price_table *table, const ls_store_counters *earlier, const ls_store_counters *later,
                        ls_object_kind kind);
double ls_price_of_others(const ls_price_table *table, const ls_store_counters *earlier, const ls_store_counters *later,
                          ls_object_kind kind);

#endif
