/* prices.c - see prices.h.
 *
 * Who bills a lost put-if-absent decides what contention costs. AWS bills requests that end in 4xx and not those that end
 * in 5xx (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ErrorCodeBilling.html; 412 and 409 are not among the
 * exceptions listed there). Google does not bill operations that return 4xx (https://cloud.google.com/storage/pricing,
 * note under the table of operations). Azure bills every request that is authenticated, also one without success
 * (https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories).
 */
#include "sim/prices.h"

#include <string.h>

#define GIB 1073741824.0

static const ls_price_table tables[] = {
    {.name = "s3-standard",
     .meaning = "AWS S3 Standard, US East (N. Virginia), first 50 TB",
     .read = "2026-12",
     .source = "https://aws.amazon.com/s3/pricing/ (request prices as quoted by "
               "https://c3x.dev/blog/s3-request-fees-explained)",
     .put_dollars = 0.005 / 1e3,
     .list_dollars = 0.005 / 1e3,
     .get_dollars = 0.0004 / 1e3,
     .held_dollars_per_gib_month = 0.023,
     .bills_refused = true},
    {.name = "s3-express",
     .meaning = "AWS S3 Express One Zone, US East (N. Virginia)",
     .read = "2026-12",
     .source = "https://aws.amazon.com/s3/faqs/, worked example of S3 Express One Zone",
     .put_dollars = 0.00113 / 1e3,
     .list_dollars = 0.00113 / 1e3,
     .get_dollars = 0.00003 / 1e3,
     .up_dollars_per_gib = 0.0032,
     .down_dollars_per_gib = 0.0006,
     .held_dollars_per_gib_month = 0.11,
     .bills_refused = true},
    {.name = "gcs",
     .meaning = "Google Cloud Storage, Standard, us-east1 (a single region)",
     .read = "2026-12",
     .source = "https://cloud.google.com/storage/pricing-examples",
     .put_dollars = 0.005 / 1e3,
     .list_dollars = 0.005 / 1e3,
     .get_dollars = 0.0004 / 1e3,
     .held_dollars_per_gib_month = 0.020,
     .bills_refused = false},
    {.name = "azure-blob",
     .meaning = "Azure Blob Storage, hot tier, LRS: Microsoft's sample prices for requests (its price page shows none "
                "without a session), US East list price for capacity",
     .read = "2026-12",
     .source = "https://learn.microsoft.com/azure/storage/blobs/blob-storage-estimate-costs, sample prices; "
               "https://azure.microsoft.com/pricing/details/storage/blobs/",
     .put_dollars = 0.055 / 1e4,
     .list_dollars = 0.055 / 1e4,
     .get_dollars = 0.0044 / 1e4,
     .held_dollars_per_gib_month = 0.018,
     .bills_refused = true},
};

const ls_price_table *ls_price_tables(uint32_t *count)
{
    *count = sizeof tables / sizeof tables[0];
    return tables;
}

/* Choices 0 and 1 are "by-store" and "none"; the others are the tables in their order. */
const ls_price_table *ls_price_table_for(uint32_t choice, const char *store_preset)
{
    uint32_t count = sizeof tables / sizeof tables[0];
    if (choice >= 2) return choice - 2 < count ? &tables[choice - 2] : NULL;
    for (uint32_t i = 0; choice == 0 && i < count; i++) {
        if (strcmp(tables[i].name, store_preset) == 0) return &tables[i];
    }
    return NULL;
}

static bool billed(const ls_price_table *table, ls_reply_status status)
{
    switch (status) {
    case LS_REPLY_OK: return true;
    case LS_REPLY_EXISTS:
    case LS_REPLY_CONFLICT_RETRY:
    case LS_REPLY_NOT_FOUND: return table->bills_refused;
    default: return false;
    }
}

static double request_dollars(const ls_price_table *table, ls_operation operation)
{
    switch (operation) {
    case LS_PUT: return table->put_dollars;
    case LS_LIST: return table->list_dollars;
    case LS_GET:
    case LS_HEAD: return table->get_dollars;
    case LS_DELETE: return table->remove_dollars;
    }
    return 0.0;
}

double ls_price_of_kind(const ls_price_table *table, const ls_store_counters *earlier, const ls_store_counters *later,
                        ls_object_kind kind)
{
    double dollars = 0;
    for (uint32_t operation = LS_GET; operation < LS_STORE_OPERATIONS; operation++) {
        for (uint32_t status = 0; status < LS_STORE_STATUSES; status++) {
            const ls_store_count *from = &earlier->by[operation][kind][status], *to = &later->by[operation][kind][status];
            if (!billed(table, (ls_reply_status)status)) continue;
            dollars += request_dollars(table, (ls_operation)operation) * (double)(to->requests - from->requests);
            dollars += table->up_dollars_per_gib * (double)(to->up_bytes - from->up_bytes) / GIB;
            dollars += table->down_dollars_per_gib * (double)(to->down_bytes - from->down_bytes) / GIB;
        }
    }
    return dollars;
}

double ls_price_of_others(const ls_price_table *table, const ls_store_counters *earlier,
                          const ls_store_counters *later, ls_object_kind kind)
{
    double dollars = 0;
    for (uint32_t other = LS_OBJECT_DATA; other < LS_STORE_KINDS; other++) {
        if (other != kind) dollars += ls_price_of_kind(table, earlier, later, (ls_object_kind)other);
    }
    return dollars;
}
