/* link.c - processor sharing by a virtual byte count and a heap of ends (see link.h). */
#include "sim/link.h"

#include <math.h>

void ls_link_open(ls_link *link, double bytes_per_s)
{
    *link = (ls_link){.bytes_per_s = bytes_per_s, .next_ns = LS_NEVER_NS};
}

void ls_link_close(ls_link *link)
{
    ls_free(link->heap);
    ls_link_open(link, link->bytes_per_s);
}

uint32_t ls_link_active(const ls_link *link)
{
    return link->count;
}

int64_t ls_link_next_ns(const ls_link *link)
{
    return link->next_ns;
}

static bool ends_before(const ls_link_transfer *left, const ls_link_transfer *right)
{
    if (left->end_bytes < right->end_bytes) return true;
    return left->end_bytes <= right->end_bytes && left->order < right->order;
}

static void sift_up(ls_link_transfer *heap, uint32_t place, ls_link_transfer moved)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / 2;
        if (!ends_before(&moved, &heap[parent])) break;
        heap[place] = heap[parent];
        place = parent;
    }
    heap[place] = moved;
}

static void sift_down(ls_link_transfer *heap, uint32_t count, ls_link_transfer moved)
{
    uint32_t place = 0;
    for (uint32_t child = 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && ends_before(&heap[child + 1], &heap[child])) child++;
        if (!ends_before(&heap[child], &moved)) break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = moved;
}

static void advance(ls_link *link, int64_t now_ns)
{
    if (link->count > 0) link->served_bytes += ls_seconds(now_ns - link->updated_ns) * link->bytes_per_s / link->count;
    link->updated_ns = now_ns;
}

static void plan(ls_link *link)
{
    if (link->count == 0) {
        /* Starting from zero again keeps the count small, hence exact. */
        link->served_bytes = 0.0;
        link->order = 0;
        link->next_ns = LS_NEVER_NS;
        return;
    }
    double missing = fmax(0.0, link->heap[0].end_bytes - link->served_bytes);
    double wait_ns = ceil(missing * link->count / link->bytes_per_s * 1e9);
    double room_ns = (double)(LS_NEVER_NS - link->updated_ns);
    link->next_ns = wait_ns < room_ns ? link->updated_ns + (int64_t)wait_ns : LS_NEVER_NS;
}

static bool grow(ls_link *link)
{
    if (link->count < link->capacity) return true;
    if (link->capacity > UINT32_MAX / 2) return false;
    uint32_t capacity = link->capacity == 0 ? 4 : 2 * link->capacity;
    ls_link_transfer *heap = ls_reallocate(link->heap, capacity * sizeof *heap);
    if (heap == NULL) return false;
    link->heap = heap;
    link->capacity = capacity;
    return true;
}

ls_result ls_link_start(ls_link *link, int64_t now_ns, uint64_t bytes, uint64_t tag)
{
    if (!grow(link)) return LS_ERROR_MEMORY;
    advance(link, now_ns);
    ls_link_transfer started = {.end_bytes = link->served_bytes + (double)bytes, .order = link->order++, .tag = tag};
    sift_up(link->heap, link->count++, started);
    plan(link);
    return LS_OK;
}

bool ls_link_finish(ls_link *link, int64_t now_ns, uint64_t *tag)
{
    if (link->count == 0 || now_ns < link->next_ns) return false;
    advance(link, now_ns);
    ls_link_transfer ended = link->heap[0];
    *tag = ended.tag;
    /* Rounding may leave the count a hair short of an end that time says has come. */
    link->served_bytes = fmax(link->served_bytes, ended.end_bytes);
    link->count--;
    if (link->count > 0) sift_down(link->heap, link->count, link->heap[link->count]);
    plan(link);
    return true;
}
